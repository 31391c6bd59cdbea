//! What a conversion can be asked for.

use std::path::PathBuf;

use gguf::{ByteOrder, Value};
use gguf_calibrate::Calibration;
use gguf_legacy::Overrides;
use gguf_quantize::importance::MissingImportance;
use gguf_quantize::recipe::Target;
use gguf_store::SplitOptions;

use crate::Error;
use crate::quantize::{Choice, Part};

/// An output that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Its mix or type; `None` for what the source has.
    pub outtype: Option<Target>,
    /// The file, or a directory in which it is named by the naming convention; without it, that of
    /// the source is the directory.
    pub path: Option<PathBuf>,
}

/// What is asked for. Not everything goes with every [`Kind`](super::Kind): what does not is passed
/// over here.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The outputs, all made in one pass; if none is named, one with the types of the source.
    pub outputs: Vec<Wanted>,
    /// How each is divided among files; `None` for one file.
    pub split: Option<SplitOptions>,
    /// Make this one of several even parts of each only, for several machines.
    pub part: Option<Part>,
    /// Leave out all tensors of a checkpoint.
    pub vocab_only: bool,
    /// Convert what sees and hears instead of the text model: a file that goes with that of the text model.
    pub mmproj: bool,
    /// The order of bytes in the outputs.
    pub order: ByteOrder,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    pub resume: bool,
    /// Which tensor gets which type, and keys to set.
    pub quantization: gguf_quantize::QuantizeOptions,
    /// The importance matrix, which is read into `quantization`.
    pub imatrix: Option<Choice>,
    /// Of a lone file the architecture that it is for; of an old one the program that it is of.
    pub architecture: Option<String>,
    /// Name of the pre-tokenizer, instead of recognising it.
    pub pre: Option<String>,
    /// Name of the model, instead of the one that is found.
    pub model_name: Option<String>,
    /// A class or architecture that a model of an unknown class is taken for.
    pub like: Option<String>,
    /// JSON file with general metadata that override those found.
    pub metadata: Option<PathBuf>,
    /// Directory of the model that an adapter is for, instead of the one it names.
    pub base: Option<PathBuf>,
    /// Directory of the model that a draft is for.
    pub target_model_dir: Option<PathBuf>,
    /// Write into the file what it was made from.
    pub provenance: bool,
    /// What an old file does not say.
    pub overrides: Overrides,
    /// Directory with configuration and tokenizer of an old model.
    pub metadata_dir: Option<PathBuf>,
    /// Bytes of room for later edits of the header.
    pub reserve: u64,
    /// Round weights by what a text shows, instead of each for itself: of checkpoints and old models.
    pub calibration: Option<Calibration>,
}

impl Options {
    /// What decides types and keys, with the importance matrix read.
    pub(super) fn quantization(&self) -> Result<gguf_quantize::QuantizeOptions, Error> {
        let mut options = self.quantization.clone();
        if let Some(imatrix) = &self.imatrix {
            imatrix.add_to(&mut options)?;
        }
        Ok(options)
    }

    /// The flags of `gguf convert` that decide the content of the output, quoted as shells read them:
    /// with them the same source gives the same file.
    pub(super) fn settings(&self, outtype: Option<Target>) -> String {
        let recipe = &self.quantization.recipe;
        let outtype = outtype.map_or("auto".to_owned(), |target| target.to_string());
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let imatrix = self.imatrix.as_ref();
        let missing = match self.quantization.missing {
            MissingImportance::Error => None,
            MissingImportance::Fallback => Some("fallback".to_owned()),
            MissingImportance::Uniform => Some("uniform".to_owned()),
        };
        let mut words = vec!["--outtype".to_owned(), outtype];
        for (flag, is_given) in [
            ("--pure", recipe.pure),
            ("--leave-output-tensor", recipe.leave_output_tensor),
            ("--vocab-only", self.vocab_only),
            ("--mmproj", self.mmproj),
            ("--bigendian", self.order == ByteOrder::Big),
        ] {
            words.extend(is_given.then(|| flag.to_owned()));
        }
        let with_one = [
            ("--pre", self.pre.clone()),
            ("--model-name", self.model_name.clone()),
            ("--like", self.like.clone()),
            ("--metadata", path(&self.metadata)),
            ("--target-model-dir", path(&self.target_model_dir)),
            ("--output-tensor-type", recipe.output_tensor_type.map(|ty| ty.to_string())),
            ("--token-embedding-type", recipe.token_embedding_type.map(|ty| ty.to_string())),
            ("--imatrix", imatrix.map(|choice| choice.file.display().to_string())),
            ("--imatrix-missing", missing),
            ("--reserve", (self.reserve > 0).then(|| self.reserve.to_string())),
        ];
        let with_one = with_one.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        let types = recipe.tensor_types.iter().map(|(pattern, ty)| format!("{pattern}={ty}"));
        let names = |of: fn(&Choice) -> &Vec<String>| {
            imatrix.into_iter().flat_map(move |choice| of(choice).clone())
        };
        let keys = self.quantization.overrides.iter().map(|(key, value)| override_of(key, value));
        let repeated = types
            .map(|entry| ("--tensor-type", entry))
            .chain(names(|choice| &choice.include).map(|name| ("--include-weights", name)))
            .chain(names(|choice| &choice.exclude).map(|name| ("--exclude-weights", name)))
            .chain(keys.map(|entry| ("--override-kv", entry)));
        words.extend(with_one.chain(repeated).flat_map(|(flag, value)| [flag.to_owned(), value]));
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// `KEY=TYPE:VALUE`.
fn override_of(key: &str, value: &Value) -> String {
    match value {
        Value::Bool(flag) => format!("{key}=bool:{flag}"),
        Value::F32(_) | Value::F64(_) => format!("{key}=float:{value}"),
        _ => match (value.to_i64(), value.as_str()) {
            (Some(number), _) => format!("{key}=int:{number}"),
            (None, Some(text)) => format!("{key}=str:{text}"),
            // The command line sets no arrays.
            (None, None) => format!("{key}={value}"),
        },
    }
}

/// A word as shells read it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
