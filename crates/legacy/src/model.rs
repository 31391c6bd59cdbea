//! An old model, its files open: what it is, its tensors as today's programs expect them, its keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Error, Metadata, QUANTIZATION_VERSION, Shape, TensorType};
use gguf_convert::vocab;
use gguf_pipeline::{Step, Stored, Tensor};
use gguf_quantize::recipe::Target;
use gguf_store::Source;

use super::blocks::StorageType;
use super::given::{Overrides, Resolved};
use super::header::{Field, Program};
use super::parts::{self, JoinedTensor};
use super::read::{self, OldFile};
use super::tensor::{OldTensor, named};
use super::{hyper, starcoder, tokens};

/// What a conversion can be asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The mix or type of the output; `None` for the type of the source where a type of today
    /// holds the very same weights, and for the smallest float type that does otherwise.
    pub outtype: Option<Target>,
    /// The program that the file is of, instead of recognising it.
    pub architecture: Option<String>,
    /// Hyper-parameters that the file does not hold.
    pub given: Overrides,
    /// A folder with configuration and tokenizer of the model.
    pub metadata_dir: Option<PathBuf>,
    /// The name of the pre-tokenizer, instead of the usual one.
    pub pre: Option<String>,
    /// The name of the model, instead of the one of the file.
    pub model_name: Option<String>,
    /// What decides the types of quantized tensors, beside the mix, and keys to set.
    pub quantization: gguf_quantize::Options,
}

/// An old model, its files open.
pub struct Legacy {
    pub(super) old: OldFile,
    pub(super) architecture: &'static str,
    pub(super) known: Resolved,
    pub(super) tensors: Vec<OldTensor>,
    pub(super) metadata: Metadata,
    pub(super) notes: Vec<String>,
}

impl Legacy {
    /// Opens the model at `path`, the first of its files if it has several, and finds out what it
    /// is.
    ///
    /// # Errors
    /// If the file is damaged, of no known program, or of several; if a part is missing; if the
    /// configuration or the hyper-parameters given are of another model.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let old = read::read(path, options.architecture.as_deref())?;
        let program = old.layout.program;
        let dir = options.metadata_dir.as_deref();
        let known = options.given.complete(program, &old.header, dir)?;
        let (mut joined, parts) = parts::tensors(&old)?;
        let architecture = match (program, options.architecture.as_deref()) {
            (Program::Gpt2, Some("starcoder")) => "starcoder",
            (Program::Gpt2, None) if starcoder::repeats(&joined, known.heads)? => "starcoder",
            (Program::Llama, _) => "llama",
            (Program::Gpt2, _) => "gpt2",
            (Program::GptJ, _) => "gptj",
            (Program::GptNeox, _) => "gptneox",
            (Program::Mpt | Program::Replit, _) => "mpt",
            (Program::Bloom, _) => "bloom",
            (Program::Falcon, _) => "falcon",
            (Program::Whisper, _) => "whisper",
        };
        if architecture == "starcoder" {
            starcoder::undo(path, &mut joined, known.heads)?;
        }

        let tensors = named(program, joined)?;
        check_rows(&old, &tensors)?;

