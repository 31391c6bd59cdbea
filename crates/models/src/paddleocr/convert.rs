//! Conversion of the text model of PaddleOCR-VL, as ERNIE 4.5 with M-RoPE sections.

use gguf_store::Model;

use crate::convert::{Converter, Description, Exported};
use crate::ernie4_5::convert::{ERNIE45, Ernie45};
use crate::qwen2vl;

pub(crate) struct Paddleocr;

/// Description of [`Paddleocr`].
pub(crate) static PADDLEOCR: Description = Description {
    classes: &["PaddleOCRVLForConditionalGeneration"],
    architecture: "paddleocr",
    model_type: "paddleocr_vl",
    ..ERNIE45
};

impl Converter for Paddleocr {
    fn description(&self) -> &'static Description {
        &PADDLEOCR
    }

    fn base(&self) -> &'static dyn Converter {
        &Ernie45
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(qwen2vl::convert::export_mrope_sections(model, exported))
    }
}
