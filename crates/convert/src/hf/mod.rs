//! Conversion of Hugging Face checkpoint directories.

mod contradictions;
mod mmproj;
mod text;

use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_pipeline::Job;
use gguf_quantize::recipe::Target as Recipe;
pub(crate) use text::{find_converter, require_tensors, tensors};
pub use text::{vocabulary, vocabulary_of_json};

/// HfOptions of a conversion.
#[derive(Clone, Debug, Default)]
pub struct HfOptions {
    /// Quantization type of the output; `None` for the 16-bit type of the checkpoint, or for the block type that
    /// stores the checkpoint losslessly.
    pub outtype: Option<Recipe>,
    /// `tokenizer.ggml.pre`, instead of detecting it.
    pub pre: Option<String>,
    /// Name of the model, instead of the one in its model card or directory.
    pub model_name: Option<String>,
    /// JSON file with metadata that overrides the model card.
    pub metadata: Option<PathBuf>,
    /// Tensor types by name, importance matrix, and keys to set.
    pub quantization: gguf_quantize::QuantizeOptions,
    /// Class or architecture to convert the model as, whatever config.json says.
    pub like: Option<String>,
    /// Write only metadata and vocabulary, no tensors.
    pub vocab_only: bool,
    /// Write the multimodal projector (mmproj) instead of the text model.
    pub mmproj: bool,
    /// Directory of the target model, for a draft model.
    pub target_model_dir: Option<PathBuf>,
}

/// A planned conversion.
pub struct Conversion {
    /// The job that writes it.
    pub job: Job,
    /// Default name of the output file.
    pub file_name: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Plans the conversion of the checkpoint in `dir`, whose tensors are those of `checkpoint`.
///
/// Reads configuration, tokenizer and model card, and no tensor data.
///
/// # Errors
/// If a file is missing or invalid, if the class is unknown, or if the tensors are not those of the
/// model that the configuration describes.
pub fn plan(dir: &Path, checkpoint: &Checkpoint, options: &HfOptions) -> Result<Conversion, Error> {
    match options.mmproj {
        true => mmproj::plan(dir, checkpoint, options),
        false => text::plan(dir, checkpoint, options),
    }
}