        let mut metadata = Metadata::new();
        let shapes = hyper::Shapes(&tensors);
        hyper::write(&old, architecture, &known, &shapes, &mut metadata)?;
        let mut notes = known.notes.clone();
        notes.extend(hyper::notes(&old, &known));
        if parts > 1 {
            notes.push(format!("joined from {parts} files"));
        }
        notes.extend(tokenizer(&old, architecture, options, &mut metadata)?);
        vocab::require_pre(options.pre.as_deref(), &metadata)?;
        Ok(Self { old, architecture, known, tensors, metadata, notes })
    }

    /// All keys, in the order of llama.cpp's converter of these files.
    pub(super) fn keys(&self, file_type: u32, options: &Options) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.set("general.architecture", self.architecture);
        let name = self.old.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        metadata.set("general.name", options.model_name.clone().unwrap_or(name));
        let (container, mix) = (self.old.container, hyper::mix_name(&self.old));
        let description = format!("converted from legacy {container} {mix} format");
        metadata.set("general.description", description);
        metadata.set("general.file_type", file_type);
        metadata.set("general.quantization_version", QUANTIZATION_VERSION);
        for (key, value) in self.metadata.iter() {
            metadata.push(key.to_owned(), value.clone());
        }
        metadata
    }

    /// A tensor as today's programs expect it, in the elements or blocks of the file if they are
    /// those of today, and in elements of single precision otherwise.
    pub(super) fn floats(&self, tensor: &OldTensor) -> Result<Tensor, Error> {
        let (ty, source): (_, Arc<dyn Source>) = match (&tensor.floats, tensor.whole.form) {
            (Some(floats), _) => (TensorType::F32, floats.clone()),
            (None, StorageType::Today(ty)) => (ty, tensor.whole.bytes.clone()),
            (None, StorageType::Old(_)) => {
                unreachable!("old blocks are read as floats: see `named`")
            }
        };
        self.tensor(tensor, ty, source)
    }

    /// What a program wrote otherwise than a GGUF has it is undone.
    pub(super) fn tensor(
        &self,
        tensor: &OldTensor,
        ty: TensorType,
        source: Arc<dyn Source>,
    ) -> Result<Tensor, Error> {
        let JoinedTensor { name, dims, .. } = &tensor.whole;
        let fault = |what: String| {
            let what = format!("tensor `{name}` {what}");
            let help = "the file is damaged, or of another program";
            Error::input("legacy-damaged", &self.old.path, what, help)
        };
        let shape = |dims: &[u64]| Shape::new(dims).ok_or_else(|| fault("is too deep".into()));
        let at = Stored { source, offset: 0 };
        let stored = Tensor::stored(&*tensor.name, shape(dims)?, ty, at);
        let step = match self.old.layout.program {
            // Queries, keys and values of one head after another.
            Program::GptNeox if tensor.name.contains(".attn_qkv.") => {
                let heads = u64::from(self.known.heads);
                let head = dims.last().copied().unwrap_or(0) / 3 / heads;
                Some(Step::Regroup { groups: heads, kinds: [head; 3] })
            }
            // Stored as a column, to be added to one.
            Program::Whisper if name.contains(".conv") && name.ends_with(".bias") => {
                let to = shape(&[dims.iter().product()])?;
                Some(Step::Reshape { from: shape(dims)?, to })
            }
            _ => None,
        };
        match step {
            Some(step) => stored.changed(step).map_err(|misfit| fault(misfit.to_string())),
            None => Ok(stored),
        }
    }
}

/// Sets the `tokenizer.*` keys: from the folder if it has a tokenizer, else from the file.
fn tokenizer(
    old: &OldFile,
    architecture: &str,
    options: &Options,
    metadata: &mut Metadata,
) -> Result<Vec<String>, Error> {
    // Files of the time do not say how text is cut into words.
    let usual = match architecture {
        "mpt" | "bloom" | "falcon" | "starcoder" => architecture,
        _ => "gpt-2",
    };
    let has_tokenizer = |dir: &&PathBuf| {
        ["tokenizer.json", "tokenizer.model"].iter().any(|name| dir.join(name).is_file())
    };
    let pre = options.pre.as_deref();
    let Some(dir) = options.metadata_dir.as_ref().filter(has_tokenizer) else {
        return Ok(tokens::write(old, pre.unwrap_or(usual), metadata));
    };
    let (kind, hints): (_, &[&str]) = match old.layout.program {
        Program::Llama => (gguf_models::convert::VocabularyKind::Llama, &[]),
        Program::Replit => (gguf_models::convert::VocabularyKind::SentencePieceElseBpe, &[]),
        _ => (gguf_models::convert::VocabularyKind::Bpe, &[usual]),
    };
    let vocab_size = old.header.get(Field::Vocabulary).map(u64::from);
    let loaded =
        vocab::load(dir, kind, &vocab::Options { pre, hints, vocab_size, architecture: None })?;
    for (key, value) in loaded.metadata.iter() {
        metadata.push(key.to_owned(), value.clone());
    }
    Ok(loaded.notes)
}

/// The embedding has a row for each token that the header counts: what is made for each of them is
/// then bounded by the file.
fn check_rows(old: &OldFile, tensors: &[OldTensor]) -> Result<(), Error> {
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let rows = embedding.and_then(|tensor| tensor.whole.dims.get(1).copied());
    let expected = old.header.get(Field::Vocabulary).map(u64::from);
    if rows != expected {
        let shown = |count: Option<u64>| count.map_or("no".to_owned(), |count| count.to_string());
        let what = format!(
            "the embedding has {} rows for the {} tokens of the header",
            shown(rows),
            shown(expected)
        );
        let help = "the file is incomplete or damaged";
        return Err(Error::input("legacy-damaged", &old.path, what, help));
    }
    Ok(())
}
