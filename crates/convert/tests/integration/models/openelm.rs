//! OpenELM.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{HEAD, VOCAB, WIDTH};
use crate::fixtures::round_trip::assert_round_trip_with_findings;
use crate::fixtures::tokenizer_files::use_sentencepiece;

#[test]
pub fn openelm_round_trip() {
    let config = json!({"architectures": ["OpenELMForCausalLM"], "model_type": "openelm",
        "model_dim": WIDTH, "head_dim": HEAD, "num_transformer_layers": 2,
        "max_context_length": 256, "vocab_size": VOCAB, "ffn_dim_divisor": 32,
        "num_query_heads": [2, 4], "num_kv_heads": [1, 2], "ffn_multipliers": [0.5, 1.7],
        "rope_freq_constant": 10000.0, "share_input_output_layers": true,
        "normalize_qk_projections": true});
    let mut tiny = Tiny::new(config).byte_level(VOCAB).tensors(&[
        ("transformer.token_embeddings.weight", &[VOCAB, WIDTH]),
        ("transformer.norm.weight", &[WIDTH]),
    ]);
    for (layer, heads, kv, width) in [(0, 2, 1, 32), (1, 4, 2, 128)] {
        for (name, shape) in [
            ("attn_norm", &[WIDTH][..]),
            ("attn.qkv_proj", &[(heads + 2 * kv) * HEAD, WIDTH]),
            ("attn.q_norm", &[HEAD]),
            ("attn.k_norm", &[HEAD]),
            ("attn.out_proj", &[WIDTH, heads * HEAD]),
            ("ffn_norm", &[WIDTH]),
            ("ffn.proj_1", &[2 * width, WIDTH]),
            ("ffn.proj_2", &[WIDTH, width]),
        ] {
            tiny = tiny.tensors(&[(&format!("transformer.layers.{layer}.{name}.weight"), shape)]);
        }
    }
    use_sentencepiece(&tiny);
    let exported = assert_round_trip_with_findings(&tiny).config;
    assert_eq!(exported["ffn_multipliers"], json!([0.5, 2.0]));
    assert_eq!(exported["num_query_heads"], json!([2, 4]));
}
