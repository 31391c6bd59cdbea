//! Damaged tensor data: NaN, infinity, implausible magnitudes, zeros.

mod zeros;

use std::collections::BTreeMap;
use std::ops::Range;

use gguf::{Error, Finding, TensorType};
use gguf_quant::{codec, decode_row, find_bad_block};
use gguf_store::{Model, ModelTensor, Progress};
use rayon::prelude::*;
use zeros::{Zeros, holes, zero_runs};

/// Number of elements scanned at a time; a multiple of every block size.
const CHUNK: u64 = 1 << 18;

/// Greatest plausible magnitude of a weight; scales read from wrong bytes exceed it.
const MAX_PLAUSIBLE: f32 = 1e5;

/// Scans all tensor data of a model on the threads of the current rayon pool. Returns at most one finding of a kind per
/// tensor, in tensor order, with the first bad element. NaN and infinity are errors: as values, as block scales, and as
/// decoded values. So are holes: long runs of zero bytes that do not consist of whole rows, or that cover several
/// matrices.
///
/// Types without a codec are not scanned, which an info finding reports. `progress` counts bytes.
///
/// # Errors
/// [`Error::Environment`] if data cannot be read.
pub fn scan(model: &Model, progress: &dyn Progress) -> Result<Vec<Finding>, Error> {
    progress.begin("reading", model.byte_len());
    let (read, unread): (Vec<_>, Vec<_>) =
        model.tensors().iter().partition(|tensor| can_scan(tensor));
    let per_tensor = read.par_iter().map(|tensor| scan_tensor(tensor, progress));
    let scanned = per_tensor.collect::<Result<Vec<_>, Error>>()?;
    let (found, mut zeros): (Vec<_>, Vec<_>) = scanned.into_iter().unzip();
    let (damage, in_holes) = holes(&mut zeros);
    // A hole explains why a tensor is zero.
    let is_explained = |finding: &Finding| {
        finding.code == "data-zero"
            && finding.tensor.as_deref().is_some_and(|name| in_holes.contains(&name))
    };
    let found = found.into_iter().flatten().filter(|finding| !is_explained(finding));
    Ok(damage.into_iter().chain(found).chain(not_read(&unread)).collect())
}

/// Whether a tensor can be decoded.
fn can_scan(tensor: &ModelTensor) -> bool {
    let ty = tensor.info.tensor_type;
    tensor.info.shape.elements().is_some()
        && tensor.info.byte_len().is_some()
        && codec(ty).is_some()
}

/// Returns a finding for each type that is not scanned.
fn not_read(tensors: &[&ModelTensor]) -> Vec<Finding> {
    let mut types: BTreeMap<TensorType, Vec<&ModelTensor>> = BTreeMap::new();
    for &tensor in tensors {
        types.entry(tensor.info.tensor_type).or_default().push(tensor);
    }
    let finding = |(ty, tensors): (TensorType, Vec<&ModelTensor>)| {
        let message = match tensors.len() {
            1 => format!("{ty} data is not scanned"),
            count => format!("the {ty} data of {count} tensors is not scanned"),
        };
        let first = tensors.first()?;
        let finding = Finding::note("data-unread", message).at(first.offset);
        Some(if tensors.len() == 1 { finding.tensor(&*first.info.name) } else { finding })
    };
    types.into_iter().filter_map(finding).collect()
}

/// Result of scanning a chunk.
#[derive(Default)]
struct ChunkScan {
    /// First element that is NaN or infinite, with its description.
    bad: Option<(u64, String)>,
    /// First element of implausible magnitude.
    absurd: Option<(u64, f32)>,
    nonzero: bool,
    /// Runs of zero bytes.
    zeros: Vec<Range<u64>>,
}

