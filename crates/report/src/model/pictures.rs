//! Heat maps of the weights: a strip for each kind of tensor, with a cell for each layer.

use std::collections::BTreeMap;

use gguf::Error;
use gguf_inspect::values::{Matrix, Numbers};
use gguf_store::{Model, ModelTensor, Progress};
use serde::Serialize;

use super::layers::layer_of;
use super::png::data_url;

/// Width and height of the cell of a tensor in pixels.
const CELL: usize = 16;
/// Size of the picture of a matrix outside the layers.
const WIDE: (usize, usize) = (480, 32);
/// Rows that are read for a pixel.
const ROWS_PER_PIXEL: u64 = 4;
/// Most layers of a strip, strips, and matrices outside the layers: above real models, and a bound for malicious files.
const MAX_LAYERS: usize = 160;
const MAX_STRIPS: usize = 40;
const MAX_OTHERS: usize = 4;
/// Longest row that is read: above real models, and a bound for malicious files.
const MAX_COLUMNS: u64 = 1 << 20;
/// Share of the magnitudes that the color scale covers, so that outliers do not wash out the rest.
const QUANTILE: f64 = 0.975;

/// A heat map.
#[derive(Serialize)]
pub struct Picture {
    /// Kind of tensor, or the name of a tensor.
    pub name: String,
    /// Description for screen readers.
    pub about: String,
    /// Magnitude of full color, formatted.
    pub range: String,
    /// Data URL of a PNG.
    pub data: String,
    /// Size in pixels.
    pub width: usize,
    /// Size in pixels.
    pub height: usize,
}

/// The heat maps of a model.
#[derive(Serialize)]
pub struct Pictures {
    /// Strips with a cell for each layer.
    pub strips: Vec<Picture>,
    /// First layer of the strips.
    pub first_layer: u64,
    /// Last layer of the strips.
    pub last_layer: u64,
    /// Matrices outside the layers, with rows from left to right.
    pub others: Vec<Picture>,
}

/// Draws the matrices of a model; `None` without any. Tensors whose data is missing are left out.
///
/// # Errors
/// If `progress` stopped the work.
pub fn pictures(model: &Model, progress: &dyn Progress) -> Result<Option<Pictures>, Error> {
    let mut strips: BTreeMap<String, BTreeMap<u64, &ModelTensor>> = BTreeMap::new();
    let mut others = Vec::new();
    for tensor in model.tensors() {
        let is_matrix =
            Matrix::of(tensor).is_ok_and(|matrix| matrix.rows().min(matrix.columns()) > 1);
        if !is_matrix {
            continue;
        }
        match layer_of(&tensor.info.name) {
            Some((part, layer)) => {
                let kind = kind_of(&tensor.info.name, part, layer);
                let known = strips.len();
                let layers = strips.entry(kind).or_default();
                if layers.len() < MAX_LAYERS && known <= MAX_STRIPS {
                    layers.insert(layer, tensor);
                }
            }
            None if others.len() < MAX_OTHERS => others.push(tensor),
            None => {}
        }
    }
    let mut found =
        Pictures { strips: Vec::new(), first_layer: 0, last_layer: 0, others: Vec::new() };
    let (first, last) = {
        let numbers = || strips.values().flat_map(BTreeMap::keys).copied();
        (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0))
    };
    (found.first_layer, found.last_layer) = (first, last);
    // All strips have the same columns.
    let columns = usize::try_from(last - first).unwrap_or(usize::MAX).saturating_add(1);
    if columns <= MAX_LAYERS {
        for layers in strips.values().take(MAX_STRIPS) {
            found.strips.extend(strip(layers, first, columns, progress)?);
        }
    }
    for tensor in others {
        found.others.extend(matrix(tensor, progress)?);
    }
    Ok((!found.strips.is_empty() || !found.others.is_empty()).then_some(found))
}

/// Returns the name without its layer: `blk.3.attn_q.weight` is `attn_q`, `dec.blk.0.ffn_up.weight` is `dec ffn_up`.
pub(super) fn kind_of(name: &str, part: &str, layer: u64) -> String {
    let rest = name.rsplit_once(&format!("blk.{layer}.")).map_or(name, |(_, rest)| rest);
    let rest = rest.strip_suffix(".weight").unwrap_or(rest);
    let kind = if part.is_empty() { rest.to_owned() } else { format!("{part} {rest}") };
    kind.chars().take(60).collect()
}

