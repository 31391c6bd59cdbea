//! What a model costs and loses in each type: every mix is made and measured beside the original.
//!
//! Mixes are made in memory, where nothing of them stays. Those of a group read the text side by side, so
//! that the original reads it once per group. What is found is a [`Report`], which goes to a file after each
//! group and can be gone on with; [`page`] shows it.

mod make;
pub mod page;
mod plan;
mod report;

use std::path::Path;
use std::sync::Arc;

use gguf::Header;
use gguf_eval::{Divergence, Spread, Subject, Windows, divergence};
use gguf_pipeline::Job;
use gguf_runtime::{Arithmetic, ContextOptions, Executor};
use gguf_store::Progress;
pub use plan::Types;
pub use report::{Conditions, Cost, LeftOut, Mix, Original, Purpose, Report, Run, TensorError};

use crate::calibration::{Calibration, Ready};
use crate::digest::sha256;
use crate::eval::{Opened, Task};
use crate::quantize::Choice;
use crate::run::bench::{Trial, rates};
use crate::summary::{Summary, bits_per_weight};
use crate::{Error, run};

/// What is asked for.
#[derive(Clone)]
pub struct Options {
    /// What to make.
    pub types: Types,
    /// The text, how it is cut, and how models read it.
    pub task: Task,
    /// What the file with the text is called.
    pub text: String,
    /// How models are run.
    pub run: run::Options,
    /// What guides the encoders.
    pub imatrix: Option<Choice>,
    /// A text, other than the one that judges: mixes are also made with weights that are rounded by what it shows.
    pub calibration: Option<Calibration>,
    /// Whether an original that is quantized already will do.
    pub allow_requantize: bool,
    /// How speeds are measured; not at all without.
    pub trial: Option<Trial>,
    /// Mixes that are in memory, and read side by side, at most.
    pub together: usize,
}

/// What happens.
pub enum Event<'e> {
    /// These are made and measured next; so many of all are done.
    Begins {
        /// Their names.
        names: Vec<&'e str>,
        /// Mixes that are done.
        done: usize,
        /// Mixes that are to be in the report.
        all: usize,
    },
    /// A group of mixes is in the report.
    Measured(&'e Report),
}

/// Is told what happens; its error ends the work.
pub type Each<'e> = dyn FnMut(Event<'_>) -> Result<(), Error> + 'e;

/// Measures each mix of the model that `word` names. Mixes that `before` has are taken over from there.
///
/// # Errors
/// `report-other` if `before` was measured under other conditions; what [`gguf_quantize::plan()`] says of a
/// type that is named; as [`crate::eval::divergence`].
pub fn measure(
    word: &str,
    options: &Options,
    before: Option<Report>,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let opened = Opened::fetch(word, &options.run, progress)?;
    let calibration = options.calibration.as_ref();
    if let Some(calibration) = calibration {
        calibration.require_other(&options.task.text, &options.text)?;
    }
    let ready = |choice| Ready::of(opened.executor(), &opened.tokenizer, choice);
    let ready = calibration.map(ready).transpose()?;
    let (mut plans, left_out) = plan::plans(&opened, options, ready.as_ref())?;
    let windows = opened.windows(&options.task)?;
    let trained = Summary::of(opened.model()).layers.context_length;
    let memory_tokens = trained.map_or(4096, |len| len.min(4096)) as usize;
    let (opened, ready, windows) = (&opened, ready.as_ref(), &windows);
    let bench = Bench { opened, options, ready, windows, memory_tokens, progress };
    let mut report = bench.empty()?;
    if let Some(before) = before {
        require_same(&before.conditions, &report.conditions)?;
        report = before;
    }
    report.left_out = left_out;
    plans.retain(|plan| report.mixes.iter().all(|mix| mix.name != plan.name));
    let groups: Vec<_> = plans.chunks(options.together.max(1)).collect();
    let read = windows.count() * (windows.window_len() - 1) * (plans.len() + groups.len());
    progress.begin("reading", read as u64);
    if report.original.cost.file_bytes == 0 {
        let header = Job::copy(opened.model()).header()?;
        report.original.cost = bench.cost(&header, opened.executor())?;
        // As it is on the disk, in however many files.
        report.original.cost.file_bytes = opened.model().byte_len();
    }
    for group in groups {
        let names = group.iter().map(|plan| plan.name.as_str()).collect();
        let (done, all) = (report.mixes.len(), report.mixes.len() + plans.len());
        each(Event::Begins { names, done, all })?;
        bench.add(group, &mut report)?;
        report.find_dominated();
        each(Event::Measured(&report))?;
    }
    report.find_dominated();
    Ok(report)
}

