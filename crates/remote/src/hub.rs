//! Names of files on the Hugging Face hub, and the listing of a repository.

use std::collections::HashSet;
use std::io::Read;

use serde::Deserialize;
use url::Url;

use crate::allowance::Allowance;
use crate::client::{Answer, Client, Counted, text};
use crate::error::{Error, Fault};
use crate::location::{Repository, good_segment};
use crate::pick::pick;
use crate::redirect;
use crate::retry::retry;

/// Bytes of one page: a thousand entries of some hundred bytes.
const LONGEST_PAGE: u64 = 8 << 20;

/// Bytes of all pages of a listing, and files in it: some times as much as the hub advises
/// repositories to have.
const LONGEST_LISTING: u64 = 64 << 20;
const MOST_FILES: usize = 200_000;

/// The path of the file that is meant.
pub(crate) fn find(client: &Client, repository: &Repository) -> Result<String, Error> {
    match &repository.file {
        Some(file) if file.to_lowercase().ends_with(".gguf") => Ok(file.clone()),
        part => {
            let place = format!("hf:{}@{}", repository.name, repository.revision);
            let names = list(client, repository)?;
            pick(place, names, part.as_deref().unwrap_or_default())
        }
    }
}

/// Where the file `path` of a repository is downloaded from.
pub(crate) fn file_url(client: &Client, name: &str, revision: &str, path: &str) -> Url {
    let path = name.split('/').chain(["resolve", revision]).chain(path.split('/'));
    below(&client.endpoint, path)
}

/// The paths of all files in a repository, those left out that no file here could have.
///
/// # Errors
/// Also for a listing that leads in a circle, or is longer than any honest one.
pub(crate) fn list(client: &Client, repository: &Repository) -> Result<Vec<String>, Error> {
    let repo = repository.name.split('/');
    let path = ["api", "models"].into_iter().chain(repo).chain(["tree", &repository.revision]);
    let mut url = below(&client.endpoint, path);
    url.set_query(Some("recursive=true"));
    let allowance = Allowance::new(LONGEST_LISTING, "the listing has no end");
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    loop {
        let page = retry(&client.options, || page(client, &url, &allowance)).and_then(|page| {
            let files = page.0.into_iter().filter(|entry| entry.kind == "file");
            names.extend(files.map(|entry| entry.path).filter(|path| is_plain(path)));
            if names.len() > MOST_FILES {
                let what = format!("it lists more than {MOST_FILES} files");
                return Err(Fault::Answer(what));
            }
            Ok(page.1)
        });
        let next = page.map_err(|fault| client.error(&url, fault))?;
        seen.insert(url);
        let Some(next) = next else { return Ok(names) };
        if seen.contains(&next) {
            let circle = Fault::Answer("its listing leads in a circle".into());
            return Err(client.error(&next, circle));
        }
        url = next;
    }
}

/// Whether a path stays below the folder that it is in, on every system, and can be printed.
fn is_plain(path: &str) -> bool {
    !path.contains(|c: char| c.is_control() || matches!(c, '\\' | ':'))
        && path.split('/').all(good_segment)
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
}

/// One page of a listing and the address of the next.
fn page(
    client: &Client,
    url: &Url,
    allowance: &Allowance,
) -> Result<(Vec<Entry>, Option<Url>), Fault> {
    let Answer { response, url: landed, .. } = client.get(url, &[], LONGEST_PAGE)?;
    let (parts, body) = response.into_parts();
    let next = text(&parts.headers, "Link").and_then(next_link);
    let next = next.map(|link| redirect::allowed(&landed, link)).transpose()?;
    let mut json = Vec::new();
    Counted::new(body, &client.transferred)
        .take(LONGEST_PAGE + 1)
        .read_to_end(&mut json)
        .map_err(|error| Fault::Connection(error.to_string()))?;
    if json.len() as u64 > LONGEST_PAGE {
        return Err(Fault::Answer("a page of the listing has no end".into()));
    }
    allowance.spend(json.len() as u64)?;
    let entries = serde_json::from_slice(&json)
        .map_err(|error| Fault::Answer(format!("this is no listing of files ({error})")))?;
    Ok((entries, next))
}

/// The target of `rel="next"` in a `Link` header (RFC 8288).
fn next_link(header: &str) -> Option<&str> {
    header.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |p: &str| matches!(p.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then_some(target)
    })
}

/// A URL below a base. Segments are escaped, so a `/` in a revision does not split it.
fn below<'s>(base: &Url, segments: impl IntoIterator<Item = &'s str>) -> Url {
    let mut url = base.clone();
    // Fails for URLs that cannot have a path; the client took only http and https.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found() {
        let header = r#"<https://h/a?x=1>; rel="prev", <https://h/b?cursor=Z%3D>; rel="next""#;
        assert_eq!(next_link(header), Some("https://h/b?cursor=Z%3D"));
        assert_eq!(next_link(r#"<https://h/a>; rel="last""#), None);
    }

    #[test]
    fn paths_stay_in_their_folder() {
        for path in ["a.gguf", "q/\u{fc} b.gguf", ".gitattributes", "a..b/c"] {
            assert!(is_plain(path), "{path}");
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
            assert!(!is_plain(path), "{path:?}");
        }
    }

    #[test]
    fn revisions_are_one_segment() {
        let base = Url::parse("https://mirror.example/hf/").unwrap();
        let url = below(&base, ["o", "r", "resolve", "refs/pr/1", "a b.gguf"]);
        assert_eq!(url.as_str(), "https://mirror.example/hf/o/r/resolve/refs%2Fpr%2F1/a%20b.gguf");
    }
}
