//! Quantization plans for GGUF models.

use std::collections::BTreeSet;

use gguf::{ByteOrder, Error, Metadata, QUANTIZATION_VERSION, TensorType, Value};
use gguf_pipeline::{Job, Tensor};
use gguf_store::Model;

use crate::decision::{Decision, decide, describe};
use crate::importance::{self, Importance, MissingImportance};
use crate::prune::prune;
use crate::recipe::{self, Target, TensorDesc};
use crate::sensitivity::Sensitivity;

/// Options of a quantization.
#[derive(Clone, Debug, Default)]
pub struct QuantizeOptions {
    /// Assignment of types to tensors.
    pub recipe: recipe::RecipeOptions,
    /// Whether to quantize tensors that are already quantized.
    pub allow_requantize: bool,
    /// Metadata keys to set in the output.
    pub overrides: Vec<(String, Value)>,
    /// Importance weights, if any.
    pub importance: Option<Importance>,
    /// Policy for tensors that are unusable without importance weights and have none.
    pub missing: MissingImportance,
    /// KL divergence per tensor and type; a budget uses it instead of measuring weights.
    pub sensitivity: Option<Sensitivity>,
    /// Indices of layers to remove; the remaining layers are renumbered.
    pub prune_layers: BTreeSet<u64>,
}

/// A planned quantization.
pub struct Quantization {
    /// Job to write.
    pub job: Job,
    /// Notes for the user, for example about fallbacks.
    pub notes: Vec<String>,
}

/// Plans the quantization of `model`.
///
/// # Errors
/// Returns an error if a tensor would be requantized without permission, has no codec, or cannot
/// have any type that the recipe accepts, or if an importance matrix is required.
pub fn plan(
    model: &Model,
    target: Target,
    options: &QuantizeOptions,
) -> Result<Quantization, Error> {
    let (mut job, decisions, mut notes) = prepare(model, target, options)?;
    notes.extend(importance::cover(&mut job.items, &decisions, options.missing)?);
    notes.extend(finish(&mut job, target, options)?);
    Ok(Quantization { job, notes })
}

/// Returns the job before types are assigned, the recipe's decision for each item, and notes for
/// the user.
pub fn prepare(
    model: &Model,
    target: Target,
    options: &QuantizeOptions,
) -> Result<(Job, Vec<Decision>, Vec<String>), Error> {
    // Newly written files are little-endian, which all programs read.
    let mut job = Job { check_finite: true, order: ByteOrder::Little, ..Job::copy(model) };
    if let Some(importance) = &options.importance {
        importance.assign(&mut job)?;
    }
    prune(&mut job, &options.prune_layers)?;
    let descriptions: Vec<_> = job.items.iter().map(|item| describe(&item.tensor)).collect();
    let recipe = recipe::RecipeOptions {
        has_imatrix: options.importance.is_some(),
        ..options.recipe.clone()
    };
    let mut metadata = job.metadata.clone();
    set_overrides(&mut metadata, options);
    let (decisions, notes) = decide(&descriptions, &metadata, target, &recipe)?;
    Ok((job, decisions, notes))
}

/// Assigns to each item the type that the recipe decides and its importance weights. Returns notes
/// for the user.
pub fn assign_types(
    job: &mut Job,
    target: Target,
    options: &QuantizeOptions,
) -> Result<Vec<String>, Error> {
    if let Some(importance) = &options.importance {
        importance.assign(job)?;
    }
    let recipe = recipe::RecipeOptions {
        has_imatrix: options.importance.is_some(),
        ..options.recipe.clone()
    };
    let items =
        job.items.iter().map(|item| TensorDesc { ty: item.target, ..describe(&item.tensor) });
    let descriptions: Vec<_> = items.collect();
    let (decisions, mut notes) = decide(&descriptions, &job.metadata, target, &recipe)?;
    notes.extend(importance::cover(&mut job.items, &decisions, options.missing)?);
    notes.extend(missing_entries(job, options));
    Ok(notes)
}

/// Checks that every item can be encoded as its type, and sets the metadata that describes the
/// types. Returns notes for the user.
pub fn finish(
    job: &mut Job,
    target: Target,
    options: &QuantizeOptions,
) -> Result<Vec<String>, Error> {
    set_keys(&mut job.metadata, target, options);
    for item in &job.items {
        check_change(&item.tensor, item.target, options.allow_requantize)?;
    }
    Ok(missing_entries(job, options).into_iter().collect())
}

/// Describes the tensors that lack importance weights.
fn missing_entries(job: &Job, options: &QuantizeOptions) -> Option<String> {
    let given = options.importance.as_ref().filter(|given| !given.is_partial);
    given.and_then(|_| importance::missing_entries(&job.items))
}

/// Sets the metadata that describes the types, and the overrides.
pub fn set_keys(metadata: &mut Metadata, target: Target, options: &QuantizeOptions) {
    if target != Target::Copy {
        metadata.set("general.quantization_version", QUANTIZATION_VERSION);
    }
    if let Some(preset) = target.file_type() {
        metadata.set("general.file_type", preset.number());
    }
    set_overrides(metadata, options);
}

/// Sets the metadata overrides.
pub fn set_overrides(metadata: &mut Metadata, options: &QuantizeOptions) {
    for (key, value) in &options.overrides {
        metadata.set(key.clone(), overriding(metadata.get(key), value.clone()));
    }
}

fn check_change(tensor: &Tensor, target: TensorType, allow: bool) -> Result<(), Error> {
    let stored = tensor.stored_type;
    if stored == target {
        return Ok(());
    }
    if stored.is_quantized() && !allow && !gguf_quant::lossless::is_possible(stored, target) {
        let what = format!("`{}` is already quantized as {}", tensor.name, stored);
        let help = "requantizing loses quality: start from an F16 or F32 file, or allow it \
                    with --allow-requantize";
        return Err(Error::request("requantize", what, help));
    }
    for ty in [stored, target] {
        if gguf_quant::codec(ty).is_none() {
            let what = format!(
                "`{}` cannot be converted from {} to {target}: {ty} has no codec",
                tensor.name, stored
            );
            let help = "keep its type with --tensor-type, or choose another target";
            return Err(Error::request("codec-missing", what, help));
        }
    }
    Ok(())
}

/// Converts the value to the existing type of the key if it fits, since programs expect that type.
fn overriding(old: Option<&Value>, new: Value) -> Value {
    let Some(number) = new.to_i64() else { return new };
    let same_type = match old {
        Some(Value::U8(_)) => number.try_into().ok().map(Value::U8),
        Some(Value::I8(_)) => number.try_into().ok().map(Value::I8),
        Some(Value::U16(_)) => number.try_into().ok().map(Value::U16),
        Some(Value::I16(_)) => number.try_into().ok().map(Value::I16),
        Some(Value::U32(_)) => number.try_into().ok().map(Value::U32),
        Some(Value::I32(_)) => number.try_into().ok().map(Value::I32),
        Some(Value::U64(_)) => number.try_into().ok().map(Value::U64),
        Some(Value::I64(_)) => Some(Value::I64(number)),
        _ => None,
    };
    same_type
        .or_else(|| number.try_into().ok().map(Value::U32))
        .or_else(|| number.try_into().ok().map(Value::I32))
        .unwrap_or(new)
}
