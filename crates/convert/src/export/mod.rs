//! Export of a GGUF file to a Hugging Face directory or to safetensors.
//!
//! The export inverts the converters' tables: it enumerates checkpoint names, maps them forward, and inverts the steps
//! of those whose tensors the model has.

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

/// Options of an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    /// Type of all matrices; `None` keeps F32, F16 and BF16, and decodes quantized tensors to BF16.
    pub dtype: Option<TensorType>,
}

/// Text file of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Path within the directory.
    pub name: &'static str,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Planned export.
pub struct Export {
    /// Tensors under their checkpoint names, each with its output type.
    pub tensors: Vec<(Tensor, TensorType)>,
    /// Other files.
    pub files: Vec<File>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Plans the export of `model` to a Hugging Face directory.
///
/// # Errors
/// If the architecture has no export, if required keys are missing, or if a tensor has no checkpoint name.
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
            ("", _) => "`general.architecture` is missing".to_owned(),
            (_, false) => {
                format!("the architecture `{architecture}` has no known checkpoint format")
            }
            (_, true) => format!(
                "keys and tensors do not determine the class of this {architecture} model: \
                 `gguf check` lists what is missing"
            ),
        };
        let help = "export the tensors under their GGUF names: --to safetensors --keep-names";
        Error::request("export-architecture", what, help)
    })?;
    let mut notes = Vec::new();
    let mut config = config::configuration(model, converter, &exported)?;
    let mut as_config = Config::of(config.clone()).siblings(exported.files.iter().cloned());
    let config_path = as_config.path().to_owned();
    let as_model_error = |error| config::as_model_error(error, &config_path, model);
    converter.complete_config(&mut as_config).map_err(as_model_error)?;
    for (field, value) in &exported.unwritten {
        as_config.set(field, value.clone());
    }
    let key_notes =
        config::not_restored(metadata, converter, &as_config).map_err(as_model_error)?;
    notes.extend(key_notes);
    let tensors = foreign::tensors(model, converter, &exported, &as_config, &mut notes);
    let tensors = tensors.map_err(as_model_error)?;
    let tensors = with_types(tensors, options);
    let dtype = tensors.iter().find(|(tensor, _)| tensor.shape.len() > 1).map(|(_, ty)| *ty);
    config["torch_dtype"] = safetensors::torch_name(dtype.unwrap_or(TensorType::F32)).into();

    let (kind, hints) = (converter.vocabulary(), converter.pre_tokenizers());
    let Tokenizer { mut files, config: fields, notes: tokenizer_notes } =
        tokenizer(metadata, kind, hints, &config)?;
    notes.extend(tokenizer_notes);
    for (field, value) in fields {
        config[field] = value;
    }
    files.push(json_file("config.json", &config));
    files.extend(exported.files.iter().map(|(name, value)| json_file(name, value)));
    files.extend(card::files(metadata));
    Ok(Export { tensors, files, notes })
}

/// Returns the tensors of `model` under their GGUF names.
pub fn gguf_tensors(model: &Model, options: ExportOptions) -> Vec<(Tensor, TensorType)> {
    let tensors = model.tensors().iter().map(Tensor::of_model);
    let stored = |tensor: Tensor| {
        let ty = tensor.stored_type;
        (tensor, ty)
    };
    with_types(tensors.map(stored).collect(), options)
}

/// Replaces the stored type of each tensor by its output type.
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
