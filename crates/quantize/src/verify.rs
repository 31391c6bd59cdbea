//! A file held against what it was made from: its tensors are derived again and compared.
//!
//! Nothing is written. A tensor may have come from the source in one step, or by way of a file of
//! 16-bit floats, as users of two tools do it; each way is tried until none is left.

use gguf::{Error, TensorType};
use gguf_pipeline::{Item, Job, Tensor, parallel};
use gguf_store::{Model, ModelTensor, Progress};

use crate::importance::Importance;

/// How a tensor came from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In one step.
    Direct,
    /// By way of a file of this 16-bit type.
    Through(TensorType),
}

/// What came of deriving a tensor again.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has the bytes that its source gives.
    Same(Way),
    /// It has others, from this row on (by the way that agrees longest).
    Differs {
        /// First row with other bytes, counted over all dimensions but the first.
        row: u64,
    },
    /// It cannot be derived; why, as a sentence.
    Underivable(String),
    /// The source has no such tensor.
    NotInSource,
}

/// A tensor of the file, and what came of deriving it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// Elements that are derived at a time.
const CHUNK: u64 = 128 * 1024;

/// Derives those tensors of `model` again that `chosen` names, from a job that makes the same model
/// of its source, and compares them. Types are those of `model`, whatever the job says;
/// `importance` are the weights that it was quantized with.
///
/// `progress` is called from many threads with the number of bytes just compared; `Break` from it
/// ends the work.
///
/// # Errors
/// If a source or the file cannot be read, the importance weights are of another model, or
/// `progress` ended the work.
pub fn verify(
    model: &Model,
    mut source: Job,
    importance: Option<&Importance>,
    chosen: &(dyn Fn(&str) -> bool + Sync),
    progress: &dyn Progress,
) -> Result<Vec<Verified>, Error> {
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
        Ok(Verified { name: tensor.info.name.to_string(), outcome })
    })
}

/// The names of tensors that the source gives and `model` has not.
pub fn missing(model: &Model, source: &Job) -> Vec<String> {
    let index = model.index();
    let names = source.items.iter().map(|item| &item.tensor.name);
    names.filter(|name| !index.contains_key(name.as_str())).cloned().collect()
}

fn compare(tensor: &ModelTensor, item: &Item, progress: &dyn Progress) -> Result<Outcome, Error> {
    let (source, target) = (&item.tensor, tensor.info.tensor_type);
    if source.shape != tensor.info.shape {
        return Ok(Outcome::Underivable(format!(
            "it is {} in the file, {} from its source",
            tensor.info.shape, source.shape
        )));
    }
    let file = Tensor::of_model(tensor);
    let row_len = source.shape.row_len();
    let rows_at_once = CHUNK.checked_div(row_len).unwrap_or(1).max(1);
    let mut ways = vec![Way::Direct];
    if target.is_quantized() && !source.stored_type.is_quantized() {
        ways.extend([TensorType::F16, TensorType::BF16].map(Way::Through));
    }
    let (mut wanted, mut stored, mut derived) = (Vec::new(), Vec::new(), Vec::new());
    let rows = if row_len == 0 { 0 } else { source.rows() };
    for first in (0..rows).step_by(rows_at_once as usize) {
        let n = rows_at_once.min(rows - first);
        file.read_rows(first, n, &mut wanted)?;
        source.read_rows(first, n, &mut stored)?;
        let row_bytes = wanted.len() / n as usize;
        let (mut agreeing, mut longest) = (Vec::new(), 0);
        for &way in &ways {
            let derivable = derive(item, target, way, first, &stored, &mut derived);
            if let Err(why) = derivable {
                return Ok(Outcome::Underivable(why));
            }
            match wanted.iter().zip(&derived).position(|(a, b)| a != b) {
                None => agreeing.push(way),
                Some(byte) => longest = longest.max(byte / row_bytes),
            }
        }
        if agreeing.is_empty() {
            return Ok(Outcome::Differs { row: first + longest as u64 });
        }
        ways = agreeing;
        progress.step(wanted.len() as u64)?;
    }
    Ok(Outcome::Same(ways[0]))
}

/// Rows of the source from `first` on, in the type of the file.
fn derive(
    item: &Item,
    target: TensorType,
    way: Way,
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
    if let Way::Through(half) = way {
        let mut between = vec![0; bytes_of(half, values.len())?];
        gguf_quant::encode_row(half, &values, None, &mut between).map_err(failed)?;
        gguf_quant::decode_row(half, &between, &mut values).map_err(failed)?;
    }
    item.encode(target, first, &values, out).map_err(failed)
}
