//! Detection of other formats in files that are not GGUF.

use crate::finding::Finding;

/// Returns the format that these first bytes of a file suggest, and advice.
pub(crate) fn finding(bytes: &[u8]) -> Finding {
    /// Number of bytes that the detection reads.
    const LOOKED_AT: usize = 512;
    let (what, help) = detect(&bytes[..bytes.len().min(LOOKED_AT)]);
    Finding::error("magic", what).at(0).help(help)
}

fn detect(start: &[u8]) -> (String, &'static str) {
    const DOWNLOAD: &str = "download it again: from the hub by the address with /resolve/ in it, and with a \
                            token where the model is gated";
    let is = |what: &str, help| (what.to_owned(), help);
    if start.len() < 4 {
        return is("the file has less than four bytes", "copy or download it again");
    }
    if start.get(8) == Some(&b'{') && start[3..8] == [0; 5] {
        return is(
            "this is a safetensors file",
            "convert it, or its directory, with `gguf convert`",
        );
    }
    match &start[..4] {
        b"lmgg" | b"fmgg" | b"tjgg" | b"algg" | b"ccgg" => {
            return is("this is a legacy GGML file", "convert it with `gguf convert`");
        }
        b"PK\x03\x04" => {
            return is(
                "this is a zip archive, perhaps a PyTorch checkpoint",
                "convert its directory with `gguf convert`",
            );
        }
        [0x1f, 0x8b, ..] | b"\x28\xb5\x2f\xfd" | b"BZh9" | b"\xfd7zX" => {
            return is("this is a compressed file", "unpack it first");
        }
        [0, 0, 0, 0] if start.iter().all(|byte| *byte == 0) => {
            return is(
                "the file begins with zeros, as an unfinished download does",
                "download it again",
            );
        }
        _ => {}
    }
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("version https://git-lfs") {
        let help = "fetch the real file with `git lfs pull`";
        return is("this is a Git LFS pointer, not the file itself", help);
    }
    if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| lower.starts_with(tag)) {
        return is("this is an HTML page saved under the name of a model", DOWNLOAD);
    }
    if lower.starts_with("<?xml") {
        return is("this is an XML document, perhaps the error message of a server", DOWNLOAD);
    }
    if text.starts_with(['{', '[']) && is_text(start) {
        let what = if lower.contains("\"error\"") {
            format!("this is the error message of a server: {}", line(text))
        } else {
            "this is a JSON file, not a model".into()
        };
        return (what, DOWNLOAD);
    }
    if is_text(start) {
        // The beginning of a file can be a secret; the message of a server is a sentence.
        return match is_sentence(text) {
            true => (format!("this is a text file, not a model: {}", line(text)), DOWNLOAD),
            false => is("this is a text file, not a model", "specify a GGUF file"),
        };
    }
    is(
        "the file does not start with the magic GGUF",
        "it is another kind of file, or its start was overwritten",
    )
}

/// Returns true for UTF-8 without control characters, possibly truncated within a character.
fn is_text(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // An error without a length: the text is truncated within a character.
        Err(fault) if fault.error_len().is_none() => {
            std::str::from_utf8(&bytes[..fault.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !valid.is_empty() && valid.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

/// Whether a text is a single short line of words.
fn is_sentence(text: &str) -> bool {
    const LONGEST: usize = 120;
    let line = text.trim_end();
    line.len() <= LONGEST
        && line.contains(' ')
        && line.chars().all(|c| c.is_alphabetic() || " .,'\"-".contains(c))
}

/// Returns the beginning of a text in one line.
fn line(text: &str) -> String {
    const SHOWN: usize = 80;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_detected() {
        let zip = b"PK\x03\x04 and so on";
        let safetensors = b"\x40\0\0\0\0\0\0\0{\"a\":{}}";
        let cases: [(&[u8], &str); 16] = [
            (b"<!DOCTYPE html>\n<html>", "HTML page"),
            (b"\xef\xbb\xbf\n <HTML lang=en>", "HTML page"),
            (b"<?xml version=\"1.0\"?><Error/>", "XML document"),
            (
                b"{\"error\":\"Repository\n  not found\"}",
                "of a server: {\"error\":\"Repository not found\"}",
            ),
            (b"{\"a\": 1}", "JSON file"),
            (b"Entry not found", "this is a text file, not a model: Entry not found"),
            (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
            (b"versatile", "this is a text"),
            (b"user:secret", "this is a text file, not a model"),
            (safetensors, "safetensors file"),
            (zip, "zip archive"),
            (b"\x1f\x8b\x08\0\0\0", "compressed"),
            (&[0; 600], "begins with zeros"),
            (b"lmgg\x01\0\0\0", "legacy GGML"),
            (b"GG", "less than four bytes"),
            (b"\x80\x02\x8a\nl\xfc", "does not start with the magic GGUF"),
        ];
        for (bytes, expected) in cases {
            let message = finding(bytes).message;
            assert!(message.contains(expected), "{message}, not {expected}");
            assert!(!message.contains("secret"), "{message}");
        }
        // A text that is truncated within a character is a text.
        assert!(
            finding("Zugriff verweigert: ü".as_bytes().split_last().unwrap().1)
                .message
                .contains("text")
        );
    }
}
