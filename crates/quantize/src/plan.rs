//! A GGUF as the source: the same pipeline with another beginning.

use std::collections::BTreeSet;

use gguf::{ByteOrder, Error, Metadata, QUANTIZATION_VERSION, TensorType, Value};
use gguf_pipeline::{Job, Tensor};
use gguf_store::Model;

use crate::decision::{Decision, decide, describe};
use crate::importance::{self, Importance, Missing};
use crate::prune::prune;
use crate::recipe::{self, Target, TensorDesc};
use crate::sensitivity::Sensitivity;

/// What a quantization can be asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which tensor gets which type.
    pub recipe: recipe::Options,
    /// Quantize again what is quantized already.
    pub allow_requantize: bool,
    /// Keys to set in the output.
    pub overrides: Vec<(String, Value)>,
    /// Importance weights, if there are any.
    pub importance: Option<Importance>,
    /// What to do about tensors that would be garbage without importance weights and have none.
    pub missing: Missing,
    /// What types of tensors do to predictions; a budget goes by it, instead of by the weights.
    pub sensitivity: Option<Sensitivity>,
    /// Blocks to leave out, by number from 0; those that stay are numbered anew.
    pub prune_layers: BTreeSet<u64>,
}

/// A quantization that is ready to run.
pub struct Quantization {
    /// What to write.
    pub job: Job,
    /// What the user should know: fall-backs, among others.
    pub notes: Vec<String>,
}

/// Plans the quantization of `model`.
///
/// # Errors
/// If a tensor would have to be quantized again without leave, has no codec, or cannot have any
/// type that the recipe wants; if an importance matrix is needed.
pub fn plan(model: &Model, target: Target, options: &Options) -> Result<Quantization, Error> {
    let (mut job, decisions, mut notes) = prepare(model, target, options)?;
    notes.extend(importance::cover(&mut job.items, &decisions, options.missing)?);
    notes.extend(finish(&mut job, target, options)?);
    Ok(Quantization { job, notes })
}

/// The job before types are given to its items, what the recipe wants for each, and what the user
/// should know.
pub fn prepare(
    model: &Model,
    target: Target,
    options: &Options,
) -> Result<(Job, Vec<Decision>, Vec<String>), Error> {
    // What is made anew has the order that programs read everywhere.
    let mut job = Job { check_finite: true, order: ByteOrder::Little, ..Job::copy(model) };
    if let Some(importance) = &options.importance {
        importance.assign(&mut job)?;
    }
    prune(&mut job, &options.prune_layers)?;
    let descriptions: Vec<_> = job.items.iter().map(|item| describe(&item.tensor)).collect();
    let recipe =
        recipe::Options { has_imatrix: options.importance.is_some(), ..options.recipe.clone() };
    let mut metadata = job.metadata.clone();
    set_overrides(&mut metadata, options);
    let (decisions, notes) = decide(&descriptions, &metadata, target, &recipe)?;
    Ok((job, decisions, notes))
}

/// Gives every item the type that the recipe wants for it, starting from the one it has, and the
/// weights that guide its encoder. Returns what the user should know.
pub fn give_types(job: &mut Job, target: Target, options: &Options) -> Result<Vec<String>, Error> {
    if let Some(importance) = &options.importance {
        importance.assign(job)?;
    }
    let recipe =
        recipe::Options { has_imatrix: options.importance.is_some(), ..options.recipe.clone() };
    let items =
        job.items.iter().map(|item| TensorDesc { ty: item.target, ..describe(&item.tensor) });
    let descriptions: Vec<_> = items.collect();
    let (decisions, mut notes) = decide(&descriptions, &job.metadata, target, &recipe)?;
    notes.extend(importance::cover(&mut job.items, &decisions, options.missing)?);
    notes.extend(uncovered(job, options));
    Ok(notes)
}

/// Checks that every item can become what it is to be, and says in the keys what they are now.
/// Returns what the user should know.
pub fn finish(job: &mut Job, target: Target, options: &Options) -> Result<Vec<String>, Error> {
    set_keys(&mut job.metadata, target, options);
    for item in &job.items {
        check_change(&item.tensor, item.target, options.allow_requantize)?;
    }
    Ok(uncovered(job, options).into_iter().collect())
}

/// Names the tensors for which an importance matrix should have weights, and has none.
fn uncovered(job: &Job, options: &Options) -> Option<String> {
    let given = options.importance.as_ref().filter(|given| !given.is_partial);
    given.and_then(|_| importance::uncovered(&job.items))
}

/// Sets the keys that say what the items are, and those that the options override.
pub fn set_keys(metadata: &mut Metadata, target: Target, options: &Options) {
    if target != Target::Copy {
        metadata.set("general.quantization_version", QUANTIZATION_VERSION);
    }
    if let Some(mix) = target.file_type() {
        metadata.set("general.file_type", mix.number());
    }
    set_overrides(metadata, options);
}

/// Sets the keys that the options override.
pub fn set_overrides(metadata: &mut Metadata, options: &Options) {
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
        let what = format!("`{}` is quantized already, as {}", tensor.name, stored);
        let help = "quantizing it again loses quality: start from an F16 or F32 file, or allow it \
                    with --allow-requantize";
        return Err(Error::request("requantize", what, help));
    }
    for ty in [stored, target] {
        if gguf_quant::codec(ty).is_none() {
            let what = format!(
                "`{}` cannot go from {} to {target}: there is no codec for {ty}",
                tensor.name, stored
            );
            let help = "keep its type with --tensor-type, or choose another target";
            return Err(Error::request("codec-missing", what, help));
        }
    }
    Ok(())
}

/// The value in the type that the key has already, if it fits: programs expect that.
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
