//! compressed-tensors: selects the format of a matrix.

use serde_json::Value;

use super::fp8::BlockSize;
use super::method::{Method, Read, Unsupported};
use super::{Matrix, MatrixError, TensorSet, int_quantized, mxfp4, nvfp4, pack_quantized};
use crate::raw::Raw;

pub(super) const METHOD: Method =
    Method { name: "compressed-tensors", names: &["compressed-tensors"], file: None, read };

fn read(fields: &Value) -> Result<Read, Unsupported> {
    let compressed = CompressedTensors::parse(fields).map_err(|UnknownFormat(format)| {
        Unsupported(
            format!("the weights are compressed as `{format}`"),
            "use a checkpoint in another format: supported are int-quantized, pack-quantized, \
                         float-quantized, naive-quantized, nvfp4-pack-quantized and mxfp4-pack-quantized",
        )
    })?;
    Ok(Box::new(move |set, main| compressed.matrix(set, main)))
}

/// Quantization configuration.
struct CompressedTensors {
    /// Bits of packed integers, from the first group of matrices.
    bits: Option<u32>,
    block_size: BlockSize,
}

/// Name of an unsupported format.
struct UnknownFormat(String);

/// Supported formats, distinguished by the suffixes of their tensors.
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

impl CompressedTensors {
    /// Parses the configuration.
    fn parse(fields: &Value) -> Result<Self, UnknownFormat> {
        let formats = fields.get("format").into_iter();
        let groups = fields.get("config_groups").and_then(Value::as_object);
        let group_formats =
            groups.into_iter().flatten().filter_map(|(_, group)| group.get("format"));
        for format in formats.chain(group_formats).filter_map(Value::as_str) {
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
            return Err(UnknownFormat("pack-quantized with several bit widths".to_owned()));
        }
        let bits = bits.and_then(|bits| u32::try_from(bits).ok());
        Ok(Self { bits, block_size: BlockSize::parse(first) })
    }

    fn matrix(&self, set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
        if let Some(matrix) = nvfp4::packed_matrix(set, main)? {
            return Ok(Some(matrix));
        }
        if let Some(matrix) = mxfp4::packed_matrix(set, main)? {
            return Ok(Some(matrix));
        }
        if let Some(matrix) = pack_quantized::matrix(set, main, self.bits)? {
            return Ok(Some(matrix));
        }
        if let Some(matrix) = int_quantized::matrix(set, main)? {
            return Ok(Some(matrix));
        }
        self.block_size.matrix(set, main)
    }
}