fn scan_tensor<'t>(
    tensor: &'t ModelTensor,
    progress: &dyn Progress,
) -> Result<(Vec<Finding>, Zeros<'t>), Error> {
    let ty = tensor.info.tensor_type;
    if ty.is_integer() {
        return Ok((Vec::new(), Zeros::new(tensor, std::iter::empty())));
    }
    let elements = tensor.info.shape.elements().unwrap_or(0);
    let seen = (0..elements.div_ceil(CHUNK)).into_par_iter().map(|i| {
        let first = i * CHUNK;
        scan_chunk(tensor, first, CHUNK.min(elements - first), progress)
    });
    let mut seen: Vec<ChunkScan> = seen.collect::<Result<_, Error>>()?;
    let runs = (0..).zip(&mut seen).map(|(i, chunk): (u64, _)| {
        (ty.byte_len(&[i * CHUNK]).unwrap_or(0), std::mem::take(&mut chunk.zeros))
    });
    let zeros = Zeros::new(tensor, runs);
    Ok((findings(tensor, &seen), zeros))
}

fn scan_chunk(
    tensor: &ModelTensor,
    first: u64,
    elements: u64,
    progress: &dyn Progress,
) -> Result<ChunkScan, Error> {
    let ty = tensor.info.tensor_type;
    // A chunk consists of whole blocks.
    let (start, len) = (ty.byte_len(&[first]).unwrap_or(0), ty.byte_len(&[elements]).unwrap_or(0));
    let mut bytes = vec![0; len as usize];
    tensor.read_at(&mut bytes, start)?;
    progress.step(len)?;
    let mut seen = ChunkScan { zeros: zero_runs(&bytes), ..ChunkScan::default() };
    if let Ok(Some(bad)) = find_bad_block(ty, &bytes) {
        seen.bad = Some((first + bad.element as u64, format!("{} is {}", bad.field, bad.value)));
    }
    let mut values = vec![0.0; elements as usize];
    if decode_row(ty, &bytes, &mut values).is_ok() {
        // Finite scales can overflow with the largest levels.
        if let (None, Some(at)) = (&seen.bad, values.iter().position(|value| !value.is_finite())) {
            seen.bad = Some((first + at as u64, format!("the decoded value is {}", values[at])));
        }
        seen.nonzero = values.iter().any(|value| *value != 0.0);
        let absurd =
            values.iter().position(|value| value.is_finite() && value.abs() > MAX_PLAUSIBLE);
        seen.absurd = absurd.map(|at| (first + at as u64, values[at]));
    }
    Ok(seen)
}

fn findings(tensor: &ModelTensor, seen: &[ChunkScan]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = &*tensor.info.name;
    let at = |element: u64| {
        let (block, bytes) = tensor.info.tensor_type.block().unwrap_or((1, 1));
        tensor.offset + element / block * bytes
    };
    if let Some((element, what)) = seen.iter().find_map(|chunk| chunk.bad.as_ref()) {
        findings.push(
            Finding::error("data-not-finite", format!("{what} at element {element}"))
                .help(match tensor.info.tensor_type {
                    TensorType::F16 => "weights above 65504 overflow in F16: convert the model again with --outtype bf16 or f32",
                    _ => "the weights are damaged: download or convert the model again",
                })
                .tensor(name)
                .at(at(*element)),
        );
    }
    if let Some((element, value)) = seen.iter().find_map(|chunk| chunk.absurd) {
        findings.push(
            Finding::warning("data-absurd", format!("element {element} is {value}"))
                .help("trained weights are not that large: the data may have another type, or be damaged")
                .tensor(name)
                .at(at(element)),
        );
    }
    if !seen.is_empty() && seen.iter().all(|chunk| !chunk.nonzero && chunk.bad.is_none()) {
        findings.push(zero(name).tensor(name).at(tensor.offset));
    }
    findings
}

/// Returns the finding about a tensor whose elements are all zero. No model works without its norms, its token
/// embedding and its output projection.
fn zero(name: &str) -> Finding {
    let is_norm = name.contains("norm") && name.ends_with(".weight");
    match name {
        "output.weight" => Finding::error("data-zero", "all elements are zero").help(
            "the model predicts nothing: convert it again; a model with tied embeddings has no such tensor",
        ),
        "token_embd.weight" => Finding::error("data-zero", "all elements are zero")
            .help("the model does not see its input: download or convert it again"),
        _ if is_norm => Finding::error("data-zero", "all elements are zero")
            .help("a norm of zeros cuts off its layer: download or convert the model again"),
        _ => Finding::note("data-zero", "all elements are zero"),
    }
}