/// What all mixes are measured with.
struct Bench<'b> {
    opened: &'b Opened,
    options: &'b Options,
    ready: Option<&'b Ready>,
    windows: &'b Windows,
    /// Tokens whose caches count as memory.
    memory_tokens: usize,
    progress: &'b dyn Progress,
}

impl Bench<'_> {
    /// A report without mixes.
    fn empty(&self) -> Result<Report, Error> {
        let (options, model) = (self.options, self.opened.model());
        let summary = Summary::of(model);
        let imatrix = options.imatrix.as_ref().map(|imatrix| imatrix.file.as_path());
        let digest_of = |path: &Path| {
            let bytes = std::fs::read(path);
            bytes
                .map(|bytes| sha256(&bytes))
                .map_err(|fault| Error::environment("read", path, fault))
        };
        let threads = rayon::current_num_threads();
        let trial = options.trial.as_ref();
        let conditions = Conditions {
            program: concat!("gguf ", env!("CARGO_PKG_VERSION")).to_owned(),
            original_digest: self.opened.digest()?,
            text: options.text.clone(),
            text_digest: sha256(options.task.text.as_bytes()),
            window_tokens: self.windows.window_len(),
            stride: options.task.cut.stride,
            windows: self.windows.count(),
            predictions: self.windows.predicted(),
            arithmetic: match options.run.arithmetic {
                Arithmetic::Exact => "exact".to_owned(),
                Arithmetic::Fast => "fast".to_owned(),
            },
            cache_type: format!("{:?}", options.task.run.cache_type),
            adapters: options
                .run
                .adapters
                .iter()
                .map(|(file, by)| format!("{file}:{by}"))
                .collect(),
            imatrix: imatrix.map(|path| path.display().to_string()),
            imatrix_digest: imatrix.map(digest_of).transpose()?,
            calibration: options.calibration.as_ref().map(Calibration::describe).transpose()?,
            trial: trial.map(|trial| [trial.prompt, trial.generated, threads]),
            memory_tokens: self.memory_tokens,
        };
        let original = Original {
            file: self.opened.word().to_owned(),
            name: summary.name,
            architecture: summary.architecture,
            file_type: summary.file_type.map(str::to_owned),
            parameters: summary.parameters,
            ..Original::default()
        };
        Ok(Report {
            version: report::VERSION,
            conditions,
            original,
            mixes: Vec::new(),
            left_out: Vec::new(),
        })
    }

    /// Makes a group of mixes and measures them.
    fn add(&self, group: &[plan::Planned], report: &mut Report) -> Result<(), Error> {
        let quiet = Quiet(self.progress);
        let mut executors = Vec::with_capacity(group.len());
        let mut errors = Vec::with_capacity(group.len());
        for plan::Planned { job, calibrated, .. } in group {
            let ready = self.ready.filter(|_| *calibrated);
            let (executor, of_mix) = make::made(self.opened.executor(), job, ready, &quiet)?;
            executors.push(executor);
            errors.push(of_mix);
        }
        let (windows, run) = (self.windows, self.options.task.run);
        let name = || self.opened.word().to_owned();
        let subject =
            |executor: &Arc<Executor>| Subject { name: name(), executor: executor.clone() };
        let models: Vec<Subject> = executors.iter().map(subject).collect();
        let reference = self.opened.subject();
        let found = divergence(&reference, &models, windows, run, self.progress)?;
        if let Some(first) = found.first() {
            report.original.ppl = first.reference.value();
            report.original.ppl_error = first.reference.error();
        }
        let made = group.iter().zip(errors).zip(found.iter().zip(&executors));
        for ((plan::Planned { name, job, .. }, errors), (found, executor)) in made {
            let cost = self.cost(&job.header()?, executor)?;
            report.mixes.push(mix(name.clone(), cost, found, windows, errors));
        }
        Ok(())
    }

    /// Sizes and speeds of a model.
    fn cost(&self, header: &Header, executor: &Executor) -> Result<Cost, Error> {
        let tensors = header.tensors();
        let data: u64 = tensors.iter().map(|tensor| tensor.byte_len().unwrap_or(0)).sum();
        let elements = tensors.iter().map(|tensor| tensor.shape.elements().unwrap_or(0)).sum();
        let context = ContextOptions { tokens: self.memory_tokens, ..ContextOptions::default() };
        let cache = context.byte_len(executor.graph());
        let fast = Arc::new(executor.with_arithmetic(Arithmetic::Fast));
        let measure = |trial| rates(&fast, trial, &Quiet(self.progress));
        let rates = self.options.trial.as_ref().map(measure).transpose()?.unwrap_or_default();
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
        Ok(Cost {
            file_bytes: gguf::write_header(header)?.len() as u64 + header.data_len(),
            bits_per_weight: bits_per_weight(data, elements),
            memory_bytes: data + cache,
            prompt_tokens_per_second: rates.prompt.map(mean),
            generation_tokens_per_second: rates.generation.map(mean),
        })
    }
}

