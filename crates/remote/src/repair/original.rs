//! The remote file, and the comparison of a local file with it.

use std::path::Path;
use std::sync::Arc;

use gguf_store::{Progress, Source};

use super::copy::{Copy, PAGE, Scan};
use super::digest::RemoteDigest;
use super::{CopyReport, CopyState};
use crate::client::{Client, Transferred};
use crate::error::Error;
use crate::http::HttpFile;
use crate::hub;
use crate::location::{Location, Repository, redact_url};
use crate::options::RemoteOptions;
use crate::select::select;

/// Number of samples that tell a damaged copy from another file.
const SAMPLES: u64 = 8;

/// The remote file that a local file should be a copy of.
pub(super) struct Original {
    source: Arc<dyn Source>,
    location: String,
    digest: Option<RemoteDigest>,
    transferred: Transferred,
}

/// Result of a comparison.
pub(super) struct Compared {
    pub report: CopyReport,
    /// Scan of the local file, if it has the length of the remote one.
    pub scan: Option<Scan>,
}

impl Original {
    /// Opens the remote file at `location` for a copy at `path`.
    pub fn open(path: &Path, location: &Location, options: RemoteOptions) -> Result<Self, Error> {
        let client = Client::new(options)?;
        let transferred = client.transferred.clone();
        let (url, location) = match location {
            Location::Http(url) => (url.clone(), redact_url(url)),
            Location::Hub(repository) => {
                let file = find(&client, repository, path)?;
                let url = hub::file_url(&client, &repository.name, &repository.revision, &file);
                (url, Repository { file: Some(file), ..repository.clone() }.to_string())
            }
            Location::Object(url) => {
                let source = crate::object(client, url.clone())?.source;
                return Ok(Self { source, location: redact_url(url), digest: None, transferred });
            }
            Location::Path(path) => {
                let what = format!("{} is not a remote file", path.display());
                let help =
                    "name hf:org/repo or an https:// address; `gguf diff` compares local files";
                return Err(gguf::Error::request("location-invalid", what, help).into());
            }
        };
        let source = HttpFile::open(Arc::new(client), url)?;
        let digest = source.hub_etag().and_then(RemoteDigest::parse);
        Ok(Self { source: Arc::new(source), location, digest, transferred })
    }

    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub fn location(&self) -> &str {
        &self.location
    }

    pub fn digest(&self) -> Option<&RemoteDigest> {
        self.digest.as_ref()
    }

    /// Returns the number of bytes received so far.
    pub fn transferred(&self) -> u64 {
        self.transferred.bytes()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.source.byte_len()
    }

    /// Compares a local file by length, digest and, if these are not equal, by samples.
    pub fn compare(&self, copy: &Copy<'_>, progress: &dyn Progress) -> Result<Compared, Error> {
        let (len, local_len) = (self.len(), copy.byte_len()?);
        let digest = self.digest.as_ref().filter(|_| local_len == len);
        let scan = digest.map(|digest| copy.scan(digest, len, progress)).transpose()?;
        let local_digest = scan.as_ref().map(|scan| scan.digest.clone());
        let state = match &local_digest {
            Some(local) if Some(local) == self.digest.as_ref() => CopyState::Equal,
            _ => match self.sample(copy, len.min(local_len))? {
                CopyState::Equal if local_len == len && local_digest.is_none() => {
                    CopyState::Unknown
                }
                CopyState::Equal => CopyState::Damaged,
                different => different,
            },
        };
        let report = CopyReport {
            location: self.location.clone(),
            state,
            digest: self.digest.clone(),
            local_digest,
            len,
            local_len,
            repaired: Vec::new(),
            transferred: 0,
        };
        Ok(Compared { report, scan })
    }

    /// Compares samples of the first `len` bytes. Most samples of another file differ in most of their non-zero bytes;
    /// damage is in few places.
    fn sample(&self, copy: &Copy<'_>, len: u64) -> Result<CopyState, Error> {
        let size = PAGE.min(len);
        let (mut ours, mut theirs) = (vec![0; size as usize], vec![0; size as usize]);
        let (mut all, mut foreign, mut is_equal) = (0, 0, true);
        for number in 0..SAMPLES {
            let offset = (len - size) / (SAMPLES - 1) * number;
            copy.read(&mut ours, offset)?;
            self.source.read_at(&mut theirs, offset)?;
            is_equal &= ours == theirs;
            let pairs = || ours.iter().zip(&theirs).filter(|(ours, _)| **ours != 0);
            let present = pairs().count();
            all += u32::from(present > 0);
            let differing = pairs().filter(|(ours, theirs)| ours != theirs).count();
            foreign += u32::from(differing * 2 > present);
        }
        Ok(match is_equal {
            true => CopyState::Equal,
            false if foreign * 2 > all => CopyState::Other,
            false => CopyState::Damaged,
        })
    }
}

/// Returns the path in a repository: that of the location, the only one with the name or the digest in the name of the local
/// file, or the only model. A part of the path in the location, such as `Q4_K_M`, which all shards of a model contain, limits
/// the choice.
fn find(client: &Client, repository: &Repository, path: &Path) -> Result<String, Error> {
    let requested = repository.file.as_deref().unwrap_or_default();
    let part = requested.to_lowercase();
    if part.ends_with(".gguf") {
        return hub::find(client, repository);
    }
    let entries = hub::entries(client, &repository.name, &repository.revision)?;
    let own = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The stores of Ollama and huggingface_hub.
    let digest = own.strip_prefix("sha256-").unwrap_or(own);
    let digest = digest.strip_suffix(".incomplete").unwrap_or(digest);
    let is_same = |entry: &&hub::Entry| {
        entry.path.to_lowercase().contains(&part)
            && (entry.path.rsplit('/').next() == Some(own)
                || entry.lfs.as_ref().is_some_and(|large| large.oid == digest))
    };
    let mut same = entries.iter().filter(is_same);
    match (same.next(), same.next()) {
        (Some(only), None) => Ok(only.path.clone()),
        _ => {
            let place = format!("hf:{}@{}", repository.name, repository.revision);
            select(place, entries.into_iter().map(|entry| entry.path).collect(), requested)
        }
    }
}
