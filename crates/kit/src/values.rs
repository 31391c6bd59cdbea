//! Values of a tensor: decoded rows, and what all of them are like.

use std::ops::Range;

use gguf::spelling::{nearest, question};
use gguf::{Finding, Shape, TensorType};
use gguf_quant::decode_row;
use gguf_store::{Model, ModelTensor, Progress};
use rayon::prelude::*;

use crate::Error;

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

/// What values are like. Those that are no finite numbers are counted, and are in no other figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// How many values.
    pub count: u64,
    /// NaN among them.
    pub nan: u64,
    /// Infinities among them.
    pub infinite: u64,
    /// Zeros among them.
    pub zeros: u64,
    /// The least.
    pub min: f32,
    /// The most.
    pub max: f32,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// How many lie in each of equal parts from the least to the most; empty if all are the same.
    pub histogram: Vec<u64>,
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
        let names = || model.tensors().iter().map(|tensor| &*tensor.info.name);
        // Most begin with the same words: what is left out at the end is more than a slip.
        let longer: Vec<&str> = names().filter(|other| other.starts_with(name)).take(4).collect();
        let near = if longer.is_empty() { nearest(name, names()) } else { longer };
        let help = match &near[..] {
            [_] | [_, _] | [_, _, _] => question(&near),
            _ => "`--tensors` lists them".to_owned(),
        };
        return Err(Error::request("name-not-found", format!("there is no tensor `{name}`"), help));
    };
    let (shape, tensor_type) = (tensor.info.shape, tensor.info.tensor_type);
    let row_len = shape.row_len();
    let count = shape.elements().unwrap_or(0).checked_div(row_len).unwrap_or(0);
    let chosen = rows.clone().unwrap_or(0..count);
    if chosen.end > count || chosen.start >= chosen.end {
        let what =
            format!("`{name}` has the rows 0..{count}, not {}..{}", chosen.start, chosen.end);
        return Err(Error::request("name-not-found", what, "name rows that it has"));
    }
    let reader = Reader::new(tensor)?;
    let shown = rows.unwrap_or(0..count.min(SHOWN));
    let mut data = Vec::new();
    for row in shown.clone() {
        data.push(reader.row(row)?);
    }
    progress.begin("reading", 2 * reader.row_bytes * (chosen.end - chosen.start));
    let sums = chosen.clone().into_par_iter().map(|row| {
        let sums = Sums::of(&reader.row(row)?);
        step(progress, reader.row_bytes)?;
        Ok(sums)
    });
    let sums: Vec<Sums> = sums.collect::<Result<_, Error>>()?;
    // In the order of rows, so that any number of threads gives the same.
    let sums = sums.into_iter().fold(Sums::default(), Sums::and);
    let mut figures = sums.figures();
    if figures.min < figures.max {
        let counts = chosen.into_par_iter().map(|row| {
            let counts = histogram(&reader.row(row)?, figures.min, figures.max);
            step(progress, reader.row_bytes)?;
            Ok(counts)
        });
        let sum = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
        figures.histogram =
            counts.try_reduce(|| vec![0; BARS], |a, b| Ok::<_, Error>(sum(a, b)))?;
    }
    Ok(Values { name: name.to_owned(), shape, tensor_type, shown, data, figures })
}

fn step(progress: &dyn Progress, bytes: u64) -> Result<(), Error> {
    match progress.advance(bytes) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// Reads a tensor by rows.
struct Reader<'t> {
    tensor: &'t ModelTensor,
    row_bytes: u64,
}

impl<'t> Reader<'t> {
    fn new(tensor: &'t ModelTensor) -> Result<Self, Error> {
        let info = &tensor.info;
        let row = Shape::new(&[info.shape.row_len()]);
        let row_bytes = row.and_then(|row| info.tensor_type.byte_len(&row));
        let decodes = gguf_quant::codec(info.tensor_type).is_some();
        match row_bytes.filter(|_| decodes) {
            Some(row_bytes) => Ok(Self { tensor, row_bytes }),
            None => {
                let what = format!("{} data cannot be decoded", info.tensor_type);
                let finding = Finding::error("codec-missing", what).tensor(&*info.name);
                Err(finding.help("only their bytes can be copied").into())
            }
        }
    }

    fn row(&self, row: u64) -> Result<Vec<f32>, Error> {
        let info = &self.tensor.info;
        let mut bytes = vec![0; self.row_bytes as usize];
        self.tensor.read_at(&mut bytes, row * self.row_bytes)?;
        let mut numbers = vec![0.0; info.shape.row_len() as usize];
        decode_row(info.tensor_type, &bytes, &mut numbers)
            .map_err(|fault| Error::weights(&info.name, fault.to_string()))?;
        Ok(numbers)
    }
}

/// Sums over values.
#[derive(Default)]
struct Sums {
    count: u64,
    nan: u64,
    infinite: u64,
    zeros: u64,
    range: Option<(f32, f32)>,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn of(numbers: &[f32]) -> Self {
        let mut sums = Self { count: numbers.len() as u64, ..Self::default() };
        for &x in numbers {
            if x.is_nan() {
                sums.nan += 1;
            } else if x.is_infinite() {
                sums.infinite += 1;
            } else {
                sums.zeros += u64::from(x == 0.0);
                sums.sum += f64::from(x);
                sums.squares += f64::from(x) * f64::from(x);
                let (min, max) = sums.range.unwrap_or((x, x));
                sums.range = Some((min.min(x), max.max(x)));
            }
        }
        sums
    }

    fn and(self, other: Self) -> Self {
        let range = match (self.range, other.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Self {
            count: self.count + other.count,
            nan: self.nan + other.nan,
            infinite: self.infinite + other.infinite,
            zeros: self.zeros + other.zeros,
            range,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    fn figures(&self) -> Figures {
        let finite = (self.count - self.nan - self.infinite).max(1) as f64;
        let mean = self.sum / finite;
        let (min, max) = self.range.unwrap_or_default();
        Figures {
            count: self.count,
            nan: self.nan,
            infinite: self.infinite,
            zeros: self.zeros,
            min,
            max,
            mean,
            deviation: (self.squares / finite - mean * mean).max(0.0).sqrt(),
            histogram: Vec::new(),
        }
    }
}

fn histogram(numbers: &[f32], min: f32, max: f32) -> Vec<u64> {
    let mut counts = vec![0; BARS];
    let scale = BARS as f64 / (f64::from(max) - f64::from(min));
    for x in numbers.iter().filter(|x| x.is_finite()) {
        let bar = ((f64::from(*x) - f64::from(min)) * scale) as usize;
        counts[bar.min(BARS - 1)] += 1;
    }
    counts
}
