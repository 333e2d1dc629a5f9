//! Answers, in both versions of the protocol.

use std::io::Write;

/// What a client understands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Version {
    /// RESP2, which every client begins with.
    #[default]
    Two,
    /// RESP3, after `HELLO 3`.
    Three,
}

/// Writes answers to the end of some bytes.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Reply<'a> {
    /// Answers in a version.
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    /// The version it is written in.
    pub fn version(&self) -> Version {
        self.version
    }

    fn line(&mut self, mark: char, text: std::fmt::Arguments<'_>) {
        write!(self.out, "{mark}{text}\r\n").expect("memory takes what is written to it");
    }

    /// `+text`, a short word of ours.
    pub fn simple(&mut self, text: &str) {
        self.line('+', format_args!("{text}"));
    }

    /// `-text`. What a client sent may be in it: ends of lines become blanks.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let plain = |byte: u8| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
        self.out.extend(text.bytes().map(plain));
        self.out.extend_from_slice(b"\r\n");
    }

    /// A whole number.
    pub fn integer(&mut self, value: i64) {
        self.line(':', format_args!("{value}"));
    }

    /// How many of something there are.
    pub fn count(&mut self, value: usize) {
        self.line(':', format_args!("{value}"));
    }

    /// Bytes.
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.bulk_head(bytes.len());
        self.out.extend_from_slice(bytes);
        self.bulk_end();
    }

    /// Announces so many bytes, which the caller sends, and then [the end](Self::bulk_end).
    pub fn bulk_head(&mut self, length: usize) {
        self.line('$', format_args!("{length}"));
    }

    /// Ends bytes.
    pub fn bulk_end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// Text for people, which RESP3 marks as such.
    pub fn text(&mut self, text: &str) {
        match self.version {
            Version::Two => self.bulk(text.as_bytes()),
            Version::Three => {
                self.line('=', format_args!("{}", text.len() + 4));
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.bulk_end();
            }
        }
    }

    /// Nothing is there.
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        });
    }

    /// No list is there.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Two => b"*-1\r\n",
            Version::Three => b"_\r\n",
        });
    }

    /// A list of so many, which follow.
    pub fn array(&mut self, count: usize) {
        self.line('*', format_args!("{count}"));
    }

    /// So many pairs, which follow.
    pub fn map(&mut self, count: usize) {
        match self.version {
            Version::Two => self.line('*', format_args!("{}", count * 2)),
            Version::Three => self.line('%', format_args!("{count}")),
        }
    }

    /// A set of so many, which follow.
    pub fn set(&mut self, count: usize) {
        match self.version {
            Version::Two => self.array(count),
            Version::Three => self.line('~', format_args!("{count}")),
        }
    }

    /// Bytes that are already an answer.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }
}
