//! Names of files on the Hugging Face hub, and the listing of a repository.

use std::io::Read;

use serde::Deserialize;
use url::Url;

use crate::client::{Client, Counted, text};
use crate::error::{Error, Fault};
use crate::location::Repository;
use crate::pick::pick;
use crate::retry::retry;

/// Pages of a listing: a thousand entries each, so more than any repository has.
const MOST_PAGES: u32 = 1000;

/// Bytes of one page.
const LONGEST_PAGE: u64 = 16 << 20;

/// Where a file is downloaded from.
pub(crate) fn resolve(client: &Client, repository: &Repository) -> Result<Url, Error> {
    let file = match &repository.file {
        Some(file) if file.to_lowercase().ends_with(".gguf") => file.clone(),
        part => {
            let place = format!("hf:{}@{}", repository.name, repository.revision);
            let names = list(client, repository)?;
            pick(place, names, part.as_deref().unwrap_or_default())?
        }
    };
    Ok(file_url(client, repository, &file))
}

/// Where the file `path` of a repository is downloaded from.
pub(crate) fn file_url(client: &Client, repository: &Repository, path: &str) -> Url {
    let repo = repository.name.split('/');
    let path = repo.chain(["resolve", &repository.revision]).chain(path.split('/'));
    below(&client.endpoint, path)
}

/// The paths of all files in a repository.
pub(crate) fn list(client: &Client, repository: &Repository) -> Result<Vec<String>, Error> {
    let repo = repository.name.split('/');
    let path = ["api", "models"].into_iter().chain(repo).chain(["tree", &repository.revision]);
    let mut url = below(&client.endpoint, path);
    url.set_query(Some("recursive=true"));
    let mut names = Vec::new();
    for _ in 0..MOST_PAGES {
        let (page, next) = retry(&client.options, || page(client, &url))
            .map_err(|fault| client.error(&url, fault))?;
        names.extend(page.into_iter().filter(|entry| entry.kind == "file").map(|entry| entry.path));
        let Some(next) = next else { return Ok(names) };
        url = next;
    }
    Err(client.error(&url, Fault::Answer("the listing has no end".into())))
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
}

/// One page of a listing and the address of the next.
fn page(client: &Client, url: &Url) -> Result<(Vec<Entry>, Option<Url>), Fault> {
    let (response, landed) = client.get(url, &[], LONGEST_PAGE)?;
    let (parts, body) = response.into_parts();
    let next = text(&parts.headers, "Link").and_then(next_link);
    let next = next.and_then(|link| landed.join(link).ok());
    let mut json = Vec::new();
    Counted { body: body.into_reader(), transferred: &client.transferred }
        .take(LONGEST_PAGE)
        .read_to_end(&mut json)
        .map_err(|error| Fault::Connection(error.to_string()))?;
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
    fn revisions_are_one_segment() {
        let base = Url::parse("https://mirror.example/hf/").unwrap();
        let url = below(&base, ["o", "r", "resolve", "refs/pr/1", "a b.gguf"]);
        assert_eq!(url.as_str(), "https://mirror.example/hf/o/r/resolve/refs%2Fpr%2F1/a%20b.gguf");
    }
}
