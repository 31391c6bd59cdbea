//! AWQ in the GEMM format: `X.qweight`, `X.qzeros` and `X.scales`.
//!
//! ```text
//! qweight  I32 [in, out / 8]      eight outputs per word, in the order of NIBBLE
//! qzeros   I32 [groups, out / 8]  packed likewise
//! scales       [groups, out]
//!
//! w[out][in] = scales[g][out] * (q[in][out] - zero[g][out])       g = in / (inputs / groups)
//! ```
//!
//! Computed as in `dequantize_gemm` of AutoAWQ (`awq/utils/packing_utils.py`).

use std::sync::Arc;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::method::{Method, Unsupported, text};
use super::{Content, Matrix, MatrixError, TensorSet, awq_gemv};
use crate::dtype::Dtype;
use crate::raw::Raw;

/// Position of each of eight outputs in its word, in units of four bits.
const NIBBLE: [u32; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

pub(super) const METHOD: Method = Method {
    name: "AWQ",
    names: &["awq"],
    file: Some("quant_config.json"),
    read: |fields| match text(fields, "version").to_lowercase().as_str() {
        "" | "gemm" => Ok(Box::new(matrix)),
        "gemv" => awq_gemv::read(fields),
        other => Err(Unsupported(
            format!("the weights are packed as AWQ `{other}`"),
            "use a checkpoint in the version `gemm` or `gemv`",
        )),
    },
};

fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix(".qweight") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    set.take(&main.name);
    let (zeros, scales) = (set.need(&part("qzeros"))?, set.need(&part("scales"))?);
    let invalid = |what: &str| MatrixError::Parts(what.to_owned());
    let ([inputs, words], [count, outputs]) = (&main.shape[..], &scales.shape[..]) else {
        return Err(invalid("and its scales are not matrices"));
    };
    if [main.dtype, zeros.dtype] != [Dtype::I32; 2] {
        return Err(invalid("is not packed into 32-bit words"));
    }
    if words.checked_mul(8) != Some(*outputs) || zeros.shape != [*count, *words] {
        return Err(invalid("and its scales or zeros have different shapes, or it is not 4-bit"));
    }
    let groups = Groups::even(*inputs, *count)
        .ok_or_else(|| invalid("has a number of inputs that is not divisible by its groups"))?;
    let affine = Arc::new(AwqMatrix {
        weight: main.clone(),
        zeros: zeros.clone(),
        scales: scales.clone(),
        groups,
    });
    let shape = vec![*outputs, *inputs];
    Ok(Some(Matrix { name: part("weight"), shape, content: Content::Affine(affine) }))
}

struct AwqMatrix {
    weight: Raw,
    zeros: Raw,
    scales: Raw,
    groups: Groups,
}

impl AwqMatrix {
    fn outputs(&self) -> u64 {
        self.scales.shape[1]
    }

    /// Unpacks outputs `first..first + n` of one row of words.
    fn unpack(&self, packed: &Raw, row: u64, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let (from, to) = (first / 8, (first + n).div_ceil(8));
        let words = packed.words(row * packed.shape[1] + from, to - from)?;
        let value = |output: u64| {
            let word = words[(output / 8 - from) as usize];
            (word >> (4 * NIBBLE[(output % 8) as usize]) & 15) as u8
        };
        Ok((first..first + n).map(value).collect())
    }
}

impl Affine for AwqMatrix {
    fn shape(&self) -> (u64, u64) {
        (self.outputs(), self.weight.shape[0])
    }

    fn bits(&self) -> u32 {
        4
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn is_transposed(&self) -> bool {
        true
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let count = self.groups.count() as usize;
        let (mut scales, mut zeros) = (vec![0.0; n as usize * count], vec![0; n as usize * count]);
        for group in 0..count {
            let group_scales = self.scales.floats(group as u64 * self.outputs() + first, n)?;
            let group_zeros = self.unpack(&self.zeros, group as u64, first, n)?;
            for (row, (scale, zero)) in group_scales.into_iter().zip(group_zeros).enumerate() {
                scales[row * count + group] = scale;
                zeros[row * count + group] = zero.into();
            }
        }
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let inputs = self.weight.shape[0] as usize;
        let mut quants = vec![0; n as usize * inputs];
        for input in 0..inputs {
            let unpack = self.unpack(&self.weight, input as u64, first, n)?;
            for (output, value) in unpack.into_iter().enumerate() {
                quants[output * inputs + input] = value;
            }
        }
        Ok(quants)
    }
}
