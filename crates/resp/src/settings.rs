//! What a server is set to.

use std::fmt;

/// When an acknowledged write is durable; only told to clients here, the store does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durable {
    /// When it is acknowledged.
    #[default]
    Always,
    /// A second later.
    EverySecond,
    /// When somebody saves.
    OnSave,
}

impl Durable {
    /// What Redis calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::OnSave => "no",
        }
    }
}

/// What clients have to say first.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Box<[u8]>);

impl Password {
    /// These bytes; at least one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self(bytes.into()))
    }

    /// Whether this is it. How long it takes says nothing of where they differ.
    pub fn is(&self, said: &[u8]) -> bool {
        let mut differs = u8::from(said.len() != self.0.len());
        for (index, own) in self.0.iter().enumerate() {
            differs |= own ^ said.get(index).copied().unwrap_or(!own);
        }
        std::hint::black_box(differs) == 0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// What clients have to say first, if anything.
    pub password: Option<Password>,
    /// Whether a client may stop the server.
    pub may_shut_down: bool,
    /// When writes are durable.
    pub durable: Durable,
    /// What is served, for people.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_itself_and_nothing_else() {
        let password = Password::new(b"open sesame").expect("it has bytes");
        assert!(password.is(b"open sesame"));
        for other in [&b""[..], b"open sesam", b"open sesame ", b"Open sesame"] {
            assert!(!password.is(other));
        }
        assert!(Password::new(b"").is_none());
        assert_eq!(format!("{password:?}"), "Password(..)");
    }
}
