//! Files of a model with their headers in memory and tensor data read on demand.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gguf::{Bytes, Finding, Gguf, Limits, Metadata, NameShard, Sink, Subject, shard_keys};
use gguf_remote::{BlockCache, Cache, FailedAttempt, Location, RemoteOptions, Transferred};
use gguf_store::{
    FileState, Model, ModelFile, Progress, ReadFile, ShardSet, Source, byte_parts, digest,
};
use gguf_tokenizer::template::Renderer;

use crate::Error;
use crate::check::headers::{Checkable, findings_of};
use crate::model::explained;

/// Files of a model, which may be invalid. Files are not mapped: reading a file that was truncated meanwhile is an error,
/// and only the headers are in memory. For long-running programs; see [`open`](crate::open()) for others.
pub struct Files {
    location: Location,
    files: Vec<HeldFile>,
    /// Fault of the set of shards.
    shard_fault: Option<Finding>,
}

/// Network traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of response bodies.
    pub bytes: u64,
    /// Number of requests.
    pub requests: u64,
    /// Time since the last byte, if a read is waiting for bytes.
    pub waiting: Option<Duration>,
    /// The last failure of a read that is being retried.
    pub failed_attempt: Option<FailedAttempt>,
}

/// A file whose header is in memory.
pub struct HeldFile {
    name: PathBuf,
    source: Arc<dyn Source>,
    header: Bytes,
    /// The source, if it is a local file.
    local: Option<Arc<ReadFile>>,
    /// Location and transfer counters of a remote file.
    remote: Option<(Location, Transferred)>,
}

/// Returns the SHA-256 of each file of a local model, in hexadecimal digits.
///
/// # Errors
/// If a file cannot be read, the model is remote, or `progress` stopped the work.
pub fn file_digests(
    source: &str,
    progress: &dyn Progress,
) -> Result<Vec<(PathBuf, String)>, Error> {
    let Location::Path(path) = Location::parse(source)? else {
        let what = format!("{} is remote: its files are not hashed", gguf_remote::redact(source));
        return Err(Error::request("location-invalid", what, "download it with `gguf pull`"));
    };
    let found = ShardSet::find(&path).map_err(|error| explained(error, source))?;
    let len = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
    progress.begin("hashing", found.paths().iter().map(len).sum());
    let digest =
        |path: &PathBuf| Ok((path.clone(), digest::hex(&gguf_sign::file_digest(path, progress)?)));
    found.paths().iter().map(digest).collect()
}

impl Files {
    /// Opens all files of the model that `source` names, as [`open`](crate::open()) does; remote ones through `cache`.
    ///
    /// # Errors
    /// If a file cannot be read. Invalid headers are not errors here.
    pub fn open(source: &str, cache: Option<&Arc<Cache>>) -> Result<Self, Error> {
        Self::at(Location::parse(source)?, cache)
    }

