//! A GGUF back to what other programs read: a Hugging Face directory, or safetensors alone.
//!
//! What a family does to names and tensors on the way in is data, so here it is undone from the same
//! tables: foreign names are enumerated, followed forward, and looked up backward.

mod card;
mod config;
mod directory;
mod foreign;
mod rope;
pub mod safetensors;
mod tokenizer;
mod value;

pub use directory::Directory;
use gguf::{Error, TensorType};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Tensor;
use gguf_store::Model;
use serde_json::Value;
pub use tokenizer::{Tokenizer, tokenizer};

use gguf_models::convert as converters;

/// What an export can be asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    /// The type of all matrices; `None` keeps F32, F16 and BF16 as they are and makes BF16 of what
    /// is quantized.
    pub dtype: Option<TensorType>,
}

/// A text file of the directory.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its name within the directory; slashes lead to directories inside it.
    pub name: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A directory that is ready to be written.
pub struct Export {
    /// The tensors under their foreign names, each with the type it is to have.
    pub tensors: Vec<(Tensor, TensorType)>,
    /// Everything else.
    pub files: Vec<File>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Plans a Hugging Face directory for `model`.
///
/// # Errors
/// If no family that can be undone has its architecture, if keys that its configuration needs are
/// missing, or if a tensor has no foreign name.
pub fn plan(model: &Model, options: ExportOptions) -> Result<Export, Error> {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let (converter, exported) = converters::exported(model).ok_or_else(|| {
        if let Some(why) = converters::export_refusal(architecture) {
            let what = format!("no checkpoint can be made of {architecture} models: {why}");
            let help = "export the tensors under their GGUF names: --to safetensors --keep-names";
            return Error::request("export-architecture", what, help);
        }
        let what = match (architecture, converters::is_known(architecture)) {
            ("", _) => "the file does not say which architecture its model has".to_owned(),
            (_, false) => format!("no checkpoints of the architecture `{architecture}` are known"),
            (_, true) => format!(
                "keys and tensors do not tell which kind of {architecture} model this is: \
                 `gguf check` says what is missing"
            ),
        };
        let help = "export the tensors under their GGUF names: --to safetensors --keep-names";
        Error::request("export-architecture", what, help)
    })?;
    let mut notes = Vec::new();
    let mut config = config::of(model, converter, &exported)?;
    let mut as_config = Config::of(config.clone()).siblings(exported.files.iter().cloned());
    let of_config = as_config.path().to_owned();
    let of_model = |error| config::of_model(error, &of_config, model);
    converter.complete_config(&mut as_config).map_err(of_model)?;
    for (field, value) in &exported.unwritten {
        as_config.set(field, value.clone());
    }
    let of_keys = config::not_restored(metadata, converter, &as_config).map_err(of_model)?;
    notes.extend(of_keys);
    let tensors = foreign::tensors(model, converter, &exported, &as_config, &mut notes);
    let tensors = tensors.map_err(of_model)?;
    let tensors = with_types(tensors, options);
    let dtype = tensors.iter().find(|(tensor, _)| tensor.shape.len() > 1).map(|(_, ty)| *ty);
    config["torch_dtype"] = safetensors::torch_name(dtype.unwrap_or(TensorType::F32)).into();

    let (kind, hints) = (converter.vocabulary(), converter.pre_tokenizers());
    let Tokenizer { mut files, config: fields, notes: of_tokenizer } =
        tokenizer(metadata, kind, hints, &config)?;
    notes.extend(of_tokenizer);
    for (field, value) in fields {
        config[field] = value;
    }
    files.push(json_file("config.json", &config));
    files.extend(exported.files.iter().map(|(name, value)| json_file(name, value)));
    files.extend(card::files(metadata));
    Ok(Export { tensors, files, notes })
}

/// The tensors of `model` under their own names.
pub fn plain(model: &Model, options: ExportOptions) -> Vec<(Tensor, TensorType)> {
    let tensors = model.tensors().iter().map(Tensor::of_model);
    let stored = |tensor: Tensor| {
        let ty = tensor.stored_type;
        (tensor, ty)
    };
    with_types(tensors.map(stored).collect(), options)
}

/// The tensors, each with the type it is to have instead of that in the model.
fn with_types(
    tensors: Vec<(Tensor, TensorType)>,
    options: ExportOptions,
) -> Vec<(Tensor, TensorType)> {
    let ty = |tensor: &Tensor, stored: TensorType| match (options.dtype, stored) {
        (_, stored) if stored.is_integer() => stored,
        (Some(ty), stored) if tensor.shape.len() > 1 || stored.is_quantized() => ty,
        (_, stored) if stored.is_quantized() => TensorType::BF16,
        (_, stored) => stored,
    };
    let typed = |(tensor, stored): (Tensor, TensorType)| {
        let ty = ty(&tensor, stored);
        (tensor, ty)
    };
    tensors.into_iter().map(typed).collect()
}

fn json_file(name: &'static str, value: &Value) -> File {
    File { name, bytes: format!("{value:#}\n").into_bytes() }
}
