//! AWQ in its GEMM form: `X.qweight`, `X.qzeros` and `X.scales`.
//!
//! ```text
//! qweight  I32 [in, out / 8]      eight outputs in a word, in the order of NIBBLE
//! qzeros   I32 [groups, out / 8]  likewise
//! scales       [groups, out]
//!
//! w[out][in] = scales[g][out] * (q[in][out] - zero[g][out])       g = in / (inputs / groups)
//! ```
//!
//! As `dequantize_gemm` of AutoAWQ (`awq/utils/packing_utils.py`) has it.

use std::sync::Arc;

use super::levels::{Groups, Levels, Offsets, Parameters};
use super::method::{Method, Unsupported, text};
use super::{Content, Matrix, Set, Wrong, awq_gemv};
use crate::dtype::Dtype;
use crate::raw::Raw;

/// In which four bits of its word each of eight outputs is.
const NIBBLE: [u32; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

pub(super) const METHOD: Method = Method {
    name: "AWQ",
    words: &["awq"],
    file: Some("quant_config.json"),
    read: |fields| match text(fields, "version").to_lowercase().as_str() {
        "" | "gemm" => Ok(Box::new(matrix)),
        "gemv" => awq_gemv::read(fields),
        other => Err(Unsupported(
            format!("the weights are packed as AWQ `{other}`"),
            "take the checkpoint in the version `gemm` or `gemv`",
        )),
    },
};

fn matrix(set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
    let Some(stem) = main.name.strip_suffix(".qweight") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    set.take(&main.name);
    let (zeros, scales) = (set.need(&part("qzeros"))?, set.need(&part("scales"))?);
    let wrong = |what: &str| Wrong::Parts(what.to_owned());
    let ([inputs, words], [count, outputs]) = (&main.shape[..], &scales.shape[..]) else {
        return Err(wrong("and its scales are no matrices"));
    };
    if [main.dtype, zeros.dtype] != [Dtype::I32; 2] {
        return Err(wrong("is not packed into words of 32 bits"));
    }
    if words.checked_mul(8) != Some(*outputs) || zeros.shape != [*count, *words] {
        return Err(wrong("has scales or zeros of another shape than its own, or not 4 bits"));
    }
    let groups = Groups::even(*inputs, *count)
        .ok_or_else(|| wrong("has inputs that do not divide into its groups"))?;
    let levels = Arc::new(AwqLevels {
        weight: main.clone(),
        zeros: zeros.clone(),
        scales: scales.clone(),
        groups,
    });
    let shape = vec![*outputs, *inputs];
    Ok(Some(Matrix { name: part("weight"), shape, content: Content::Levels(levels) }))
}

struct AwqLevels {
    weight: Raw,
    zeros: Raw,
    scales: Raw,
    groups: Groups,
}

impl AwqLevels {
    fn outputs(&self) -> u64 {
        self.scales.shape[1]
    }

    /// Numbers of outputs `first..first + n` in one row of words.
    fn numbers(&self, packed: &Raw, row: u64, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let (from, to) = (first / 8, (first + n).div_ceil(8));
        let words = packed.words(row * packed.shape[1] + from, to - from)?;
        let number = |output: u64| {
            let word = words[(output / 8 - from) as usize];
            (word >> (4 * NIBBLE[(output % 8) as usize]) & 15) as u8
        };
        Ok((first..first + n).map(number).collect())
    }
}

impl Levels for AwqLevels {
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
            let group_zeros = self.numbers(&self.zeros, group as u64, first, n)?;
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
            let numbers = self.numbers(&self.weight, input as u64, first, n)?;
            for (output, number) in numbers.into_iter().enumerate() {
                quants[output * inputs + input] = number;
            }
        }
        Ok(quants)
    }
}
