//! Results in a part file: of one part of a distributed run, or of a run that can resume.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf_eval::part::{Part, Portion, Tally};
use gguf_store::digest::hex;
use gguf_store::{Existing, Overwrite};
use sha2::{Digest, Sha256};

use super::{EvaluatedModel, Task};
use crate::Error;
use crate::quantize::Part as Share;
use crate::run::ExecutorOptions;

/// Property with the lengths of chunks, and their number.
const CUT: &str = "cut of the text";
/// Property with the number of the first chunk.
pub(super) const FIRST: &str = "first window";

/// Interval between writes of the file.
const WRITE_INTERVAL: Duration = Duration::from_secs(30);

/// Collects the results of chunks in memory, and in a part file if there is one.
#[derive(Default)]
pub struct PartWriter {
    part: Part,
    /// Number of models that have started.
    started: usize,
    file: Option<File>,
}

struct File {
    path: PathBuf,
    /// Existing files that the next write may replace: after the first write, that of this run.
    overwrite: Overwrite,
    own: Overwrite,
    share: Share,
    written: Instant,
}

impl PartWriter {
    /// Creates a writer for a share of a run. With `resume`, continues with the results in the file. The file must not be
    /// one of `inputs`.
    ///
    /// # Errors
    /// As [`Overwrite::check`] and [`Part::open`].
    pub fn new<P: AsRef<Path>>(
        share: Share,
        path: &Path,
        existing: Existing,
        inputs: impl IntoIterator<Item = P>,
        resume: bool,
    ) -> Result<Self, Error> {
        let inputs: Vec<P> = inputs.into_iter().collect();
        let own = Overwrite::new(Existing::Replace).protecting(&inputs);
        own.check(path)?;
        let (part, overwrite) = if resume && path.exists() {
            (Part::open(path)?, own.clone())
        } else {
            let overwrite = Overwrite::new(existing).protecting(&inputs);
            overwrite.check(path)?;
            (Part::default(), overwrite)
        };
        let file = File { path: path.to_owned(), overwrite, own, share, written: Instant::now() };
        Ok(Self { part, started: 0, file: Some(file) })
    }

    /// Whether there is a part file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns the results of a model.
    pub(super) fn portion(&mut self, number: usize) -> &mut Portion {
        &mut self.part.portions[number]
    }

    /// Returns all results so far.
    pub(super) fn part(&mut self) -> &mut Part {
        &mut self.part
    }

    /// Starts the evaluation of `models` on `total` chunks. `run` identifies the run, and `empty` is the initial tally.
    /// Returns the index of the first model and the remaining chunks.
    pub(super) fn begin(
        &mut self,
        run: BTreeMap<String, String>,
        models: &[&EvaluatedModel],
        total: usize,
        empty: &Tally,
    ) -> Result<(usize, Range<usize>), Error> {
        let chunks = match &self.file {
            Some(file) => file.share.share(total),
            None => 0..total,
        };
        if chunks.is_empty() {
            let what = format!("the number of chunks ({total}) is less than the number of parts");
            return Err(Error::request("parts-too-many", what, "use fewer parts"));
        }
        let mut portions = Vec::with_capacity(models.len());
        for model in models {
            let digest = if self.has_file() { model.digest()? } else { String::new() };
            let (name, tally) = (model.source().to_owned(), empty.clone());
            let (chunks, tensor_digest) = (chunks.clone(), None);
            portions.push(Portion { name, digest, tensor_digest, chunks, total, tally });
        }
        let first = self.started;
        self.started += portions.len();
        if self.part.portions.is_empty() {
            self.part.run = run.clone();
        }
        let found = self.part.portions.iter().skip(first).take(portions.len());
        let found: Vec<Portion> = found.cloned().collect();
        if let (Some(file), Some(one)) = (&self.file, found.first()) {
            if one.chunks != chunks && one.total == total {
                let what = format!("{} has another share of the chunks", file.path.display());
                return Err(Error::request("part-other-run", what, "use another file name"));
            }
            let found = Part { portions: found, run: self.part.run.clone(), ..Part::default() };
            let expected = Part { run, portions, ..Part::default() };
            found.require_same(&expected, &file.path.to_string_lossy(), "this run")?;
        } else {
            self.part.portions.extend(portions);
        }
        Ok((first, self.part.portions[first].rest()))
    }

    /// Writes the file, if there is one: always with `now`, else if the last write was long ago.
    pub(super) fn write(&mut self, now: bool) -> Result<(), Error> {
        if let Some(file) = &mut self.file
            && (now || file.written.elapsed() > WRITE_INTERVAL)
        {
            self.part.write(&file.path, &file.overwrite)?;
            file.overwrite = file.own.clone();
            file.written = Instant::now();
        }
        Ok(())
    }

    /// Ends a run: writes the results, also after an error.
    pub(super) fn end(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        let chunks = self.part.portions.iter().map(|one| one.tally.chunks()).sum::<usize>();
        let written = if chunks > 0 { self.write(true) } else { Ok(()) };
        result.and(written)
    }
}

/// Returns the named properties that all parts of a run share.
pub(super) fn identity(
    command: &str,
    text: String,
    options: &ExecutorOptions,
    task: &Task,
) -> Result<BTreeMap<String, String>, Error> {
    let cut = task.cut;
    let mut adapters = Vec::new();
    for (source, scale) in &options.adapters {
        let model = crate::open(source)?.into_model();
        adapters.push(format!("{} * {scale}", gguf_pipeline::Job::copy(&model).fingerprint()?));
    }
    let (stride, most) = (cut.stride.unwrap_or(0), cut.count.unwrap_or(0));
    let named = [
        ("command", command.to_owned()),
        ("text", text),
        (CUT, format!("{} tokens, stride {stride}, at most {most}", cut.len)),
        ("arithmetic", format!("{:?}, {:?}", options.precision, options.graph)),
        ("type of caches", format!("{:?}", task.run.cache_type)),
        ("list of adapters", adapters.join(", ")),
    ];
    Ok(named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Returns a digest of a model, given its own digest, and of the properties of a run, except for the number of the first
/// and of all chunks.
pub(super) fn fingerprint(
    identity: &BTreeMap<String, String>,
    model: &str,
    chunk_len: usize,
) -> String {
    let mut hasher = Sha256::new();
    hasher.update(model);
    for (name, property) in identity.iter().filter(|(name, _)| *name != FIRST) {
        let property = if name == CUT { &chunk_len.to_string() } else { property };
        hasher.update(format!("\n{name}={property}"));
    }
    hex(&hasher.finalize())
}

/// Returns a digest of the text and its tokenization options.
pub(super) fn text_digest(task: &Task) -> String {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(task.special)]);
    hasher.update(&task.text);
    hex(&hasher.finalize())
}
