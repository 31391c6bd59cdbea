//! Quantization types and files of a quality report.

use std::path::Path;

use gguf_calibrate::Calibrator;
use gguf_eval::quality::SkippedType;
use gguf_pipeline::Job;
use gguf_quantize::recipe::{Preset, Target};

use super::QualityOptions;
use crate::eval::EvaluatedModel;
use crate::{Error, redact};

/// Measured types.
#[derive(Clone, Debug, Default)]
pub enum Types {
    /// Types that are commonly published.
    #[default]
    Common,
    /// All presets.
    All,
    /// A list of types, which may be empty.
    Listed(Vec<Target>),
}

/// Presets that are commonly published, including those that need an importance matrix.
const COMMON: [Preset; 15] = [
    Preset::Q8_0,
    Preset::Q6_K,
    Preset::Q5_K_M,
    Preset::Q5_K_S,
    Preset::Q4_K_M,
    Preset::Q4_K_S,
    Preset::IQ4_XS,
    Preset::Q4_0,
    Preset::Q3_K_L,
    Preset::Q3_K_M,
    Preset::Q3_K_S,
    Preset::IQ3_XXS,
    Preset::Q2_K,
    Preset::IQ2_M,
    Preset::IQ2_XS,
];

/// A planned measurement.
pub(super) struct Planned {
    pub name: String,
    pub content: Content,
}

/// Content of a measured model.
pub(super) enum Content {
    /// A type, which is quantized in memory.
    Type { job: Job, calibrated: bool },
    /// Source of a file.
    File(String),
}

/// Plans the measurement of files. Each has the name of its file, or its whole source if two names are equal.
pub(super) fn files(sources: &[String]) -> Vec<Planned> {
    let file_name = |source: &str| {
        let name = Path::new(source).file_name();
        name.map_or_else(|| redact(source), |name| name.to_string_lossy().into_owned())
    };
    let is_unique =
        |name: &str| sources.iter().filter(|source| file_name(source) == name).count() == 1;
    let planned = |source: &String| {
        let name = Some(file_name(source)).filter(|name| is_unique(name));
        let name = name.unwrap_or_else(|| redact(source));
        Planned { name, content: Content::File(source.clone()) }
    };
    sources.iter().map(planned).collect()
}

/// Suffix of the name of a calibrated type.
const CALIBRATED_SUFFIX: &str = " calibrated";

/// Plans a job for each type. Types that this model cannot have are skipped, except those of a list, which are errors.
pub(super) fn plans(
    opened: &EvaluatedModel,
    options: &QualityOptions,
    calibrator: Option<&Calibrator>,
) -> Result<(Vec<Planned>, Vec<SkippedType>), Error> {
    let targets: Vec<Target> = match &options.types {
        Types::Common => COMMON.map(Target::Preset).to_vec(),
        Types::All => Preset::ALL.iter().copied().map(Target::Preset).collect(),
        Types::Listed(targets) => targets.clone(),
    };
    let is_listed = matches!(options.types, Types::Listed(_));
    let mut quantization = gguf_quantize::QuantizeOptions {
        allow_requantize: options.allow_requantize,
        ..gguf_quantize::QuantizeOptions::default()
    };
    if let Some(imatrix) = &options.imatrix {
        imatrix.add_to(&mut quantization)?;
    }
    let model = opened.model();
    let data: u64 = model.tensors().iter().map(|tensor| tensor.info.byte_len().unwrap_or(0)).sum();
    let (mut plans, mut skipped) = (Vec::<Planned>::new(), Vec::<SkippedType>::new());
    for target in targets {
        let name = target.to_string();
        if plans.iter().any(|other| other.name == name) {
            continue;
        }
        let planned = gguf_quantize::plan(model, target, &quantization)
            .and_then(|planned| Ok((planned.job.header()?.data_len(), planned.job)));
        // The smallest types need importance; calibration provides it, too.
        let mut calibrates = true;
        match planned {
            Ok((len, _)) if len >= data && !is_listed => {
                let reason = "not smaller than the original".to_owned();
                skipped.push(SkippedType { name: name.clone(), reason });
                calibrates = false;
            }
            Ok((_, job)) => plans.push(Planned {
                name: name.clone(),
                content: Content::Type { job, calibrated: false },
            }),
            Err(error) if (!is_listed || calibrator.is_some()) && reason(&error).is_some() => {
                let why = reason(&error).unwrap_or_default();
                calibrates = why == NEEDS_IMATRIX;
                skipped.push(SkippedType { name: name.clone(), reason: why.to_owned() });
            }
            Err(error) => return Err(error),
        }
        if let Some(calibrator) = calibrator.filter(|_| calibrates) {
            let mut prepared = quantization.clone();
            calibrator.prepare(&mut prepared);
            let mut job = gguf_quantize::plan(model, target, &prepared)?.job;
            calibrator.restore_importance(&mut job, quantization.importance.as_ref());
            plans.push(Planned {
                name: name + CALIBRATED_SUFFIX,
                content: Content::Type { job, calibrated: true },
            });
        }
    }
    Ok((plans, skipped))
}

/// Reason for skipping the smallest types.
const NEEDS_IMATRIX: &str = "needs an importance matrix";

/// Returns the reason for skipping a type that this model cannot have; `None` for other errors.
fn reason(error: &Error) -> Option<&'static str> {
    match error.code() {
        "imatrix-needed" => Some(NEEDS_IMATRIX),
        "type-does-not-fit" => Some("its block size does not divide the row size"),
        _ => None,
    }
}
