//! A GGUF as the source: the same pipeline with another beginning.

use gguf::{ByteOrder, Metadata, Model, TensorType, Value};
use gguf_quant::recipe::{self, Reason, Target, TensorDesc};

use crate::Error;
use crate::pipeline::Job;

/// What a quantization can be asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which tensor gets which type.
    pub recipe: recipe::Options,
    /// Quantize again what is quantized already.
    pub allow_requantize: bool,
    /// Keys to set in the output.
    pub overrides: Vec<(String, Value<'static>)>,
}

/// A quantization that is ready to run.
pub struct Quantization<'a> {
    /// What to write.
    pub job: Job<'a>,
    /// What the user should know: fall-backs, among others.
    pub notes: Vec<String>,
}

/// Plans the quantization of `model`.
///
/// # Errors
/// If a tensor would have to be quantized again without leave, has no codec, or cannot have any
/// type that the recipe wants; if an importance matrix is needed; if the model is big-endian.
pub fn plan<'a>(
    model: &Model<'a>,
    target: Target,
    options: &Options,
) -> Result<Quantization<'a>, Error> {
    if model.order() == ByteOrder::Big {
        return Err(Error::Request {
            what: "the model is big-endian".into(),
            help: "convert it with `gguf convert-endian` first".into(),
        });
    }
    let descriptions: Vec<_> = model
        .tensors()
        .iter()
        .map(|tensor| TensorDesc {
            name: &tensor.info.name,
            shape: &tensor.info.shape,
            ty: tensor.info.tensor_type,
        })
        .collect();
    let mut metadata = model.metadata().clone().into_owned();
    for (key, value) in &options.overrides {
        metadata.set(key.clone(), overriding(metadata.get(key), value.clone()));
    }
    let (types, notes) = decide(&descriptions, &metadata, target, &options.recipe)?;
    for (description, &ty) in descriptions.iter().zip(&types) {
        check_change(description, ty, options.allow_requantize)?;
    }
    if target != Target::Copy {
        metadata.set("general.quantization_version", 2u32);
    }
    if let Some(mix) = target.file_type() {
        metadata.set("general.file_type", mix.number());
    }
    let mut job = Job { metadata, check_finite: true, ..Job::copy(model) };
    for (item, target) in job.items.iter_mut().zip(types) {
        item.target = target;
    }
    Ok(Quantization { job, notes })
}

/// A type per tensor, and what the user should know about them.
///
/// # Errors
/// If a tensor cannot have the type that it should, or needs importance weights.
pub(crate) fn decide(
    tensors: &[TensorDesc],
    metadata: &Metadata,
    target: Target,
    options: &recipe::Options,
) -> Result<(Vec<TensorType>, Vec<String>), Error> {
    let architecture = metadata.architecture().unwrap_or_default();
    let model = recipe::Model::from_keys(architecture, |key| {
        let value = metadata.get(key)?;
        match value.as_array() {
            // A number per block: the official loader looks at the first.
            Some(array) => array.iter().next()?.to_u64(),
            None => value.to_u64(),
        }
    });
    let request = |what: String| Error::Request { what, help: "choose another type".into() };
    let plan = recipe::plan(target, &model, tensors, options)
        .map_err(|fault| request(fault.to_string()))?;
    plan.check_imatrix(|_| false).map_err(|fault| request(fault.to_string()))?;
    let notes = plan.tensors.iter().filter_map(|tensor| match tensor.reason {
        Reason::Fallback { wanted } => Some(format!(
            "`{}` becomes {} instead of {wanted}: its rows of {} are no whole number of blocks",
            tensor.source.name,
            tensor.target,
            tensor.source.shape.first().copied().unwrap_or(1),
        )),
        _ => None,
    });
    Ok((plan.tensors.iter().map(|tensor| tensor.target).collect(), notes.collect()))
}

fn check_change(tensor: &TensorDesc, target: TensorType, allow: bool) -> Result<(), Error> {
    if tensor.ty == target {
        return Ok(());
    }
    if tensor.ty.is_quantized() && !allow {
        return Err(Error::Request {
            what: format!("`{}` is quantized already, as {}", tensor.name, tensor.ty),
            help: "quantizing it again loses quality: start from an F16 or F32 file, or allow it \
                   with --allow-requantize"
                .into(),
        });
    }
    for ty in [tensor.ty, target] {
        if gguf_quant::codec(ty).is_none() {
            return Err(Error::Request {
                what: format!(
                    "`{}` cannot go from {} to {target}: there is no codec for {ty}",
                    tensor.name, tensor.ty
                ),
                help: "keep its type with --tensor-type, or choose another target".into(),
            });
        }
    }
    Ok(())
}

/// The value in the type that the key has already, if it fits: programs expect that.
fn overriding(old: Option<&Value>, new: Value<'static>) -> Value<'static> {
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
