//! Lines of tiktoken files: a token in base64, and its rank.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::folder::Folder;

/// Returns whether the first line of a file is a token in base64 and a number.
pub(super) fn is_tiktoken(folder: &Folder, name: &str) -> bool {
    let start = folder.start(name, 4096);
    let line = start.split(|&byte| byte == b'\n').next().and_then(|line| str::from_utf8(line).ok());
    line.is_some_and(|line| entry(line).is_some())
}

/// Parses the token and the rank in a line.
pub(super) fn entry(line: &str) -> Option<(Vec<u8>, u64)> {
    let (token, rank) = line.split_once(' ')?;
    let token = BASE64.decode(token).ok().filter(|token| !token.is_empty())?;
    Some((token, rank.trim_end().parse().ok()?))
}
