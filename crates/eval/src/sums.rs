//! Sums of squares that do not depend on the order of addition.

use std::collections::BTreeMap;

use gguf_quantize::imatrix::Entry;
use gguf_runtime::Value;
use rayon::prelude::*;

/// Number of columns per task.
const COLUMNS: usize = 256;

/// Sums of squares by tensor in double-double precision. Rounded to F32, they do not depend on the order of chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums(pub(crate) BTreeMap<String, Squares>);

/// Sums of one tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Squares {
    /// High parts, by expert and column.
    pub high: Vec<f64>,
    /// Low parts.
    pub low: Vec<f64>,
    /// Number of rows per expert, or of all rows.
    pub counts: Vec<u64>,
}

impl Squares {
    fn new(columns: usize, experts: usize) -> Self {
        let zeros = vec![0.0; columns * experts];
        Self { high: zeros.clone(), low: zeros, counts: vec![0; experts] }
    }

    /// Whether both have the same shape.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.high.len(), self.counts.len()) == (other.high.len(), other.counts.len())
    }

    fn value(&self, column: usize) -> f32 {
        (self.high[column] + self.low[column]) as f32
    }
}

/// Adds a number to a sum, and the rounding error to `low` (Knuth's TwoSum).
fn add(high: &mut f64, low: &mut f64, number: f64) {
    let sum = *high + number;
    let part = sum - *high;
    *low += (*high - (sum - part)) + (number - part);
    *high = sum;
}

/// Adds squares to sums. A separate function tells the compiler that the slices do not overlap.
fn add_squares(high: &mut [f64], low: &mut [f64], numbers: &[f32]) {
    for ((high, low), number) in high.iter_mut().zip(low).zip(numbers) {
        add(high, low, f64::from(*number) * f64::from(*number));
    }
}

impl Sums {
    /// Adds the squared input rows of a tensor, or of one of several experts.
    pub(crate) fn add(&mut self, tensor: &str, (number, experts): (usize, usize), x: &Value) {
        let new = || Squares::new(x.width, experts);
        let sums = self.0.entry(tensor.to_owned()).or_insert_with(new);
        // A tensor that is used with two shapes counts with the first one.
        if (sums.high.len(), sums.counts.len()) != (experts * x.width, experts) {
            return;
        }
        sums.counts[number] += x.rows as u64;
        let columns = number * x.width..(number + 1) * x.width;
        let high = sums.high[columns.clone()].par_chunks_mut(COLUMNS);
        let both = high.zip(sums.low[columns].par_chunks_mut(COLUMNS)).enumerate();
        both.for_each(|(chunk, (high, low))| {
            for row in 0..x.rows {
                add_squares(high, low, &x.row(row)[chunk * COLUMNS..][..high.len()]);
            }
        });
    }

    /// Whether both have the same tensors, or one is empty.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(&other.0);
        self.0.is_empty()
            || other.0.is_empty()
            || self.0.len() == other.0.len()
                && pairs().all(|((name, a), (other, b))| name == other && a.is_like(b))
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for (name, theirs) in &other.0 {
            let Some(ours) = self.0.get_mut(name) else {
                self.0.insert(name.clone(), theirs.clone());
                continue;
            };
            let both = ours.high.iter_mut().zip(&mut ours.low);
            for ((high, low), (their_high, their_low)) in
                both.zip(theirs.high.iter().zip(&theirs.low))
            {
                add(high, low, *their_high);
                *low += their_low;
            }
            ours.counts.iter_mut().zip(&theirs.counts).for_each(|(a, b)| *a = a.saturating_add(*b));
        }
    }

    /// Returns a tensor and a column whose sum is not finite.
    pub(crate) fn fault(&self) -> Option<(&str, usize)> {
        self.0.iter().find_map(|(tensor, sums)| {
            let mut columns = 0..sums.high.len();
            Some((tensor.as_str(), columns.find(|column| !sums.value(*column).is_finite())?))
        })
    }

    /// Returns the entries of an importance matrix.
    pub(crate) fn entries(&self) -> BTreeMap<String, Entry> {
        let entry = |(name, sums): (&String, &Squares)| {
            let squares = (0..sums.high.len()).map(|column| sums.value(column)).collect();
            (name.clone(), Entry { sums: squares, counts: sums.counts.clone() })
        };
        self.0.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_their_order() {
        // Plain sums of numbers of very different magnitude depend on the order.
        let numbers: Vec<f32> =
            (0..3000).map(|i| (i as f32 * 0.37).sin() * 10f32.powi(i % 9)).collect();
        let value = |data: Vec<f32>| Value { rows: data.len(), width: 1, data };
        let of = |parts: Vec<Vec<f32>>| {
            let mut whole = Sums::default();
            for part in parts {
                let mut sums = Sums::default();
                sums.add("x", (0, 1), &value(part));
                whole.append(&sums);
            }
            let x = &whole.0["x"];
            (x.high[0] + x.low[0], x.counts[0])
        };
        let forward = of(vec![numbers.clone()]);
        assert_eq!(forward.1, 3000);
        let plain: f64 = numbers.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        assert!((forward.0 / plain - 1.0).abs() < 1e-13);
        let backward: Vec<f32> = numbers.iter().rev().copied().collect();
        assert_eq!(of(vec![backward]), forward);
        assert_eq!(of(numbers.chunks(7).map(<[f32]>::to_vec).collect()), forward);
        let reversed: f64 = numbers.iter().rev().map(|x| f64::from(*x) * f64::from(*x)).sum();
        assert_ne!(reversed, plain);
    }
}
