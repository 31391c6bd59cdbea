//! bitsandbytes: INT8 with a scale per row, or 4-bit codes with a table.
//!
//! ```text
//! X.weight I8 [out, in], X.SCB F32 [out]:       w = weight * SCB * (1 / 127)
//!
//! X.weight U8 [bytes, 1]                         | x[2*j] | x[2*j + 1] |, in element order
//! X.weight.quant_map F32 [16]                    table of code values
//! X.weight.absmax F32 [blocks]                   w = quant_map[x] * absmax[block]
//! X.weight.quant_state.bitsandbytes__nf4 U8      JSON: shape, blocksize ...
//!
//! or, with double quantization, absmax U8 [blocks] and
//! X.weight.nested_quant_map F32 [256], X.weight.nested_absmax F32:
//! absmax[i] = nested_quant_map[absmax[i]] * nested_absmax[i / nested_blocksize] + nested_offset
//! ```
//!
//! Computed as in `dequantize_4bit`, `dequantize_blockwise` and `int8_vectorwise_dequant` of
//! bitsandbytes, in F32, before they round to the type of the model.

use gguf::TensorType;
use serde_json::Value;

use super::method::Method;
use super::{Content, Matrix, MatrixError, TensorSet, put_floats, rows_and_columns};
use crate::dtype::Dtype;
use crate::json::described;
use crate::raw::Raw;
use crate::rows::Rows;

pub(super) const METHOD: Method = Method {
    name: "bitsandbytes",
    names: &["bitsandbytes"],
    file: None,
    read: |_| Ok(Box::new(matrix)),
};

fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix("weight") else { return Ok(None) };
    if main.dtype == Dtype::I8 {
        let Some(scales) = set.take(&format!("{stem}SCB")) else { return Ok(None) };
        set.take(&format!("{stem}weight_format"));
        let (rows, columns) = rows_and_columns(&main.shape)?;
        if scales.elements() != rows {
            return Err(MatrixError::Parts("does not have one scale per row".to_owned()));
        }
        let rows = Int8Rows { weight: main.clone(), scales: scales.clone(), columns };
        return Ok(Some(computed_matrix(main.name.clone(), main.shape.clone(), rows)));
    }
    let part = |end: &str| format!("{}.{end}", main.name);
    let states = ["nf4", "fp4"].map(|kind| part(&format!("quant_state.bitsandbytes__{kind}")));
    let Some(state) = states.iter().find_map(|name| set.take(name)) else { return Ok(None) };
    let state = QuantState::read(state)?;
    let map = table::<16>(set.need(&part("quant_map"))?)?;
    let absmax = set.need(&part("absmax"))?;
    let nested = match absmax.dtype {
        Dtype::F32 => None,
        _ => {
            let map = table::<256>(set.need(&part("nested_quant_map"))?)?;
            Some((map, set.need(&part("nested_absmax"))?.clone()))
        }
    };
    let elements = state.shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim));
    let fits = elements.filter(|elements| *elements > 0).is_some_and(|elements| {
        let blocks = elements.div_ceil(state.block);
        main.elements() * main.dtype.bytes() >= elements.div_ceil(2)
            && absmax.elements() >= blocks
            && nested
                .as_ref()
                .is_none_or(|(_, nested)| nested.elements() >= blocks.div_ceil(state.nested_block))
    });
    if !fits {
        return Err(MatrixError::Parts("is smaller than its stated shape".to_owned()));
    }
    let (_, columns) = rows_and_columns(&state.shape)?;
    let shape = state.shape.clone();
    let rows =
        CodeRows { weight: main.clone(), map, absmax: absmax.clone(), nested, state, columns };
    Ok(Some(computed_matrix(main.name.clone(), shape, rows)))
}

fn computed_matrix(name: String, shape: Vec<u64>, rows: impl Rows + 'static) -> Matrix {
    Matrix { name, shape, content: Content::Rows(TensorType::F32, Box::new(rows)) }
}

fn table<const N: usize>(raw: &Raw) -> Result<[f32; N], MatrixError> {
    let values = raw.floats(0, raw.elements().min(N as u64 + 1))?;
    values
        .try_into()
        .map_err(|_| MatrixError::Parts(format!("does not have {N} values in `{}`", raw.name)))
}

