//! Cost and loss of a model in each quantization type, and of files.
//!
//! Each type is quantized in memory and compared with the reference model, and files are compared as they are. The models of
//! a group are evaluated together, so that the reference model runs once per group. The [`QualityReport`] is available after each group, and a
//! measurement can resume with it.

mod plan;

use std::path::Path;
use std::sync::Arc;

use gguf::Header;
use gguf_calibrate::{Calibration, Calibrator, variant};
use gguf_eval::quality;
pub use gguf_eval::quality::{
    Conditions, ModelCost, PositionRange, QualityReport, ReferenceModel, SkippedType, TensorError,
    TypeQuality,
};
pub use gguf_eval::recommendation::Purpose;
use gguf_eval::{Chunks, Subject, divergence};
use gguf_inspect::summary::{Summary, bits_per_weight};
use gguf_pipeline::Job;
use gguf_runtime::benchmark::{BenchmarkOptions, Rates};
use gguf_runtime::{CacheType, ContextOptions, Executor, Precision};
use gguf_store::Progress;
use gguf_store::digest::sha256;

pub use self::plan::Types;
use self::plan::{Content, Planned};
use crate::eval::{EvaluatedModel, Task};
use crate::quantize::ImatrixChoice;
use crate::{Error, open, run, tensor_digest};

/// Options of a quality measurement.
#[derive(Clone)]
pub struct QualityOptions {
    /// Measured types.
    pub types: Types,
    /// Sources of measured files.
    pub files: Vec<String>,
    /// Text and chunks.
    pub task: Task,
    /// File name of the text.
    pub text: String,
    /// Options of the executor.
    pub run: run::ExecutorOptions,
    /// Importance matrix of the encoders.
    pub imatrix: Option<ImatrixChoice>,
    /// Calibration by another text than that of the evaluation: each type is also measured with it.
    pub calibration: Option<Calibration>,
    /// Accepts a reference model that is quantized already.
    pub allow_requantize: bool,
    /// Throughput measurement, if any.
    pub benchmark: Option<BenchmarkOptions>,
    /// Maximum number of variants in memory, which are evaluated together.
    pub together: usize,
}

/// Progress of a measurement.
pub enum Event<'e> {
    /// The measurement of a group begins.
    Begins {
        /// Names of the types.
        names: Vec<&'e str>,
        /// Number of finished types.
        done: usize,
        /// Total number of types.
        all: usize,
    },
    /// The types of a group are in the report.
    Measured(&'e QualityReport),
}

/// Receives events; an error stops the measurement.
pub type OnEvent<'e> = dyn FnMut(Event<'_>) -> Result<(), Error> + 'e;

/// Measures the types of the model that `source` names. Types in `previous` are not measured again.
///
/// # Errors
/// `report-other` if `previous` was measured under other conditions; as [`gguf_quantize::plan()`] for a listed type; as
/// [`crate::eval::divergence`].
pub fn measure(
    source: &str,
    options: &QualityOptions,
    previous: Option<QualityReport>,
    on_event: &mut OnEvent<'_>,
    progress: &dyn Progress,
) -> Result<QualityReport, Error> {
    let opened = EvaluatedModel::fetch(source, &options.run, progress)?;
    let calibration = options.calibration.as_ref();
    if let Some(calibration) = calibration {
        calibration.require_other_text(&options.task.text, &options.text)?;
    }
    let open_calibrator = |choice| {
        let (executor, metadata) = (opened.executor(), opened.model().metadata());
        Calibrator::with_executor(executor, metadata, &opened.tokenizer, choice, progress)
    };
    let calibrator = calibration.map(open_calibrator).transpose()?;
    let (mut plans, skipped) = plan::plans(&opened, options, calibrator.as_ref())?;
    plans.extend(plan::files(&options.files));
    let chunks = opened.chunks(&options.task)?;
    let trained = Summary::of(opened.model()).layers.context_length;
    let memory_context = trained.map_or(4096, |len| len.min(4096)) as usize;
    let (opened, calibrator, chunks) = (&opened, calibrator.as_ref(), &chunks);
    let measurement = Measurement { opened, options, calibrator, chunks, memory_context, progress };
    let mut report = measurement.empty_report()?;
    if let Some(previous) = previous {
        previous.conditions.require_same(&report.conditions)?;
        report = previous;
        drop_changed_files(&plans, &mut report);
    }
    report.skipped = skipped;
    plans.retain(|plan| report.types.iter().all(|entry| entry.name != plan.name));
    let groups: Vec<_> = plans.chunks(options.together.max(1)).collect();
    let read = chunks.count() * (chunks.chunk_len() - 1) * (plans.len() + groups.len());
    progress.begin("reading", read as u64);
    if report.reference.cost.file_bytes == 0 {
        let header = Job::copy(opened.model()).header()?;
        report.reference.cost = measurement.cost(&header, opened.executor())?;
        // The size on disk, of all shards.
        report.reference.cost.file_bytes = opened.model().byte_len();
    }
    for group in groups {
        let names = group.iter().map(|plan| plan.name.as_str()).collect();
        let (done, all) = (report.types.len(), report.types.len() + plans.len());
        on_event(Event::Begins { names, done, all })?;
        measurement.add(group, &mut report)?;
        report.find_dominated();
        on_event(Event::Measured(&report))?;
    }
    report.find_dominated();
    Ok(report)
}

