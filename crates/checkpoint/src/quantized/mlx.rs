//! MLX's affine quantization: `X.weight`, `X.scales` and `X.biases`.
//!
//! ```text
//! X.weight  U32 [out, in * bits / 32]  a bit stream across words, the lowest bits first
//! X.scales      [out, groups]
//! X.biases      [out, groups]
//!
//! w[out][in] = scale[out][g] * q[out][in] + bias[out][g]         g = in / group_size
//! ```
//!
//! `quantization` in `config.json` has `group_size`, `bits`, and an object for each module with
//! other values. Matrices may be stacked: all dimensions except the last are rows. Computed in F32,
//! where `mlx.core.dequantize` rounds to the type of the scales.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::bit_stream::unpack;
use super::method::{Method, Read, Unsupported, text};
use super::{Content, Matrix, MatrixError, TensorSet, rows_and_columns};
use crate::dtype::Dtype;
use crate::raw::Raw;

pub(super) const METHOD: Method = Method { name: "MLX", names: &["mlx"], file: None, read };

/// Whether these fields, which name no method, are MLX's.
pub(super) fn is_mlx(fields: &Value) -> bool {
    ["group_size", "mode"].iter().any(|field| fields.get(field).is_some())
}

/// Bits and group size of a matrix.
#[derive(Clone, Copy)]
struct Precision {
    bits: u32,
    group_size: u64,
}

impl Precision {
    /// Reads the fields of a module, with those of the whole checkpoint as defaults.
    fn read(fields: &Value, whole: Option<Self>, subject: &str) -> Result<Self, Unsupported> {
        let fault = |what: &str| {
            Unsupported(format!("{subject} {what}"), "use another checkpoint of the model")
        };
        match text(fields, "mode") {
            "" | "affine" => {}
            mode => {
                return Err(Unsupported(
                    format!("{subject} is quantized by MLX in the mode `{mode}`"),
                    "use a checkpoint in the mode `affine`",
                ));
            }
        }
        let number = |field: &str, default: Option<u64>| match fields.get(field) {
            None => default.ok_or_else(|| fault(&format!("has no MLX field `{field}`"))),
            Some(value) => value
                .as_u64()
                .ok_or_else(|| fault(&format!("has `{field}` of {value}; expected an integer"))),
        };
        let bits = number("bits", whole.map(|whole| whole.bits.into()))?;
        let group_size = number("group_size", whole.map(|whole| whole.group_size))?;
        if !matches!(bits, 2..=6 | 8) {
            return Err(fault(&format!("has {bits} bits per weight; expected 2, 3, 4, 5, 6 or 8")));
        }
        if group_size == 0 {
            return Err(fault("has groups of 0 columns"));
        }
        Ok(Self { bits: bits as u32, group_size })
    }
}

fn read(fields: &Value) -> Result<Read, Unsupported> {
    let whole = Precision::read(fields, None, "the checkpoint")?;
    let modules = fields.as_object().into_iter().flatten();
    let others: HashMap<String, Precision> = modules
        .filter(|(_, value)| value.is_object())
        .map(|(name, own)| {
            let precision = Precision::read(own, Some(whole), &format!("module `{name}`"))?;
            Ok((name.clone(), precision))
        })
        .collect::<Result<_, _>>()?;
    Ok(Box::new(move |set, main| {
        let Some(stem) = main.name.strip_suffix(".weight") else { return Ok(None) };
        matrix(set, main, stem, *others.get(stem).unwrap_or(&whole))
    }))
}

fn matrix(
    set: &TensorSet,
    main: &Raw,
    stem: &str,
    precision: Precision,
) -> Result<Option<Matrix>, MatrixError> {
    let Precision { bits, group_size } = precision;
    let part = |end: &str| format!("{stem}.{end}");
    if main.dtype != Dtype::U32 {
        return match set.take(&part("scales")) {
            Some(_) => Err(MatrixError::Parts("has scales, but is not packed into U32".to_owned())),
            None => Ok(None),
        };
    }
    set.take(&main.name);
    let (scales, biases) = (set.need(&part("scales"))?, set.need(&part("biases"))?);
    let (rows, words) = rows_and_columns(&main.shape)?;
    let columns = words.checked_mul(32).filter(|len| len.is_multiple_of(bits.into()));
    let columns = columns.map(|len| len / u64::from(bits));
    let groups = columns
        .filter(|columns| columns.is_multiple_of(group_size))
        .and_then(|columns| Some((columns, Groups::even(columns, columns / group_size)?)));
    let Some((columns, groups)) = groups else {
        return Err(MatrixError::Parts(format!(
            "has rows of {words} words, which do not divide into groups of {group_size} values of {bits} bits"
        )));
    };
    let [outer @ .., _] = &main.shape[..] else { return Ok(None) };
    let expected = [outer, &[groups.count()]].concat();
    for parameters in [scales, biases] {
        if parameters.shape != expected {
            return Err(MatrixError::Parts(format!(
                "has `{}` of shape {:?}; expected {expected:?} for groups of {group_size} values of \
                                 {bits} bits",
                parameters.name, parameters.shape
            )));
        }
    }
    let affine = Arc::new(MlxMatrix {
        weight: main.clone(),
        scales: scales.clone(),
        biases: biases.clone(),
        groups,
        shape: (rows, columns),
        bits,
    });
    let (name, shape) = (main.name.clone(), [outer, &[columns]].concat());
    Ok(Some(Matrix { name, shape, content: Content::Affine(affine) }))
}

struct MlxMatrix {
    weight: Raw,
    scales: Raw,
    biases: Raw,
    groups: Groups,
    shape: (u64, u64),
    bits: u32,
}

impl Affine for MlxMatrix {
    fn shape(&self) -> (u64, u64) {
        self.shape
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let count = self.groups.count();
        let (first, n) = (first * count, n * count);
        let biases = self.biases.floats(first, n)?;
        Ok(Parameters { scales: self.scales.floats(first, n)?, offsets: Offsets::Biases(biases) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let columns = self.shape.1;
        let row_words = columns * u64::from(self.bits) / 32;
        let words = self.weight.words(first * row_words, n * row_words)?;
        // A row is a whole number of words.
        Ok(unpack(words.into_iter(), self.bits).collect())
    }
}
