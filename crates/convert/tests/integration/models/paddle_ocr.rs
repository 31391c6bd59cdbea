//! PaddleOCR-VL and Hunyuan VL.

use serde_json::json;

use crate::fixtures::decoder::{
    HEAD, TIED, UNTIED, checkpoint, config, llama_layer, qk_norms_named, with_rms_norm,
};
use crate::fixtures::round_trip::{assert_round_trip, assert_round_trip_with_findings};
use crate::fixtures::tokenizer_files::use_sentencepiece;

#[test]
pub fn paddle_ocr_and_hunyuan_vl_round_trip_with_rope_sections() {
    let scaling = json!({"type": "default", "mrope_section": [2, 3, 3]});
    let fields = with_rms_norm(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let class = "PaddleOCRVLForConditionalGeneration";
    let tiny = checkpoint(config(class, "paddleocr_vl", fields), llama_layer(), UNTIED);
    use_sentencepiece(&tiny);
    assert_eq!(assert_round_trip_with_findings(&tiny).config["rope_scaling"], scaling);

    let scaling = json!({"type": "xdrope", "alpha": 1000.0, "factor": 1.0,
        "xdrope_section": [2, 2, 2, 2]});
    let fields = with_rms_norm(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let class = "HunYuanVLForConditionalGeneration";
    let layer = [llama_layer(), vec![qk_norms_named("query_layernorm", "key_layernorm")]].concat();
    let exported = assert_round_trip(&checkpoint(config(class, "hunyuan_vl", fields), layer, TIED));
    assert_eq!(exported.config["rope_scaling"], scaling);
}
