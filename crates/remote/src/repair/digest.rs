//! Digests that the hub states.

use std::fmt;

use gguf_store::digest::hex;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Digest of a file of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteDigest {
    /// SHA-256 of a large file, in lower-case hexadecimal digits.
    Sha256(String),
    /// Id of the Git blob of a small file: SHA-1 of a prefix with the length, and of the content.
    GitBlob(String),
}

impl RemoteDigest {
    /// Parses an ETag of the hub; `None` if it is not a digest.
    pub(super) fn parse(etag: &str) -> Option<Self> {
        if !etag.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let digits = etag.to_ascii_lowercase();
        match digits.len() {
            64 => Some(Self::Sha256(digits)),
            40 => Some(Self::GitBlob(digits)),
            _ => None,
        }
    }

    /// Returns the hexadecimal digits.
    pub fn hex(&self) -> &str {
        match self {
            Self::Sha256(digits) | Self::GitBlob(digits) => digits,
        }
    }

    /// Returns the hexadecimal digits of a SHA-256.
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Self::Sha256(digits) => Some(digits),
            Self::GitBlob(_) => None,
        }
    }

    /// Returns a hasher for the same kind of digest of a file of `len` bytes.
    pub(super) fn hasher(&self, len: u64) -> Hasher {
        match self {
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::GitBlob(_) => Hasher::GitBlob(Sha1::new().chain_update(format!("blob {len}\0"))),
        }
    }
}

/// Writes kind and digits, as in `SHA-256 is 1f2e...`.
impl fmt::Display for RemoteDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(digits) => write!(f, "SHA-256 is {digits}"),
            Self::GitBlob(digits) => write!(f, "Git blob id is {digits}"),
        }
    }
}

/// Computes a [`RemoteDigest`].
pub(super) enum Hasher {
    Sha256(Sha256),
    GitBlob(Sha1),
}

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::GitBlob(hasher) => hasher.update(bytes),
        }
    }

    pub fn finish(self) -> RemoteDigest {
        match self {
            Self::Sha256(hasher) => RemoteDigest::Sha256(hex(&hasher.finalize())),
            Self::GitBlob(hasher) => RemoteDigest::GitBlob(hex(&hasher.finalize())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids are those that `git hash-object` and `sha256sum` print.
    #[test]
    fn digests_are_those_of_git_and_sha256sum() {
        let blob = RemoteDigest::parse("CE013625030BA8DBA906F756967F9E9CA394464A").unwrap();
        let mut hasher = blob.hasher(6);
        hasher.update(b"hel");
        hasher.update(b"lo\n");
        assert_eq!(hasher.finish(), blob);
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        let sha256 = RemoteDigest::parse(sha256).unwrap();
        let mut hasher = sha256.hasher(6);
        hasher.update(b"hello\n");
        assert_eq!(hasher.finish(), sha256);
        for etag in ["", "1", "c-4", &"0".repeat(32), &"g".repeat(64), &"0".repeat(65)] {
            assert_eq!(RemoteDigest::parse(etag), None, "{etag}");
        }
    }
}
