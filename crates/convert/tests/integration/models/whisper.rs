//! Whisper.

use serde_json::json;

use crate::fixtures::round_trip::assert_encoder_round_trip;
use crate::fixtures::{Tiny, assert_valid};

#[test]
pub fn whisper_round_trip_with_different_encoder_and_decoder() {
    let config = json!({
        "architectures": ["WhisperForConditionalGeneration"], "d_model": 8, "encoder_layers": 2,
        "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 16, "decoder_ffn_dim": 12, "num_mel_bins": 5, "vocab_size": 6,
        "max_source_positions": 100, "max_target_positions": 4,
    });
    let layer = |stack: &str, width: usize| {
        let name = |rest: &str| format!("model.{stack}.layers.{{}}.{rest}");
        let mut tensors: Vec<(String, Vec<usize>)> = vec![
            (name("fc1.weight"), vec![width, 8]),
            (name("fc1.bias"), vec![width]),
            (name("fc2.weight"), vec![8, width]),
            (name("fc2.bias"), vec![8]),
        ];
        let attentions: &[&str] =
            if stack == "decoder" { &["self_attn", "encoder_attn"] } else { &["self_attn"] };
        for attention in attentions {
            for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                tensors.push((name(&format!("{attention}.{part}.weight")), vec![8, 8]));
                if part != "k_proj" {
                    tensors.push((name(&format!("{attention}.{part}.bias")), vec![8]));
                }
            }
        }
        for norm in attentions.iter().copied().chain(["final"]) {
            for suffix in ["weight", "bias"] {
                tensors.push((name(&format!("{norm}_layer_norm.{suffix}")), vec![8]));
            }
        }
        tensors
    };
    let mut tiny = Tiny::new(config).byte_level(6).tensors(&[
        ("model.encoder.conv1.weight", &[8, 5, 3]),
        ("model.encoder.conv1.bias", &[8]),
        ("model.encoder.conv2.weight", &[8, 8, 3]),
        ("model.encoder.conv2.bias", &[8]),
        ("model.encoder.embed_positions.weight", &[100, 8]),
        ("model.encoder.layer_norm.weight", &[8]),
        ("model.encoder.layer_norm.bias", &[8]),
        ("model.decoder.embed_tokens.weight", &[6, 8]),
        ("model.decoder.embed_positions.weight", &[4, 8]),
        ("model.decoder.layer_norm.weight", &[8]),
        ("model.decoder.layer_norm.bias", &[8]),
    ]);
    for (stack, count, width) in [("encoder", 2, 16), ("decoder", 3, 12)] {
        for (name, shape) in layer(stack, width) {
            tiny = tiny.layers(count, &[(&name, &shape)]);
        }
    }
    let exported = assert_encoder_round_trip(&tiny);
    assert_eq!(exported.json("config.json")["decoder_layers"], 3);
    assert_valid(&tiny.convert().unwrap());
    let features = exported.json("preprocessor_config.json");
    assert_eq!((&features["feature_size"], &features["chunk_length"]), (&json!(5), &json!(2)));
}
