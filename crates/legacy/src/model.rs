//! An open legacy model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Error, Metadata, QUANTIZATION_VERSION, Shape, TensorType};
use gguf_convert::vocab;
use gguf_models::convert::VocabularyKind;
use gguf_pipeline::{Step, Stored, Tensor};
use gguf_quantize::recipe::Target;
use gguf_store::Source;

use super::blocks::StorageType;
use super::file::{self, LegacyFile};
use super::header::{Field, ModelFamily};
use super::overrides::{Hyperparameters, Overrides};
use super::parts::{self, JoinedTensor};
use super::tensor::{LegacyTensor, map_tensors};
use super::{hyperparameters, starcoder, tokenizer_keys};

/// Options of a conversion.
#[derive(Clone, Debug, Default)]
pub struct LegacyOptions {
    /// The mix or type of the output; `None` for a lossless conversion: the source type if a
    /// current type stores the same weights, else the smallest float type that does.
    pub outtype: Option<Target>,
    /// The architecture, instead of detecting it.
    pub architecture: Option<String>,
    /// Hyperparameters that the file does not store.
    pub overrides: Overrides,
    /// Folder with the configuration and tokenizer of the model.
    pub metadata_dir: Option<PathBuf>,
    /// Name of the pre-tokenizer, instead of the default.
    pub pre: Option<String>,
    /// Name of the model, instead of the file name.
    pub model_name: Option<String>,
    /// Options for quantized types, and keys to set.
    pub quantization: gguf_quantize::QuantizeOptions,
}

/// An open legacy model.
pub struct LegacyModel {
    pub(super) file: LegacyFile,
    pub(super) architecture: &'static str,
    pub(super) params: Hyperparameters,
    pub(super) tensors: Vec<LegacyTensor>,
    pub(super) metadata: Metadata,
    pub(super) notes: Vec<String>,
}

impl LegacyModel {
    /// Opens the model at `path`, which is the first file of a multi-file model, and detects its
    /// architecture.
    ///
    /// # Errors
    /// If the file is damaged, its architecture is unknown or ambiguous, a part is missing, or the
    /// configuration or the overrides belong to another model.
    pub fn open(path: &Path, options: &LegacyOptions) -> Result<Self, Error> {
        let file = file::read(path, options.architecture.as_deref())?;
        let family = file.layout.family;
        let dir = options.metadata_dir.as_deref();
        let params = options.overrides.resolve(family, &file.header, dir)?;
        let (mut joined, parts) = parts::join(&file)?;
        let architecture = match (family, options.architecture.as_deref()) {
            (ModelFamily::Gpt2, Some("starcoder")) => "starcoder",
            (ModelFamily::Gpt2, None) if starcoder::has_repeated_kv(&joined, params.heads)? => {
                "starcoder"
            }
            (ModelFamily::Llama, _) => "llama",
            (ModelFamily::Gpt2, _) => "gpt2",
            (ModelFamily::GptJ, _) => "gptj",
            (ModelFamily::GptNeox, _) => "gptneox",
            (ModelFamily::Mpt | ModelFamily::Replit, _) => "mpt",
            (ModelFamily::Bloom, _) => "bloom",
            (ModelFamily::Falcon, _) => "falcon",
            (ModelFamily::Whisper, _) => "whisper",
        };
        if architecture == "starcoder" {
            starcoder::merge_kv_heads(path, &mut joined, params.heads)?;
        }

        let tensors = map_tensors(family, joined)?;
        check_rows(&file, &tensors)?;

        let mut metadata = Metadata::new();
        let shapes = hyperparameters::Shapes(&tensors);
        hyperparameters::write(&file, architecture, &params, &shapes, &mut metadata)?;
        let mut notes = params.notes.clone();
        notes.extend(hyperparameters::notes(&file, &params));
        if parts > 1 {
            notes.push(format!("joined from {parts} files"));
        }
        notes.extend(tokenizer(&file, architecture, options, &mut metadata)?);
        vocab::require_pre(options.pre.as_deref(), &metadata)?;
        Ok(Self { file, architecture, params, tensors, metadata, notes })
    }

