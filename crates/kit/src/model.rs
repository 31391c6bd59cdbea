//! Models from wherever the user says: a file, a directory, any shard, a URL, the hub, a bucket.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Bytes, Finding, Gguf, Limits, NameShard, RawHeader};
use gguf_remote::{Location, Options, Transferred};
use gguf_store::{Model, Part, ShardSet, Source};

use crate::Error;

/// Opens all files of the model that `word` names: a path, a directory, any shard, a URL,
/// `hf:org/repo`, `s3://bucket/key` (see [`gguf_remote::Location`]).
///
/// # Errors
/// If they cannot be had, or break the format.
pub fn open(word: &str) -> Result<Opened, Error> {
    Opened::open(word)
}

/// A model, its files open.
pub struct Opened {
    model: Model,
    /// What reading far files has cost so far; `None` for files on this machine.
    transferred: Option<Vec<Transferred>>,
}

/// A far file: only the header is here.
pub(crate) struct Far {
    name: PathBuf,
    source: Arc<dyn Source>,
    header: Bytes,
    location: Location,
    transferred: Transferred,
}

impl Opened {
    fn open(word: &str) -> Result<Self, Error> {
        let location = Location::parse(word)?;
        if let Location::Path(path) = &location {
            return Ok(Self { model: Model::open(path)?, transferred: None });
        }
        let files = Far::open_all(&location)?;
        let transferred = Some(files.iter().map(|file| file.transferred.clone()).collect());
        let parts = files.into_iter().map(Far::part).collect::<Result<_, _>>()?;
        Ok(Self { model: Model::new(parts)?, transferred })
    }

    /// What the files hold together.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The same, to be kept or closed.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// The files on this machine: none of a far model.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.model.paths().filter(|_| self.transferred.is_none())
    }

    /// Bytes that came over the network so far; `None` for files on this machine.
    pub fn transferred(&self) -> Option<u64> {
        Some(self.transferred.as_ref()?.iter().map(Transferred::bytes).sum())
    }
}

impl Far {
    /// Opens all files of the model at `location`; their headers need not be valid ones.
    ///
    /// # Errors
    /// If one cannot be had.
    pub(crate) fn open_all(location: &Location) -> Result<Vec<Self>, Error> {
        let first = Self::open(location)?;
        let name = first.name.to_string_lossy().into_owned();
        let Some((prefix, shard)) = NameShard::strip(&name) else { return Ok(vec![first]) };
        let of_set = |number| NameShard { number, count: shard.count }.file_name(prefix);
        (1..=shard.count)
            .map(|number| Self::open(&beside(&first.location, &of_set(number))))
            .collect()
    }

    /// The file as the rules look at it.
    pub(crate) fn checkable(&self) -> Checkable<'_> {
        let (name, header) = (&self.name, &self.header);
        Checkable { name, header, file_len: self.source.byte_len() }
    }

    fn open(location: &Location) -> Result<Self, Error> {
        let opened = gguf_remote::open_with(location, Options::from_env())?;
        let header = gguf_store::fetch_header(&*opened.source, Limits::default())?;
        Ok(Self {
            name: opened.name.into(),
            source: opened.source,
            header,
            location: opened.location,
            transferred: opened.transferred,
        })
    }

    fn part(self) -> Result<Part, Error> {
        let gguf = Gguf::read_header(&self.header, self.source.byte_len(), Limits::default())
            .map_err(|error| error.in_file(&self.name))?;
        let data_start = gguf.data_start();
        let Self { name: path, source, .. } = self;
        Ok(Part { path, header: gguf.into_header(), data_start, source })
    }
}

/// The only file of the model at `path`, which is to be changed itself; `done` says how.
pub(crate) fn single_file(path: &Path, done: &str) -> Result<PathBuf, Error> {
    match ShardSet::find(path)?.paths() {
        [file] => Ok(file.clone()),
        _ => {
            let what = format!("only a single file can be {done} in place");
            Err(Error::request("output-missing", what, "give -o"))
        }
    }
}

/// The location of another file in the same place.
fn beside(location: &Location, other: &str) -> Location {
    let in_folder_of = |path: &str| match path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{other}"),
        None => other.to_owned(),
    };
    let mut location = location.clone();
    match &mut location {
        Location::Path(path) => path.set_file_name(other),
        Location::Http(url) | Location::Bucket(url) => {
            let path = in_folder_of(url.path());
            url.set_path(&path);
        }
        Location::Hub(repository) => {
            repository.file = Some(in_folder_of(repository.file.as_deref().unwrap_or_default()));
        }
    }
    location
}

/// A file whose header need not be a valid one.
#[derive(Clone, Copy)]
pub(crate) struct Checkable<'a> {
    /// Its name or path.
    pub name: &'a Path,
    /// At least its header.
    pub header: &'a Bytes,
    /// Bytes of the whole file.
    pub file_len: u64,
}

impl Checkable<'_> {
    /// Everything that the rules find in the header, and the header as far as it can be read.
    pub(crate) fn check(&self) -> (Vec<Finding>, Option<RawHeader>) {
        let (mut findings, draft) = gguf::check_header(self.header, self.file_len);
        if let (Some(draft), Some(name)) = (&draft, self.name.file_name()) {
            findings.extend(gguf::check_name(&name.to_string_lossy(), draft));
        }
        (findings, draft)
    }
}