    /// Opens all files of the model at a location.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub fn at(location: Location, cache: Option<&Arc<Cache>>) -> Result<Self, Error> {
        let Location::Path(path) = &location else {
            let (files, shard_fault) = HeldFile::open_remote(&location, cache)?;
            return Ok(Self { location, files, shard_fault });
        };
        let (paths, shard_fault) = match ShardSet::find(path) {
            Ok(set) => (set.paths().to_vec(), None),
            Err(Error::File(finding)) => (vec![path.clone()], Some(*finding)),
            Err(other) => return Err(explained(other, &path.to_string_lossy())),
        };
        let paths = paths.iter().filter(|path| shard_fault.is_none() || path.is_file());
        let files = paths.map(|path| HeldFile::open_local(path)).collect::<Result<_, _>>()?;
        Ok(Self { location, files, shard_fault })
    }

    /// Returns the files, the first shard first.
    pub fn files(&self) -> &[HeldFile] {
        &self.files
    }

    /// Returns the location as the user gave it.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Whether the files are remote.
    pub fn is_remote(&self) -> bool {
        !matches!(self.location, Location::Path(_))
    }

    /// Returns the model.
    ///
    /// # Errors
    /// If a file breaks the format, or the shards do not fit together.
    pub fn model(&self) -> Result<Model, Error> {
        if let Some(finding) = &self.shard_fault {
            return Err(finding.clone().into());
        }
        Model::new(self.files.iter().map(HeldFile::part).collect::<Result<_, _>>()?)
    }

    /// Returns the model although its files are damaged, with the violations of each file; `None` if a header is invalid
    /// otherwise (see [`Gguf::read_damaged`]). Reading missing data fails.
    pub fn damaged_model(&self) -> Option<(Model, Vec<Vec<Finding>>)> {
        if self.shard_fault.is_some() {
            return None;
        }
        let read = |file: &HeldFile| {
            let (gguf, violations) = file.damaged_gguf()?;
            Some((file.part_of(gguf), violations))
        };
        let (parts, violations) = self.files.iter().map(read).collect::<Option<_>>()?;
        Some((Model::new(parts).ok()?, violations))
    }

    /// Returns the findings about the headers; `renderer` checks chat templates.
    ///
    /// # Errors
    /// If chat templates cannot be checked.
    pub fn findings(&self, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
        let mut findings: Vec<_> = self.shard_fault.clone().into_iter().collect();
        let files: Vec<_> = self.files.iter().map(HeldFile::checkable).collect();
        findings.extend(findings_of(&files, renderer)?);
        Ok(findings)
    }

    /// Returns the findings of a scan of the chat templates and the vocabulary for manipulation.
    ///
    /// # Errors
    /// If chat templates cannot be rendered.
    pub fn scan(&self, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
        // All shards have the keys of the model, or only the first has them.
        let Some(first) = self.files.first() else { return Ok(Vec::new()) };
        match first.metadata() {
            Some(metadata) => gguf_scan::scan_metadata(&metadata, renderer),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the traffic of remote files so far.
    pub fn traffic(&self) -> Traffic {
        let remote = self.files.iter().filter_map(|file| Some(&file.remote.as_ref()?.1));
        remote.fold(Traffic::default(), |sum, of| Traffic {
            bytes: sum.bytes + of.bytes(),
            requests: sum.requests + of.requests(),
            waiting: sum.waiting.max(of.waiting()),
            failed_attempt: of.failed_attempt().or(sum.failed_attempt),
        })
    }

    /// Returns the transfer counters of remote files.
    pub(crate) fn transferred(&self) -> Option<Vec<Transferred>> {
        let of = |file: &HeldFile| Some(file.remote.as_ref()?.1.clone());
        self.is_remote().then(|| self.files.iter().filter_map(of).collect())
    }
}

impl HeldFile {
    /// Returns the path of a local file or the name of a remote one.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the source of its bytes.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Returns the start of the file, with its header if that can be read.
    pub fn header(&self) -> &Bytes {
        &self.header
    }

    /// Returns whether a local file has changed since it was opened. Changes of remote files are detected on reading.
    pub fn state(&self) -> FileState {
        self.local.as_ref().map_or(FileState::Unchanged, |file| file.state())
    }

    /// Parses the header.
    ///
    /// # Errors
    /// If the header breaks the format.
    pub fn gguf(&self) -> Result<Gguf, Error> {
        Gguf::read_header(&self.header, self.source.byte_len(), Limits::default())
            .map_err(|error| byte_parts::explain_error(error, &self.name).in_file(&self.name))
    }

    /// Returns the metadata, also of a header that breaks rules.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        let no_rules = |_: &Subject, _: &mut dyn Sink| ControlFlow::Continue(());
        let (_, header) = gguf::check_header_with(&self.header, self.source.byte_len(), no_rules);
        header.map(|header| header.metadata)
    }

    fn open_local(path: &Path) -> Result<Self, Error> {
        let file = Arc::new(ReadFile::open(path)?);
        let header = gguf_store::fetch_header(&*file, Limits::default())?;
        let (source, local) = (file.clone(), Some(file));
        Ok(Self { name: path.to_owned(), source, header, local, remote: None })
    }

    /// Opens all files of the model at a remote location. A name can state any number of shards: the others are opened
    /// only if the header of the first one states it too.
    fn open_remote(
        location: &Location,
        cache: Option<&Arc<Cache>>,
    ) -> Result<(Vec<Self>, Option<Finding>), Error> {
        let last = Arc::default();
        let open = |location: &Location| Self::open_one(location, cache, &last);
        let first = open(location)?;
        let name = first.name.to_string_lossy().into_owned();
        let Some((prefix, shard)) = NameShard::strip(&name) else {
            return Ok((vec![first], None));
        };
        let stated = first.gguf()?.metadata().u64(shard_keys::COUNT);
        if stated != Some(shard.count.into()) {
            let is = stated.map_or_else(|| "is missing".to_owned(), |count| format!("is {count}"));
            let message = format!("{is}, but the name says {} shards", shard.count);
            let finding = Finding::error("shard-count", message).key(shard_keys::COUNT);
            let help = "download the file again: it was renamed, or belongs to another model";
            return Ok((vec![first], Some(finding.help(help))));
        }
        let name_of = |number| NameShard { number, count: shard.count }.file_name(prefix);
        let found = first.remote.as_ref().map_or(location, |(found, _)| found);
        let files = (1..=shard.count).map(|number| open(&beside(found, &name_of(number))));
        Ok((files.collect::<Result<_, _>>()?, None))
    }

    /// Opens one remote file. Tensor data is read through a cache or in large blocks, so that reading a chunk of rows does
    /// not take a request of its own.
    fn open_one(
        location: &Location,
        cache: Option<&Arc<Cache>>,
        last: &Arc<BlockCache>,
    ) -> Result<Self, Error> {
        let opened = gguf_remote::open_with(location, RemoteOptions::from_env())?;
        let source = match cache {
            Some(cache) => cache.source(opened.source),
            None => opened.source,
        };
        // Reads no more than the header.
        let header = gguf_store::fetch_header(&*source, Limits::default())?;
        let source = if cache.is_some() { source } else { last.read_ahead(source) };
        Ok(Self {
            name: opened.name.into(),
            source,
            header,
            local: None,
            remote: Some((opened.location, opened.transferred)),
        })
    }

    /// Parses the header of a file that may be damaged; see [`Gguf::read_damaged`].
    pub fn damaged_gguf(&self) -> Option<(Gguf, Vec<Finding>)> {
        Gguf::read_damaged(&self.header, self.source.byte_len(), Limits::default())
    }

    fn part(&self) -> Result<ModelFile, Error> {
        Ok(self.part_of(self.gguf()?))
    }

    fn part_of(&self, gguf: Gguf) -> ModelFile {
        let data_start = gguf.data_start();
        let (path, source) = (self.name.clone(), self.source.clone());
        ModelFile { path, header: gguf.into_header(), data_start, source }
    }

    /// Returns the file for checks.
    fn checkable(&self) -> Checkable<'_> {
        let (name, header) = (&self.name, &self.header);
        Checkable { name, header, file_len: self.source.byte_len() }
    }
}

/// Returns the location of another file in the same directory.
fn beside(location: &Location, other: &str) -> Location {
    let in_folder_of = |path: &str| match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{other}"),
        None => other.to_owned(),
    };
    let mut location = location.clone();
    match &mut location {
        Location::Path(path) => path.set_file_name(other),
        Location::Http(url) | Location::Object(url) => {
            let path = in_folder_of(url.path());
            url.set_path(&path);
        }
        Location::Hub(repository) => {
            repository.file = Some(in_folder_of(repository.file.as_deref().unwrap_or_default()));
        }
    }
    location
}
