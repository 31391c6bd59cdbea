//! The files of a model with their headers in memory; their data are read when they are asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Bytes, Finding, Gguf, Limits, NameShard};
use gguf_remote::{BlockCache, Cache, Location, RemoteOptions, Transferred};
use gguf_store::{FileState, Model, ModelFile, ReadFile, ShardSet, Source};
use gguf_tokenizer::template::Renderer;

use crate::Error;
use crate::check::headers::{Checkable, findings_of};

/// The files of a model, which need not keep the rules. Nothing is mapped: a file that somebody shortens is an
/// error for who reads it then, and memory is that of the headers.
///
/// For programs that show a model for long; who does one thing with it has [`open`](crate::open()).
pub struct Files {
    location: Location,
    files: Vec<HeldFile>,
    /// What is wrong with the set of files.
    of_set: Option<Finding>,
}

/// What came over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
}

/// A file whose header is in memory.
pub struct HeldFile {
    name: PathBuf,
    source: Arc<dyn Source>,
    header: Bytes,
    /// On this machine: the same as `source`.
    near: Option<Arc<ReadFile>>,
    /// Far away: where, and what reading it has cost.
    far: Option<(Location, Transferred)>,
}

impl Files {
    /// Opens all files of the model that `word` names, as [`open`](crate::open()) does; far ones through `cache`.
    ///
    /// # Errors
    /// If they cannot be had. What is wrong with their headers is no error here.
    pub fn open(word: &str, cache: Option<&Arc<Cache>>) -> Result<Self, Error> {
        Self::at(Location::parse(word)?, cache)
    }

    /// The same, of a location.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub fn at(location: Location, cache: Option<&Arc<Cache>>) -> Result<Self, Error> {
        let Location::Path(path) = &location else {
            let files = HeldFile::open_far(&location, cache)?;
            return Ok(Self { location, files, of_set: None });
        };
        let (paths, of_set) = match ShardSet::find(path) {
            Ok(set) => (set.paths().to_vec(), None),
            Err(Error::File(finding)) => (vec![path.clone()], Some(*finding)),
            Err(other) => return Err(other),
        };
        let paths = paths.iter().filter(|path| of_set.is_none() || path.is_file());
        let files = paths.map(|path| HeldFile::open_near(path)).collect::<Result<_, _>>()?;
        Ok(Self { location, files, of_set })
    }

    /// The files, the first shard first.
    pub fn files(&self) -> &[HeldFile] {
        &self.files
    }

    /// Where they are, as the user said it.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Whether they are on another machine.
    pub fn is_far(&self) -> bool {
        !matches!(self.location, Location::Path(_))
    }

    /// What the files hold together.
    ///
    /// # Errors
    /// If one breaks the format, or they do not fit together.
    pub fn model(&self) -> Result<Model, Error> {
        if let Some(finding) = &self.of_set {
            return Err(finding.clone().into());
        }
        Model::new(self.files.iter().map(HeldFile::part).collect::<Result<_, _>>()?)
    }

    /// Everything that is wrong or odd about their headers; chat templates are tried in `renderer`.
    ///
    /// # Errors
    /// If templates cannot be tried.
    pub fn findings(&self, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
        let mut findings: Vec<_> = self.of_set.clone().into_iter().collect();
        let files: Vec<_> = self.files.iter().map(HeldFile::checkable).collect();
        findings.extend(findings_of(&files, renderer)?);
        Ok(findings)
    }

    /// What reading far files has cost so far.
    pub fn traffic(&self) -> Traffic {
        let far = self.files.iter().filter_map(|file| Some(&file.far.as_ref()?.1));
        far.fold(Traffic::default(), |sum, of| Traffic {
            bytes: sum.bytes + of.bytes(),
            requests: sum.requests + of.requests(),
        })
    }

    /// The counters of far files.
    pub(crate) fn transferred(&self) -> Option<Vec<Transferred>> {
        let of = |file: &HeldFile| Some(file.far.as_ref()?.1.clone());
        self.is_far().then(|| self.files.iter().filter_map(of).collect())
    }
}

impl HeldFile {
    /// Its path, or the name of a far one.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Its bytes.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// The start of the file: at least its header, if that can be read.
    pub fn header(&self) -> &Bytes {
        &self.header
    }

    /// What has become of it since it was opened. Of a far file that is not known before it is read.
    pub fn state(&self) -> FileState {
        self.near.as_ref().map_or(FileState::Unchanged, |file| file.state())
    }

    /// Its header, read strictly, and where its fields stand.
    ///
    /// # Errors
    /// If it breaks the format.
    pub fn gguf(&self) -> Result<Gguf, Error> {
        Gguf::read_header(&self.header, self.source.byte_len(), Limits::default())
            .map_err(|error| error.in_file(&self.name))
    }

    fn open_near(path: &Path) -> Result<Self, Error> {
        let file = Arc::new(ReadFile::open(path)?);
        let header = gguf_store::fetch_header(&*file, Limits::default())?;
        let (source, near) = (file.clone(), Some(file));
        Ok(Self { name: path.to_owned(), source, header, near, far: None })
    }

    /// All files of the model at a location that is no path.
    fn open_far(location: &Location, cache: Option<&Arc<Cache>>) -> Result<Vec<Self>, Error> {
        let last = Arc::default();
        let open = |location: &Location| Self::open_one(location, cache, &last);
        let first = open(location)?;
        let name = first.name.to_string_lossy().into_owned();
        let Some((prefix, shard)) = NameShard::strip(&name) else { return Ok(vec![first]) };
        let of_set = |number| NameShard { number, count: shard.count }.file_name(prefix);
        let found = first.far.as_ref().map_or(location, |(found, _)| found);
        (1..=shard.count).map(|number| open(&beside(found, &of_set(number)))).collect()
    }

    /// Tensors are read through a cache, or by blocks where they are read as a whole, so that a chunk of rows is no
    /// request of its own.
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
        // Of a header no more is read than has to be.
        let header = gguf_store::fetch_header(&*source, Limits::default())?;
        let source = if cache.is_some() { source } else { last.read_ahead(source) };
        Ok(Self {
            name: opened.name.into(),
            source,
            header,
            near: None,
            far: Some((opened.location, opened.transferred)),
        })
    }

    fn part(&self) -> Result<ModelFile, Error> {
        let gguf = self.gguf()?;
        let data_start = gguf.data_start();
        let (path, source) = (self.name.clone(), self.source.clone());
        Ok(ModelFile { path, header: gguf.into_header(), data_start, source })
    }

    /// The file as the rules look at it.
    fn checkable(&self) -> Checkable<'_> {
        let (name, header) = (&self.name, &self.header);
        Checkable { name, header, file_len: self.source.byte_len() }
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
