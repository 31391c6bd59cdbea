//! Checkpoints on the Hugging Face Hub, read without a local copy.

use std::sync::{Arc, OnceLock};

use gguf::units::distinct_sizes;
use gguf_store::Source;
use url::Url;

use crate::block_cache::BlockCache;
use crate::budget::ByteBudget;
use crate::client::{Client, Transferred};
use crate::error::{Error, Fault};
use crate::http::HttpFile;
use crate::hub;
use crate::location::{Location, Repository, redact};
use crate::options::RemoteOptions;

/// Maximum length of a file for [`RepositoryFiles::fetch`]: configurations and tokenizers are
/// smaller.
const MAX_FETCHED: u64 = 256 << 20;

/// Maximum total length of all fetched files.
const MAX_FETCHED_TOTAL: u64 = 1 << 30;

/// The files in the top directory of a repository.
pub struct RepositoryFiles {
    client: Arc<Client>,
    repository: Repository,
    names: Vec<String>,
    /// Commit of the first file. All other files come from the same commit, even if the branch
    /// moves.
    commit: OnceLock<String>,
    fetched: ByteBudget,
    cache: Arc<BlockCache>,
}

impl RepositoryFiles {
    /// Lists the files of a repository: `hf:org/repo[@revision]`, or the URL of its page on the
    /// hub.
    ///
    /// # Errors
    /// [`Error::Location`] if `word` is not a repository; otherwise errors of the server.
    pub fn list(word: &str, options: RemoteOptions) -> Result<Self, Error> {
        let client = Client::new(options)?;
        let repository = match Location::parse(word)? {
            Location::Hub(repository) if repository.file.is_none() => Some(repository),
            Location::Http(url) if client.at_endpoint(&url) => {
                parse_page_url(&client.endpoint, &url)
            }
            _ => None,
        };
        let Some(repository) = repository else {
            return Err(Error::Location {
                word: redact(word),
                reason: "it is not a repository; expected hf:organisation/repository[@revision]"
                    .into(),
            });
        };
        let mut names = hub::list(&client, &repository)?;
        names.retain(|name| !name.contains('/'));
        let fetched =
            ByteBudget::new(MAX_FETCHED_TOTAL, "its small files are too many or too large");
        let (commit, cache) = (OnceLock::new(), Arc::default());
        Ok(Self { client: client.into(), repository, names, commit, fetched, cache })
    }

    /// Returns `organisation/name`.
    pub fn repository(&self) -> &str {
        &self.repository.name
    }

    /// Returns the names of the files, without those in subdirectories.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Opens a file for range reads through a block cache, so that not every small read sends a
    /// request.
    ///
    /// # Errors
    /// [`Error::Remote`] if the server does not have the file or does not support range requests.
    pub fn open(&self, name: &str) -> Result<Arc<dyn Source>, Error> {
        Ok(self.cache.source(Arc::new(self.file(name)?)))
    }

    /// Fetches a small file.
    ///
    /// # Errors
    /// As [`RepositoryFiles::open`], and if the file exceeds 256 MiB or all fetched files together
    /// exceed 1 GiB.
    pub fn fetch(&self, name: &str) -> Result<Vec<u8>, Error> {
        let file = self.file(name)?;
        if file.byte_len() > MAX_FETCHED {
            let [len, max] = distinct_sizes(file.byte_len(), MAX_FETCHED);
            let what = format!("`{name}` has {len}; at most {max} are fetched");
            return Err(self.client.error(&self.url(name), Fault::Response(what)));
        }
        self.fetched
            .spend(file.byte_len())
            .map_err(|fault| self.client.error(&self.url(name), fault))?;
        let mut bytes = vec![0; file.byte_len() as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Returns the network traffic so far.
    pub fn transferred(&self) -> &Transferred {
        &self.client.transferred
    }

    fn file(&self, name: &str) -> Result<HttpFile, Error> {
        let file = HttpFile::open(self.client.clone(), self.url(name))?;
        if let Some(commit) = file.commit() {
            self.commit.get_or_init(|| commit.to_owned());
        }
        Ok(file)
    }

    fn url(&self, name: &str) -> Url {
        let revision = self.commit.get().unwrap_or(&self.repository.revision);
        hub::file_url(&self.client, &self.repository.name, revision, name)
    }
}

/// Parses the URL of a repository's page: `.../org/repo` or `.../org/repo/tree/revision`.
fn parse_page_url(endpoint: &Url, url: &Url) -> Option<Repository> {
    let path = url.path().strip_prefix(endpoint.path().trim_end_matches('/'))?;
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let word = match segments[..] {
        [organisation, name] => format!("hf:{organisation}/{name}"),
        [organisation, name, "tree", ref revision @ ..] if !revision.is_empty() => {
            format!("hf:{organisation}/{name}@{}", revision.join("/"))
        }
        _ => return None,
    };
    match Location::parse(&word) {
        Ok(Location::Hub(repository)) => Some(repository),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_page_urls_are_parsed() {
        let endpoint = Url::parse("https://mirror.example/hf/").unwrap();
        let found = |url: &str| {
            let repository = parse_page_url(&endpoint, &Url::parse(url).unwrap())?;
            Some(format!("{}@{}", repository.name, repository.revision))
        };
        let hub = "https://mirror.example/hf";
        assert_eq!(found(&format!("{hub}/o/r")).as_deref(), Some("o/r@main"));
        assert_eq!(found(&format!("{hub}/o/r/")).as_deref(), Some("o/r@main"));
        assert_eq!(found(&format!("{hub}/o/r/tree/refs/pr/1")).as_deref(), Some("o/r@refs/pr/1"));
        assert_eq!(found(&format!("{hub}/o/r/resolve/main/m.gguf")), None);
        assert_eq!(found("https://mirror.example/o"), None);
    }
}