struct Int8Rows {
    weight: Raw,
    scales: Raw,
    columns: u64,
}

impl Rows for Int8Rows {
    fn count(&self) -> u64 {
        self.scales.elements()
    }

    fn row_bytes(&self) -> u64 {
        self.columns * 4
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        /// 1 / 127 as written in bitsandbytes.
        const UNIT: f32 = 7.874_016e-3;
        let n = out.len() as u64 / self.row_bytes();
        let weights = self.weight.floats(first * self.columns, n * self.columns)?;
        let scales = self.scales.floats(first, n)?;
        let rows = weights.chunks_exact(self.columns as usize).zip(scales);
        put_floats(out, rows.flat_map(|(row, scale)| row.iter().map(move |x| x * scale * UNIT)));
        Ok(())
    }
}

/// Fields of the JSON state.
struct QuantState {
    shape: Vec<u64>,
    block: u64,
    nested_block: u64,
    nested_offset: f32,
}

impl QuantState {
    fn read(raw: &Raw) -> Result<Self, MatrixError> {
        // Real states have some hundred bytes.
        let bytes = raw.bytes(0, raw.elements().min(1 << 16))?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|fault| {
            MatrixError::Parts(format!(
                "has a `{}` that is not valid JSON: {}",
                raw.name,
                described(&fault)
            ))
        })?;
        let size = |field: &str| json.get(field).and_then(Value::as_u64).filter(|size| *size > 0);
        let shape = json.get("shape").and_then(Value::as_array);
        let shape = shape.and_then(|dims| dims.iter().map(Value::as_u64).collect::<Option<_>>());
        let (Some(shape), Some(block)) = (shape, size("blocksize")) else {
            return Err(MatrixError::Parts(format!(
                "has a `{}` without shape or blocksize",
                raw.name
            )));
        };
        Ok(Self {
            shape,
            block,
            nested_block: size("nested_blocksize").unwrap_or(256),
            nested_offset: json.get("nested_offset").and_then(Value::as_f64).unwrap_or(0.0) as f32,
        })
    }
}

struct CodeRows {
    weight: Raw,
    map: [f32; 16],
    absmax: Raw,
    nested: Option<([f32; 256], Raw)>,
    state: QuantState,
    columns: u64,
}

impl CodeRows {
    /// Returns the scales of blocks `first..end`.
    fn scales(&self, first: u64, end: u64) -> Result<Vec<f32>, gguf::Error> {
        let Some((map, nested)) = &self.nested else {
            return self.absmax.floats(first, end - first);
        };
        let outer = first / self.state.nested_block;
        let outer_end = end.div_ceil(self.state.nested_block);
        let outers = nested.floats(outer, outer_end - outer)?;
        let codes = self.absmax.bytes(first, end - first)?;
        let scale = |(code, block): (u8, u64)| {
            let nested_scale = outers[(block / self.state.nested_block - outer) as usize];
            map[usize::from(code)] * nested_scale + self.state.nested_offset
        };
        Ok(codes.into_iter().zip(first..).map(scale).collect())
    }
}

impl Rows for CodeRows {
    fn count(&self) -> u64 {
        self.state.shape.iter().rev().skip(1).product()
    }

    fn row_bytes(&self) -> u64 {
        self.columns * 4
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let (start, n) = (first * self.columns, out.len() as u64 / 4);
        let first_block = start / self.state.block;
        let scales = self.scales(first_block, (start + n).div_ceil(self.state.block))?;
        // The bytes may be stored as elements of any type.
        let mut bytes = vec![0; ((start + n).div_ceil(2) - start / 2) as usize];
        self.weight.source.read_at(&mut bytes, self.weight.offset + start / 2)?;
        let value = |element: u64| {
            let byte = bytes[(element / 2 - start / 2) as usize];
            let code = if element.is_multiple_of(2) { byte >> 4 } else { byte & 15 };
            let scale = scales[(element / self.state.block - first_block) as usize];
            self.map[usize::from(code)] * scale
        };
        put_floats(out, (start..start + n).map(value));
        Ok(())
    }
}