/// Drops the results of files that have changed since.
fn drop_changed_files(plans: &[Planned], report: &mut QualityReport) {
    for Planned { name, content } in plans {
        let Content::File(source) = content else { continue };
        if report.types.iter().all(|entry| entry.name != *name) {
            continue;
        }
        let digest = open(source).and_then(|opened| tensor_digest::of_model(opened.model())).ok();
        report.types.retain(|entry| {
            entry.name != *name || digest.is_some() && entry.tensor_digest == digest
        });
    }
}

/// Inputs of the measurement of all types.
struct Measurement<'b> {
    opened: &'b EvaluatedModel,
    options: &'b QualityOptions,
    calibrator: Option<&'b Calibrator>,
    chunks: &'b Chunks,
    /// Context size in tokens whose KV cache counts as memory.
    memory_context: usize,
    progress: &'b dyn Progress,
}

impl Measurement<'_> {
    /// Returns a report without types.
    fn empty_report(&self) -> Result<QualityReport, Error> {
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
        let benchmark = options.benchmark.as_ref();
        let conditions = Conditions {
            program: concat!("gguf ", env!("CARGO_PKG_VERSION")).to_owned(),
            reference_digest: self.opened.digest()?,
            text: options.text.clone(),
            text_digest: sha256(options.task.text.as_bytes()),
            chunk_size: self.chunks.chunk_len(),
            stride: options.task.cut.stride,
            chunks: self.chunks.count(),
            tokens: self.chunks.predicted(),
            precision: match options.run.precision {
                Precision::Exact => "exact".to_owned(),
                Precision::Fast => "fast".to_owned(),
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
            benchmark: benchmark.map(|options| [options.prompt, options.generated, threads]),
            memory_context: self.memory_context,
        };
        let original = ReferenceModel {
            file: self.opened.source().to_owned(),
            name: summary.name,
            architecture: summary.architecture,
            file_type: summary.file_type.map(str::to_owned),
            parameters: summary.parameters,
            ..ReferenceModel::default()
        };
        Ok(QualityReport {
            version: quality::VERSION,
            conditions,
            reference: original,
            types: Vec::new(),
            skipped: Vec::new(),
        })
    }

    /// Quantizes and measures a group of types and files.
    fn add(&self, group: &[Planned], report: &mut QualityReport) -> Result<(), Error> {
        let loaded: Vec<Loaded> =
            group.iter().map(|planned| self.load(planned)).collect::<Result<_, _>>()?;
        let (chunks, run) = (self.chunks, self.options.task.run);
        let subject = |loaded: &Loaded| Subject {
            name: loaded.file.clone().unwrap_or_else(|| self.opened.source().to_owned()),
            executor: loaded.executor.clone(),
        };
        let models: Vec<Subject> = loaded.iter().map(subject).collect();
        let reference = self.opened.subject();
        let found = divergence(&reference, &models, chunks, run, self.progress)?;
        if let Some(first) = found.first() {
            report.reference.ppl = first.reference.value();
            report.reference.ppl_error = first.reference.error();
        }
        for ((planned, loaded), found) in group.iter().zip(loaded).zip(&found) {
            let mut cost = self.cost(&loaded.header, &loaded.executor)?;
            cost.file_bytes = loaded.file_bytes.unwrap_or(cost.file_bytes);
            report.types.push(TypeQuality {
                file: loaded.file,
                tensor_digest: loaded.tensor_digest,
                ..TypeQuality::new(planned.name.clone(), cost, found, chunks, loaded.errors)
            });
        }
        Ok(())
    }

    /// Quantizes a type, or opens a file.
    fn load(&self, planned: &Planned) -> Result<Loaded, Error> {
        let quiet = Quiet(self.progress);
        match &planned.content {
            Content::Type { job, calibrated } => {
                let calibrator = self.calibrator.filter(|_| *calibrated);
                let (executor, errors) = variant(self.opened.executor(), job, calibrator, &quiet)?;
                // Calibrated weights depend on more than the job.
                let tensor_digest = match calibrated {
                    true => None,
                    false => Some(tensor_digest::of_job(job)?),
                };
                let (header, file, file_bytes) = (job.header()?, None, None);
                Ok(Loaded { executor, errors, header, tensor_digest, file, file_bytes })
            }
            Content::File(source) => {
                let model = EvaluatedModel::open(source, &self.options.run, &quiet)?;
                self.opened.require_vocabulary(&model)?;
                Ok(Loaded {
                    executor: model.executor().clone(),
                    errors: Vec::new(),
                    header: Job::copy(model.model()).header()?,
                    tensor_digest: Some(tensor_digest::of_model(model.model())?),
                    file: Some(model.source().to_owned()),
                    // The size on disk, of all shards.
                    file_bytes: Some(model.model().byte_len()),
                })
            }
        }
    }

    /// Returns size, memory and throughput of a model.
    fn cost(&self, header: &Header, executor: &Executor) -> Result<ModelCost, Error> {
        let tensors = header.tensors();
        let data: u64 = tensors.iter().map(|tensor| tensor.byte_len().unwrap_or(0)).sum();
        let elements = tensors.iter().map(|tensor| tensor.shape.elements().unwrap_or(0)).sum();
        let context = ContextOptions {
            tokens: self.memory_context,
            // As programs that generate text keep it.
            cache_type: CacheType::F16,
            ..ContextOptions::default()
        };
        let cache = context.byte_len(executor.graph());
        let fast = Arc::new(executor.with_precision(Precision::Fast));
        let measure = |options| Rates::measure(&fast, options, &Quiet(self.progress));
        let rates = self.options.benchmark.as_ref().map(measure).transpose()?.unwrap_or_default();
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
        Ok(ModelCost {
            file_bytes: gguf::write_header(header)?.len() as u64 + header.data_len(),
            bits_per_weight: bits_per_weight(data, elements),
            memory_bytes: data + cache,
            prompt_tokens_per_second: rates.prompt.map(mean),
            generation_tokens_per_second: rates.generation.map(mean),
        })
    }
}

/// A model that is ready to be measured.
struct Loaded {
    executor: Arc<Executor>,
    /// Weight errors of the tensors that were quantized.
    errors: Vec<TensorError>,
    header: Header,
    tensor_digest: Option<String>,
    /// Name of a file as the user gave it.
    file: Option<String>,
    /// Size of a file.
    file_bytes: Option<u64>,
}

/// Progress of work that is not counted but can be cancelled.
struct Quiet<'p>(&'p dyn Progress);

impl Progress for Quiet<'_> {
    fn advance(&self, _: u64) -> std::ops::ControlFlow<()> {
        self.0.advance(0)
    }
}
