//! GPT-2 and ruGPT-3 XL.

use serde_json::json;

use crate::fixtures::decoder::{
    NamedShape, UNTIED, WIDTH, bias_of, checkpoint, config, ffn, layer_weight, square_weight,
};
use crate::fixtures::round_trip::assert_gguf_round_trip;
use crate::fixtures::{Tiny, assert_valid, elements, metadata_value};

#[test]
pub fn rugpt3xl_fuses_query_key_and_value() {
    let matrices: Vec<NamedShape> = [
        vec![
            layer_weight("input_layernorm", &[WIDTH]),
            layer_weight("post_attention_layernorm", &[WIDTH]),
        ],
        ["q", "k", "v", "o"].map(|part| square_weight(&format!("self_attn.{part}_proj"))).to_vec(),
        ffn(),
    ]
    .concat();
    let biases = matrices.iter().map(bias_of).collect();
    let mut fields = config("RuGPT3XLForCausalLM", "rugpt3xl", json!({"layer_norm_eps": 1e-5}));
    fields.as_object_mut().unwrap().remove("num_key_value_heads");
    let tiny = checkpoint(fields, vec![matrices, biases], UNTIED)
        .tensors(&[("model.norm.bias", &[WIDTH]), ("model.embed_positions.weight", &[256, WIDTH])]);
    let gguf = tiny.convert().unwrap();
    let parts = ["q", "k", "v"].map(|part| format!("model.layers.1.self_attn.{part}_proj"));
    for end in ["weight", "bias"] {
        let parts = parts.clone().map(|part| tiny.values(&format!("{part}.{end}"))).concat();
        assert_eq!(elements(&gguf, &format!("blk.1.attn_qkv.{end}")), parts);
    }
    // The export is GPT-2.
    assert_gguf_round_trip(tiny.path());
}

#[test]
fn gpt2_weights_are_transposed() {
    let tiny = Tiny::new(json!({
        "architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 1,
        "n_positions": 4, "layer_norm_epsilon": 1e-5, "vocab_size": 6, "n_inner": 24,
    }))
    .byte_level(6)
    .tensors(&[
        ("transformer.wte.weight", &[6, 8]),
        ("transformer.wpe.weight", &[4, 8]),
        ("transformer.ln_f.weight", &[8]),
        ("transformer.ln_f.bias", &[8]),
        ("lm_head.weight", &[6, 8]),
        ("transformer.h.0.attn.bias", &[1, 1, 4, 4]),
        ("transformer.h.0.attn.masked_bias", &[]),
        ("transformer.h.0.ln_1.weight", &[8]),
        ("transformer.h.0.ln_1.bias", &[8]),
        ("transformer.h.0.attn.c_attn.weight", &[8, 24]),
        ("transformer.h.0.attn.c_attn.bias", &[24]),
        ("transformer.h.0.attn.c_proj.weight", &[8, 8]),
        ("transformer.h.0.attn.c_proj.bias", &[8]),
        ("transformer.h.0.ln_2.weight", &[8]),
        ("transformer.h.0.ln_2.bias", &[8]),
        ("transformer.h.0.mlp.c_fc.weight", &[8, 24]),
        ("transformer.h.0.mlp.c_fc.bias", &[24]),
        ("transformer.h.0.mlp.c_proj.weight", &[24, 8]),
        ("transformer.h.0.mlp.c_proj.bias", &[8]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "gpt2.feed_forward_length"), 24);
    let stored = tiny.values("transformer.h.0.attn.c_attn.weight");
    let turned: Vec<f32> = (0..24)
        .flat_map(|column| (0..8).map(move |row| row * 24 + column))
        .map(|i| stored[i])
        .collect();
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), turned);
    let bias = tiny.values("transformer.h.0.attn.c_attn.bias");
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.bias"), bias);
    assert_eq!(elements(&gguf, "output.weight"), tiny.values("lm_head.weight"));
}
