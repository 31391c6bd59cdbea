//! T5, mT5 and UMT5.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::fixtures::decoder::merged;
use crate::fixtures::round_trip::assert_encoder_round_trip;
use crate::fixtures::tokenizer_files::use_unigram;
use crate::fixtures::{Tiny, assert_valid, elements, metadata_value};

/// Returns the tensors of a one-layer stack: its name, the index of its feed-forward network, the names of the network's input projections.
fn t5_layer(stack: &str, last: u32, ffn_inputs: &[&str]) -> Vec<(String, &'static [usize])> {
    let name = |part: u32, rest: &str| format!("{stack}.block.0.layer.{part}.{rest}.weight");
    let mut tensors: Vec<(String, &'static [usize])> = vec![
        (name(0, "SelfAttention.relative_attention_bias"), &[4, 2]),
        (name(0, "layer_norm"), &[8]),
        (name(last, "layer_norm"), &[8]),
        (name(last, "DenseReluDense.wo"), &[8, 16]),
        (format!("{stack}.final_layer_norm.weight"), &[8]),
    ];
    for matrix in ["q", "k", "v", "o"] {
        tensors.push((name(0, &format!("SelfAttention.{matrix}")), &[8, 8]));
        if stack == "decoder" {
            tensors.push((name(1, &format!("EncDecAttention.{matrix}")), &[8, 8]));
        }
    }
    if stack == "decoder" {
        tensors.push((name(1, "layer_norm"), &[8]));
    }
    let ffn_inputs =
        ffn_inputs.iter().map(|matrix| name(last, &format!("DenseReluDense.{matrix}")));
    tensors.extend(ffn_inputs.map(|name| (name, &[16, 8][..])));
    tensors
}

fn t5(class: &str, tensors: Vec<(String, &'static [usize])>) -> Tiny {
    t5_with(class, json!({}), tensors)
}

fn t5_with(class: &str, fields: Value, tensors: Vec<(String, &'static [usize])>) -> Tiny {
    let config = merged(
        json!({
            "architectures": [class], "d_model": 8, "d_kv": 4, "d_ff": 16, "num_heads": 2,
            "num_layers": 1, "num_decoder_layers": 1, "relative_attention_num_buckets": 4,
            "layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0, "vocab_size": 6,
        }),
        fields,
    );
    let mut tiny = Tiny::new(config).tensors(&[("shared.weight", &[6, 8])]);
    for (name, shape) in &tensors {
        tiny = tiny.tensors(&[(name, shape)]);
    }
    let config = json!({"tokenizer_class": "T5Tokenizer"});
    use_unigram(&tiny, &["<pad>", "</s>", "<unk>"], config);
    tiny
}

/// Builds T5 with a copy of the shared embedding in the encoder.
fn t5_with_encoder_embedding(class: &str) -> Tiny {
    t5(class, t5_layer("encoder", 1, &["wi_0", "wi_1"]))
        .tensors(&[("encoder.embed_tokens.weight", &[6, 8])])
}

/// Adds a decoder with a copy of the shared embedding.
fn with_decoder(mut tiny: Tiny) -> Tiny {
    for (name, shape) in t5_layer("decoder", 2, &["wi_0", "wi_1"]) {
        tiny = tiny.tensors(&[(&name, shape)]);
    }
    tiny.tensors(&[("decoder.embed_tokens.weight", &[6, 8])])
}

#[test]
pub fn t5_round_trip_with_plain_and_gated_ffn() {
    let both = |ffn_inputs: &[&str]| {
        [t5_layer("encoder", 1, ffn_inputs), t5_layer("decoder", 2, ffn_inputs)].concat()
    };
    let plain = t5("T5ForConditionalGeneration", both(&["wi"]));
    let config = assert_encoder_round_trip(&plain).json("config.json");
    assert_eq!(config["feed_forward_proj"], "relu");
    assert_eq!(config["tie_word_embeddings"], true);
    let gated = t5("MT5ForConditionalGeneration", both(&["wi_0", "wi_1"]))
        .tensors(&[("lm_head.weight", &[6, 8])]);
    let config = assert_encoder_round_trip(&gated).json("config.json");
    assert_eq!(config["feed_forward_proj"], "gated-gelu");
    // Tied embeddings make `transformers` scale the output of the decoder.
    assert_eq!(config["tie_word_embeddings"], false);
}

#[test]
fn umt5_round_trip_with_relative_bias_per_layer() {
    let ffn_inputs = &["wi_0", "wi_1"];
    let layers = [t5_layer("encoder", 1, ffn_inputs), t5_layer("decoder", 2, ffn_inputs)].concat();
    let second = layers.iter().filter(|(name, _)| name.contains(".block."));
    let second = second.map(|(name, shape)| (name.replace(".block.0.", ".block.1."), *shape));
    let tensors = layers.iter().cloned().chain(second).collect();
    let fields = json!({"num_layers": 2, "num_decoder_layers": 2});
    let tiny = t5_with("UMT5ForConditionalGeneration", fields, tensors);
    let config = assert_encoder_round_trip(&tiny).json("config.json");
    assert_eq!(config["architectures"][0], "UMT5ForConditionalGeneration");
}

#[test]
pub fn t5_encoder_round_trip() {
    let tiny = t5("T5EncoderModel", t5_layer("encoder", 1, &["wi_0", "wi_1"]));
    let config = assert_encoder_round_trip(&tiny).json("config.json");
    assert_eq!(config["architectures"][0], "T5EncoderModel");
}

#[test]
fn t5_classes_share_one_architecture() {
    for class in ["T5Model", "MT5Model"] {
        let gguf = with_decoder(t5_with_encoder_embedding(class)).convert().unwrap();
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "general.architecture"), "t5");
    }
    for class in ["MT5EncoderModel", "UMT5EncoderModel"] {
        let gguf = t5_with_encoder_embedding(class).convert().unwrap();
        assert_valid(&gguf);
        assert_eq!(metadata_value(&gguf, "general.architecture"), "t5encoder");
    }
}

#[test]
fn t5_shared_embedding_is_stored_once() {
    let tiny = with_decoder(t5_with_encoder_embedding("T5ForConditionalGeneration"))
        .tensors(&[("lm_head.weight", &[6, 8])]);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(elements(&gguf, "token_embd.weight"), tiny.values("decoder.embed_tokens.weight"));
    let gate = tiny.values("decoder.block.0.layer.2.DenseReluDense.wi_0.weight");
    assert_eq!(elements(&gguf, "dec.blk.0.ffn_gate.weight"), gate);
    assert_eq!(metadata_value(&gguf, "t5.context_length"), 512);
    assert_eq!(metadata_value(&gguf, "t5.decoder_start_token_id"), 0);
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.model"), "t5");
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.add_space_prefix"), true);
    let model = Gguf::read(&gguf).unwrap();
    let map = model.metadata().get("tokenizer.ggml.precompiled_charsmap").unwrap();
    let map: Vec<i64> = map.as_array().unwrap().iter().map(|b| b.to_i64().unwrap()).collect();
    assert_eq!(map, [0, 1, 2, 3]);
    let types = model.metadata().get("tokenizer.ggml.token_type").unwrap();
    let types: Vec<i64> = types.as_array().unwrap().iter().map(|t| t.to_i64().unwrap()).collect();
    assert_eq!(types, [3, 3, 2, 1, 1, 1]);
}

#[test]
fn t5_encoder_has_its_own_architecture() {
    let gguf = t5_with_encoder_embedding("T5EncoderModel").convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "general.architecture"), "t5encoder");
}
