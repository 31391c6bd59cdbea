//! The first transformers.

use serde_json::json;

use crate::there_and_back::exported_as_it_was;
use crate::tiny::elements;
use crate::{Tensors, tiny};

#[test]
fn gpt_neox_says_how_it_rotates() {
    let neox = tiny(
        "GPTNeoXForCausalLM",
        json!({
            "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2,
            "intermediate_size": 16, "layer_norm_eps": 1e-6, "max_position_embeddings": 4,
            "rotary_emb_base": 50000, "rotary_pct": 0.5, "use_parallel_residual": false,
        }),
        &[
            ("gpt_neox.embed_in.weight", &[6, 8]),
            ("gpt_neox.final_layer_norm.weight", &[8]),
            ("gpt_neox.final_layer_norm.bias", &[8]),
            ("embed_out.weight", &[6, 8]),
        ],
        &[
            ("gpt_neox.layers.{}.input_layernorm.weight", &[8]),
            ("gpt_neox.layers.{}.input_layernorm.bias", &[8]),
            ("gpt_neox.layers.{}.attention.query_key_value.weight", &[24, 8]),
            ("gpt_neox.layers.{}.attention.query_key_value.bias", &[24]),
            ("gpt_neox.layers.{}.attention.dense.weight", &[8, 8]),
            ("gpt_neox.layers.{}.attention.dense.bias", &[8]),
            ("gpt_neox.layers.{}.post_attention_layernorm.weight", &[8]),
            ("gpt_neox.layers.{}.post_attention_layernorm.bias", &[8]),
            ("gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", &[16, 8]),
            ("gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", &[16]),
            ("gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", &[8, 16]),
            ("gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", &[8]),
        ],
    );
    exported_as_it_was(&neox);
}

#[test]
fn mpt_comes_back_with_its_attention() {
    let attention = json!({
        "alibi": false, "clip_qkv": 6.0, "kv_n_heads": 2, "qk_ln": true, "prefix_lm": false,
    });
    let mpt = tiny(
        "MPTForCausalLM",
        json!({
            "d_model": 8, "n_heads": 2, "n_layers": 2, "max_seq_len": 4, "expansion_ratio": 2,
            "attn_config": attention, "no_bias": false,
        }),
        &[
            ("transformer.wte.weight", &[6, 8]),
            ("transformer.wpe.weight", &[4, 8]),
            ("transformer.norm_f.weight", &[8]),
        ],
        &[
            ("transformer.blocks.{}.norm_1.weight", &[8]),
            ("transformer.blocks.{}.attn.Wqkv.weight", &[24, 8]),
            ("transformer.blocks.{}.attn.Wqkv.bias", &[24]),
            ("transformer.blocks.{}.attn.q_ln.weight", &[8]),
            ("transformer.blocks.{}.attn.k_ln.weight", &[8]),
            ("transformer.blocks.{}.attn.out_proj.weight", &[8, 8]),
            ("transformer.blocks.{}.norm_2.weight", &[8]),
            ("transformer.blocks.{}.ffn.up_proj.weight", &[16, 8]),
            ("transformer.blocks.{}.ffn.down_proj.weight", &[8, 16]),
        ],
    );
    exported_as_it_was(&mpt);
}

/// What all generations have.
const FALCON: Tensors = &[
    ("transformer.word_embeddings.weight", &[6, 8]),
    ("transformer.ln_f.weight", &[8]),
    ("transformer.ln_f.bias", &[8]),
    ("lm_head.weight", &[6, 8]),
];
const FALCON_LAYER: Tensors = &[
    ("transformer.h.{}.self_attention.dense.weight", &[8, 8]),
    ("transformer.h.{}.mlp.dense_h_to_4h.weight", &[24, 8]),
    ("transformer.h.{}.mlp.dense_4h_to_h.weight", &[8, 24]),
];

#[test]
fn every_generation_of_falcon_comes_back() {
    let one_norm: Tensors = &[
        ("transformer.h.{}.input_layernorm.weight", &[8]),
        ("transformer.h.{}.input_layernorm.bias", &[8]),
    ];
    let two_norms: Tensors = &[
        ("transformer.h.{}.ln_attn.weight", &[8]),
        ("transformer.h.{}.ln_attn.bias", &[8]),
        ("transformer.h.{}.ln_mlp.weight", &[8]),
        ("transformer.h.{}.ln_mlp.bias", &[8]),
    ];
    // The second and third have the layout of the second generation, the fourth every head its
    // keys.
    for (fields, norms, rows) in [
        (json!({"multi_query": true}), one_norm, 12),
        (json!({"num_kv_heads": 2, "new_decoder_architecture": true}), two_norms, 16),
        (
            json!({"num_kv_heads": 2, "new_decoder_architecture": true,
                "num_ln_in_parallel_attn": 1}),
            one_norm,
            16,
        ),
        (json!({"multi_query": false}), one_norm, 24),
    ] {
        let mut config = json!({
            "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2,
            "layer_norm_epsilon": 1e-5, "rope_theta": 500000.0, "ffn_hidden_size": 24,
            "max_position_embeddings": 8192,
        });
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let falcon = tiny("FalconForCausalLM", config, FALCON, FALCON_LAYER)
            .layers(2, norms)
            .layers(2, &[("transformer.h.{}.self_attention.query_key_value.weight", &[rows, 8])]);
        let gguf = exported_as_it_was(&falcon).gguf;
        let name = norms.last().unwrap().0.replace("{}", "1");
        assert_eq!(elements(&gguf, "blk.1.attn_norm.bias"), falcon.values(&name));
    }
}

#[test]
fn starcoder_comes_back_with_one_head_of_keys_or_one_for_each() {
    for (multi_query, qkv) in [(true, 16), (false, 24)] {
        let starcoder = tiny(
            "GPTBigCodeForCausalLM",
            json!({
                "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 4, "n_inner": 16,
                "layer_norm_epsilon": 1e-5, "multi_query": multi_query,
            }),
            &[
                ("transformer.wte.weight", &[6, 8]),
                ("transformer.wpe.weight", &[4, 8]),
                ("transformer.ln_f.weight", &[8]),
                ("transformer.ln_f.bias", &[8]),
            ],
            &[
                ("transformer.h.{}.ln_1.weight", &[8]),
                ("transformer.h.{}.ln_1.bias", &[8]),
                ("transformer.h.{}.attn.c_attn.weight", &[qkv, 8]),
                ("transformer.h.{}.attn.c_attn.bias", &[qkv]),
                ("transformer.h.{}.attn.c_proj.weight", &[8, 8]),
                ("transformer.h.{}.attn.c_proj.bias", &[8]),
                ("transformer.h.{}.ln_2.weight", &[8]),
                ("transformer.h.{}.ln_2.bias", &[8]),
                ("transformer.h.{}.mlp.c_fc.weight", &[16, 8]),
                ("transformer.h.{}.mlp.c_fc.bias", &[16]),
                ("transformer.h.{}.mlp.c_proj.weight", &[8, 16]),
                ("transformer.h.{}.mlp.c_proj.bias", &[8]),
            ],
        );
        exported_as_it_was(&starcoder);
    }
}
