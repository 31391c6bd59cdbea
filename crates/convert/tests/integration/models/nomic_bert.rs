//! Nomic BERT.

use serde_json::{Value, json};

use crate::fixtures::round_trip::assert_encoder_round_trip;
use crate::fixtures::sentence_transformers::add_pooling;
use crate::fixtures::tokenizer_files::WORD_PIECES;
use crate::fixtures::{Tiny, assert_valid, elements, metadata_value};

/// Builds Nomic BERT.
fn nomic_bert(config: Value) -> Tiny {
    let tiny = Tiny::new(config).tensors(&[
        ("embeddings.word_embeddings.weight", &[6, 8]),
        ("embeddings.token_type_embeddings.weight", &[2, 8]),
        ("emb_ln.weight", &[8]),
        ("emb_ln.bias", &[8]),
        ("encoder.layers.0.attn.Wqkv.weight", &[24, 8]),
        ("encoder.layers.0.attn.out_proj.weight", &[8, 8]),
        ("encoder.layers.0.norm1.weight", &[8]),
        ("encoder.layers.0.norm1.bias", &[8]),
        ("encoder.layers.0.mlp.fc11.weight", &[16, 8]),
        ("encoder.layers.0.mlp.fc12.weight", &[16, 8]),
        ("encoder.layers.0.mlp.fc2.weight", &[8, 16]),
        ("encoder.layers.0.norm2.weight", &[8]),
        ("encoder.layers.0.norm2.bias", &[8]),
    ]);
    tiny.file("vocab.txt", WORD_PIECES);
    tiny
}

/// Returns the configuration as the authors publish it.
fn authors_config() -> Value {
    json!({
        "architectures": ["NomicBertModel"], "n_embd": 8, "n_head": 2, "n_layer": 1, "n_inner": 16,
        "n_positions": 8192, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000,
        "type_vocab_size": 2, "vocab_size": 6, "causal": false, "prenorm": false,
    })
}

#[test]
pub fn nomic_bert_round_trip() {
    let tiny = nomic_bert(authors_config());
    add_pooling(&tiny, "pooling_mode_mean_tokens");
    let config = assert_encoder_round_trip(&tiny).json("config.json");
    assert_eq!((&config["rope_theta"], &config["intermediate_size"]), (&json!(1000.0), &json!(16)));
}

#[test]
fn nomic_bert_context_is_the_trained_length() {
    let transformers_config = json!({
        "architectures": ["NomicBertModel"], "hidden_size": 8, "num_attention_heads": 2,
        "num_hidden_layers": 1, "intermediate_size": 16, "max_position_embeddings": 8192,
        "layer_norm_eps": 1e-12, "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"},
        "type_vocab_size": 2, "vocab_size": 6,
    });
    for config in [authors_config(), transformers_config] {
        let tiny = nomic_bert(config);
        let gguf = tiny.convert().unwrap();
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "nomic-bert.context_length"), 2048);
        assert_eq!(metadata_value(&gguf, "nomic-bert.rope.freq_base"), 1000.0);
        let gate = tiny.values("encoder.layers.0.mlp.fc12.weight");
        assert_eq!(elements(&gguf, "blk.0.ffn_gate.weight"), gate);
    }
}
