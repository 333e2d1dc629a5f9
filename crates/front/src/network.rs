//! Networks of addresses, as lists of who may come in name them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// `10.0.0.0/8`, `2001:db8::/32`, or a single address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The bits of an address, left-aligned in 128, and how many there are.
fn bits_of(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl Network {
    /// Whether an address belongs to it. One of version 4 that comes in a coat of version 6 is one of
    /// version 4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, own_length) = bits_of(self.address);
        let (other, other_length) = bits_of(address.to_canonical());
        own_length == other_length && (self.bits == 0 || (own ^ other) >> (128 - self.bits) == 0)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found {text:?}, expected an address, or a network such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| expected())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let (value, length) = bits_of(address);
        let bits = bits.unwrap_or(length);
        if bits > length {
            return Err(format!("found {text:?}, expected at most /{length}"));
        }
        // Whoever writes 10.1.2.3/8 means something else than what that says.
        if bits < 128 && value << bits != 0 {
            return Err(format!(
                "found {text:?}, which has bits behind its first {bits}; expected a network"
            ));
        }
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_what_begins_as_they_do() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        for (network, address) in [
            ("10.0.0.0/8", "10.255.0.1"),
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.6/31", "192.0.2.7"),
            ("0.0.0.0/0", "8.8.8.8"),
            ("::/0", "2001:db8::1"),
            ("2001:db8::/33", "2001:db8:7fff::1"),
            ("::1", "::1"),
            ("127.0.0.0/8", "::ffff:127.0.0.1"),
        ] {
            assert!(holds(network, address), "{network} {address}");
        }
        for (network, address) in [
            ("10.0.0.0/8", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "::1"),
            ("::/0", "127.0.0.1"),
            ("2001:db8::/33", "2001:db8:8000::1"),
        ] {
            assert!(!holds(network, address), "{network} {address}");
        }
        for text in ["", "10", "10.0.0.0/33", "::/129", "10.1.2.3/8", "10.0.0.0/-1", "10.0.0.0/8/8", "a/b"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
