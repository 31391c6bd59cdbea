//! What a run finds, kept in a file: a part of a larger run, or one to go on with.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf_eval::part::{Part, Portion, Tally};
use gguf_store::{Existing, Overwrite};
use sha2::{Digest, Sha256};

use super::{Opened, Task};
use crate::Error;
use crate::quantize::Part as Share;
use crate::run::ExecutorOptions;
use gguf_store::digest::hex;

/// How long work is at risk.
const PAUSE: Duration = Duration::from_secs(30);

/// Keeps what windows gave: in memory, and in a file if there is one.
#[derive(Default)]
pub struct Keeper {
    part: Part,
    /// Models whose portions are begun.
    begun: usize,
    file: Option<File>,
}

struct File {
    path: PathBuf,
    overwrite: Overwrite,
    share: Share,
    written: Instant,
}

impl Keeper {
    /// Keeps a share of a run in a file, and goes on with what is there if that is asked for. `inputs` are
    /// what is read: the file is none of them.
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
        // What is under that name later is ours.
        let overwrite = Overwrite::new(Existing::Replace).protecting(inputs);
        overwrite.check(path)?;
        let part = if resume && path.exists() {
            Part::open(path)?
        } else {
            Overwrite::new(existing).check(path)?;
            Part::default()
        };
        let file = File { path: path.to_owned(), overwrite, share, written: Instant::now() };
        Ok(Self { part, begun: 0, file: Some(file) })
    }

    /// Whether it goes to a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// What is known of a model.
    pub(super) fn portion(&mut self, number: usize) -> &mut Portion {
        &mut self.part.portions[number]
    }

    /// What was found so far, and all that is known with it.
    pub(super) fn part(&mut self) -> &mut Part {
        &mut self.part
    }

    /// Begins to read so many windows with models, with tallies that are empty; `run` is what was asked
    /// for. The windows that are still to be read, and the number of the first model.
    pub(super) fn begin(
        &mut self,
        run: BTreeMap<String, String>,
        models: &[&Opened],
        total: usize,
        empty: &Tally,
    ) -> Result<(usize, Range<usize>), Error> {
        let windows = match &self.file {
            Some(file) => file.share.share(total),
            None => 0..total,
        };
        if windows.is_empty() {
            let what = format!("{total} windows are fewer than the parts");
            return Err(Error::request("parts-too-many", what, "make fewer parts"));
        }
        let mut portions = Vec::with_capacity(models.len());
        for model in models {
            let digest = if self.has_file() { model.digest()? } else { String::new() };
            let (name, tally) = (model.word().to_owned(), empty.clone());
            portions.push(Portion { name, digest, windows: windows.clone(), total, tally });
        }
        let first = self.begun;
        self.begun += portions.len();
        if self.part.portions.is_empty() {
            self.part.run = run.clone();
        }
        let found = self.part.portions.iter().skip(first).take(portions.len());
        let found: Vec<Portion> = found.cloned().collect();
        if let (Some(file), Some(one)) = (&self.file, found.first()) {
            if one.windows != windows && one.total == total {
                let what = format!("{} has another share of the windows", file.path.display());
                return Err(Error::request("part-other-run", what, "give it another name"));
            }
            let found = Part { portions: found, run: self.part.run.clone(), ..Part::default() };
            let wanted = Part { run, portions, ..Part::default() };
            found.require_same(&wanted, &file.path.to_string_lossy(), "this run")?;
        } else {
            self.part.portions.extend(portions);
        }
        Ok((first, self.part.portions[first].rest()))
    }

    /// Writes the file, if there is one: now, or if the last time is long ago.
    pub(super) fn write(&mut self, now: bool) -> Result<(), Error> {
        if let Some(file) = &mut self.file
            && (now || file.written.elapsed() > PAUSE)
        {
            self.part.write(&file.path, &file.overwrite)?;
            file.written = Instant::now();
        }
        Ok(())
    }

    /// Ends a run: what was found is written, also if it was interrupted or failed.
    pub(super) fn end(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        let windows = self.part.portions.iter().map(|one| one.tally.windows()).sum::<usize>();
        let written = if windows > 0 { self.write(true) } else { Ok(()) };
        result.and(written)
    }
}

/// What is asked for, by name, as parts compare it.
pub(super) fn asked(
    command: &str,
    text: String,
    options: &ExecutorOptions,
    task: &Task,
) -> Result<BTreeMap<String, String>, Error> {
    let cut = task.cut;
    let mut adapters = Vec::new();
    for (word, scale) in &options.adapters {
        let model = crate::open(word)?.into_model();
        adapters.push(format!("{} * {scale}", gguf_pipeline::Job::copy(&model).fingerprint()?));
    }
    let (stride, most) = (cut.stride.unwrap_or(0), cut.windows.unwrap_or(0));
    let named = [
        ("command", command.to_owned()),
        ("text", text),
        ("cut of the text", format!("{} tokens, stride {stride}, at most {most}", cut.len)),
        ("arithmetic", format!("{:?}, {:?}", options.arithmetic, options.graph)),
        ("type of caches", format!("{:?}", task.run.cache_type)),
        ("list of adapters", adapters.join(", ")),
    ];
    Ok(named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A digest of a text, and of how it becomes tokens.
pub(super) fn digest_of_text(task: &Task) -> String {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(task.special)]);
    hasher.update(&task.text);
    hex(&hasher.finalize())
}
