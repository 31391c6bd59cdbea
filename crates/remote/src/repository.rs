//! All files of a repository on the hub: a checkpoint whose weights stay where they are.

use std::sync::{Arc, OnceLock};

use gguf::units::bytes_apart;
use gguf_store::Source;
use url::Url;

use crate::allowance::Allowance;
use crate::blocks::LastBlocks;
use crate::client::{Client, Transferred};
use crate::error::{Error, Fault};
use crate::http::HttpFile;
use crate::hub;
use crate::location::{Location, Repository, shown_word};
use crate::options::Options;

/// The largest file that [`Files::fetch`] brings: configurations and tokenizers are smaller.
const MAX_FETCHED: u64 = 256 << 20;

/// Bytes of all files that it brings.
const MAX_FETCHED_IN_ALL: u64 = 1 << 30;

/// The files of one folder of a repository.
pub struct Files {
    client: Arc<Client>,
    repository: Repository,
    names: Vec<String>,
    /// The commit that the first file came from. The others are taken from it too: a branch may
    /// move on in between.
    commit: OnceLock<String>,
    fetched: Allowance,
    last: Arc<LastBlocks>,
}

impl Files {
    /// Lists what a user's word names: `hf:org/repo[@revision]`, or the address of a repository's
    /// page on the hub.
    ///
    /// # Errors
    /// [`Error::Location`] if that is no repository, otherwise what the server says.
    pub fn list(word: &str, options: Options) -> Result<Self, Error> {
        let client = Client::new(options)?;
        let repository = match Location::parse(word)? {
            Location::Hub(repository) if repository.file.is_none() => Some(repository),
            Location::Http(url) if client.at_endpoint(&url) => of_url(&client.endpoint, &url),
            _ => None,
        };
        let Some(repository) = repository else {
            return Err(Error::Location {
                word: shown_word(word),
                why: "it is no repository; write hf:organisation/repository[@revision]".into(),
            });
        };
        let mut names = hub::list(&client, &repository)?;
        names.retain(|name| !name.contains('/'));
        let fetched =
            Allowance::new(MAX_FETCHED_IN_ALL, "its small files are too many or too large");
        let (commit, last) = (OnceLock::new(), Arc::default());
        Ok(Self { client: client.into(), repository, names, commit, fetched, last })
    }

    /// `organisation/name`.
    pub fn repository(&self) -> &str {
        &self.repository.name
    }

    /// The names of its files, those in folders left out.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Opens a file for reading by parts. What is near to what was read is kept for a while, so that
    /// small reads do not make a request each.
    ///
    /// # Errors
    /// [`Error::Remote`] if the server does not have it or cannot serve parts.
    pub fn open(&self, name: &str) -> Result<Arc<dyn Source>, Error> {
        Ok(self.last.source(Arc::new(self.file(name)?)))
    }

    /// A whole file, of those that are small.
    ///
    /// # Errors
    /// As [`Files::open`], and if it is larger than 256 MiB, or all that were fetched together are
    /// larger than 1 GiB.
    pub fn fetch(&self, name: &str) -> Result<Vec<u8>, Error> {
        let file = self.file(name)?;
        if file.byte_len() > MAX_FETCHED {
            let [len, most] = bytes_apart(file.byte_len(), MAX_FETCHED);
            let what = format!("`{name}` has {len}, at most {most} are fetched");
            return Err(self.client.error(&self.url(name), Fault::Answer(what)));
        }
        self.fetched
            .spend(file.byte_len())
            .map_err(|fault| self.client.error(&self.url(name), fault))?;
        let mut bytes = vec![0; file.byte_len() as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// What reading has cost so far.
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

/// The repository whose page has this address: `.../org/repo` or `.../org/repo/tree/revision`.
fn of_url(endpoint: &Url, url: &Url) -> Option<Repository> {
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
    fn pages_of_repositories_are_recognised() {
        let endpoint = Url::parse("https://mirror.example/hf/").unwrap();
        let found = |url: &str| {
            let repository = of_url(&endpoint, &Url::parse(url).unwrap())?;
            Some(format!("{}@{}", repository.name, repository.revision))
        };
        let here = "https://mirror.example/hf";
        assert_eq!(found(&format!("{here}/o/r")).as_deref(), Some("o/r@main"));
        assert_eq!(found(&format!("{here}/o/r/")).as_deref(), Some("o/r@main"));
        assert_eq!(found(&format!("{here}/o/r/tree/refs/pr/1")).as_deref(), Some("o/r@refs/pr/1"));
        assert_eq!(found(&format!("{here}/o/r/resolve/main/m.gguf")), None);
        assert_eq!(found("https://mirror.example/o"), None);
    }
}
