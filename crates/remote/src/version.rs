//! Which version of a file a server speaks of.

use std::time::Duration;

use ureq::http::HeaderMap;
use url::Url;

use crate::client::text;
use crate::error::Fault;
use crate::location::shown;

/// What must not change between two answers about one file, and between two runs that read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub len: u64,
    /// A strong `ETag`. A weak one, `W/"..."`, may stay the same when bytes change, and counts for
    /// nothing.
    tag: Option<String>,
    /// `Last-Modified`, and whether nothing can have changed within its second since.
    date: Option<(String, bool)>,
    /// The digest of the content that the hub knows.
    digest: Option<String>,
}

impl Version {
    /// What the headers of an answer say about a file of `len` bytes; `digest` is what the hub said
    /// on the way there.
    pub fn of(headers: &HeaderMap, len: u64, digest: Option<&str>) -> Self {
        let date = text(headers, "Last-Modified");
        Self {
            len,
            tag: strong(text(headers, "ETag")),
            date: date.map(|date| (date.to_owned(), is_settled(date, text(headers, "Date")))),
            digest: strong(digest),
        }
    }

    /// The condition under which a server is to send a part of the file, not the whole of another
    /// version: for `If-Range`.
    pub fn condition(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Compares a later answer with this one. `len` is `None` if it does not say how long the file is:
    /// who sends a body of unknown length has at least not denied it.
    ///
    /// # Errors
    /// [`Fault::Changed`] if it is about another version, or no longer says which.
    pub fn expect(
        &self,
        headers: &HeaderMap,
        len: Option<u64>,
        digest: Option<&str>,
    ) -> Result<(), Fault> {
        let other = Self::of(headers, len.unwrap_or(self.len), digest);
        let same_content = match (&self.tag, &self.date) {
            (Some(tag), _) => other.tag.as_ref() == Some(tag),
            (None, Some((date, _))) => other.date.as_ref().is_some_and(|(other, _)| other == date),
            (None, None) => true,
        };
        // Only those who ask the hub again hear of it.
        let same_digest = other.digest.is_none() || other.digest == self.digest;
        if other.len != self.len || !same_content || !same_digest {
            return Err(Fault::Changed);
        }
        Ok(())
    }

    /// A text that is another one for another content of what is at `url`: the place, the length,
    /// and the best that is known of the version. `None` if nothing is: two versions of the same
    /// length could not be told apart.
    pub fn identity(&self, url: &Url) -> Option<String> {
        let (place, version) = if let Some(digest) = &self.digest {
            // The same bytes in any commit.
            (url.origin().ascii_serialization(), digest)
        } else {
            let settled = self.date.as_ref().filter(|(_, settled)| *settled);
            (place(url), self.tag.as_ref().or(settled.map(|(date, _)| date))?)
        };
        Some(format!("{place} {} {version}", self.len))
    }
}

/// An entity tag that stands for bytes.
pub(crate) fn strong(tag: Option<&str>) -> Option<String> {
    tag.filter(|tag| tag.starts_with('"')).map(Into::into)
}

/// Whether a `Last-Modified` is older than the answer that has it, by the same clock, so that it
/// stands for one version only (RFC 9110, 8.8.2.2).
fn is_settled(modified: &str, date: Option<&str>) -> bool {
    let parse = |date: &str| httpdate::parse_http_date(date).ok();
    let age = || parse(date?)?.duration_since(parse(modified)?).ok();
    age().is_some_and(|age| age >= Duration::from_secs(1))
}

/// Where a file is. A query that is signed is left out: it is another one every time, it is
/// secret, and the stores that sign name the file in the path.
fn place(url: &Url) -> String {
    let is_signature = |name: &str| {
        ["signature", "x-amz-signature", "x-goog-signature", "sig"]
            .contains(&name.to_ascii_lowercase().as_str())
    };
    match url.query() {
        Some(query) if !url.query_pairs().any(|(name, _)| is_signature(&name)) => {
            format!("{}?{query}", shown(url))
        }
        _ => shown(url),
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
    fn identities_have_what_tells_versions_apart_and_no_secrets() {
        let url = Url::parse("https://host/m.gguf?rev=2").unwrap();
        let identity = |lines: &[_], digest| Version::of(&headers(lines), 9, digest).identity(&url);
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
            let version = Version::of(&headers(&[("ETag", "\"a\"")]), 9, None);
            assert_eq!(version.identity(&url).unwrap(), "https://host/m.gguf 9 \"a\"");
        }
    }

    #[test]
    fn later_answers_are_about_the_same_version() {
        let same = |first: &[_], later: &[_]| {
            let version = Version::of(&headers(first), 9, Some("\"sha\""));
            version.expect(&headers(later), Some(9), None).is_ok()
        };
        let (a, b) = (("ETag", "\"a\""), ("ETag", "\"b\""));
        assert!(same(&[a, OLD], &[a]));
        assert!(!same(&[a], &[b]) && !same(&[a, OLD], &[OLD]) && !same(&[a], &[]));
        assert!(same(&[OLD], &[OLD, b]));
        assert!(!same(&[OLD], &[NEW]) && !same(&[OLD], &[]));
        assert!(same(&[], &[a]) && same(&[("ETag", "W/\"a\"")], &[("ETag", "W/\"b\"")]));
        let version = Version::of(&headers(&[a]), 9, Some("\"sha\""));
        assert_eq!(version.expect(&headers(&[a]), Some(8), None), Err(Fault::Changed));
        assert_eq!(version.expect(&headers(&[a]), None, Some("\"other\"")), Err(Fault::Changed));
        assert_eq!(version.expect(&headers(&[a]), None, Some("\"sha\"")), Ok(()));
    }
}