fn strip(
    layers: &BTreeMap<u64, &ModelTensor>,
    first: u64,
    columns: usize,
    progress: &dyn Progress,
) -> Result<Option<Picture>, Error> {
    let width = columns * CELL;
    let mut values = vec![None; width * CELL];
    let mut name = String::new();
    for (layer, tensor) in layers {
        progress.step(0)?;
        let Some(cell) = sampled(tensor, CELL, CELL) else { continue };
        let left = (layer - first) as usize * CELL;
        for (y, line) in cell.chunks(CELL).enumerate() {
            for (x, value) in line.iter().enumerate() {
                values[y * width + left + x] = Some(*value);
            }
        }
        if name.is_empty() {
            let part = layer_of(&tensor.info.name).map_or("", |(part, _)| part);
            name = kind_of(&tensor.info.name, part, *layer);
        }
    }
    let about = format!("Weights of {name} in layers {first} to {}", first + columns as u64 - 1);
    Ok((!name.is_empty()).then(|| picture(name, about, &values, width)))
}

/// Draws a matrix with its rows from left to right.
fn matrix(tensor: &ModelTensor, progress: &dyn Progress) -> Result<Option<Picture>, Error> {
    progress.step(0)?;
    let (width, height) = WIDE;
    let Some(cell) = sampled(tensor, height, width) else { return Ok(None) };
    let turned: Vec<_> =
        (0..width * height).map(|at| Some(cell[at % width * height + at / width])).collect();
    let name: String = tensor.info.name.chars().take(60).collect();
    let about = format!("Weights of {name}, rows from left to right");
    Ok(Some(picture(name, about, &turned, width)))
}

fn picture(name: String, about: String, values: &[Option<f32>], width: usize) -> Picture {
    let mut sizes: Vec<f32> =
        values.iter().flatten().map(|value| value.abs()).filter(|size| size.is_finite()).collect();
    sizes.sort_by(f32::total_cmp);
    let at = (sizes.len().saturating_sub(1) as f64 * QUANTILE) as usize;
    let range = sizes.get(at).copied().unwrap_or(0.0);
    Picture {
        name,
        about,
        range: super::significant(range.into()),
        data: data_url(values, width, range),
        width,
        height: values.len() / width.max(1),
    }
}

/// Returns a picture of `width` x `height` pixels: of each pixel the weight of largest magnitude in some of its rows.
/// `None` if data cannot be read or rows are too long.
fn sampled(tensor: &ModelTensor, width: usize, height: usize) -> Option<Vec<f32>> {
    let matrix = Matrix::of(tensor).ok()?;
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if columns > MAX_COLUMNS {
        return None;
    }
    let mut pixels = vec![0f32; width * height];
    let mut row = Vec::new();
    let bound = |i: usize, of: usize, count: u64| {
        (u128::from(count) * i as u128 / of.max(1) as u128) as u64
    };
    for (y, line) in pixels.chunks_mut(width).enumerate() {
        // A matrix with few rows repeats them.
        let start = bound(y, height, rows);
        let end = bound(y + 1, height, rows).max(start + 1);
        let count = (end - start).min(ROWS_PER_PIXEL);
        for i in 0..count {
            matrix.read(start + (end - start) * i / count, 0..columns, &mut row).ok()?;
            for (x, pixel) in line.iter_mut().enumerate() {
                let from = bound(x, width, columns) as usize;
                let to = (bound(x + 1, width, columns) as usize).max(from + 1).min(row.len());
                for &value in &row[from.min(to)..to] {
                    if value.is_nan() || value.abs() > pixel.abs() {
                        *pixel = value;
                    }
                }
            }
        }
    }
    Some(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_tensors() {
        assert_eq!(kind_of("blk.3.attn_q.weight", "", 3), "attn_q");
        assert_eq!(kind_of("dec.blk.12.ffn_up.bias", "dec", 12), "dec ffn_up.bias");
    }
}
