//! Decoders of the first years: matrices stored the other way round, or head by head.

use serde_json::{Value, json};

use crate::tiny::{Tiny, assert_sound, elements};
use crate::{key, picked};

#[test]
fn gpt2_is_transposed() {
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
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "gpt2.feed_forward_length"), 24);
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

#[test]
fn gpt_neox_states_an_unusual_base_and_sorts_heads() {
    let config = |fields: Value| {
        let mut config = json!({
            "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 8, "num_attention_heads": 2,
            "num_hidden_layers": 1, "intermediate_size": 16, "layer_norm_eps": 1e-5,
            "max_position_embeddings": 4, "vocab_size": 6,
        });
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        config
    };
    let new = json!({"rope_parameters": {"rope_theta": 50000.0, "partial_rotary_factor": 0.5}});
    let old = json!({"rotary_emb_base": 50000, "rotary_pct": 0.5});
    for fields in [old, new] {
        let tiny = Tiny::new(config(fields)).byte_level(6).tensors(&[
            ("gpt_neox.embed_in.weight", &[6, 8]),
            ("gpt_neox.final_layer_norm.weight", &[8]),
            ("gpt_neox.final_layer_norm.bias", &[8]),
            ("embed_out.weight", &[6, 8]),
            ("gpt_neox.layers.0.attention.rotary_emb.inv_freq", &[1]),
            ("gpt_neox.layers.0.input_layernorm.weight", &[8]),
            ("gpt_neox.layers.0.input_layernorm.bias", &[8]),
            ("gpt_neox.layers.0.attention.query_key_value.weight", &[24, 8]),
            ("gpt_neox.layers.0.attention.query_key_value.bias", &[24]),
            ("gpt_neox.layers.0.attention.dense.weight", &[8, 8]),
            ("gpt_neox.layers.0.attention.dense.bias", &[8]),
            ("gpt_neox.layers.0.post_attention_layernorm.weight", &[8]),
            ("gpt_neox.layers.0.post_attention_layernorm.bias", &[8]),
            ("gpt_neox.layers.0.mlp.dense_h_to_4h.weight", &[16, 8]),
            ("gpt_neox.layers.0.mlp.dense_h_to_4h.bias", &[16]),
            ("gpt_neox.layers.0.mlp.dense_4h_to_h.weight", &[8, 16]),
            ("gpt_neox.layers.0.mlp.dense_4h_to_h.bias", &[8]),
        ]);
        let gguf = tiny.convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "gptneox.rope.freq_base"), 50000.0);
        assert_eq!(key(&gguf, "gptneox.rope.dimension_count"), 2);
        // Two heads of four: queries, keys and values of the first, then of the second.
        let order =
            [0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22, 23];
        let stored = tiny.values("gpt_neox.layers.0.attention.query_key_value.weight");
        assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), picked(&stored, 8, &order));
        let stored = tiny.values("gpt_neox.layers.0.attention.query_key_value.bias");
        assert_eq!(elements(&gguf, "blk.0.attn_qkv.bias"), picked(&stored, 1, &order));
    }
}

#[test]
fn the_second_falcon_has_groups_and_two_norms() {
    let tiny = Tiny::new(json!({
        "architectures": ["FalconForCausalLM"], "hidden_size": 8, "num_attention_heads": 4,
        "num_kv_heads": 2, "new_decoder_architecture": true, "num_hidden_layers": 1,
        "layer_norm_epsilon": 1e-5, "vocab_size": 6, "rope_theta": 500000.0,
        "ffn_hidden_size": 24, "max_position_embeddings": 8192,
    }))
    .byte_level(6)
    .tensors(&[
        ("transformer.word_embeddings.weight", &[6, 8]),
        ("transformer.ln_f.weight", &[8]),
        ("transformer.ln_f.bias", &[8]),
        ("lm_head.weight", &[6, 8]),
        ("transformer.h.0.ln_attn.weight", &[8]),
        ("transformer.h.0.ln_attn.bias", &[8]),
        ("transformer.h.0.ln_mlp.weight", &[8]),
        ("transformer.h.0.ln_mlp.bias", &[8]),
        ("transformer.h.0.self_attention.query_key_value.weight", &[16, 8]),
        ("transformer.h.0.self_attention.dense.weight", &[8, 8]),
        ("transformer.h.0.mlp.dense_h_to_4h.weight", &[24, 8]),
        ("transformer.h.0.mlp.dense_4h_to_h.weight", &[8, 24]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "falcon.attention.head_count_kv"), 2);
    assert_eq!(key(&gguf, "falcon.context_length"), 8192);
    assert_eq!(key(&gguf, "falcon.rope.freq_base"), 500000.0);
    let order = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];
    let stored = tiny.values("transformer.h.0.self_attention.query_key_value.weight");
    assert_eq!(elements(&gguf, "blk.0.attn_qkv.weight"), picked(&stored, 8, &order));
    let norm = |name: &str| tiny.values(&format!("transformer.h.0.{name}.weight"));
    assert_eq!(elements(&gguf, "blk.0.attn_norm.weight"), norm("ln_mlp"));
    assert_eq!(elements(&gguf, "blk.0.attn_norm_2.weight"), norm("ln_attn"));
}

