//! GPTQ: `X.qweight`, `X.qzeros`, `X.scales` and `X.g_idx`.
//!
//! ```text
//! qweight  I32 [in * bits / 32, out]      a column is a stream of bits, q of one input after another
//! qzeros   I32 [groups, out * bits / 32]  a row is a stream of bits, one zero of each output
//! scales       [groups, out]
//! g_idx    I32 [in]                       group of each input; in order if it is not there
//!
//! w[out][in] = scales[g][out] * (q[in][out] - (zero[g][out] + 1))      without + 1 in gptq_v2
//! ```
//!
//! As `TorchQuantLinear` of GPTQModel has it. A stored zero of all ones stands for 2^bits, not 0.

use std::sync::Arc;

use serde_json::Value;

use super::levels::{Groups, Levels, Parameters};
use super::{Content, Matrix, Set, Wrong};
use crate::source::dtype::Dtype;
use crate::source::raw::Raw;

/// What the configuration says.
pub(super) struct Gptq {
    /// Bits of a number, for matrices without a list of groups.
    bits: Option<u64>,
    /// How much more zeros are than what is stored.
    zero_offset: i16,
}

impl Gptq {
    pub fn of(fields: &Value, zero_offset: i16) -> Self {
        Self { bits: fields.get("bits").and_then(Value::as_u64), zero_offset }
    }

    pub fn matrix(&self, set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
        let Some(stem) = main.name.strip_suffix(".qweight") else { return Ok(None) };
        let part = |end: &str| format!("{stem}.{end}");
        set.take(&main.name);
        let (zeros, scales) = (set.need(&part("qzeros"))?, set.need(&part("scales"))?);
        let list = set.take(&part("g_idx")).filter(|list| list.elements() > 0);
        let wrong = |what: &str| Wrong::Parts(what.to_owned());
        let ([words, outputs], [groups, scale_outputs]) = (&main.shape[..], &scales.shape[..])
        else {
            return Err(wrong("and its scales are no matrices"));
        };
        if [main.dtype, zeros.dtype] != [Dtype::I32; 2] {
            return Err(wrong("is not packed into words of 32 bits"));
        }
        let inputs = match (list, self.bits) {
            (Some(list), _) => list.elements(),
            (None, Some(bits @ 1..)) => words * 32 / bits,
            (None, _) => return Err(wrong("has no `g_idx`, and no `bits` in the configuration")),
        };
        let bits = words * 32 / inputs.max(1);
        if !matches!(bits, 2 | 3 | 4 | 8) || words * 32 != inputs * bits {
            let what = format!("has {words} words for {inputs} inputs: not 2, 3, 4 or 8 bits each");
            return Err(Wrong::Parts(what));
        }
        if outputs != scale_outputs || zeros.shape != [*groups, (outputs * bits).div_ceil(32)] {
            return Err(wrong("has scales or zeros of another shape than its own"));
        }
        let groups = match list {
            Some(list) => Groups::listed(&list.integers(0, inputs)?, *groups),
            None => Groups::even(inputs, *groups),
        };
        let groups = groups.ok_or_else(|| wrong("has groups for which there are no scales"))?;
        let shape = vec![*outputs, inputs];
        let levels = Arc::new(GptqLevels {
            weight: main.clone(),
            zeros: zeros.clone(),
            scales: scales.clone(),
            groups,
            inputs,
            outputs: *outputs,
            bits: bits as u32,
            zero_offset: self.zero_offset,
        });
        Ok(Some(Matrix { name: part("weight"), shape, content: Content::Levels(levels) }))
    }
}

struct GptqLevels {
    weight: Raw,
    zeros: Raw,
    scales: Raw,
    groups: Groups,
    inputs: u64,
    outputs: u64,
    bits: u32,
    zero_offset: i16,
}

impl Levels for GptqLevels {
    fn shape(&self) -> (u64, u64) {
        (self.outputs, self.inputs)
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn is_transposed(&self) -> bool {
        true
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let count = self.groups.count();
        let (mut scales, mut zeros) =
            (vec![0.0; (n * count) as usize], vec![0; (n * count) as usize]);
        let bits = u64::from(self.bits);
        let words_of_group = self.zeros.shape[1];
        let (from, to) = (first * bits / 32, ((first + n) * bits).div_ceil(32));
        for group in 0..count {
            let group_scales = self.scales.floats(group * self.outputs + first, n)?;
            let words = self.zeros.words(group * words_of_group + from, to - from)?;
            for (row, scale) in group_scales.into_iter().enumerate() {
                let at = row * count as usize + group as usize;
                scales[at] = scale;
                let bit = (first + row as u64) * bits - from * 32;
                zeros[at] =
                    i16::from(field(|i| words[i], bit as usize, self.bits)) + self.zero_offset;
            }
        }
        Ok(Parameters { scales, zeros })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let rows = self.weight.shape[0];
        let mut words = Vec::with_capacity((rows * n) as usize);
        for row in 0..rows {
            words.extend(self.weight.words(row * self.outputs + first, n)?);
        }
        let (n, inputs) = (n as usize, self.inputs as usize);
        let mut quants = Vec::with_capacity(n * inputs);
        for output in 0..n {
            let word = |i: usize| words[i * n + output];
            quants.extend((0..inputs).map(|i| field(word, i * self.bits as usize, self.bits)));
        }
        Ok(quants)
    }
}

/// `bits` bits from bit `at` on of a stream of words, which they may straddle.
fn field(word: impl Fn(usize) -> u32, at: usize, bits: u32) -> u8 {
    let (index, shift) = (at / 32, at as u32 % 32);
    let mut value = word(index) >> shift;
    if shift + bits > 32 {
        value |= word(index + 1) << (32 - shift);
    }
    (value & ((1 << bits) - 1)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_straddle_words() {
        // Eleven numbers of three bits: the last has two of them in the first word.
        let numbers = [1u64, 2, 3, 4, 5, 6, 7, 0, 1, 2, 6];
        let stream = numbers.iter().enumerate().fold(0, |bits, (i, n)| bits | n << (3 * i));
        let words = [stream as u32, (stream >> 32) as u32];
        for (i, number) in numbers.iter().enumerate() {
            assert_eq!(u64::from(field(|i| words[i], 3 * i, 3)), *number);
        }
    }
}