    /// All keys, in the order of llama.cpp's converter of legacy files.
    pub(super) fn keys(&self, file_type: u32, options: &LegacyOptions) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.set("general.architecture", self.architecture);
        let name = self.file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        metadata.set("general.name", options.model_name.clone().unwrap_or(name));
        let (container, mix) = (self.file.container, hyperparameters::mix_name(&self.file));
        let description = format!("converted from legacy {container} {mix} format");
        metadata.set("general.description", description);
        metadata.set("general.file_type", file_type);
        metadata.set("general.quantization_version", QUANTIZATION_VERSION);
        for (key, value) in self.metadata.iter() {
            metadata.push(key.to_owned(), value.clone());
        }
        metadata
    }

    /// A tensor in the layout that runtimes expect: in its stored type if that is a current one,
    /// otherwise in single precision.
    pub(super) fn plain(&self, tensor: &LegacyTensor) -> Result<Tensor, Error> {
        let (ty, source): (_, Arc<dyn Source>) = match (&tensor.decoded, tensor.joined.storage) {
            (Some(decoded), _) => (TensorType::F32, decoded.clone()),
            (None, StorageType::Current(ty)) => (ty, tensor.joined.bytes.clone()),
            (None, StorageType::Legacy(_)) => {
                unreachable!("legacy blocks are decoded: see `map_tensors`")
            }
        };
        self.tensor(tensor, ty, source)
    }

    /// A tensor with the transformations that turn the legacy layout into that of a GGUF.
    pub(super) fn tensor(
        &self,
        tensor: &LegacyTensor,
        ty: TensorType,
        source: Arc<dyn Source>,
    ) -> Result<Tensor, Error> {
        let JoinedTensor { name, dims, .. } = &tensor.joined;
        let misfit = |what: String| {
            let what = format!("tensor `{name}` {what}");
            let help = "the file is damaged or belongs to another architecture";
            Error::input("legacy-damaged", &self.file.path, what, help)
        };
        let shape =
            |dims: &[u64]| Shape::new(dims).ok_or_else(|| misfit("has too many dimensions".into()));
        let at = Stored { source, offset: 0 };
        let stored = Tensor::stored(&*tensor.name, shape(dims)?, ty, at);
        let step = match self.file.layout.family {
            // Q, K and V are interleaved per head.
            ModelFamily::GptNeox if tensor.name.contains(".attn_qkv.") => {
                let heads = u64::from(self.params.heads);
                let head = dims.last().copied().unwrap_or(0) / 3 / heads;
                Some(Step::Regroup { groups: heads, kinds: [head; 3] })
            }
            // Biases are stored as columns.
            ModelFamily::Whisper if name.contains(".conv") && name.ends_with(".bias") => {
                let to = shape(&[dims.iter().product()])?;
                Some(Step::Reshape { from: shape(dims)?, to })
            }
            _ => None,
        };
        match step {
            Some(step) => stored.changed(step).map_err(|error| misfit(error.to_string())),
            None => Ok(stored),
        }
    }
}

/// Sets the `tokenizer.*` keys, from the tokenizer in the folder if it exists, otherwise from the
/// file.
fn tokenizer(
    file: &LegacyFile,
    architecture: &str,
    options: &LegacyOptions,
    metadata: &mut Metadata,
) -> Result<Vec<String>, Error> {
    // Legacy files do not name the pre-tokenizer.
    let default_pre = match architecture {
        "mpt" | "bloom" | "falcon" | "starcoder" => architecture,
        _ => "gpt-2",
    };
    let has_tokenizer = |dir: &&PathBuf| {
        ["tokenizer.json", "tokenizer.model"].iter().any(|name| dir.join(name).is_file())
    };
    let pre = options.pre.as_deref();
    let Some(dir) = options.metadata_dir.as_ref().filter(has_tokenizer) else {
        return Ok(tokenizer_keys::write(file, pre.unwrap_or(default_pre), metadata));
    };
    let (kind, hints): (_, &[&str]) = match file.layout.family {
        ModelFamily::Llama => (VocabularyKind::Llama, &[]),
        ModelFamily::Replit => (VocabularyKind::SentencePieceElseBpe, &[]),
        _ => (VocabularyKind::Bpe, &[default_pre]),
    };
    let vocab_size = file.header.get(Field::VocabSize).map(u64::from);
    let loaded = vocab::load(
        dir,
        kind,
        &vocab::VocabularyOptions { pre, hints, vocab_size, architecture: None },
    )?;
    for (key, value) in loaded.metadata.iter() {
        metadata.push(key.to_owned(), value.clone());
    }
    Ok(loaded.notes)
}

/// Checks that the embedding has one row per token of the header, which bounds the number of tokens
/// by the size of the file.
fn check_rows(file: &LegacyFile, tensors: &[LegacyTensor]) -> Result<(), Error> {
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let rows = embedding.and_then(|tensor| tensor.joined.dims.get(1).copied());
    let expected = file.header.get(Field::VocabSize).map(u64::from);
    if rows != expected {
        let shown = |count: Option<u64>| count.map_or("no".to_owned(), |count| count.to_string());
        let what = format!(
            "the embedding has {} rows, but the header states {} tokens",
            shown(rows),
            shown(expected)
        );
        let help = "the file is incomplete or damaged";
        return Err(Error::input("legacy-damaged", &file.path, what, help));
    }
    Ok(())
}
