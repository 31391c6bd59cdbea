//! Verification of a file against its source: its tensors are derived again and compared.
//!
//! Nothing is written. A tensor may have been converted directly or through a file of 16-bit
//! floats, as with a separate converter and quantizer; each path is tried until none is left.

use gguf::{Error, TensorType};
use gguf_pipeline::{Item, Job, Tensor, parallel};
use gguf_store::{Model, ModelTensor, Progress};

use crate::importance::Importance;

/// Conversion path of a tensor from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionPath {
    /// Direct conversion.
    Direct,
    /// Conversion through a file of this 16-bit type.
    Via(TensorType),
}

/// Result of deriving a tensor again.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The bytes are identical.
    Identical(ConversionPath),
    /// The bytes differ (along the path that agrees longest).
    Differs {
        /// First row with different bytes, counted over all dimensions except the first.
        row: u64,
    },
    /// The tensor cannot be derived, with the reason as a sentence.
    NotDerivable(String),
    /// The source has no such tensor.
    NotInSource,
}

/// A tensor and the result of its verification.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedTensor {
    /// Name of the tensor.
    pub name: String,
    /// Result.
    pub outcome: Outcome,
}

/// Number of elements that are derived at a time.
const CHUNK: u64 = 128 * 1024;

/// Derives the tensors of `model` that `chosen` selects again, from a job that produces the same
/// model from its source, and compares them. Types are those of `model`, not those of the job;
/// `importance` holds the importance weights used for the quantization.
///
/// `progress` is called from many threads with the number of bytes just compared; it cancels the
/// job by returning `Break`.
///
/// # Errors
/// Returns an error if a source or the file cannot be read, if the importance weights belong to
/// another model, or if `progress` cancels the job.
pub fn verify(
    model: &Model,
    mut source: Job,
    importance: Option<&Importance>,
    chosen: &(dyn Fn(&str) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Vec<VerifiedTensor>, Error> {
    if let Some(importance) = importance {
        importance.assign(&mut source)?;
    }
    let tensors: Vec<_> =
        model.tensors().iter().filter(|tensor| chosen(&tensor.info.name)).collect();
    progress.begin("verifying", tensors.iter().filter_map(|tensor| tensor.info.byte_len()).sum());
    parallel::map(tensors.len(), |i| {
        let tensor = tensors[i];
        let item = source.items.iter().find(|item| item.tensor.name == *tensor.info.name);
        let outcome = match item {
            None => Outcome::NotInSource,
            Some(item) => compare(tensor, item, progress)?,
        };
        Ok(VerifiedTensor { name: tensor.info.name.to_string(), outcome })
    })
}

/// Returns the names of source tensors that `model` lacks.
pub fn missing(model: &Model, source: &Job) -> Vec<String> {
    let index = model.index();
    let names = source.items.iter().map(|item| &item.tensor.name);
    names.filter(|name| !index.contains_key(name.as_str())).cloned().collect()
}

fn compare(tensor: &ModelTensor, item: &Item, progress: &dyn Progress) -> Result<Outcome, Error> {
    let (source, target) = (&item.tensor, tensor.info.tensor_type);
    if source.shape != tensor.info.shape {
        return Ok(Outcome::NotDerivable(format!(
            "its shape is {} in the file and {} in the source",
            tensor.info.shape, source.shape
        )));
    }
    let file = Tensor::of_model(tensor);
    let row_len = source.shape.row_len();
    let rows_at_once = CHUNK.checked_div(row_len).unwrap_or(1).max(1);
    let mut ways = vec![ConversionPath::Direct];
    if target.is_quantized() && !source.stored_type.is_quantized() {
        ways.extend([TensorType::F16, TensorType::BF16].map(ConversionPath::Via));
    }
    let (mut intended, mut stored, mut derived) = (Vec::new(), Vec::new(), Vec::new());
    let rows = if row_len == 0 { 0 } else { source.rows() };
    for first in (0..rows).step_by(rows_at_once as usize) {
        let n = rows_at_once.min(rows - first);
        file.read_rows(first, n, &mut intended)?;
        source.read_rows(first, n, &mut stored)?;
        let row_bytes = intended.len() / n as usize;
        let (mut agreeing, mut longest) = (Vec::new(), 0);
        for &way in &ways {
            let derivable = derive(item, target, way, first, &stored, &mut derived);
            if let Err(why) = derivable {
                return Ok(Outcome::NotDerivable(why));
            }
            match intended.iter().zip(&derived).position(|(a, b)| a != b) {
                None => agreeing.push(way),
                Some(byte) => longest = longest.max(byte / row_bytes),
            }
        }
        if agreeing.is_empty() {
            return Ok(Outcome::Differs { row: first + longest as u64 });
        }
        ways = agreeing;
        progress.step(intended.len() as u64)?;
    }
    Ok(Outcome::Identical(ways[0]))
}

/// Derives rows of the source starting at `first`, in the type of the file.
fn derive(
    item: &Item,
    target: TensorType,
    way: ConversionPath,
    first: u64,
    stored: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let from = item.tensor.stored_type;
    if from == target {
        out.clear();
        out.extend_from_slice(stored);
        return Ok(());
    }
    let row_len = item.tensor.shape.row_len() as usize;
    let elements = from.block().map_or(0, |(len, bytes)| stored.len() as u64 / bytes * len);
    let bytes_of = |ty: TensorType, elements: usize| {
        let bytes = ty.byte_len(&[elements as u64]);
        bytes.map(|bytes| bytes as usize).ok_or_else(|| format!("{ty} has no size"))
    };
    out.resize(bytes_of(target, row_len)? * (elements as usize / row_len), 0);
    if gguf_quant::lossless::is_possible(from, target) {
        return gguf_quant::lossless::convert(from, stored, target, out)
            .map_err(|fault| fault.to_string());
    }
    let mut values = vec![0.0; elements as usize];
    let failed = |fault: gguf_quant::CodecError| fault.to_string();
    gguf_quant::decode_row(from, stored, &mut values).map_err(failed)?;
    if let ConversionPath::Via(half) = way {
        let mut between = vec![0; bytes_of(half, values.len())?];
        gguf_quant::encode_row(half, &values, None, &mut between).map_err(failed)?;
        gguf_quant::decode_row(half, &between, &mut values).map_err(failed)?;
    }
    item.encode(target, first, &values, out).map_err(failed)
}
