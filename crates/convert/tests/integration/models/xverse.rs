//! XVERSE.

use serde_json::json;

use crate::fixtures::decoder::{
    FF, HEADS, UNTIED, checkpoint, config, gated_ffn, pre_norms, square_weight,
};
use crate::fixtures::round_trip::assert_round_trip_with_findings;

#[test]
pub fn xverse_round_trip_without_token_scores() {
    let fields = json!({"rms_norm_eps": 1e-6, "num_key_value_heads": HEADS});
    let layer = vec![
        pre_norms(),
        ["q", "k", "v", "o"].map(|part| square_weight(&format!("self_attn.{part}_proj"))).to_vec(),
        gated_ffn("mlp", FF),
    ];
    let tiny = checkpoint(config("XverseForCausalLM", "xverse", fields), layer, UNTIED);
    let tokenizer = json!({
        "added_tokens": [{"id": 0, "content": "<pad>", "special": true}],
        "normalizer": null, "pre_tokenizer": null, "decoder": {"type": "Sequence", "decoders": []},
        "model": {"type": "BPE", "byte_fallback": true, "merges": [],
            "vocab": {"<pad>": 0, "a": 1, "<0x41>": 2, "\0": 3, "b": 4, "c": 5}},
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    let exported = assert_round_trip_with_findings(&tiny);
    let gguf = gguf::Gguf::read(&exported.gguf).unwrap();
    let tokens = gguf.metadata().array("tokenizer.ggml.tokens").unwrap();
    let tokens: Vec<_> = tokens.strings().unwrap().map(|text| text.to_vec()).collect();
    assert_eq!(tokens[3], b"<b'\\x00'>");
    let types = gguf.metadata().array("tokenizer.ggml.token_type").unwrap();
    let types: Vec<_> = types.iter().map(|kind| kind.to_i64().unwrap()).collect();
    assert_eq!(types, [3, 1, 6, 6, 1, 1]);
    assert!(gguf.metadata().get("tokenizer.ggml.scores").is_none());
}
