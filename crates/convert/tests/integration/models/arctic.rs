//! Snowflake Arctic.

use serde_json::json;

use crate::fixtures::decoder::{
    EXPERTS, FF, UNTIED, WIDTH, attention, checkpoint, config, layer_weight, pre_norms,
    square_weight,
};
use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::use_sentencepiece;

#[test]
pub fn arctic_round_trip_with_residual_ffn() {
    let fields =
        json!({"rms_norm_eps": 1e-5, "num_local_experts": EXPERTS, "num_experts_per_tok": 2});
    let mut network = vec![
        layer_weight("residual_layernorm", &[WIDTH]),
        layer_weight("block_sparse_moe.gate", &[EXPERTS, WIDTH]),
    ];
    network.extend(["w1", "w2", "w3"].map(|part| square_weight(&format!("residual_mlp.{part}"))));
    for expert in 0..EXPERTS {
        let name = |part: &str| format!("block_sparse_moe.experts.{expert}.{part}");
        network.push(layer_weight(&name("w1"), &[FF, WIDTH]));
        network.push(layer_weight(&name("w2"), &[WIDTH, FF]));
        network.push(layer_weight(&name("w3"), &[FF, WIDTH]));
    }
    let layer = vec![pre_norms(), attention(), network];
    let tiny = checkpoint(config("ArcticForCausalLM", "arctic", fields), layer, UNTIED);
    use_sentencepiece(&tiny);
    // The configuration replaces a token.
    let added = json!({"added_tokens_decoder": {"5": {"content": "<|end|>", "special": true}},
        "eos_token": "<|end|>"});
    tiny.file("tokenizer_config.json", added.to_string());
    let exported = assert_round_trip_with_findings(&tiny);
    let gguf = gguf::Gguf::read(&exported.gguf).unwrap();
    let types = gguf.metadata().array("tokenizer.ggml.token_type").unwrap();
    assert_eq!(types.iter().last().unwrap().to_i64(), Some(3));
}
