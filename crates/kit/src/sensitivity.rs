//! Per-tensor quantization sensitivity.

use gguf::TensorType;
pub use gguf_eval::Grouping;
use gguf_eval::measure_sensitivity;
use gguf_quantize::sensitivity::Sensitivity;
use gguf_store::Progress;

use crate::eval::{EvaluatedModel, Task};
use crate::quantize::ImatrixChoice;
use crate::{Error, redact, run};

/// Options of a sensitivity measurement.
#[derive(Clone)]
pub struct SensitivityOptions {
    /// Text and chunks.
    pub task: Task,
    /// File name of the text.
    pub text: String,
    /// Options of the executor.
    pub run: run::ExecutorOptions,
    /// Importance matrix of the encoders.
    pub imatrix: Option<ImatrixChoice>,
    /// Accepts a model that is quantized already.
    pub allow_requantize: bool,
    /// Types to measure; empty for all types that a budget may choose.
    pub types: Vec<TensorType>,
    /// Grouping of tensors.
    pub grouping: Grouping,
    /// Measures every type instead of one type per group.
    pub exact: bool,
    /// Number of runs from which the effects are estimated; `None` for a run per group.
    pub runs: Option<usize>,
    /// Maximum number of variants in memory.
    pub together: usize,
}

/// Measures the sensitivity of the model that `source` names.
///
/// # Errors
/// As [`measure_sensitivity`]; if the model or the importance matrix cannot be read.
pub fn measure(
    source: &str,
    options: &SensitivityOptions,
    progress: &dyn Progress,
) -> Result<Sensitivity, Error> {
    let opened = EvaluatedModel::fetch(source, &options.run, progress)?;
    let mut quantization = gguf_quantize::QuantizeOptions {
        allow_requantize: options.allow_requantize,
        ..gguf_quantize::QuantizeOptions::default()
    };
    if let Some(imatrix) = &options.imatrix {
        imatrix.add_to(&mut quantization)?;
    }
    let chunks = opened.chunks(&options.task)?;
    let measurement = gguf_eval::SensitivityOptions {
        types: &options.types,
        grouping: options.grouping,
        exact: options.exact,
        runs: options.runs,
        together: options.together,
        run: options.task.run,
    };
    let (model, subject) = (opened.model(), opened.subject());
    let found =
        measure_sensitivity(model, &quantization, &subject, &chunks, &measurement, progress)?;
    Ok(Sensitivity {
        model: redact(source),
        text: options.text.clone(),
        imatrix: options.imatrix.as_ref().map(|imatrix| imatrix.file.display().to_string()),
        ..found
    })
}
