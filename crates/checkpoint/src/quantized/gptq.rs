//! GPTQ: `X.qweight`, `X.qzeros`, `X.scales` and `X.g_idx`.
//!
//! ```text
//! qweight  I32 [in * bits / 32, out]      each column is a bit stream of q, input by input
//! qzeros   I32 [groups, out * bits / 32]  each row is a bit stream of zeros, output by output
//! scales       [groups, out]
//! g_idx    I32 [in]                       group of each input; consecutive groups if missing
//!
//! w[out][in] = scales[g][out] * (q[in][out] - (zero[g][out] + 1))      without + 1 in gptq_v2
//! ```
//!
//! Computed as in `TorchQuantLinear` of GPTQModel. A stored zero of all ones means 2^bits, not 0.

use std::sync::Arc;

use serde_json::Value;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::bit_stream::unpack;
use super::method::{Method, Read, Unsupported, text};
use super::{Content, Matrix, MatrixError, TensorSet, marlin};
use crate::dtype::Dtype;
use crate::raw::Raw;

pub(super) const METHOD: Method =
    Method { name: "GPTQ", names: &["gptq"], file: Some("quantize_config.json"), read };

fn read(fields: &Value) -> Result<Read, Unsupported> {
    // Older files name no format, and newer ones sometimes repeat it under `format`.
    let format = [text(fields, "checkpoint_format"), text(fields, "format")].concat();
    let is_marlin = fields.get("is_marlin_format").and_then(Value::as_bool) == Some(true);
    let zero_offset = match format.as_str() {
        "marlin" | "marlinmarlin" => return Ok(Box::new(marlin::matrix)),
        "" if is_marlin => return Ok(Box::new(marlin::matrix)),
        "" | "gptq" | "gptqgptq" => 1,
        "gptq_v2" | "gptq_v2gptq_v2" => 0,
        other => {
            return Err(Unsupported(
                format!("the weights are packed as `{other}`, for one kind of processor"),
                "use a checkpoint in the format `gptq`, `gptq_v2` or `marlin`",
            ));
        }
    };
    let gptq = Gptq { bits: fields.get("bits").and_then(Value::as_u64), zero_offset };
    Ok(Box::new(move |set, main| gptq.matrix(set, main)))
}

/// Quantization configuration.
struct Gptq {
    /// Bits per weight, for matrices without `g_idx`.
    bits: Option<u64>,
    /// Offset of a zero from its stored value.
    zero_offset: i16,
}

impl Gptq {
    fn matrix(&self, set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
        let Some(stem) = main.name.strip_suffix(".qweight") else { return Ok(None) };
        let part = |end: &str| format!("{stem}.{end}");
        set.take(&main.name);
        let (zeros, scales) = (set.need(&part("qzeros"))?, set.need(&part("scales"))?);
        let list = set.take(&part("g_idx")).filter(|list| list.elements() > 0);
        let invalid = |what: &str| MatrixError::Parts(what.to_owned());
        let ([words, outputs], [groups, scale_outputs]) = (&main.shape[..], &scales.shape[..])
        else {
            return Err(invalid("and its scales are not matrices"));
        };
        if [main.dtype, zeros.dtype] != [Dtype::I32; 2] {
            return Err(invalid("is not packed into 32-bit words"));
        }
        let inputs = match (list, self.bits) {
            (Some(list), _) => list.elements(),
            (None, Some(bits @ 1..)) => words * 32 / bits,
            (None, _) => {
                return Err(invalid("has no `g_idx`, and the configuration has no `bits`"));
            }
        };
        let bits = words * 32 / inputs.max(1);
        if !matches!(bits, 2 | 3 | 4 | 8) || words * 32 != inputs * bits {
            let what =
                format!("has {words} words for {inputs} inputs; expected 2, 3, 4 or 8 bits each");
            return Err(MatrixError::Parts(what));
        }
        if outputs != scale_outputs || zeros.shape != [*groups, (outputs * bits).div_ceil(32)] {
            return Err(invalid("and its scales or zeros have different shapes"));
        }
        let groups = match list {
            Some(list) => Groups::from_list(&list.integers(0, inputs)?, *groups),
            None => Groups::even(inputs, *groups),
        };
        let groups = groups.ok_or_else(|| invalid("has groups without scales"))?;
        let shape = vec![*outputs, inputs];
        let affine = Arc::new(GptqMatrix {
            weight: main.clone(),
            zeros: zeros.clone(),
            scales: scales.clone(),
            groups,
            inputs,
            outputs: *outputs,
            bits: bits as u32,
            zero_offset: self.zero_offset,
        });
        Ok(Some(Matrix { name: part("weight"), shape, content: Content::Affine(affine) }))
    }
}

struct GptqMatrix {
    weight: Raw,
    zeros: Raw,
    scales: Raw,
    groups: Groups,
    inputs: u64,
    outputs: u64,
    bits: u32,
    zero_offset: i16,
}

impl Affine for GptqMatrix {
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
        let group_words = self.zeros.shape[1];
        // 32 values are a whole number of words.
        let (from, to) = (first / 32 * bits, ((first + n).div_ceil(32) * bits).min(group_words));
        for group in 0..count {
            let group_scales = self.scales.floats(group * self.outputs + first, n)?;
            let words = self.zeros.words(group * group_words + from, to - from)?;
            let group_zeros = unpack(words.into_iter(), self.bits);
            let stored = group_zeros.skip((first % 32) as usize);
            for (row, (scale, zero)) in group_scales.into_iter().zip(stored).enumerate() {
                let at = row * count as usize + group as usize;
                scales[at] = scale;
                zeros[at] = i16::from(zero) + self.zero_offset;
            }
        }
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
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
            let column = words.iter().skip(output).step_by(n).copied();
            quants.extend(unpack(column, self.bits).take(inputs));
        }
        Ok(quants)
    }
}
