//! InternLM2.

use serde_json::json;

use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::with_sentencepiece;
use crate::fixtures::{Tiny, width16};

#[test]
pub fn internlm2_round_trip() {
    let tiny = Tiny::new(width16::config("InternLM2ForCausalLM", json!({})))
        .tensors(&[
            ("model.tok_embeddings.weight", &[6, 16]),
            ("model.norm.weight", &[16]),
            ("output.weight", &[6, 16]),
        ])
        .layers(
            2,
            &[
                ("model.layers.{}.attention_norm.weight", &[16]),
                ("model.layers.{}.attention.wqkv.weight", &[32, 16]),
                ("model.layers.{}.attention.wo.weight", &[16, 16]),
                ("model.layers.{}.ffn_norm.weight", &[16]),
                ("model.layers.{}.feed_forward.w1.weight", &[24, 16]),
                ("model.layers.{}.feed_forward.w2.weight", &[16, 24]),
                ("model.layers.{}.feed_forward.w3.weight", &[24, 16]),
            ],
        );
    assert_round_trip_with_findings(&with_sentencepiece(tiny));
}
