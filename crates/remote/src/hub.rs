//! Hugging Face Hub: file names and repository listings.

use std::collections::HashSet;
use std::io::Read;

use serde::Deserialize;
use url::Url;

use crate::budget::ByteBudget;
use crate::client::{Client, CountedBody, FinalResponse, text};
use crate::error::{Error, Fault};
use crate::location::{Repository, is_valid_segment};
use crate::redirect;
use crate::retry::retry;
use crate::select::select;

/// Maximum length of one page: a thousand entries of some hundred bytes.
const MAX_PAGE: u64 = 8 << 20;

/// Maximum length of a listing, all pages together, and maximum number of files: a few times the
/// limits that the hub recommends.
const MAX_LISTING: u64 = 64 << 20;
const MAX_FILES: usize = 200_000;

/// Resolves the file name in the repository.
pub(crate) fn find(client: &Client, repository: &Repository) -> Result<String, Error> {
    match &repository.file {
        Some(file) if file.to_lowercase().ends_with(".gguf") => Ok(file.clone()),
        part => {
            let place = format!("hf:{}@{}", repository.name, repository.revision);
            let names = list(client, repository)?;
            select(place, names, part.as_deref().unwrap_or_default())
        }
    }
}

/// Returns the download URL of the file `path` of a repository.
pub(crate) fn file_url(client: &Client, name: &str, revision: &str, path: &str) -> Url {
    let path = name.split('/').chain(["resolve", revision]).chain(path.split('/'));
    append(&client.endpoint, path)
}

/// Returns the paths of all files in a repository, without those that are not valid local paths.
///
/// # Errors
/// As [`entries`].
pub(crate) fn list(client: &Client, repository: &Repository) -> Result<Vec<String>, Error> {
    let entries = entries(client, &repository.name, &repository.revision)?;
    Ok(entries.into_iter().map(|entry| entry.path).collect())
}

/// Returns the URL of a request of the API about a repository.
pub(crate) fn api_url<'s>(
    client: &Client,
    name: &'s str,
    rest: impl IntoIterator<Item = &'s str>,
) -> Url {
    append(&client.endpoint, ["api", "models"].into_iter().chain(name.split('/')).chain(rest))
}

/// Returns all files in a repository, without those whose paths are not valid local paths.
///
/// # Errors
/// Also if the listing is cyclic or exceeds the limits.
pub(crate) fn entries(client: &Client, name: &str, revision: &str) -> Result<Vec<Entry>, Error> {
    let mut url = api_url(client, name, ["tree", revision]);
    url.set_query(Some("recursive=true"));
    let budget = ByteBudget::new(MAX_LISTING, "the listing is too long");
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    loop {
        let page = retry(&client.options, || page(client, &url, &budget)).and_then(|page| {
            let files = page.0.into_iter().filter(|entry| entry.kind == "file");
            found.extend(files.filter(|entry| is_safe_path(&entry.path)));
            if found.len() > MAX_FILES {
                let what = format!("it lists more than {MAX_FILES} files");
                return Err(Fault::Response(what));
            }
            Ok(page.1)
        });
        let next = page.map_err(|fault| client.error(&url, fault))?;
        seen.insert(url);
        let Some(next) = next else { return Ok(found) };
        if seen.contains(&next) {
            let cycle = Fault::Response("its listing is cyclic".into());
            return Err(client.error(&next, cycle));
        }
        url = next;
    }
}

/// Whether a path stays below its directory on every system, and is printable.
pub(crate) fn is_safe_path(path: &str) -> bool {
    !path.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
        && path.split('/').all(is_valid_segment)
}

/// A file or directory of a repository.
#[derive(Deserialize)]
pub(crate) struct Entry {
    #[serde(rename = "type")]
    kind: String,
    /// Path in the repository.
    pub path: String,
    /// Id of the git blob: the file, or the pointer to a large file.
    #[serde(default)]
    pub oid: String,
    /// Length of the file in bytes.
    #[serde(default)]
    pub size: u64,
    /// Storage of a large file.
    #[serde(default)]
    pub lfs: Option<LargeFile>,
}

/// Storage of a large file.
#[derive(Deserialize)]
pub(crate) struct LargeFile {
    /// SHA-256 of the file.
    pub oid: String,
}

/// Fetches one page of a listing; returns its entries and the URL of the next page.
fn page(
    client: &Client,
    url: &Url,
    budget: &ByteBudget,
) -> Result<(Vec<Entry>, Option<Url>), Fault> {
    let FinalResponse { response, url: final_url, .. } = client.get(url, &[], MAX_PAGE)?;
    let (parts, body) = response.into_parts();
    let next = text(&parts.headers, "Link").and_then(next_link);
    let next = next.map(|link| redirect::resolve(&final_url, link)).transpose()?;
    let mut json = Vec::new();
    CountedBody::new(body, &client.transferred)
        .take(MAX_PAGE + 1)
        .read_to_end(&mut json)
        .map_err(|error| Fault::Connection(error.to_string()))?;
    if json.len() as u64 > MAX_PAGE {
        return Err(Fault::Response("a page of the listing is too long".into()));
    }
    budget.spend(json.len() as u64)?;
    let entries = serde_json::from_slice(&json)
        .map_err(|error| Fault::Response(format!("this is not a listing of files ({error})")))?;
    Ok((entries, next))
}

/// Returns the target of `rel="next"` in a `Link` header (RFC 8288).
fn next_link(header: &str) -> Option<&str> {
    header.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |p: &str| matches!(p.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then_some(target)
    })
}

/// Appends path segments to a base URL. Segments are escaped, so a `/` in a revision does not split
/// it.
fn append<'s>(base: &Url, segments: impl IntoIterator<Item = &'s str>) -> Url {
    let mut url = base.clone();
    // Fails only for URLs that cannot have a path; the client accepts http and https only.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_links_are_parsed() {
        let header = r#"<https://h/a?x=1>; rel="prev", <https://h/b?cursor=Z%3D>; rel="next""#;
        assert_eq!(next_link(header), Some("https://h/b?cursor=Z%3D"));
        assert_eq!(next_link(r#"<https://h/a>; rel="last""#), None);
    }

    #[test]
    fn path_traversal_is_rejected() {
        for path in ["a.gguf", "q/\u{fc} b.gguf", ".gitattributes", "a..b/c"] {
            assert!(is_safe_path(path), "{path}");
        }
        for path in [
            "../a",
            "a/../b",
            "/a",
            "a//b",
            "",
            ".",
            "..\\a",
            "C:a",
            "a\u{1b}[2J",
            "a\nb",
            "a\u{9b}",
        ] {
            assert!(!is_safe_path(path), "{path:?}");
        }
    }

    #[test]
    fn revisions_are_one_segment() {
        let base = Url::parse("https://mirror.example/hf/").unwrap();
        let url = append(&base, ["o", "r", "resolve", "refs/pr/1", "a b.gguf"]);
        assert_eq!(url.as_str(), "https://mirror.example/hf/o/r/resolve/refs%2Fpr%2F1/a%20b.gguf");
    }
}
