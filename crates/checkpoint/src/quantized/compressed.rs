//! compressed-tensors: which of its formats a matrix has.

use serde_json::Value;

use super::method::{Method, Read, Unsupported};
use super::scaled::Blocks;
use super::{Matrix, Set, Wrong, integers, mxfp4, nvfp4, packed};
use crate::raw::Raw;

pub(super) const METHOD: Method =
    Method { name: "compressed-tensors", words: &["compressed-tensors"], file: None, read };

fn read(fields: &Value) -> Result<Read, Unsupported> {
    let compressed = Compressed::of(fields).map_err(|UnknownFormat(format)| {
        Unsupported(
            format!("the weights are compressed as `{format}`"),
            "take a checkpoint in another format: known are int-quantized, pack-quantized, \
             float-quantized, naive-quantized, nvfp4-pack-quantized and mxfp4-pack-quantized",
        )
    })?;
    Ok(Box::new(move |set, main| compressed.matrix(set, main)))
}

/// What the configuration says.
struct Compressed {
    /// Bits of packed integers: those of the first group of matrices.
    bits: Option<u32>,
    blocks: Blocks,
}

/// The name of a format that is not known.
struct UnknownFormat(String);

/// Formats that are told apart by the parts which matrices have.
const FORMATS: [&str; 8] = [
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "pack-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mixed-precision",
    "dense",
];

impl Compressed {
    /// What the configuration says.
    fn of(fields: &Value) -> Result<Self, UnknownFormat> {
        let formats = fields.get("format").into_iter();
        let groups = fields.get("config_groups").and_then(Value::as_object);
        let of_groups = groups.into_iter().flatten().filter_map(|(_, group)| group.get("format"));
        for format in formats.chain(of_groups).filter_map(Value::as_str) {
            if !FORMATS.contains(&format) {
                return Err(UnknownFormat(format.to_owned()));
            }
        }
        let mut weights =
            groups.into_iter().flatten().filter_map(|(_, group)| group.get("weights"));
        let first = weights.next().unwrap_or(&Value::Null);
        let bits = first.get("num_bits").and_then(Value::as_u64);
        let other_bits = |weights: &Value| weights.get("num_bits").and_then(Value::as_u64) != bits;
        if weights.any(other_bits) && fields["format"] == "pack-quantized" {
            return Err(UnknownFormat("pack-quantized with several sizes".to_owned()));
        }
        let bits = bits.and_then(|bits| u32::try_from(bits).ok());
        Ok(Self { bits, blocks: Blocks::of(first) })
    }

    fn matrix(&self, set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
        if let Some(matrix) = nvfp4::packed_matrix(set, main)? {
            return Ok(Some(matrix));
        }
        if let Some(matrix) = mxfp4::packed_matrix(set, main)? {
            return Ok(Some(matrix));
        }
        if let Some(matrix) = packed::matrix(set, main, self.bits)? {
            return Ok(Some(matrix));
        }
        if let Some(matrix) = integers::matrix(set, main)? {
            return Ok(Some(matrix));
        }
        self.blocks.matrix(set, main)
    }
}
