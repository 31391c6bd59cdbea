//! Options of a conversion.

use std::path::PathBuf;

use gguf::{ByteOrder, Value};
use gguf_calibrate::Calibration;
use gguf_legacy::Overrides;
use gguf_quantize::importance::MissingImportance;
use gguf_quantize::recipe::Target;
use gguf_store::SplitOptions;

use crate::Error;
use crate::quantize::{ImatrixChoice, Part};

/// An output of a conversion.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// Quantization type; `None` keeps the types of the source.
    pub outtype: Option<Target>,
    /// Path of the file, or of a directory for a file named by the naming convention; `None` is the working directory.
    pub path: Option<PathBuf>,
}

/// Options of a conversion. Options that do not apply to a [`Kind`](super::Kind) are ignored.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Outputs, written in one pass; empty for one output with the types of the source.
    pub outputs: Vec<OutputOptions>,
    /// Sharding of each output; `None` for one file.
    pub split: Option<SplitOptions>,
    /// Writes one of several parts of each output, for distributed conversion.
    pub part: Option<Part>,
    /// Omits all tensors of a checkpoint.
    pub vocab_only: bool,
    /// Writes the multimodal projector (mmproj) instead of the text model.
    pub mmproj: bool,
    /// Byte order of the outputs.
    pub order: ByteOrder,
    /// Resumes an interrupted run, and keeps finished work if this one is interrupted.
    pub resume: bool,
    /// Tensor types, and metadata keys to set.
    pub quantization: gguf_quantize::QuantizeOptions,
    /// Importance matrix, which is read into `quantization`.
    pub imatrix: Option<ImatrixChoice>,
    /// Architecture of a single weight file, or program of a legacy GGML file.
    pub architecture: Option<String>,
    /// Name of the pre-tokenizer; `None` detects it.
    pub pre: Option<String>,
    /// Model name; `None` detects it.
    pub model_name: Option<String>,
    /// Model class or architecture that a model of an unknown class is treated as.
    pub like: Option<String>,
    /// JSON file with general metadata.
    pub metadata: Option<PathBuf>,
    /// Directory of the base model of a LoRA adapter; `None` uses the one that the adapter names.
    pub base: Option<PathBuf>,
    /// Directory of the target model of a draft model.
    pub target_model_dir: Option<PathBuf>,
    /// Writes provenance keys, with the settings in the form of this function.
    pub provenance: Option<RenderSettings>,
    /// Facts that a legacy GGML file does not record.
    pub overrides: Overrides,
    /// Directory with configuration and tokenizer of a legacy model.
    pub metadata_dir: Option<PathBuf>,
    /// Bytes reserved for later edits of the header.
    pub reserve: u64,
    /// Calibration of a checkpoint or legacy model.
    pub calibration: Option<Calibration>,
}

/// A setting that determines the content of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name, such as `outtype`.
    pub name: &'static str,
    /// Value; `None` for a switch.
    pub value: Option<String>,
}

/// Formats settings as text. The same source with the same settings gives the same file.
pub type RenderSettings = fn(&[Setting]) -> String;

impl ConvertOptions {
    /// Returns the options of quantization, with the importance matrix.
    pub(super) fn quantization(&self) -> Result<gguf_quantize::QuantizeOptions, Error> {
        let mut options = self.quantization.clone();
        if let Some(imatrix) = &self.imatrix {
            imatrix.add_to(&mut options)?;
        }
        Ok(options)
    }

    /// Returns the settings that determine the content of an output.
    pub(super) fn settings(&self, outtype: Option<Target>) -> Vec<Setting> {
        let recipe = &self.quantization.recipe;
        let outtype = outtype.map_or("auto".to_owned(), |target| target.to_string());
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let imatrix = self.imatrix.as_ref();
        let missing = match self.quantization.missing {
            MissingImportance::Error => None,
            MissingImportance::Fallback => Some("fallback".to_owned()),
            MissingImportance::Uniform => Some("uniform".to_owned()),
        };
        let setting = |name, value| Setting { name, value: Some(value) };
        let mut settings = vec![setting("outtype", outtype)];
        let switches = [
            ("pure", recipe.pure),
            ("leave-output-tensor", recipe.leave_output_tensor),
            ("vocab-only", self.vocab_only),
            ("mmproj", self.mmproj),
            ("bigendian", self.order == ByteOrder::Big),
        ];
        let switches = switches.into_iter().filter(|(_, is_set)| *is_set);
        settings.extend(switches.map(|(name, _)| Setting { name, value: None }));
        let single = [
            ("pre", self.pre.clone()),
            ("model-name", self.model_name.clone()),
            ("like", self.like.clone()),
            ("metadata", path(&self.metadata)),
            ("target-model-dir", path(&self.target_model_dir)),
            ("output-tensor-type", recipe.output_tensor_type.map(|ty| ty.to_string())),
            ("token-embedding-type", recipe.token_embedding_type.map(|ty| ty.to_string())),
            ("imatrix", imatrix.map(|choice| choice.file.display().to_string())),
            ("imatrix-missing", missing),
            ("reserve", (self.reserve > 0).then(|| self.reserve.to_string())),
        ];
        settings.extend(single.into_iter().filter_map(|(name, value)| Some(setting(name, value?))));
        let types = recipe.tensor_types.iter().map(|(pattern, ty)| format!("{pattern}={ty}"));
        settings.extend(types.map(|value| setting("tensor-type", value)));
        if let Some(ImatrixChoice { include, exclude, .. }) = imatrix {
            settings.extend(include.iter().map(|name| setting("include-weights", name.clone())));
            settings.extend(exclude.iter().map(|name| setting("exclude-weights", name.clone())));
        }
        let keys = self.quantization.overrides.iter().map(|(key, value)| typed_value(key, value));
        settings.extend(keys.map(|value| setting("override-kv", value)));
        settings
    }
}

/// Formats a key and its value as `KEY=TYPE:VALUE`.
fn typed_value(key: &str, value: &Value) -> String {
    match value {
        Value::Bool(flag) => format!("{key}=bool:{flag}"),
        Value::F32(_) | Value::F64(_) => format!("{key}=float:{value}"),
        _ => match (value.to_i64(), value.as_str()) {
            (Some(number), _) => format!("{key}=int:{number}"),
            (None, Some(text)) => format!("{key}=str:{text}"),
            // Overrides have no arrays.
            (None, None) => format!("{key}={value}"),
        },
    }
}
