//! Everything that is wrong or odd about a model, and its repair.

pub(crate) mod headers;
mod tokenizer;

use std::path::{Path, PathBuf};

use gguf::{Fault, Finding, ModelName, Severity};
use gguf_inspect::scan;
use gguf_pipeline::Job;
use gguf_remote::Location;
use gguf_store::edit::edit_header;
use gguf_store::{LocalFile, Model, Progress, ShardSet};
use gguf_tokenizer::template::Renderer;
use headers::{Checkable, findings_of};

use crate::model::single_file;
use crate::{Error, Files, Opened, name, open};

/// How closely to look.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Look at all tensor data too.
    pub data: bool,
    /// Take warnings for errors.
    pub strict: bool,
    /// A file that programs are to load beside the model, to encode images or sound for it.
    pub with: Option<String>,
    /// A `tokenizer.json`, or the directory with it, to hold the model's tokenizer against.
    pub tokenizer_against: Option<PathBuf>,
    /// A text to compare tokenizers on, besides the short ones that are built in.
    pub corpus: Option<PathBuf>,
}

/// What was found.
#[derive(Default)]
pub struct Report {
    /// In the headers, which a repair may mend.
    pub header: Vec<Finding>,
    /// In the data, and beside other tokenizers.
    pub beyond: Vec<Finding>,
    /// The model, if its data were looked at.
    pub opened: Option<Opened>,
}

impl Report {
    /// All findings.
    pub fn findings(&self) -> Vec<Finding> {
        [&self.header[..], &self.beyond].concat()
    }

    /// Whether one is an error.
    pub fn has_error(&self) -> bool {
        has_error(&self.header) || has_error(&self.beyond)
    }
}

/// Looks at the model that `source` names. Its chat templates are tried in `renderer`.
///
/// # Errors
/// If it cannot be read, or `progress` ended the work; what is wrong with it is no error here.
pub fn check(
    source: &str,
    options: &Options,
    renderer: &Renderer,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let judged = |mut findings: Vec<Finding>| {
        if options.strict {
            let warnings = findings.iter_mut().filter(|one| one.severity == Severity::Warning);
            warnings.for_each(|warning| warning.severity = Severity::Error);
        }
        findings
    };
    let header = judged(headers(source, renderer)?);
    let mut beyond = Vec::new();
    let opened = if options.data { readable(source, &header)? } else { None };
    if let Some(opened) = &opened {
        beyond.extend(judged(scan(opened.model(), progress)?));
    }
    if let Some(sidecar) = &options.with {
        let (model, sidecar) = (open(source)?, open(sidecar)?);
        let found = gguf_check::check_sidecar(model.model().metadata(), sidecar.model().metadata());
        beyond.extend(judged(found));
    }
    if let Some(other) = &options.tokenizer_against {
        beyond.extend(judged(tokenizer::compare(source, other, options.corpus.as_deref())?));
    }
    Ok(Report { header, beyond, opened })
}

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// The model, unless it breaks the format, which is among the findings.
///
/// # Errors
/// If it cannot be read.
pub fn readable(source: &str, findings: &[Finding]) -> Result<Option<Opened>, Error> {
    match open(source) {
        Err(error) if error.fault() == Fault::Input && has_error(findings) => Ok(None),
        opened => opened.map(Some),
    }
}

/// What the rules find in the headers of all files of a model, which may be faulty ones.
fn headers(source: &str, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
    let location = Location::parse(source)?;
    let Location::Path(path) = &location else {
        return Files::at(location, None)?.findings(renderer);
    };
    let (paths, mut findings) = match ShardSet::find(path) {
        Ok(set) => (set.paths().to_vec(), Vec::new()),
        Err(Error::File(finding)) => (vec![path.clone()], vec![*finding]),
        Err(other) => return Err(other),
    };
    let mut files = Vec::new();
    for path in paths.iter().filter(|path| path.is_file()) {
        match LocalFile::open(path) {
            Ok(file) => files.push((path, file)),
            // An edit was interrupted: until it is ended, there is nothing else to say.
            Err(Error::File(finding)) => return Ok(vec![*finding]),
            Err(other) => return Err(other),
        }
    }
    let files = files.iter().map(|(name, file)| Checkable {
        name,
        header: file.mapped(),
        file_len: file.mapped().len() as u64,
    });
    findings.extend(findings_of(&files.collect::<Vec<_>>(), renderer)?);
    Ok(findings)
}

/// A repaired model, to be written.
pub struct Repaired {
    /// What it holds.
    pub job: Job,
    /// The name by the naming convention.
    pub name: ModelName,
    /// What was repaired, in words.
    pub done: Vec<String>,
}

/// Repairs what can only be meant in one way.
///
/// # Errors
/// If the size of a tensor is not known.
pub fn repaired(model: &Model) -> Result<Repaired, Error> {
    let mut draft = model.to_raw_header()?;
    let done = gguf_check::fix(&mut draft);
    let name = name::of(&draft.metadata, draft.tensors.iter());
    Ok(Repaired { job: Job { metadata: draft.metadata, ..Job::copy(model) }, name, done })
}

/// Repairs the file itself, and says in words what.
///
/// # Errors
/// If it is one of several files of a model, somebody edits it, or it cannot be written.
pub fn repair_in_place(path: &Path) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    edit_header(&single_file(path, "repaired")?, 0, &(), |draft| {
        done = gguf_check::fix(draft);
        Ok::<_, Error>(())
    })?;
    Ok(done)
}
