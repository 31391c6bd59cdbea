//! Conversion of a single weight file without a configuration, such as a diffusion model. Names, shapes and types
//! stay.

use gguf::{Array, ByteOrder, Error, Metadata, QUANTIZATION_VERSION, Shape, TensorType};
use gguf_checkpoint::{Checkpoint, Entry};
use gguf_models::convert::assembly;
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::recipe::Target;

use crate::hf;
use crate::hf::Conversion;

/// SingleFileOptions of the conversion of a single file.
#[derive(Clone, Debug)]
pub struct SingleFileOptions {
    /// `general.architecture`.
    pub architecture: String,
    /// `general.name`, and the stem of the recommended file name.
    pub name: String,
    /// Preset or tensor type of the output; `None` keeps the type of each tensor.
    pub outtype: Option<Target>,
    /// Tensor types by name, importance matrix, and keys to set.
    pub quantization: gguf_quantize::QuantizeOptions,
}

/// Plans the conversion of a single-file checkpoint.
///
/// A tensor with more than four dimensions is reshaped: its slowest dimensions become one. The key
/// `comfy.gguf.orig_shape.` with the tensor's name, which ComfyUI-GGUF reads, has the original shape, slowest
/// dimension first.
///
/// # Errors
/// If the architecture's name is invalid in keys, or a tensor cannot have the requested type.
pub fn plan(checkpoint: &Checkpoint, options: &SingleFileOptions) -> Result<Conversion, Error> {
    let SingleFileOptions { architecture, name, outtype, quantization } = options;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    if architecture.is_empty() || !architecture.chars().all(allowed) {
        let what = format!("`{architecture}` is not a valid architecture name");
        let help = "use lower-case letters, digits, `_` and `-`";
        return Err(Error::request("architecture-name", what, help));
    }
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", architecture.clone());
    metadata.set("general.type", "model");
    metadata.set("general.name", name.clone());
    let tensors: Vec<_> =
        checkpoint.entries.iter().map(|entry| tensor(checkpoint, entry, &mut metadata)).collect();
    let mut notes = checkpoint.notes.clone();
    let target = outtype.unwrap_or(Target::Type(most_common_type(&tensors)));
    if let Some(file_type) = target.file_type() {
        metadata.set("general.file_type", file_type.number());
    }
    let item = |tensor: Tensor| {
        let stored = tensor.stored_type;
        Item::new(tensor, stored)
    };
    let items = tensors.into_iter().map(item).collect();
    let mut job = Job { metadata, items, check_finite: true, order: ByteOrder::Little };
    if let Some(file) = checkpoint.files.first() {
        hf::require_tensors(&file.path, &job)?;
    }
    if let Some(target) = outtype {
        notes.extend(gguf_quantize::assign_types(&mut job, *target, quantization)?);
    }
    if job.items.iter().any(|item| item.target.is_quantized()) {
        job.metadata.set("general.quantization_version", QUANTIZATION_VERSION);
    }
    let suffix = target.file_type().map_or(String::new(), |mix| format!("-{}", mix.name()));
    gguf_quantize::set_overrides(&mut job.metadata, quantization);
    Ok(Conversion { job, file_name: format!("{name}{suffix}.gguf"), notes })
}

fn tensor(checkpoint: &Checkpoint, entry: &Entry, metadata: &mut Metadata) -> Tensor {
    let dims: Vec<u64> = entry.shape.iter().rev().copied().collect();
    let shape = Shape::new(&dims).unwrap_or_else(|| {
        let original: Vec<i32> =
            entry.shape.iter().map(|dim| i32::try_from(*dim).unwrap_or(i32::MAX)).collect();
        let key = format!("comfy.gguf.orig_shape.{}", entry.name);
        metadata.set(key, Array::from(&original[..]));
        let (kept, folded) = dims.split_at(3);
        let folded =
            [kept, &[folded.iter().fold(1u64, |all, dim| all.saturating_mul(*dim))]].concat();
        Shape::new(&folded).unwrap_or_else(|| unreachable!("the shape has four dimensions"))
    });
    assembly::stored(checkpoint, entry, shape)
}

/// Returns the type of most elements.
fn most_common_type(tensors: &[Tensor]) -> TensorType {
    let of_type = |ty: TensorType| -> u64 {
        let tensors = tensors.iter().filter(|tensor| tensor.stored_type == ty);
        tensors.map(|tensor| tensor.shape.elements().unwrap_or(0)).sum()
    };
    let types = tensors.iter().map(|tensor| tensor.stored_type);
    types.max_by_key(|ty| of_type(*ty)).unwrap_or(TensorType::F32)
}
