//! Versions of a remote file.

use std::time::Duration;

use ureq::http::HeaderMap;
use url::Url;

use crate::client::text;
use crate::error::Fault;
use crate::location::redact_url;

/// Version of a remote file, which must not change between two responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub len: u64,
    /// Strong `ETag`. A weak one, `W/"..."`, may stay the same when bytes change, and is ignored.
    tag: Option<String>,
    /// `Last-Modified`, and whether the file cannot have changed again within the same second.
    date: Option<(String, bool)>,
    /// Digest of the content, stated by the hub.
    digest: Option<String>,
}

impl Version {
    /// Builds the version from the response headers for a file of `len` bytes; `digest` comes from
    /// a redirect of the hub.
    pub fn from_headers(headers: &HeaderMap, len: u64, digest: Option<&str>) -> Self {
        let date = text(headers, "Last-Modified");
        Self {
            len,
            tag: strong(text(headers, "ETag")),
            date: date.map(|date| (date.to_owned(), is_settled(date, text(headers, "Date")))),
            digest: strong(digest),
        }
    }

    /// Returns the value of `If-Range`: the server sends a range only of this version.
    pub fn condition(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the digest that the hub states, else the strong ETag, without quotes.
    pub fn etag(&self) -> Option<&str> {
        self.digest.as_deref().or(self.tag.as_deref()).map(|tag| tag.trim_matches('"'))
    }

    /// Returns the digest that the hub states, else the strong ETag if the hub itself sent the file, without quotes.
    pub fn hub_etag(&self, is_from_hub: bool) -> Option<&str> {
        let tag = self.tag.as_deref().filter(|_| is_from_hub);
        self.digest.as_deref().or(tag).map(|tag| tag.trim_matches('"'))
    }

    /// Compares a later response with this version. `len` is `None` if the response does not state
    /// the length of the file, which is accepted.
    ///
    /// # Errors
    /// [`Fault::Changed`] if the response is of another version, or no longer states the version.
    pub fn check(
        &self,
        headers: &HeaderMap,
        len: Option<u64>,
        digest: Option<&str>,
    ) -> Result<(), Fault> {
        let other = Self::from_headers(headers, len.unwrap_or(self.len), digest);
        let same_content = match (&self.tag, &self.date) {
            (Some(tag), _) => other.tag.as_ref() == Some(tag),
            (None, Some((date, _))) => other.date.as_ref().is_some_and(|(other, _)| other == date),
            (None, None) => true,
        };
        // Only responses through the hub state the digest.
        let same_digest = other.digest.is_none() || other.digest == self.digest;
        if other.len != self.len || !same_content || !same_digest {
            return Err(Fault::Changed);
        }
        Ok(())
    }

    /// Returns a string that changes with the content: location, length, and the most reliable
    /// version. `None` if no version is known, so that two versions of the same length cannot be
    /// distinguished.
    pub fn identity(&self, url: &Url) -> Option<String> {
        let (place, version) = if let Some(digest) = &self.digest {
            // The digest identifies the bytes in any commit.
            (url.origin().ascii_serialization(), digest)
        } else {
            let settled = self.date.as_ref().filter(|(_, settled)| *settled);
            (place(url), self.tag.as_ref().or(settled.map(|(date, _)| date))?)
        };
        Some(format!("{place} {} {version}", self.len))
    }
}

/// Returns an ETag if it is strong.
pub(crate) fn strong(tag: Option<&str>) -> Option<String> {
    tag.filter(|tag| tag.starts_with('"')).map(Into::into)
}

/// Whether a `Last-Modified` is at least a second older than its response, so that it is a strong
/// validator (RFC 9110, 8.8.2.2).
fn is_settled(modified: &str, date: Option<&str>) -> bool {
    let parse = |date: &str| httpdate::parse_http_date(date).ok();
    let age = || parse(date?)?.duration_since(parse(modified)?).ok();
    age().is_some_and(|age| age >= Duration::from_secs(1))
}

/// Returns the URL of a file. A signed query is removed: it is secret and changes every time, and
/// signing stores name the file in the path.
fn place(url: &Url) -> String {
    let is_signature = |name: &str| {
        ["signature", "x-amz-signature", "x-goog-signature", "sig"]
            .contains(&name.to_ascii_lowercase().as_str())
    };
    match url.query() {
        Some(query) if !url.query_pairs().any(|(name, _)| is_signature(&name)) => {
            format!("{}?{query}", redact_url(url))
        }
        _ => redact_url(url),
    }
}

#[cfg(test)]
mod tests {
    use ureq::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    const OLD: (&str, &str) = ("Last-Modified", "Sun, 06 Nov 1994 08:49:36 GMT");
    const NEW: (&str, &str) = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    const NOW: (&str, &str) = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");

    #[test]
    fn identities_distinguish_versions_without_secrets() {
        let url = Url::parse("https://host/m.gguf?rev=2").unwrap();
        let identity =
            |lines: &[_], digest| Version::from_headers(&headers(lines), 9, digest).identity(&url);
        let strong = identity(&[("ETag", "\"a\""), OLD, NOW], None).unwrap();
        assert_eq!(strong, "https://host/m.gguf?rev=2 9 \"a\"");
        let dated = identity(&[("ETag", "W/\"a\""), OLD, NOW], None).unwrap();
        assert_eq!(dated, "https://host/m.gguf?rev=2 9 Sun, 06 Nov 1994 08:49:36 GMT");
        let linked = identity(&[("ETag", "\"a\"")], Some("\"sha\""));
        assert_eq!(linked.unwrap(), "https://host 9 \"sha\"");
        for nothing in [&[][..], &[("ETag", "W/\"a\"")], &[NEW, NOW], &[OLD]] {
            assert_eq!(identity(nothing, None), None, "{nothing:?}");
        }
        for query in ["X-Amz-Signature=x&X-Amz-Expires=9", "se=2026&sig=x", "Expires=9&Signature=x"]
        {
            let url = Url::parse(&format!("https://host/m.gguf?{query}")).unwrap();
            let version = Version::from_headers(&headers(&[("ETag", "\"a\"")]), 9, None);
            assert_eq!(version.identity(&url).unwrap(), "https://host/m.gguf 9 \"a\"");
        }
    }

    #[test]
    fn other_versions_are_detected() {
        let same = |first: &[_], later: &[_]| {
            let version = Version::from_headers(&headers(first), 9, Some("\"sha\""));
            version.check(&headers(later), Some(9), None).is_ok()
        };
        let (a, b) = (("ETag", "\"a\""), ("ETag", "\"b\""));
        assert!(same(&[a, OLD], &[a]));
        assert!(!same(&[a], &[b]) && !same(&[a, OLD], &[OLD]) && !same(&[a], &[]));
        assert!(same(&[OLD], &[OLD, b]));
        assert!(!same(&[OLD], &[NEW]) && !same(&[OLD], &[]));
        assert!(same(&[], &[a]) && same(&[("ETag", "W/\"a\"")], &[("ETag", "W/\"b\"")]));
        let version = Version::from_headers(&headers(&[a]), 9, Some("\"sha\""));
        assert_eq!(version.check(&headers(&[a]), Some(8), None), Err(Fault::Changed));
        assert_eq!(version.check(&headers(&[a]), None, Some("\"other\"")), Err(Fault::Changed));
        assert_eq!(version.check(&headers(&[a]), None, Some("\"sha\"")), Ok(()));
    }
}
