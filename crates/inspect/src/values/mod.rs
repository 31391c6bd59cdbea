//! Values of a tensor: decoded rows, statistics, image tiles.

mod errors;
mod numbers;
mod pieces;
mod scales;
mod statistics;
mod sums;
mod tile;

use std::ops::Range;

pub use errors::error_figures;
use gguf::suggest::{did_you_mean, nearest};
use gguf::{Shape, TensorType};
use gguf_store::{Model, Progress};
pub use numbers::{Differences, Matrix, Numbers};
use pieces::Pieces;
pub use scales::Scales;
pub use statistics::{Entry, Outlier, Profile, Statistics, statistics};
pub use sums::Figures;
use sums::{Sums, count};
pub use tile::{Place, TILE, Tile, TileBudget, levels, tile};

use gguf::Error;

/// Number of histogram bins.
const BINS: usize = 16;

/// Decoded rows of a tensor with statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Name of the tensor.
    pub name: String,
    /// Shape of the tensor.
    pub shape: Shape,
    /// Type of the tensor.
    pub tensor_type: TensorType,
    /// Range of the rows in `data`.
    pub shown: Range<u64>,
    /// Values of each row.
    pub data: Vec<Vec<f32>>,
    /// Statistics of the selected rows, or of all rows without a selection.
    pub figures: Figures,
}

/// Decodes the selected rows of a tensor, or the first three. Statistics cover the selected rows, or all rows. Reads the
/// data twice.
///
/// # Errors
/// `name-not-found` if the tensor or a row does not exist; `codec-missing` if its type cannot be decoded; if data cannot
/// be read.
pub fn values(
    model: &Model,
    name: &str,
    rows: Option<Range<u64>>,
    progress: &dyn Progress,
) -> Result<Values, Error> {
    const DEFAULT_ROWS: u64 = 3;
    let index = model.index();
    let Some(tensor) = index.get(name) else {
        return Err(no_tensor(model, name));
    };
    let (shape, tensor_type) = (tensor.info.shape, tensor.info.tensor_type);
    let all = shape.elements().unwrap_or(0).checked_div(shape.row_len()).unwrap_or(0);
    let selected = rows.clone().unwrap_or(0..all);
    if selected.end > all || selected.start >= selected.end {
        let what =
            format!("`{name}` has the rows 0..{all}, not {}..{}", selected.start, selected.end);
        return Err(Error::request("name-not-found", what, "select existing rows"));
    }
    let matrix = Matrix::of(tensor)?;
    let shown = rows.unwrap_or(0..all.min(DEFAULT_ROWS));
    let mut data = Vec::new();
    for row in shown.clone() {
        let mut numbers = Vec::new();
        matrix.read(row, 0..matrix.columns(), &mut numbers)?;
        data.push(numbers);
    }
    let pieces = Pieces::of(&matrix, selected, u64::MAX);
    progress.begin("reading", pieces.bytes().saturating_mul(2));
    let sums = pieces
        .fold(&matrix, progress, Sums::default, |sum, _, read| *sum = sum.and(Sums::of(read)))?;
    let mut figures = sums.into_iter().fold(Sums::default(), Sums::and).figures();
    let range = (figures.min, figures.max);
    if range.0 < range.1 {
        let start = || vec![0; BINS];
        let counts =
            pieces.fold(&matrix, progress, start, |counts, _, read| count(read, range, counts))?;
        figures.histogram = start();
        for part in counts {
            figures.histogram.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
        }
    }
    Ok(Values { name: name.to_owned(), shape, tensor_type, shown, data, figures })
}

/// Returns the error for an unknown tensor name, with similar names.
pub fn no_tensor(model: &Model, name: &str) -> Error {
    let names = || model.tensors().iter().map(|tensor| &*tensor.info.name);
    // Names have common prefixes: a missing suffix is more than a typo.
    let longer: Vec<&str> = names().filter(|other| other.starts_with(name)).take(4).collect();
    let near = if longer.is_empty() { nearest(name, names()) } else { longer };
    let near = match &near[..] {
        [_] | [_, _] | [_, _, _] => did_you_mean(&near),
        _ => "`--tensors` lists them".to_owned(),
    };
    Error::request("name-not-found", format!("there is no tensor `{name}`"), near)
}
