//! Values of a tensor: decoded rows, what all of them are like, a picture of any size.

mod errors;
mod numbers;
mod pieces;
mod scales;
mod statistics;
mod sums;
mod tile;

use std::ops::Range;

pub use errors::error_figures;
use gguf::spelling::{nearest, question};
use gguf::{Shape, TensorType};
use gguf_store::{Model, Progress};
pub use numbers::{Differences, Matrix, Numbers};
use pieces::Pieces;
pub use scales::Scales;
pub use statistics::{Entry, Outlier, Profile, Statistics, statistics};
pub use sums::Figures;
use sums::{Sums, count};
pub use tile::{Place, TILE, Tile, levels, tile};

use gguf::Error;

/// Bars of a histogram.
const BARS: usize = 16;

/// Rows of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The name of the tensor.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
    /// Its type.
    pub tensor_type: TensorType,
    /// Which rows `data` has.
    pub shown: Range<u64>,
    /// Their values, row by row.
    pub data: Vec<Vec<f32>>,
    /// What values are like: of these rows if they were asked for, else of all.
    pub figures: Figures,
}

/// Decodes rows of a tensor of `model`: those asked for, or the first three; figures are of the rows asked
/// for, or of all. Data are read twice.
///
/// # Errors
/// `name-not-found` if there is no such tensor, or no such row; `codec-missing` if its type cannot be decoded;
/// if data cannot be read.
pub fn values(
    model: &Model,
    name: &str,
    rows: Option<Range<u64>>,
    progress: &dyn Progress,
) -> Result<Values, Error> {
    const SHOWN: u64 = 3;
    let index = model.index();
    let Some(tensor) = index.get(name) else {
        return Err(no_tensor(model, name));
    };
    let (shape, tensor_type) = (tensor.info.shape, tensor.info.tensor_type);
    let all = shape.elements().unwrap_or(0).checked_div(shape.row_len()).unwrap_or(0);
    let chosen = rows.clone().unwrap_or(0..all);
    if chosen.end > all || chosen.start >= chosen.end {
        let what = format!("`{name}` has the rows 0..{all}, not {}..{}", chosen.start, chosen.end);
        return Err(Error::request("name-not-found", what, "name rows that it has"));
    }
    let matrix = Matrix::of(tensor)?;
    let shown = rows.unwrap_or(0..all.min(SHOWN));
    let mut data = Vec::new();
    for row in shown.clone() {
        let mut numbers = Vec::new();
        matrix.read(row, 0..matrix.columns(), &mut numbers)?;
        data.push(numbers);
    }
    let pieces = Pieces::of(&matrix, chosen, u64::MAX);
    progress.begin("reading", pieces.bytes().saturating_mul(2));
    let sums = pieces
        .fold(&matrix, progress, Sums::default, |sum, _, read| *sum = sum.and(Sums::of(read)))?;
    let mut figures = sums.into_iter().fold(Sums::default(), Sums::and).figures();
    let range = (figures.min, figures.max);
    if range.0 < range.1 {
        let start = || vec![0; BARS];
        let counts =
            pieces.fold(&matrix, progress, start, |counts, _, read| count(read, range, counts))?;
        figures.histogram = start();
        for part in counts {
            figures.histogram.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
        }
    }
    Ok(Values { name: name.to_owned(), shape, tensor_type, shown, data, figures })
}

/// There is no tensor of this name, and perhaps one that was meant.
pub fn no_tensor(model: &Model, name: &str) -> Error {
    let names = || model.tensors().iter().map(|tensor| &*tensor.info.name);
    // Most begin with the same words: what is left out at the end is more than a slip.
    let longer: Vec<&str> = names().filter(|other| other.starts_with(name)).take(4).collect();
    let near = if longer.is_empty() { nearest(name, names()) } else { longer };
    let near = match &near[..] {
        [_] | [_, _] | [_, _, _] => question(&near),
        _ => "`--tensors` lists them".to_owned(),
    };
    Error::request("name-not-found", format!("there is no tensor `{name}`"), near)
}
