//! Ernie 4.5, dense and with experts, and what reads with it.

use gguf_store::Model;

use crate::convert::{Converter, Exported};
use crate::ernie4_5::convert::Ernie45;
use crate::qwen2vl;

/// PaddleOCR, whose positions have three dimensions.
pub(crate) struct Paddleocr;

impl Converter for Paddleocr {
    fn base(&self) -> &'static dyn Converter {
        &Ernie45
    }

    fn classes(&self) -> &'static [&'static str] {
        &["PaddleOCRVLForConditionalGeneration"]
    }

    fn architecture(&self) -> &'static str {
        "paddleocr"
    }

    fn model_type(&self) -> &'static str {
        "paddleocr_vl"
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(qwen2vl::convert::sections(model, exported))
    }
}
