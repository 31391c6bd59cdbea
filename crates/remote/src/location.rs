//! A user's word for a file, taken apart.

use std::path::PathBuf;

use url::Url;

use crate::error::Error;

/// Where a file is, or a folder that holds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A file or directory on this machine.
    Path(PathBuf),
    /// `http://` or `https://`.
    Http(Url),
    /// `hf:organisation/repository[:file][@revision]`.
    Hub(Repository),
    /// `s3://`, `gs://` or `az://`: bucket and key.
    Bucket(Url),
}

/// A repository of the Hugging Face hub, or one file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// `organisation/name`.
    pub name: String,
    /// A path in the repository ending in `.gguf`, or a part of one such as `Q4_K_M`; `None` for
    /// the only one.
    pub file: Option<String>,
    /// A branch, tag or commit.
    pub revision: String,
}

impl Location {
    /// Takes a word apart: everything without one of the schemes is a path.
    ///
    /// # Errors
    /// [`Error::Location`] for a scheme that is not known or a word that does not fit its scheme.
    pub fn parse(word: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Location { word: shown_word(word), why: why.into() };
        if word == "-" {
            return Err(wrong(
                "models are read at many places, which a stream cannot do: name a file",
            ));
        }
        if let Some(rest) = word.strip_prefix("hf:") {
            return Repository::parse(rest).map(Self::Hub).map_err(wrong);
        }
        let Some((scheme, _)) = word.split_once("://") else { return Ok(Self::Path(word.into())) };
        if !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return Ok(Self::Path(word.into()));
        }
        let url = || Url::parse(word).map_err(|error| wrong(&error.to_string()));
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                let url = url()?;
                if !url.username().is_empty() || url.password().is_some() {
                    return Err(wrong("a user name or password in a URL is not supported"));
                }
                Ok(Self::Http(url))
            }
            "s3" | "gs" | "az" => {
                let url = url()?;
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(wrong("the bucket is missing; write scheme://bucket/key"));
                }
                Ok(Self::Bucket(url))
            }
            "file" => {
                let path = url()?.to_file_path();
                path.map(Self::Path).map_err(|()| wrong("it names no path on this machine"))
            }
            _ => Err(wrong("known are paths, https://, http://, hf:, s3://, gs:// and az://")),
        }
    }
}

impl Repository {
    fn parse(word: &str) -> Result<Self, &'static str> {
        const FORM: &str = "write hf:organisation/repository[:file][@revision]";
        let (word, revision) = match word.rsplit_once('@') {
            Some((word, revision)) => (word, revision),
            None => (word, "main"),
        };
        let (name, file) = match word.split_once(':') {
            Some((name, file)) => (name, Some(file)),
            None => (word, None),
        };
        let good_name = |part: &str| {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            good_segment(part) && part.bytes().all(allowed)
        };
        let good = name.split('/').count() == 2
            && name.split('/').all(good_name)
            && revision.split('/').all(good_segment)
            && file.is_none_or(|file| file.split('/').all(good_segment));
        let owned = |part: &str| part.to_owned();
        good.then(|| Self { name: owned(name), file: file.map(owned), revision: owned(revision) })
            .ok_or(FORM)
    }
}

/// Not empty, and not a step in a path.
pub(crate) fn good_segment(segment: &str) -> bool {
    !segment.is_empty() && segment != "." && segment != ".."
}

/// A word fit for a message: what follows `?` may be a signature, what precedes `@` a password.
pub(crate) fn shown_word(word: &str) -> String {
    match Url::parse(word) {
        Ok(url) if url.has_host() => shown(&url),
        _ => word.into(),
    }
}

/// A URL fit for a message, without the parts that may hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail for URLs without a host only, which have neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
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
            ("file:///a/b.gguf", Location::Path("/a/b.gguf".into())),
            ("hf:org/repo", hub("org/repo", None, "main")),
            ("hf:org/repo:Q4_K_M", hub("org/repo", Some("Q4_K_M"), "main")),
            ("hf:o/r:sub/a.gguf@refs/pr/1", hub("o/r", Some("sub/a.gguf"), "refs/pr/1")),
            ("hf:o/r@v1.0", hub("o/r", None, "v1.0")),
            ("https://h/a?b=c", Location::Http("https://h/a?b=c".parse().unwrap())),
            ("s3://bucket/a/b.gguf", Location::Bucket("s3://bucket/a/b.gguf".parse().unwrap())),
        ];
        for (word, location) in cases {
            assert_eq!(Location::parse(word).unwrap(), location, "{word}");
        }
    }

    #[test]
    fn wrong_words_are_explained_without_their_secrets() {
        let words = [
            "hf:repo",
            "hf:a/b/c",
            "hf:../b",
            "hf:a/b:../c.gguf",
            "hf:a/b@",
            "hf:a/b:",
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