/// The figures of a mix.
fn mix(
    name: String,
    cost: Cost,
    found: &Divergence,
    windows: &Windows,
    tensors: Vec<TensorError>,
) -> Mix {
    let spread = Spread::new(&found.divergences);
    let ((ppl_ratio, ppl_ratio_error), (same, same_error)) = (found.ratio(), found.same_top());
    Mix {
        name,
        cost,
        ppl_q: found.model.value(),
        ppl_q_error: found.model.error(),
        ppl_ratio,
        ppl_ratio_error,
        mean_kld: found.divergence.value(),
        mean_kld_error: found.divergence.error(),
        median_kld: spread.at(0.5),
        kld_99: spread.at(0.99),
        max_kld: spread.at(1.0),
        same_top: 100.0 * same,
        same_top_error: 100.0 * same_error,
        kld_by_position: by_position(&found.divergences, windows),
        tensors,
        dominated_by: None,
    }
}

/// Runs of places that the mean divergence is told of.
const RUNS: usize = 16;

/// The mean divergence by the place in the window.
fn by_position(divergences: &[f32], windows: &Windows) -> Vec<Run> {
    let places = windows.predicted() / windows.count().max(1);
    let first = windows.window_len() - places;
    let edge = |run: usize| run * places / RUNS.min(places.max(1));
    let of_run = |run: usize| {
        let (from, to) = (edge(run), edge(run + 1));
        let of_windows = divergences.chunks_exact(places.max(1)).map(|all| &all[from..to]);
        let sum: f64 = of_windows.flatten().map(|divergence| f64::from(*divergence)).sum();
        let count = (to - from) * windows.count();
        Run { from: first + from, to: first + to, mean_kld: sum / count.max(1) as f64 }
    };
    (0..RUNS.min(places)).map(of_run).collect()
}

/// That figures of an earlier run go with those of this one.
fn require_same(before: &Conditions, now: &Conditions) -> Result<(), Error> {
    if before == now {
        return Ok(());
    }
    let fields = |conditions: &Conditions| serde_json::to_value(conditions).unwrap_or_default();
    let (before, now) = (fields(before), fields(now));
    let differs =
        now.as_object().and_then(|all| all.iter().find(|(key, value)| before[key] != **value));
    let field = differs.map_or("conditions", |(key, _)| key.as_str());
    let what = format!(
        "the report was measured with another {field}: {}, now {}",
        before[field], now[field]
    );
    Err(Error::request("report-other", what, "write to another file, or begin anew with --force"))
}

/// Work that does not count, but may be ended.
struct Quiet<'p>(&'p dyn Progress);

impl Progress for Quiet<'_> {
    fn advance(&self, _: u64) -> std::ops::ControlFlow<()> {
        self.0.advance(0)
    }
}
