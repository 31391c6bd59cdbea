//! Conversion of the vision and audio encoders of a checkpoint to an mmproj file.

use std::path::Path;

use gguf::{
    ByteOrder, Error, Metadata, ModelName, ParameterCount, Shape, Sidecar, TensorType, suggest,
};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_models::convert::assembly::{Assembly, refuse_unknown};
use gguf_models::convert::{Mapping, assembly};
use gguf_models::mmproj::{Encoder, EncoderConfigs, EncoderMapping, encoder_classes};
use gguf_models::{mmproj, registry};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::recipe::{Preset, Target as Recipe};

use super::{Conversion, HfOptions, text};
use crate::model_card::GeneralMetadata;

/// Plans the conversion of the encoder of the checkpoint in `dir`, whose tensors are those of `checkpoint`.
///
/// # Errors
/// If a file is missing or invalid, if the class has no known encoder, or if the tensors are not those of the
/// encoder that the configuration describes.
pub(super) fn plan(
    dir: &Path,
    checkpoint: &Checkpoint,
    options: &HfOptions,
) -> Result<Conversion, Error> {
    let mut model = match registry::inferred_config(dir, checkpoint)? {
        Some(model) => model,
        None => Config::read_whole(dir)?,
    };
    let encoder = find(&mut model, options)?;
    let whole = encoder.folder.map(|folder| checkpoint.with_folder(dir, folder)).transpose()?;
    let checkpoint = whole.as_ref().unwrap_or(checkpoint);
    let parts = EncoderConfigs::read(model, encoder, checkpoint)?;
    let tensors = tensors(&parts, encoder, checkpoint)?;

    let matrices = text::matrix_type(&tensors);
    let matrices = match options.outtype {
        None => matrices,
        Some(target) => encoder_type(target)?,
    };
    let file_type = Recipe::Type(matrices).file_type().unwrap_or(Preset::F16);
    let general = GeneralMetadata::load(
        dir,
        Some(parts.text.json()),
        &ParameterCount::from_tensors(tensors.iter().map(|t| (t.name.as_str(), &t.shape[..]))),
        options.metadata.as_deref(),
        options.model_name.as_deref(),
    )?;
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", "clip");
    metadata.set("general.type", "mmproj");
    general.write_to(&mut metadata);
    encoder.metadata(&parts, file_type.number(), &mut metadata)?;
    metadata.set("general.quantization_version", gguf::QUANTIZATION_VERSION);

    let mut job = Job { metadata, items: Vec::new(), check_finite: true, order: ByteOrder::Little };
    let name = ModelName::from_metadata(&job.metadata, Some(file_type.name()));
    let name = ModelName { sidecar: Some(Sidecar::Mmproj), size_label: None, ..name };
    let item = |tensor: Tensor| {
        let ty = encoder.float_type(&tensor.name, &tensor.shape, matrices);
        Item::new(tensor, ty)
    };
    job.items = tensors.into_iter().map(item).collect();
    gguf_quantize::set_overrides(&mut job.metadata, &options.quantization);
    text::require_tensors(dir, &job)?;
    Ok(Conversion { job, file_name: name.to_string(), notes: checkpoint.notes.clone() })
}

/// Returns the encoder of the model's class.
fn find(model: &mut Config, options: &HfOptions) -> Result<&'static Encoder, Error> {
    let unknown = |class: &str, what: String| {
        let near = match &suggest::nearest(class, encoder_classes())[..] {
            [] => String::new(),
            near => format!("the nearest classes with an encoder are {}; ", near.join(", ")),
        };
        let help = "`gguf convert --print-supported-models` lists the classes with an encoder under `clip`";
        (what, near + help)
    };
    if let Some(like) = &options.like {
        let class = encoder_classes().into_iter().find(|class| class.eq_ignore_ascii_case(like));
        return class.and_then(mmproj::find).ok_or_else(|| {
            let (what, help) =
                unknown(like, format!("`{like}` is not a class with a known encoder"));
            Error::request("class-unknown", what, help)
        });
    }
    if let Some(encoder) = mmproj::for_params_json(model) {
        return Ok(encoder);
    }
    mmproj::class(model).and_then(mmproj::find).ok_or_else(|| {
        let class = model.class().unwrap_or("?");
        let what = format!("no vision or audio encoder of the class `{class}` is known");
        let (what, help) = unknown(class, what);
        Error::input("class-unknown", model.path(), what, help)
    })
}

/// Returns the requested type of matrices.
fn encoder_type(target: Recipe) -> Result<TensorType, Error> {
    let ty = match target {
        Recipe::Preset(mix) => Some(mix.default_type()),
        Recipe::Type(ty) => Some(ty),
        Recipe::Copy => None,
    };
    const TYPES: [TensorType; 4] =
        [TensorType::F32, TensorType::F16, TensorType::BF16, TensorType::Q8_0];
    ty.filter(|ty| TYPES.contains(ty)).ok_or_else(|| {
        let what = format!("{target} is not a type of encoders");
        Error::request("target-file-type", what, "choose f32, f16, bf16 or q8_0")
    })
}

/// Returns the tensors of the output, in the order in which the checkpoint's tensors complete them.
fn tensors(
    parts: &EncoderConfigs,
    encoder: &Encoder,
    checkpoint: &Checkpoint,
) -> Result<Vec<Tensor>, Error> {
    let mut assembly = Assembly::new(checkpoint, encoder.computed(parts)?);
    let mut unknown = Vec::new();
    for entry in encoder.entries(parts, checkpoint)? {
        let dims: Vec<u64> = entry.shape.iter().rev().copied().collect();
        match encoder.mapping(parts, checkpoint, &entry.name, &dims)? {
            EncoderMapping::Mapped(Mapping::Tensors(made)) => {
                assembly.add(entry, shape(checkpoint, entry, &dims)?, made)?;
            }
            EncoderMapping::Mapped(Mapping::Unknown) => unknown.push(entry),
            EncoderMapping::Mapped(_) => {}
            EncoderMapping::Concatenated(name, steps) => {
                assembly.rejoin(entry, shape(checkpoint, entry, &dims)?, name, &steps)?;
            }
            EncoderMapping::Tensor(name, shape, values) => {
                assembly.push(Tensor { shape, ..assembly::computed(name, values) });
            }
            EncoderMapping::Vectors(made) => {
                made.into_iter().for_each(|(name, values)| {
                    assembly.push(assembly::computed(name, values));
                });
            }
        }
    }
    refuse_unknown(&unknown, "clip", checkpoint)?;
    assembly.finish(&parts.model)
}

/// Returns the shape of a tensor. Width and height of a 3D convolution become one dimension.
fn shape(checkpoint: &Checkpoint, entry: &Entry, dims: &[u64]) -> Result<Shape, Error> {
    let merged = match *dims {
        [width, height, time, inputs, outputs] => {
            width.checked_mul(height).and_then(|area| Shape::new(&[area, time, inputs, outputs]))
        }
        [] => Shape::new(&[1]),
        _ => None,
    };
    merged.map_or_else(|| assembly::shape(checkpoint, entry), Ok)
}
