//! Findings about a model, and repairs.

pub(crate) mod headers;
mod ollama;
mod scan;
mod upstream;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gguf::{Fault, Finding, Metadata, ModelName, NameShard, RawHeader, Severity, is_gguf};
use gguf_convert::vocab::other_pre_tokenizer;
use gguf_inspect::scan;
use gguf_pipeline::Job;
use gguf_remote::Location;
use gguf_store::edit::edit_header;
use gguf_store::{LocalFile, Model, Progress, ShardSet};
use gguf_tokenizer::diff::TokenizerDiff;
use gguf_tokenizer::template::{Linter, Renderer};
use gguf_tokenizer::{HuggingFace, Tokenizer, TokenizerOptions};
use headers::{Checkable, findings_of};

use crate::model::explained;
use crate::{Error, Files, Opened, name, open};

const PRE_TOKENIZER: &str = "tokenizer.ggml.pre";

/// Size below which the tensor data of local models is checked by default.
const SMALL: u64 = 1_000_000_000;

/// Whether tensor data is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataCheck {
    /// For local models below 1 GB.
    #[default]
    IfSmall,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// Whether tensor data is checked.
    pub data: DataCheck,
    /// Treats warnings as errors.
    pub strict: bool,
    /// Multimodal projector (mmproj) to check together with the model.
    pub with: Option<String>,
    /// A `tokenizer.json`, or its directory, to compare the model's tokenizer with.
    pub tokenizer_against: Option<PathBuf>,
    /// Text on which tokenizers are compared, in addition to built-in texts.
    pub corpus: Option<PathBuf>,
    /// Scans templates, vocabulary, metadata, and the files of a checkpoint directory for manipulation.
    pub scan: bool,
    /// Base model whose chat template is compared with that of the model: a location, a checkpoint directory, or a file
    /// with the template. Only with `scan`.
    pub template_of: Option<String>,
    /// Model whose chat template is compared: a checkpoint directory, `hf:org/repo`, a GGUF, or an empty text for
    /// the base model that the file names.
    pub upstream: Option<String>,
    /// Folder `template` of Ollama's repository, to find out whether Ollama replaces the chat template.
    pub ollama_templates: Option<PathBuf>,
}

/// Result of a check.
#[derive(Default)]
pub struct CheckReport {
    /// Findings in the headers, which a repair can fix.
    pub header: Vec<Finding>,
    /// Findings in tensor data, with the projector, and with another tokenizer.
    pub other: Vec<Finding>,
    /// The model, if its tensor data was checked.
    pub opened: Option<Opened>,
}

impl CheckReport {
    /// Returns all findings.
    pub fn findings(&self) -> Vec<Finding> {
        [&self.header[..], &self.other].concat()
    }

    /// Whether a finding is an error.
    pub fn has_error(&self) -> bool {
        has_error(&self.header) || has_error(&self.other)
    }
}

/// Checks the model that `source` names. `renderer` checks its chat templates.
///
/// # Errors
/// If the model cannot be read, or `progress` stopped the work. Faults of the model are findings.
pub fn check(
    source: &str,
    options: &CheckOptions,
    renderer: &Renderer,
    progress: &dyn Progress,
) -> Result<CheckReport, Error> {
    let with_severity = |mut findings: Vec<Finding>| {
        if options.strict {
            let warnings = findings.iter_mut().filter(|one| one.severity == Severity::Warning);
            warnings.for_each(|warning| warning.severity = Severity::Error);
        }
        findings
    };
    let is_checkpoint = options.scan && scan::is_checkpoint_alone(source);
    let header = match is_checkpoint {
        true => Vec::new(),
        false => with_severity(headers(source, renderer)?),
    };
    let mut other = Vec::new();
    if options.scan {
        let found = scan::scan(source, renderer, options.template_of.as_deref())?;
        other.extend(with_severity(found));
    }
    let opened = match options.data {
        DataCheck::Always => readable(source, &header)?,
        DataCheck::IfSmall if !is_checkpoint && is_local(source)? => {
            readable(source, &header)?.filter(|opened| opened.model().byte_len() < SMALL)
        }
        _ => None,
    };
    if let Some(opened) = &opened {
        other.extend(with_severity(scan(opened.model(), progress)?));
    }
    if let Some(sidecar) = &options.with {
        let (model, sidecar) = (open(source)?, open(sidecar)?);
        let found = gguf_check::check_sidecar(model.model().metadata(), sidecar.model().metadata());
        other.extend(with_severity(found));
    }
    if let Some(upstream) = &options.upstream {
        other.extend(with_severity(upstream::compare(source, upstream, renderer)?));
    }
    if let Some(folder) = &options.ollama_templates {
        other.extend(with_severity(ollama::replaced(source, folder)?));
    }
    if let Some(tokenizer) = &options.tokenizer_against {
        other.extend(with_severity(compare_tokenizers(
            source,
            tokenizer,
            options.corpus.as_deref(),
        )?));
    }
    Ok(CheckReport { header, other, opened })
}

fn is_local(source: &str) -> Result<bool, Error> {
    Ok(matches!(Location::parse(source)?, Location::Path(_)))
}

/// Returns the models that sources name: each model of a directory with several, and a model in shards once.
///
/// # Errors
/// If a directory cannot be read.
pub fn models(sources: &[String]) -> Result<Vec<String>, Error> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for source in sources {
        let paths = match Location::parse(source) {
            Ok(Location::Path(path)) if path.is_dir() => files_in(&path)?,
            _ => Vec::new(),
        };
        let names = match &paths[..] {
            // Opening the source says what is wrong with it.
            [] => vec![source.clone()],
            paths => paths.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        };
        found.extend(names.into_iter().filter(|name| seen.insert(model_key(name))));
    }
    Ok(found)
}

