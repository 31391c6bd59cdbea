//! Quantization error of a model: what its weights differ by from those of a reference model.

use std::collections::{BTreeMap, BTreeSet};

use gguf::Error;
use gguf::units::bytes;
use gguf_inspect::values::{Differences, error_figures};
use gguf_store::{Model, ModelTensor, Progress};
use serde::Serialize;

use super::layers::layer_of;
use super::{MIN_SAMPLE, SAMPLE_BUDGET, significant, truncated};

/// Most layers of the matrix: above real models, and a bound for malicious files.
const MAX_LAYERS: usize = 160;
/// Number of tensors in the list of the largest errors.
const LISTED: usize = 12;

/// The errors of a model.
#[derive(Serialize)]
pub struct Errors {
    /// Name of the reference model.
    reference: String,
    /// Summary of the quantization error, in sentences.
    verdict: String,
    /// Whether some errors were computed from a sample.
    sampled: bool,
    /// Layers of the matrix.
    layers: Vec<u64>,
    /// Rows of the matrix.
    kinds: Vec<KindRow>,
    /// Tensors with the largest errors.
    largest: Vec<ErrorRow>,
}

/// A row of the matrix of errors: a kind of tensor.
#[derive(Serialize)]
struct KindRow {
    name: String,
    /// Error in each layer, if there is one.
    cells: Vec<Option<Cell>>,
}

/// A cell of the matrix.
#[derive(Clone, Serialize)]
struct Cell {
    /// Relative RMSE in percent, formatted.
    percent: String,
    /// Intensity of the color, 0 to 100.
    heat: u32,
}

/// A tensor as a row.
#[derive(Serialize)]
struct ErrorRow {
    name: String,
    types: String,
    relative: String,
    rmse: String,
    cosine: String,
    max: String,
}

/// A compared tensor.
struct Compared<'m> {
    tensor: &'m ModelTensor,
    reference: &'m ModelTensor,
    relative: f64,
    rmse: f64,
    cosine: f64,
    max: f64,
    squared_error: f64,
    squared_reference: f64,
}

/// Compares a model with its reference, which the user named `source`.
///
/// # Errors
/// If tensor data cannot be read, or `progress` stopped the work.
pub fn errors(
    model: &Model,
    reference: &Model,
    source: &str,
    progress: &dyn Progress,
) -> Result<Errors, Error> {
    let budget = (SAMPLE_BUDGET / model.tensors().len().max(1) as u64).max(MIN_SAMPLE);
    let originals = reference.index();
    let (mut compared, mut sampled, mut missing, mut reshaped) = (Vec::new(), false, 0u64, 0u64);
    for tensor in model.tensors() {
        let Some(original) = originals.get(&*tensor.info.name).copied() else {
            missing += 1;
            continue;
        };
        // Types without a decoder and other shapes are not compared.
        let Ok(differences) = Differences::of(original, tensor) else {
            reshaped += u64::from(original.info.shape != tensor.info.shape);
            continue;
        };
        let (found, exact) = error_figures(&differences, budget, progress)?;
        sampled |= !exact;
        let scale = tensor.info.shape.elements().unwrap_or(0) as f64 / found.elements.max(1) as f64;
        compared.push(Compared {
            tensor,
            reference: original,
            relative: found.relative(),
            rmse: found.rmse(),
            cosine: found.cosine(),
            max: found.max,
            squared_error: found.squared_error * scale,
            squared_reference: found.squared_original * scale,
        });
    }
    let (layers, kinds) = matrix(&compared);
    let mut verdict = vec![verdict(model, reference, &compared)];
    for (count, what) in [(missing, "not in the reference"), (reshaped, "of another shape")] {
        if count > 0 {
            verdict.push(format!("{} {what}.", plural(count)));
        }
    }
    compared.sort_by(|a, b| b.relative.total_cmp(&a.relative));
    let changed = compared.iter().filter(|tensor| tensor.squared_error > 0.0);
    Ok(Errors {
        reference: truncated(source),
        verdict: verdict.join(" "),
        sampled,
        layers,
        kinds,
        largest: changed.take(LISTED).map(ErrorRow::of).collect(),
    })
}

fn plural(tensors: u64) -> String {
    format!("{tensors} tensor{}", if tensors == 1 { "" } else { "s" })
}

fn verdict(model: &Model, reference: &Model, compared: &[Compared]) -> String {
    let (size, whole) = (model.byte_len(), reference.byte_len());
    let percent = size as f64 * 100.0 / whole.max(1) as f64;
    let mut text =
        format!("The file has {} instead of {} ({percent:.0}%).", bytes(size), bytes(whole));
    let error: f64 = compared.iter().map(|tensor| tensor.squared_error).sum();
    let original: f64 = compared.iter().map(|tensor| tensor.squared_reference).sum();
    let worst = compared.iter().max_by(|a, b| a.relative.total_cmp(&b.relative));
    match worst.filter(|_| error > 0.0) {
        None => text += " All weights are identical.",
        Some(worst) => {
            let share = (error / original.max(f64::MIN_POSITIVE)).sqrt();
            text += &format!(
                " The weights differ by {:.2}% (relative RMSE over all of them), most in {}: {:.2}%.",
                100.0 * share,
                truncated(&worst.tensor.info.name),
                100.0 * worst.relative
            );
        }
    }
    text
}

/// Returns the matrix of errors: its layers, and its rows by kind of tensor.
fn matrix(compared: &[Compared]) -> (Vec<u64>, Vec<KindRow>) {
    let mut cells: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
    let mut layers = BTreeSet::new();
    for one in compared {
        let name = &one.tensor.info.name;
        let Some((part, layer)) = layer_of(name) else { continue };
        if layers.len() >= MAX_LAYERS && !layers.contains(&layer) {
            continue;
        }
        layers.insert(layer);
        let kind = super::pictures::kind_of(name, part, layer);
        cells.entry(kind).or_default().insert(layer, one.relative);
    }
    // Kinds without any error, such as norms that stay F32, say nothing.
    cells.retain(|_, row| row.values().any(|error| *error > 0.0));
    let max = cells.values().flat_map(BTreeMap::values).copied().fold(1e-12, f64::max);
    let layers: Vec<u64> = if cells.is_empty() { Vec::new() } else { layers.into_iter().collect() };
    let rows = cells.into_iter().map(|(kind, row)| KindRow {
        name: kind,
        cells: layers
            .iter()
            .map(|layer| {
                row.get(layer).map(|error| Cell {
                    percent: significant(100.0 * error),
                    heat: (100.0 * error / max).clamp(0.0, 100.0).round() as u32,
                })
            })
            .collect(),
    });
    let rows = rows.collect();
    (layers, rows)
}

impl ErrorRow {
    fn of(one: &Compared) -> Self {
        let (from, to) = (one.reference.info.tensor_type, one.tensor.info.tensor_type);
        Self {
            name: truncated(&one.tensor.info.name),
            types: format!("{from} → {to}"),
            relative: format!("{:.2}", 100.0 * one.relative),
            rmse: significant(one.rmse),
            cosine: format!("{:.5}", one.cosine),
            max: significant(one.max),
        }
    }
}
