//! Jais and Jais 2.

use serde_json::json;

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    FF, HEAD, HEADS, NamedShape, UNTIED, VOCAB, WIDTH, attention, borrowed, checkpoint, config,
    ffn, pre_norms,
};
use crate::fixtures::round_trip::assert_round_trip;

#[test]
pub fn jais2_round_trip() {
    let network = ffn();
    let weights = [pre_norms(), attention(), network].concat();
    let bias = |(name, shape): &NamedShape| (name.replace("weight", "bias"), vec![shape[0]]);
    let biases: Vec<NamedShape> = weights.iter().map(bias).collect();
    let fields = json!({"layer_norm_eps": 1e-5, "rope_theta": 5e5, "head_dim": HEAD});
    let tiny =
        checkpoint(config("Jais2ForCausalLM", "jais2", fields), vec![weights, biases], UNTIED);
    assert_round_trip(&tiny.tensors(&[("model.norm.bias", &[WIDTH])]));
}

#[test]
pub fn jais_round_trip_with_alibi_slopes() {
    let config = json!({"architectures": ["JAISLMHeadModel"], "model_type": "jais", "n_embd": WIDTH,
        "n_head": HEADS, "n_layer": 2, "n_positions": 64, "n_inner": FF, "vocab_size": VOCAB,
        "layer_norm_epsilon": 1e-5, "activation_function": "swiglu", "position_embedding_type": "alibi",
        "embeddings_scale": 1.0, "width_scale": 1.0});
    let mut layer: Vec<(String, Vec<usize>)> = Vec::new();
    for (part, inside, out) in [
        ("attn.c_attn", WIDTH, 3 * WIDTH),
        ("attn.c_proj", WIDTH, WIDTH),
        ("mlp.c_fc", WIDTH, FF),
        ("mlp.c_fc2", WIDTH, FF),
        ("mlp.c_proj", FF, WIDTH),
    ] {
        layer.push((format!("transformer.h.{{}}.{part}.weight"), vec![inside, out]));
        layer.push((format!("transformer.h.{{}}.{part}.bias"), vec![out]));
    }
    for part in ["ln_1", "ln_2"] {
        for end in ["weight", "bias"] {
            layer.push((format!("transformer.h.{{}}.{part}.{end}"), vec![WIDTH]));
        }
    }
    let layer = borrowed(&layer);
    let tiny = Tiny::new(config.clone()).byte_level(VOCAB).layers(2, &layer).tensors(&[
        ("transformer.wte.weight", &[VOCAB, WIDTH]),
        ("transformer.ln_f.weight", &[WIDTH]),
        ("transformer.ln_f.bias", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ]);
    let bias = |gguf: &gguf::Bytes| {
        gguf::Gguf::read(gguf).unwrap().metadata().get("jais.attention.max_alibi_bias").cloned()
    };
    assert_eq!(bias(&assert_round_trip(&tiny).gguf), Some(8f32.into()));
    // With 4 heads the first slope is 2^(-x/4), where x is the maximum bias.
    let tiny = tiny.tensors(&[("transformer.relative_pe.slopes", &[HEADS])]);
    let first = f64::from(tiny.values("transformer.relative_pe.slopes")[0]);
    let expected = -(first.log2() * 4.0).round();
    assert_eq!(bias(&tiny.convert().unwrap()), Some((expected as f32).into()));
    let mut scaled = config;
    scaled["embeddings_scale"] = serde_json::Value::Null;
    let tiny =
        Tiny::new(scaled).byte_level(VOCAB).tensors(&[("transformer.wte.weight", &[VOCAB, WIDTH])]);
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("`embeddings_scale`"), "{error}");
}