/// Returns the GGUF files in a directory, sorted by name.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |fault| Error::environment("list", directory, fault);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_model = path.file_name().and_then(|name| name.to_str()).is_some_and(is_gguf);
        if is_model && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns a name that all shards of a model have in common.
fn model_key(source: &str) -> String {
    let (directory, name) = source.rsplit_once('/').unwrap_or(("", source));
    match NameShard::strip(name) {
        Some((prefix, shard)) => format!("{directory}/{prefix} of {}", shard.count),
        None => format!("{directory}/{name}"),
    }
}

/// Compares the tokenizer of `source` with a `tokenizer.json`, or the one in a directory.
fn compare_tokenizers(
    source: &str,
    other: &Path,
    corpus: Option<&Path>,
) -> Result<Vec<Finding>, Error> {
    let read =
        |path: &Path| std::fs::read(path).map_err(|fault| Error::environment("read", path, fault));
    let other = if other.is_dir() { other.join("tokenizer.json") } else { other.to_owned() };
    let in_other = |error: Error| error.in_file(&other);
    let json = read(&other)?;
    let theirs = HuggingFace::from_json(&json).map_err(in_other)?;
    let opened = open(source)?;
    let metadata = opened.model().metadata();
    let ours = Tokenizer::from_metadata(metadata, TokenizerOptions::default())?;
    let corpus = corpus.map(read).transpose()?.unwrap_or_default();
    let diff = TokenizerDiff { ours: &ours, theirs: &theirs };
    let mut findings = diff.findings(&String::from_utf8_lossy(&corpus)).map_err(in_other)?;
    if !findings.is_empty() {
        findings.splice(0..0, wrong_pre_tokenizer(metadata, &json));
    }
    Ok(findings)
}

/// Returns a finding if the pre-tokenizer of a model is not that of a `tokenizer.json`.
fn wrong_pre_tokenizer(metadata: &Metadata, json: &[u8]) -> Option<Finding> {
    let name = metadata.get(PRE_TOKENIZER)?.as_str()?;
    let other = other_pre_tokenizer(&serde_json::from_slice(json).ok()?, name)?;
    let message = format!("the pre-tokenizer is {name:?}; tokenizer.json splits text as {other:?}");
    let help = format!("set it with `gguf edit --set {PRE_TOKENIZER}={other}`");
    Some(Finding::error("tokenizer-difference", message).key(PRE_TOKENIZER).help(help))
}

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Opens the model; returns `None` if it breaks the format and `findings` has an error.
///
/// # Errors
/// If the model cannot be read.
pub fn readable(source: &str, findings: &[Finding]) -> Result<Option<Opened>, Error> {
    match open(source) {
        Err(error) if error.fault() == Fault::Input && has_error(findings) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Returns the findings about the headers of all files of a model.
fn headers(source: &str, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
    let location = Location::parse(source)?;
    let Location::Path(path) = &location else {
        return Files::at(location, None)?.findings(renderer);
    };
    let (paths, mut findings) = match ShardSet::find(path) {
        Ok(set) => (set.paths().to_vec(), Vec::new()),
        Err(Error::File(finding)) => (vec![path.clone()], vec![*finding]),
        Err(error) => return Err(explained(error, source)),
    };
    let mut files = Vec::new();
    for path in paths.iter().filter(|path| path.is_file()) {
        match LocalFile::open(path) {
            Ok(file) => files.push((path, file)),
            // An interrupted edit must be completed before other checks.
            Err(Error::File(finding)) => return Ok(vec![*finding]),
            Err(error) => return Err(error),
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

/// A repaired model.
pub struct Repaired {
    /// Content of the output.
    pub job: Job,
    /// Canonical name.
    pub name: ModelName,
    /// Descriptions of the repairs.
    pub done: Vec<String>,
}

/// Repairs the unambiguous faults of a header, and makes the token by which the chat template ends answers an end
/// token. Returns descriptions of the repairs.
fn repair(header: &mut RawHeader, renderer: &Renderer) -> Result<Vec<String>, Error> {
    let mut done = gguf_check::fix(header);
    if let Some(end) = Linter::new(renderer.clone()).wrong_end(&header.metadata)? {
        done.extend(gguf_check::fix_end(&mut header.metadata, end));
    }
    Ok(done)
}

/// Plans a repair of unambiguous faults. `renderer` renders the chat template.
///
/// # Errors
/// If the size of a tensor is not known, or the rendering process fails.
pub fn repaired(model: &Model, renderer: &Renderer) -> Result<Repaired, Error> {
    let mut draft = model.to_raw_header()?;
    let done = repair(&mut draft, renderer)?;
    let name = name::from_metadata(&draft.metadata, draft.tensors.iter());
    Ok(Repaired { job: Job { metadata: draft.metadata, ..Job::copy(model) }, name, done })
}

/// Repairs a file in place. Returns descriptions of the repairs.
///
/// # Errors
/// If the file is one of several shards, another process edits it, it cannot be written, or the rendering process
/// fails.
pub fn repair_in_place(path: &Path, renderer: &Renderer) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    edit_header(&ShardSet::single_file(path, "repaired")?, 0, &(), |draft| {
        done = repair(draft, renderer)?;
        Ok::<_, Error>(())
    })?;
    Ok(done)
}
