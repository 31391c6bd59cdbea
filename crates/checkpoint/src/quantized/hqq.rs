//! HQQ: `X.W_q`, `X.scale` and `X.zero`, with settings stored as tensors.
//!
//! ```text
//! W_q    U8 or I32 [rows / parts, width]   first rows in the highest bits
//! scale, zero      [rows, 1] or [1, width] floats
//! shape            [out, in]
//!
//! w = (q - zero) * scale, row by row: `out` rows of `in` values
//! ```
//!
//! A group is a row, or else a column. Computed in F32 as in `Quantizer.dequantize` of
//! `hqq/core/quantize.py` and `bitpack.py`.

use serde_json::Value;

use super::method::{Method, Read, Unsupported};
use super::{Content, Matrix, MatrixError, TensorSet, put_floats};
use crate::dtype::Dtype;
use crate::raw::Raw;
use crate::rows::Rows;

pub(super) const METHOD: Method = Method { name: "HQQ", names: &["hqq"], file: None, read };

/// Settings stored beside a matrix that follow from its shapes or do not affect its values.
const SETTINGS: [&str; 14] = [
    "group_size",
    "axis",
    "packing",
    "compute_dtype",
    "unpack_view_dtype",
    "view_as_float",
    "channel_wise",
    "optimize",
    "round_zero",
    "quant_scale",
    "quant_zero",
    "offload_meta",
    "encoded_state_dict",
    "stores_quant_config",
];

fn read(fields: &Value) -> Result<Read, Unsupported> {
    let weights = fields.pointer("/quant_config/weight_quant_params/nbits");
    let bits = weights.and_then(Value::as_u64);
    Ok(Box::new(move |set, main| matrix(set, main, bits)))
}

fn matrix(set: &TensorSet, main: &Raw, bits: Option<u64>) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix(".W_q") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    let invalid = |what: String| Err(MatrixError::Parts(what));
    set.take(&main.name);
    for end in SETTINGS {
        set.take(&part(end));
    }
    let (scale, zero) = (set.need(&part("scale"))?, set.need(&part("zero"))?);
    let shape = set.need(&part("shape"))?;
    let own_bits = match set.take(&part("nbits")) {
        Some(bits) => bits.integers(0, 1)?.first().and_then(|bits| u64::try_from(*bits).ok()),
        None => bits,
    };
    if shape.elements() != 2 {
        return invalid(format!("has a `{}` that is not the shape of a matrix", shape.name));
    }
    let shape: Vec<_> = shape.integers(0, 2)?.iter().map(|n| u64::try_from(*n)).collect();
    let [Ok(outputs), Ok(inputs)] = shape[..] else {
        return invalid("has a negative shape".to_owned());
    };
    let (parts, bits) = match (main.dtype, own_bits) {
        (Dtype::U8, Some(5 | 6 | 8)) => (1, 8),
        (Dtype::U8, Some(bits @ (1 | 2 | 4))) => (8 / bits, bits),
        (Dtype::I32, Some(3)) => (10, 3),
        (Dtype::I32, Some(4)) => (8, 4),
        (dtype, bits) => {
            let bits = bits.map_or("no".to_owned(), |bits| bits.to_string());
            return invalid(format!("is packed into {dtype:?}, with {bits} bits per weight"));
        }
    };
    let [packed_rows, width] = main.shape[..] else {
        return invalid(format!("has the shape {:?}, which is not a matrix", main.shape));
    };
    let elements = outputs.checked_mul(inputs).filter(|n| *n > 0 && n.is_multiple_of(width));
    let rows = elements.map(|n| n / width).filter(|rows| rows.div_ceil(parts) == packed_rows);
    let Some(rows) = rows else {
        return invalid(format!(
            "has the shape {:?}, which does not hold {outputs} x {inputs} values of {bits} bits",
            main.shape
        ));
    };
    let by_row = scale.shape == [rows, 1];
    if zero.shape != scale.shape || !by_row && scale.shape != [1, width] {
        return invalid(format!(
            "has scales of shape {:?} and zeros of shape {:?}; expected [{rows}, 1] or [1, {width}]",
            scale.shape, zero.shape
        ));
    }
    let rows = Hqq {
        packed: main.clone(),
        scale: scale.clone(),
        zero: zero.clone(),
        shape: [outputs, inputs],
        parts,
        bits: bits as u32,
        by_row,
    };
    let content = Content::Rows(gguf::TensorType::F32, Box::new(rows));
    Ok(Some(Matrix { name: part("weight"), shape: vec![outputs, inputs], content }))
}

struct Hqq {
    packed: Raw,
    scale: Raw,
    zero: Raw,
    shape: [u64; 2],
    /// Values per word.
    parts: u64,
    bits: u32,
    /// Whether each packed row has a scale, instead of each column.
    by_row: bool,
}

impl Hqq {
    /// Reads `n` words from `first` on.
    fn words(&self, first: u64, n: u64) -> Result<Vec<u32>, gguf::Error> {
        match self.packed.dtype {
            Dtype::U8 => Ok(self.packed.bytes(first, n)?.into_iter().map(u32::from).collect()),
            _ => self.packed.words(first, n),
        }
    }

    /// Dequantizes `n` values from `first` on, all in the same part of their words, and in one row
    /// if columns have scales.
    fn run(&self, first: u64, n: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let width = self.packed.shape[1];
        let in_part = self.packed.shape[0] * width;
        let (part, from) = (first / in_part, first % in_part);
        let shift = (self.parts - 1 - part) as u32 * self.bits;
        let words = self.words(from, n)?;
        let (columns, row) = (first % width, first / width);
        let groups = match self.by_row {
            true => (row, (columns + n).div_ceil(width)),
            false => (columns, n),
        };
        let scales = self.scale.floats(groups.0, groups.1)?;
        let zeros = self.zero.floats(groups.0, groups.1)?;
        let values = words.iter().zip(columns..).map(|(word, at)| {
            let group = if self.by_row { at / width } else { at - columns } as usize;
            let q = word >> shift & ((1 << self.bits) - 1);
            (q as f32 - zeros[group]) * scales[group]
        });
        put_floats(out, values);
        Ok(())
    }
}

impl Rows for Hqq {
    fn count(&self) -> u64 {
        self.shape[0]
    }

    fn row_bytes(&self) -> u64 {
        4 * self.shape[1]
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let width = self.packed.shape[1];
        let piece = if self.by_row { self.packed.shape[0] * width } else { width };
        let mut at = first * self.shape[1];
        let mut left = out;
        while !left.is_empty() {
            let n = (piece - at % piece).min(left.len() as u64 / 4);
            let (run, rest) = left.split_at_mut(4 * n as usize);
            self.run(at, n, run)?;
            (at, left) = (at + n, rest);
        }
        Ok(())
    }
}
