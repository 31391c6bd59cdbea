//! Locations of files.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use crate::error::Error;
use crate::ollama::{OllamaName, OllamaStore};

/// Location of a file, or of a directory that holds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A local file or directory.
    Path(PathBuf),
    /// `http://` or `https://`.
    Http(Url),
    /// `hf:organisation/repository[:file][@revision]`. A file that ends in `.gguf` may also follow a `/`.
    Hub(Repository),
    /// `s3://`, `gs://` or `az://`: bucket and object key.
    Object(Url),
}

/// A repository on the Hugging Face Hub, or one file in it.
///
/// `Display` writes it as a location: `hf:organisation/repository[@revision][:file]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// `organisation/name`.
    pub name: String,
    /// Path of a file in the repository ending in `.gguf`, or a part of it such as `Q4_K_M`; `None`
    /// for the only file.
    pub file: Option<String>,
    /// Branch, tag or commit.
    pub revision: String,
}

impl Location {
    /// Parses a location: everything without a known scheme is a local path. `ollama:NAME` is the path of a file in the
    /// store of Ollama.
    ///
    /// # Errors
    /// [`Error::Location`] for an unknown scheme or a string that does not fit its scheme.
    pub fn parse(word: &str) -> Result<Self, Error> {
        let invalid = |reason: &str| Error::Location { word: redact(word), reason: reason.into() };
        if word == "-" {
            return Err(invalid(
                "a model needs random access, which a stream does not have: name a file",
            ));
        }
        if let Some(name) = word.strip_prefix("ollama:") {
            let name = OllamaName::parse(name).map_err(invalid)?;
            return OllamaStore::from_env().model(&name).map(Self::Path);
        }
        if let Some(rest) = word.strip_prefix("hf:") {
            return Repository::parse(rest).map(Self::Hub).map_err(invalid);
        }
        let Some((scheme, _)) = word.split_once("://") else { return Ok(Self::Path(word.into())) };
        if !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return Ok(Self::Path(word.into()));
        }
        let url = || Url::parse(word).map_err(|error| invalid(&error.to_string()));
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                let url = url()?;
                if !url.username().is_empty() || url.password().is_some() {
                    return Err(invalid("a user name or password in a URL is not supported"));
                }
                Ok(Self::Http(url))
            }
            "s3" | "gs" | "az" => {
                let url = url()?;
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(invalid("the bucket is missing; expected scheme://bucket/key"));
                }
                Ok(Self::Object(url))
            }
            "file" => {
                let path = url()?.to_file_path();
                path.map(Self::Path).map_err(|()| invalid("it is not a local path"))
            }
            _ => Err(invalid(
                "expected a path, https://, http://, hf:, ollama:, s3://, gs:// or az://",
            )),
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}", self.name)?;
        if self.revision != "main" {
            write!(f, "@{}", self.revision)?;
        }
        self.file.as_ref().map_or(Ok(()), |file| write!(f, ":{file}"))
    }
}

impl Repository {
    fn parse(word: &str) -> Result<Self, &'static str> {
        const FORM: &str = "expected hf:organisation/repository[:file][@revision]";
        let (word, revision) = match word.rsplit_once('@') {
            Some((word, revision)) => (word, revision),
            None => (word, "main"),
        };
        // A revision has no colon.
        let (revision, late_file) = match revision.split_once(':') {
            Some((revision, file)) => (revision, Some(file)),
            None => (revision, None),
        };
        let (name, file) = match word.split_once(':') {
            Some((name, file)) => (name, Some(file)),
            None => match split_file(word) {
                Some((name, file)) => (name, Some(file)),
                None => (word, late_file),
            },
        };
        let is_valid_name = |part: &str| {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            is_valid_segment(part) && part.bytes().all(allowed)
        };
        let is_valid = name.split('/').count() == 2
            && (late_file.is_none() || file == late_file)
            && name.split('/').all(is_valid_name)
            && revision.split('/').all(is_valid_segment)
            && file.is_none_or(|file| file.split('/').all(is_valid_segment));
        let owned = |part: &str| part.to_owned();
        is_valid
            .then(|| Self { name: owned(name), file: file.map(owned), revision: owned(revision) })
            .ok_or(FORM)
    }
}

/// Splits `organisation/repository/file.gguf`.
fn split_file(word: &str) -> Option<(&str, &str)> {
    let slash = word.match_indices('/').nth(1)?.0;
    let (name, file) = (&word[..slash], &word[slash + 1..]);
    file.to_lowercase().ends_with(".gguf").then_some((name, file))
}

/// Whether a path segment is not empty, `.` or `..`.
pub(crate) fn is_valid_segment(segment: &str) -> bool {
    !segment.is_empty() && segment != "." && segment != ".."
}

/// Returns a location as it can be printed, without its secrets: the query of a URL may be a signature, the user info a
/// password.
pub fn redact(word: &str) -> String {
    match Url::parse(word) {
        Ok(url) if url.has_host() => redact_url(&url),
        _ => word.into(),
    }
}

/// Formats a URL for a message, without the parts that may hold secrets.
pub(crate) fn redact_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host, which have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_parsed() {
        let hub = |name: &str, file: Option<&str>, revision: &str| {
            Location::Hub(Repository {
                name: name.into(),
                file: file.map(Into::into),
                revision: revision.into(),
            })
        };
        let cases = [
            ("model.gguf", Location::Path("model.gguf".into())),
            ("C:\\models\\a.gguf", Location::Path("C:\\models\\a.gguf".into())),
            ("odd dir://x", Location::Path("odd dir://x".into())),
            #[cfg(unix)]
            ("file:///a/b.gguf", Location::Path("/a/b.gguf".into())),
            #[cfg(windows)]
            ("file:///C:/a/b.gguf", Location::Path("C:\\a\\b.gguf".into())),
            ("hf:org/repo", hub("org/repo", None, "main")),
            ("hf:org/repo:Q4_K_M", hub("org/repo", Some("Q4_K_M"), "main")),
            ("hf:o/r:sub/a.gguf@refs/pr/1", hub("o/r", Some("sub/a.gguf"), "refs/pr/1")),
            ("hf:o/r@v1.0", hub("o/r", None, "v1.0")),
            ("hf:o/r/sub/a.gguf", hub("o/r", Some("sub/a.gguf"), "main")),
            ("hf:o/r/a.GGUF@v1.0", hub("o/r", Some("a.GGUF"), "v1.0")),
            ("hf:o/r@refs/pr/1:sub/a.gguf", hub("o/r", Some("sub/a.gguf"), "refs/pr/1")),
            ("https://h/a?b=c", Location::Http("https://h/a?b=c".parse().unwrap())),
            ("s3://bucket/a/b.gguf", Location::Object("s3://bucket/a/b.gguf".parse().unwrap())),
        ];
        for (word, location) in cases {
            assert_eq!(Location::parse(word).unwrap(), location, "{word}");
        }
    }

    #[test]
    fn invalid_locations_are_reported_without_secrets() {
        let words = [
            "hf:repo",
            "hf:a/b/c",
            "hf:../b",
            "hf:a/b:../c.gguf",
            "hf:a/b@",
            "hf:a/b:",
            "hf:a/b:c@d:e",
            "hf:a/b/c.gguf@d:e",
            "hf:a/b/../c.gguf",
            "hf://a/b",
            "ftp://host/file",
            "s3:///key",
            "https://",
            "https://user:secret@host/file?secret",
        ];
        for word in words {
            let message = Location::parse(word).expect_err(word).to_string();
            assert!(message.starts_with('`') && !message.contains("secret"), "{message}");
        }
    }
}