#[test]
fn starcoder_has_one_head_of_keys_or_one_for_each() {
    for (multi_query, kv_heads, qkv) in [(true, 1, 16), (false, 2, 24)] {
        let tiny = Tiny::new(json!({
            "architectures": ["GPTBigCodeForCausalLM"], "n_embd": 8, "n_head": 2, "n_layer": 1,
            "n_positions": 4, "n_inner": 16, "layer_norm_epsilon": 1e-5, "vocab_size": 6,
            "multi_query": multi_query,
        }))
        .byte_level(6)
        .tensors(&[
            ("transformer.wte.weight", &[6, 8]),
            ("transformer.wpe.weight", &[4, 8]),
            ("transformer.ln_f.weight", &[8]),
            ("transformer.ln_f.bias", &[8]),
            ("transformer.h.0.ln_1.weight", &[8]),
            ("transformer.h.0.ln_1.bias", &[8]),
            ("transformer.h.0.attn.c_attn.weight", &[qkv, 8]),
            ("transformer.h.0.attn.c_attn.bias", &[qkv]),
            ("transformer.h.0.attn.c_proj.weight", &[8, 8]),
            ("transformer.h.0.attn.c_proj.bias", &[8]),
            ("transformer.h.0.ln_2.weight", &[8]),
            ("transformer.h.0.ln_2.bias", &[8]),
            ("transformer.h.0.mlp.c_fc.weight", &[16, 8]),
            ("transformer.h.0.mlp.c_fc.bias", &[16]),
            ("transformer.h.0.mlp.c_proj.weight", &[8, 16]),
            ("transformer.h.0.mlp.c_proj.bias", &[8]),
        ]);
        let gguf = tiny.convert().unwrap();
        assert_sound(&gguf);
        assert_eq!(key(&gguf, "starcoder.attention.head_count_kv"), kv_heads);
        let stored = tiny.values("transformer.h.0.attn.c_attn.bias");
        let found = elements(&gguf, "blk.0.attn_qkv.bias");
        if multi_query {
            assert_eq!(found, stored);
        } else {
            let order = [
                0, 1, 2, 3, 12, 13, 14, 15, 4, 5, 6, 7, 16, 17, 18, 19, 8, 9, 10, 11, 20, 21, 22,
                23,
            ];
            assert_eq!(found, picked(&stored, 1, &order));
        }
        let stored = tiny.values("transformer.h.0.mlp.c_fc.weight");
        assert_eq!(elements(&gguf, "blk.0.ffn_up.weight"), stored);
    }
}

#[test]
fn starcoder2_has_norms_with_mean() {
    let tiny = Tiny::new(json!({
        "architectures": ["Starcoder2ForCausalLM"], "hidden_size": 8, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 16,
        "norm_epsilon": 1e-5, "max_position_embeddings": 4, "vocab_size": 6, "rope_theta": 999999.0,
    }))
    .byte_level(6)
    .tensors(&[
        ("model.embed_tokens.weight", &[6, 8]),
        ("model.norm.weight", &[8]),
        ("model.norm.bias", &[8]),
    ])
    .layers(
        2,
        &[
            ("model.layers.{}.input_layernorm.weight", &[8]),
            ("model.layers.{}.input_layernorm.bias", &[8]),
            ("model.layers.{}.self_attn.q_proj.weight", &[8, 8]),
            ("model.layers.{}.self_attn.q_proj.bias", &[8]),
            ("model.layers.{}.self_attn.k_proj.weight", &[4, 8]),
            ("model.layers.{}.self_attn.k_proj.bias", &[4]),
            ("model.layers.{}.self_attn.v_proj.weight", &[4, 8]),
            ("model.layers.{}.self_attn.v_proj.bias", &[4]),
            ("model.layers.{}.self_attn.o_proj.weight", &[8, 8]),
            ("model.layers.{}.self_attn.o_proj.bias", &[8]),
            ("model.layers.{}.post_attention_layernorm.weight", &[8]),
            ("model.layers.{}.post_attention_layernorm.bias", &[8]),
            ("model.layers.{}.mlp.c_fc.weight", &[16, 8]),
            ("model.layers.{}.mlp.c_fc.bias", &[16]),
            ("model.layers.{}.mlp.c_proj.weight", &[8, 16]),
            ("model.layers.{}.mlp.c_proj.bias", &[8]),
        ],
    );
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "starcoder2.attention.layer_norm_epsilon"), json!(1e-5f32));
    assert_eq!(key(&gguf, "starcoder2.rope.freq_base"), 999999.0);
    let stored = tiny.values("model.layers.1.self_attn.k_proj.weight");
    assert_eq!(elements(&gguf, "blk.1.attn_k.weight"), stored);
}
