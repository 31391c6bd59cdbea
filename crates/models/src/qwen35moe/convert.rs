//! Qwen 3 Next and Qwen 3.5: attention is linear in most layers, by the gated delta rule.

use crate::convert::Converter;
use crate::qwen35::convert::Qwen35;

pub(crate) struct Qwen35moe;

impl Converter for Qwen35moe {
    fn base(&self) -> &'static dyn Converter {
        &Qwen35
    }

    fn classes(&self) -> &'static [&'static str] {
        &["Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"]
    }

    fn architecture(&self) -> &'static str {
        "qwen35moe"
    }

    fn model_type(&self) -> &'static str {
        "qwen3_5_moe_text"
    }
}
