//! MLX's affine quantization: `X.weight`, `X.scales` and `X.biases`.
//!
//! ```text
//! X.weight  U32 [out, in * bits / 32]  a stream of numbers, the lowest bits first, across words
//! X.scales      [out, groups]
//! X.biases      [out, groups]
//!
//! w[out][in] = scale[out][g] * q[out][in] + bias[out][g]         g = in / group_size
//! ```
//!
//! `quantization` in `config.json` has `group_size`, `bits`, and an object for each module that
//! has others. Matrices may be stacked: all dimensions but the last are rows. Computed in F32,
//! where `mlx.core.dequantize` rounds to the type of the scales.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::levels::{Groups, Levels, Offsets, Parameters};
use super::method::{Method, Read, Unsupported, text};
use super::stream::unpacked;
use super::{Content, Matrix, Set, Wrong, rows_and_columns};
use crate::dtype::Dtype;
use crate::raw::Raw;

pub(super) const METHOD: Method = Method { name: "MLX", words: &["mlx"], file: None, read };

/// Whether these fields, which name no method, are those of MLX.
pub(super) fn is_meant(fields: &Value) -> bool {
    ["group_size", "mode"].iter().any(|field| fields.get(field).is_some())
}

/// How a matrix is quantized.
#[derive(Clone, Copy)]
struct Width {
    bits: u32,
    group_size: u64,
}

impl Width {
    /// What the fields of the module `of` say, or else those of the whole checkpoint.
    fn read(fields: &Value, whole: Option<Self>, of: &str) -> Result<Self, Unsupported> {
        let what = |said: &str| Unsupported(format!("{of} {said}"), "take one of another kind");
        match text(fields, "mode") {
            "" | "affine" => {}
            mode => {
                return Err(Unsupported(
                    format!("{of} is quantized by MLX in the mode `{mode}`"),
                    "take the checkpoint in the mode `affine`",
                ));
            }
        }
        let number = |field: &str, default: Option<u64>| match fields.get(field) {
            None => default.ok_or_else(|| what(&format!("has no number `{field}` of MLX"))),
            Some(value) => value
                .as_u64()
                .ok_or_else(|| what(&format!("has `{field}` of {value}, which is no number"))),
        };
        let bits = number("bits", whole.map(|whole| whole.bits.into()))?;
        let group_size = number("group_size", whole.map(|whole| whole.group_size))?;
        if !matches!(bits, 2..=6 | 8) {
            return Err(what(&format!("has numbers of {bits} bits, not 2, 3, 4, 5, 6 or 8")));
        }
        if group_size == 0 {
            return Err(what("has groups of no columns"));
        }
        Ok(Self { bits: bits as u32, group_size })
    }
}

fn read(fields: &Value) -> Result<Read, Unsupported> {
    let whole = Width::read(fields, None, "the checkpoint")?;
    let modules = fields.as_object().into_iter().flatten();
    let others: HashMap<String, Width> = modules
        .filter(|(_, value)| value.is_object())
        .map(|(name, own)| {
            let width = Width::read(own, Some(whole), &format!("module `{name}`"))?;
            Ok((name.clone(), width))
        })
        .collect::<Result<_, _>>()?;
    Ok(Box::new(move |set, main| {
        let Some(stem) = main.name.strip_suffix(".weight") else { return Ok(None) };
        matrix(set, main, stem, *others.get(stem).unwrap_or(&whole))
    }))
}

fn matrix(set: &Set, main: &Raw, stem: &str, width: Width) -> Result<Option<Matrix>, Wrong> {
    let Width { bits, group_size } = width;
    let part = |end: &str| format!("{stem}.{end}");
    if main.dtype != Dtype::U32 {
        return match set.take(&part("scales")) {
            Some(_) => Err(Wrong::Parts("has scales, but is not packed into U32".to_owned())),
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
        return Err(Wrong::Parts(format!(
            "has rows of {words} words, which are no groups of {group_size} numbers of {bits} bits"
        )));
    };
    let [outer @ .., _] = &main.shape[..] else { return Ok(None) };
    let expected = [outer, &[groups.count()]].concat();
    for parameters in [scales, biases] {
        if parameters.shape != expected {
            return Err(Wrong::Parts(format!(
                "has `{}` of shape {:?}, where groups of {group_size} numbers of {bits} bits give \
                 {expected:?}",
                parameters.name, parameters.shape
            )));
        }
    }
    let levels = Arc::new(MlxLevels {
        weight: main.clone(),
        scales: scales.clone(),
        biases: biases.clone(),
        groups,
        shape: (rows, columns),
        bits,
    });
    let (name, shape) = (main.name.clone(), [outer, &[columns]].concat());
    Ok(Some(Matrix { name, shape, content: Content::Levels(levels) }))
}

struct MlxLevels {
    weight: Raw,
    scales: Raw,
    biases: Raw,
    groups: Groups,
    shape: (u64, u64),
    bits: u32,
}

impl Levels for MlxLevels {
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
        let of_row = columns * u64::from(self.bits) / 32;
        let words = self.weight.words(first * of_row, n * of_row)?;
        // A row is a whole number of words.
        Ok(unpacked(words.into_iter(), self.bits).collect())
    }
}
