//! Models from wherever the user says: a file, a directory, any shard, a URL, the hub, a bucket.

use std::path::{Path, PathBuf};

use gguf::{Draft, Finding, Gguf, Limits, Model, ModelFiles, NameShard, Part, Source};
use gguf_remote::{Location, Options, Transferred};

use crate::failure::Failure;

/// The open files of one model.
pub enum Opened {
    /// On this machine.
    Near(ModelFiles),
    /// Anywhere else: only the headers are here.
    Far(Vec<Far>),
}

/// A far file.
pub struct Far {
    name: PathBuf,
    source: Box<dyn Source>,
    header: Vec<u8>,
    location: Location,
    identity: Option<String>,
    transferred: Transferred,
}

impl Opened {
    /// Opens all files of the model that `word` names.
    pub fn open(word: &str) -> Result<Self, Failure> {
        let location = Location::parse(word)?;
        if let Location::Path(path) = &location {
            return Ok(Self::Near(ModelFiles::open(path)?));
        }
        Ok(Self::Far(Far::open_all(&location)?))
    }

    /// What the files hold together, read strictly. Reads the headers: ask once.
    pub fn model(&self) -> Result<Model<'_>, Failure> {
        match self {
            Self::Near(files) => Ok(files.model()?),
            Self::Far(files) => {
                let parts = files.iter().map(Far::part).collect::<Result<_, _>>()?;
                Ok(Model::new(parts)?)
            }
        }
    }

    /// The files on this machine: none of a far model.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Self::Near(files) => files.paths(),
            Self::Far(_) => &[],
        }
    }

    /// A text that is another one when the content of a file is, for work that goes on later.
    ///
    /// `None` if nobody can tell: the server of a far file says nothing about its version.
    pub fn identity(&self) -> Result<Option<String>, Failure> {
        match self {
            Self::Near(files) => Ok(Some(files.identity()?)),
            Self::Far(files) => {
                let each = files.iter().map(|file| Some(file.identity.clone()? + "\n"));
                Ok(each.collect())
            }
        }
    }

    /// Bytes that came over the network so far; `None` for files on this machine.
    pub fn transferred(&self) -> Option<u64> {
        match self {
            Self::Near(_) => None,
            Self::Far(files) => Some(files.iter().map(|file| file.transferred.bytes()).sum()),
        }
    }
}

impl Far {
    /// Opens all files of the model at `location`; their headers need not be valid ones.
    pub fn open_all(location: &Location) -> Result<Vec<Self>, Failure> {
        let first = Self::open(location)?;
        let name = first.name.to_string_lossy().into_owned();
        let Some((prefix, shard)) = NameShard::strip(&name) else { return Ok(vec![first]) };
        let of_set = |number| NameShard { number, count: shard.count }.file_name(prefix);
        (1..=shard.count)
            .map(|number| Self::open(&beside(&first.location, &of_set(number))))
            .collect()
    }

    /// The file as the rules look at it.
    pub fn checkable(&self) -> Checkable<'_> {
        let (name, header) = (&self.name, &self.header);
        Checkable { name, header, file_len: self.source.byte_len() }
    }

    fn open(location: &Location) -> Result<Self, Failure> {
        let opened = gguf_remote::open_with(location, Options::from_env())?;
        let header = gguf::fetch_header(&*opened.source, Limits::default())?;
        Ok(Self {
            name: opened.name.into(),
            source: opened.source,
            header,
            location: opened.location,
            identity: opened.identity,
            transferred: opened.transferred,
        })
    }

    fn part(&self) -> Result<Part<'_>, Failure> {
        let gguf = Gguf::read_header(&self.header, self.source.byte_len(), Limits::default())
            .map_err(|error| error.in_file(&self.name))?;
        let data_start = gguf.data_start();
        Ok(Part { path: &self.name, header: gguf.into_header(), data_start, source: &*self.source })
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
pub struct Checkable<'a> {
    /// Its name or path.
    pub name: &'a Path,
    /// At least its header.
    pub header: &'a [u8],
    /// Bytes of the whole file.
    pub file_len: u64,
}

impl<'a> Checkable<'a> {
    /// Everything that the rules find in the header, and the header as far as it can be read.
    pub fn check(&self) -> (Vec<Finding>, Option<Draft<'a>>) {
        let (mut findings, draft) = gguf::check_header(self.header, self.file_len);
        if let (Some(draft), Some(name)) = (&draft, self.name.file_name()) {
            findings.extend(gguf::check_name(&name.to_string_lossy(), draft));
        }
        (findings, draft)
    }
}
