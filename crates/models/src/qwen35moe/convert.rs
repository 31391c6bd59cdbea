//! Conversion of Qwen3.5 models with MoE layers, as of dense ones.

use crate::convert::{Converter, Description};
use crate::qwen35::convert::{QWEN35, Qwen35};

pub(crate) struct Qwen35moe;

/// Description of [`Qwen35moe`].
pub(crate) static QWEN35MOE: Description = Description {
    classes: &["Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"],
    architecture: "qwen35moe",
    model_type: "qwen3_5_moe_text",
    ..QWEN35
};

impl Converter for Qwen35moe {
    fn description(&self) -> &'static Description {
        &QWEN35MOE
    }

    fn base(&self) -> &'static dyn Converter {
        &Qwen35
    }
}
