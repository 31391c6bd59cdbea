//! Baichuan.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::with_sentencepiece;
use crate::fixtures::{Tiny, width16};

#[test]
pub fn baichuan_round_trip() {
    let tiny = Tiny::new(width16::config("BaichuanForCausalLM", json!({})))
        .tensors(width16::ENDS)
        .layers(2, width16::NORMS)
        .layers(2, width16::GATED_FFN)
        .layers(
            2,
            &[
                ("model.layers.{}.self_attn.W_pack.weight", &[48, 16]),
                ("model.layers.{}.self_attn.o_proj.weight", &[16, 16]),
            ],
        );
    let config = assert_round_trip_with_findings(&with_sentencepiece(tiny)).config;
    assert_eq!(config["model_max_length"], 256);
}
