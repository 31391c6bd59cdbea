//! Rotary position embedding.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::field::{is_default, is_one, is_one_f32, is_zero, one, one_f32};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, finite, nonzero, positive, require};
use crate::tensor::Shape;

/// Rotates pairs of elements of each head by angles that grow with the position (RoPE).
///
/// A pair `(x, y)` becomes `(x cos(a) - y sin(a), x sin(a) + y cos(a))` times `attention_factor`, with the angle
/// `a = position f(i)` of pair `i` and `f(i) = freq_base^(-2 i / dimensions)`, divided by the frequency factor and
/// scaled by the RoPE scaling.
///
/// - Inputs: `x` `[tokens, heads n]`.
/// - Weights: frequency factors `[dimensions / 2]`, optional.
/// - Output: `[tokens, heads n]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rope {
    /// Queries or keys, of heads.
    pub x: ValueId,
    /// Number of heads.
    pub heads: u32,
    /// Frequencies and scaling.
    pub parameters: RopeParameters,
}

/// Frequencies and scaling of RoPE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RopeParameters {
    /// Elements that form a pair.
    pub layout: RopeLayout,
    /// First rotary dimension of a head.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u32,
    /// Number of rotary dimensions, even.
    pub dimensions: u32,
    /// Base of the frequencies.
    pub freq_base: f32,
    /// Scaling for contexts longer than that of the training.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scaling: RopeScaling,
    /// Factor of the rotated elements.
    #[serde(default = "one_f32", skip_serializing_if = "is_one_f32")]
    pub attention_factor: f32,
    /// Divisors of the frequencies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub freq_factors: FreqFactors,
    /// Tokens per block: all tokens of a block have the position of its first one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u32,
    /// Whether angles are negated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inverse: bool,
}

impl RopeParameters {
    /// Returns the parameters with the YaRN correction range not truncated to integers.
    pub fn without_truncation(mut self) -> Self {
        if let RopeScaling::Yarn { truncate, .. } = &mut self.scaling {
            *truncate = false;
        }
        self
    }

    /// Returns the parameters without scaling.
    pub fn without_scaling(self) -> Self {
        Self {
            scaling: RopeScaling::None,
            attention_factor: 1.0,
            freq_factors: FreqFactors::None,
            ..self
        }
    }

    fn check(&self, scope: &Scope<'_>, head_len: u32) -> Result<()> {
        let Self { start, dimensions, block, .. } = *self;
        let end = u64::from(start) + u64::from(dimensions);
        require(dimensions > 0 && dimensions % 2 == 0, || {
            format!("`dimensions` is {dimensions}; expected an even number above 0")
        })?;
        require(end <= head_len.into(), || {
            format!("the rotary dimensions end at {end}; expected at most {head_len}")
        })?;
        positive("freq_base", self.freq_base)?;
        finite("attention_factor", self.attention_factor)?;
        nonzero("block", block)?;
        match self.scaling {
            RopeScaling::None => {}
            RopeScaling::Linear(factor) => positive("linear", factor)?,
            RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, .. } => {
                positive("factor", factor)?;
                nonzero("original_context", original_context)?;
                positive("beta_fast", beta_fast)?;
                positive("beta_slow", beta_slow)?;
            }
        }
        let pairs = u64::from(dimensions / 2);
        match self.freq_factors {
            FreqFactors::None => Ok(()),
            FreqFactors::Fixed(weight) => {
                let found = scope.elements(weight)?;
                require(found >= pairs, || {
                    format!("there are {found} frequency factors; expected at least {pairs}")
                })
            }
            FreqFactors::LongRope { short, long, .. } => {
                scope.vector(short, pairs)?;
                scope.vector(long, pairs)
            }
        }
    }
}

/// Elements of a head that RoPE rotates together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeLayout {
    /// `2 i` with `2 i + 1` (GPT-J, the original Llama).
    Interleaved,
    /// `i` with `i + dimensions / 2` (GPT-NeoX).
    Neox,
}

/// Change of the frequencies for contexts longer than that of the training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RopeScaling {
    /// None.
    #[default]
    None,
    /// Divides all frequencies by a factor.
    Linear(f32),
    /// YaRN (arXiv 2309.00071): interpolates between `f(i)` and `f(i) / factor`.
    ///
    /// The share of `f(i)` is `1 - clamp((i - low) / max(high - low, 0.001), 0, 1)` with
    /// `low = max(d(beta_fast), 0)`, `high = min(d(beta_slow), dimensions - 1)` and
    /// `d(b) = dimensions ln(original_context / (2 pi b)) / (2 ln(freq_base))`.
    Yarn {
        /// Factor of the context length.
        factor: f32,
        /// Context length of the training.
        original_context: u32,
        /// Number of rotations over the original context above which frequencies stay.
        beta_fast: f32,
        /// Number of rotations over the original context below which frequencies are divided.
        beta_slow: f32,
        /// Whether `d(beta_fast)` is rounded down and `d(beta_slow)` up.
        truncate: bool,
    },
}

/// Weights by which frequencies are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreqFactors {
    /// None.
    #[default]
    None,
    /// One weight for all contexts (Llama 3). Elements beyond `dimensions / 2` are ignored.
    Fixed(WeightId),
    /// One of two weights by the length of the context (LongRoPE).
    LongRope {
        /// Weight for contexts of at most `original_context` tokens.
        short: WeightId,
        /// Weight for longer contexts.
        long: WeightId,
        /// Context length of the training.
        original_context: u32,
    },
}

impl Operation for Rope {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        match self.parameters.freq_factors {
            FreqFactors::None => Vec::new(),
            FreqFactors::Fixed(weight) => vec![weight],
            FreqFactors::LongRope { short, long, .. } => vec![short, long],
        }
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.token_input(self.x)?;
        self.parameters.check(scope, x.group_len(self.heads)?)?;
        Ok(x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;

    fn shape(heads: u32, field: &str, value: Json) -> String {
        let mut parameters = json!({"layout": "neox", "dimensions": 4, "freq_base": 10000.0});
        parameters[field] = value;
        let op = json!({"op": "rope", "x": 0, "heads": heads, "parameters": parameters});
        Parts::new(&[8], &[&[2], &[1]]).shape(op)
    }

    #[test]
    fn parameters_are_checked() {
        let cases = [
            (2, "freq_factors", json!({"fixed": 0}), "tokens x 8"),
            (2, "freq_factors", json!({"fixed": 1}), "there are 1 frequency factors; expected at least 2"),
            (3, "start", json!(0), "a row of 8 is not divisible into 3 groups"),
            (0, "start", json!(0), "a row of 8 is not divisible into 0 groups"),
            (2, "dimensions", json!(3), "`dimensions` is 3; expected an even number above 0"),
            (2, "dimensions", json!(6), "the rotary dimensions end at 6; expected at most 4"),
            (2, "freq_base", json!(0.0), "`freq_base` is 0; expected a number above 0"),
            (2, "block", json!(0), "`block` is 0; expected at least 1"),
            (2, "scaling", json!({"linear": -1.0}), "`linear` is -1; expected a number above 0"),
        ];
        for (heads, field, value, expected) in cases {
            assert_eq!(shape(heads, field, value), expected, "{field}");
        }
    }
}
