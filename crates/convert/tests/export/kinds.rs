//! There and back: models whose layers differ in their heads or networks, or hold two kinds of attention.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::hybrids::{by_turns, state_space};
use crate::later::*;
use crate::newer::{TIED, UNTIED};
use crate::there_and_back::{exported_as_it_was, there_and_back};
use crate::tiny::Tiny;

fn falcon(fields: Value) -> Tiny {
    const INNER: usize = 2 * WIDTH;
    const STATE: usize = 8;
    let states = state_space(
        INNER,
        &[
            ("", &[INNER + 4 * STATE]),
            ("mamba.in_proj.weight", &[2 * INNER + 4 * STATE + 8, WIDTH]),
            ("mamba.norm.weight", &[INNER]),
            ("mamba.dt_bias", &[8]),
            ("mamba.A_log", &[8]),
            ("mamba.D", &[8]),
        ],
    );
    let all = rms(json!({"head_dim": HEAD, "mamba_d_ssm": INNER, "mamba_d_state": STATE,
        "mamba_d_conv": 4, "mamba_n_groups": 2, "mamba_n_heads": 8, "mamba_d_head": 16}));
    let layer = vec![
        norms(&["input_layernorm", "pre_ff_layernorm"]),
        attention(),
        states,
        gated("feed_forward", FF),
    ];
    let config = config("FalconH1ForCausalLM", "falcon_h1", with(all, fields));
    checkpoint(config, layer, &["model.final_layernorm", "lm_head"])
}

#[test]
fn falcon_has_a_state_space_beside_attention() {
    let back = exported_as_it_was(&falcon(json!({}))).config;
    assert_eq!(back["mamba_d_head"], 16);
    assert_eq!(back["mamba_rms_norm"], true);
    assert_eq!(
        back["mamba_norm_before_gate"], false,
        "which is not what `transformers` takes without it"
    );
    let message = falcon(json!({"mamba_rms_norm": true, "mamba_norm_before_gate": true})).convert();
    let message = message.unwrap_err().to_string();
    assert!(message.contains("`mamba_norm_before_gate` is true, which no program"), "{message}");
    // Factors become part of the weights.
    let factors = json!({"mlp_multipliers": [0.5, 0.25], "key_multiplier": 0.3,
        "attention_in_multiplier": 1.5, "ssm_in_multiplier": 0.7, "embedding_multiplier": 5.6,
        "ssm_multipliers": [0.35, 0.25, 0.18, 0.5, 0.35], "lm_head_multiplier": 0.02});
    let tiny = falcon(factors);
    tiny.write_weights();
    there_and_back(tiny.path(), u64::MAX);
}

#[test]
fn deci_has_layers_of_different_kinds() {
    let kind = |in_group: Option<u32>, linear: bool, share: Option<f64>| {
        json!({"attention": {"n_heads_in_group": in_group, "replace_with_linear": linear},
            "ffn": {"ffn_mult": share}})
    };
    // Widths are multiples of 256.
    let kinds = [
        kind(Some(2), false, Some(2.0)),
        kind(None, true, Some(2.0)),
        kind(None, false, Some(2.0)),
        kind(None, false, None),
    ];
    let fields = rms(json!({"block_configs": kinds, "num_key_value_heads": null}));
    let mut tiny = checkpoint(config("DeciLMForCausalLM", "nemotron-nas", fields), vec![], UNTIED);
    let of_layer = |layer: usize, listed: Vec<Listed>| {
        let filled = |(name, shape): Listed| (name.replace("{}", &layer.to_string()), shape);
        listed.into_iter().map(filled).collect::<Vec<_>>()
    };
    let network = [norms(&["post_attention_layernorm"]), gated("mlp", 256)].concat();
    let linear = vec![listed("self_attn.linear_attn", &[WIDTH, WIDTH])];
    let all = [
        of_layer(0, [norms(&["input_layernorm"]), attention(), network.clone()].concat()),
        of_layer(1, [norms(&["input_layernorm"]), linear, network.clone()].concat()),
        of_layer(2, network),
    ]
    .concat();
    for (name, shape) in &all {
        tiny = tiny.tensors(&[(name, shape)]);
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["block_configs"][1]["attention"]["replace_with_linear"], true);
    assert_eq!(back["num_attention_heads"], HEADS);
    // The first ones list heads.
    let fields = rms(json!({"num_key_value_heads_per_layer": [2, 2, 2, 2]}));
    let first = config("DeciLMForCausalLM", "deci", fields);
    let back = exported_as_it_was(&checkpoint(first, llama_block(), UNTIED)).config;
    assert_eq!(back["num_key_value_heads_per_layer"], json!([2, 2, 2, 2]));
}

/// Queries, keys, values and what joins them, of so many heads.
fn heads(heads: usize, kv: usize, value: usize) -> Vec<Listed> {
    vec![
        listed("self_attn.q_proj", &[heads * HEAD, WIDTH]),
        listed("self_attn.k_proj", &[kv * HEAD, WIDTH]),
        listed("self_attn.v_proj", &[kv * value, WIDTH]),
        listed("self_attn.o_proj", &[WIDTH, heads * value]),
    ]
}

#[test]
fn step_has_more_heads_in_layers_with_a_window() {
    let kinds = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"];
    let fields = rms(json!({"num_hidden_layers": LAYERS - 1, "num_attention_groups": KV,
        "head_dim": HEAD, "layer_types": kinds, "partial_rotary_factors": [0.5, 1.0, 0.5, 1.0],
        "num_key_value_heads": null, "sliding_window": 16, "rope_theta": [5e6, 1e4],
        "attention_other_setting": {"num_attention_heads": 6, "num_attention_groups": 1},
        "moe_num_experts": EXPERTS, "moe_top_k": 2, "moe_intermediate_size": EXPERT_FF,
        "share_expert_dim": EXPERT_FF, "moe_router_scaling_factor": 3.0, "norm_expert_weight": true,
        "moe_layers_enum": "1,2", "swiglu_limits": [0.0, 7.0, 7.0], "num_nextn_predict_layers": 1}));
    let experts = [
        vec![
            listed("moe.gate", &[EXPERTS, WIDTH]),
            raw("moe.router_bias", &[EXPERTS]),
            listed("moe.gate_proj", &[EXPERTS, EXPERT_FF, WIDTH]),
            listed("moe.up_proj", &[EXPERTS, EXPERT_FF, WIDTH]),
            listed("moe.down_proj", &[EXPERTS, WIDTH, EXPERT_FF]),
        ],
        gated("share_expert", EXPERT_FF),
    ]
    .concat();
    let usual =
        [heads(HEADS, KV, HEAD), vec![listed("self_attn.g_proj", &[HEADS, WIDTH])]].concat();
    let windowed = [heads(6, 1, HEAD), vec![listed("self_attn.g_proj", &[6, WIDTH])]].concat();
    let every = [two_norms(), head_norms()].concat();
    let class = "Step3p5ForCausalLM";
    let mut tiny = checkpoint(config(class, "step3p5", fields), vec![every], UNTIED);
    tiny = by_turns(tiny, [&usual, &windowed]);
    for (layer, network) in
        [gated("mlp", FF), experts.clone(), experts, gated("mlp", FF)].into_iter().enumerate()
    {
        for (name, shape) in network {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), &shape)]);
        }
    }
    for (name, shape) in [
        ("eh_proj", &[WIDTH, 2 * WIDTH][..]),
        ("enorm", &[WIDTH]),
        ("hnorm", &[WIDTH]),
        ("transformer.shared_head.norm", &[WIDTH]),
        ("transformer.shared_head.output", &[VOCAB, WIDTH]),
    ] {
        tiny = tiny.tensors(&[(&format!("model.layers.3.{name}.weight"), shape)]);
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["num_hidden_layers"], LAYERS - 1);
    assert_eq!(back["attention_other_setting"]["num_attention_heads"], 6);
    assert_eq!(back["rope_theta"], json!([5e6, 1e4]));
}

#[test]
fn mimo_has_narrow_values() {
    const VALUE: usize = 8;
    let fields = rms(json!({"head_dim": HEAD, "v_head_dim": VALUE, "layernorm_epsilon": 1e-5,
        "rms_norm_eps": null, "swa_num_key_value_heads": 4, "swa_rope_theta": 1e4,
        "hybrid_layer_pattern": [0, 1, 0, 1], "sliding_window": 16, "partial_rotary_factor": 0.5,
        "n_routed_experts": EXPERTS, "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF,
        "scoring_func": "sigmoid", "topk_method": "noaux_tc", "attention_value_scale": 0.7}));
    let network = [
        vec![
            listed("mlp.gate", &[EXPERTS, WIDTH]),
            raw("mlp.gate.e_score_correction_bias", &[EXPERTS]),
        ],
        one_by_one("mlp", PROJECTIONS),
    ]
    .concat();
    let windowed =
        [heads(HEADS, 4, VALUE), vec![raw("self_attn.attention_sink_bias", &[HEADS])]].concat();
    let class = "MiMoV2FlashForCausalLM";
    let tiny =
        checkpoint(config(class, "mimo_v2_flash", fields), vec![two_norms(), network], UNTIED);
    let mut tiny = by_turns(tiny, [&heads(HEADS, KV, VALUE), &windowed]);
    let further = [two_norms(), windowed, gated("mlp", FF)].concat();
    for (name, shape) in further {
        let name = name.replace("model.layers.{}", "model.mtp.layers.0");
        tiny = tiny.tensors(&[(&name, &shape)]);
    }
    for (name, shape) in [
        ("eh_proj", &[WIDTH, 2 * WIDTH][..]),
        ("enorm", &[WIDTH]),
        ("hnorm", &[WIDTH]),
        ("final_layernorm", &[WIDTH]),
    ] {
        tiny = tiny.tensors(&[(&format!("model.mtp.layers.0.{name}.weight"), shape)]);
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["hybrid_layer_pattern"], json!([0, 1, 0, 1]));
    assert_eq!(
        (&back["num_key_value_heads"], &back["swa_num_key_value_heads"]),
        (&json!(2), &json!(4))
    );
}

#[test]
fn laguna_gates_what_attention_gives() {
    let rope = json!({
        "full_attention": {"rope_type": "yarn", "rope_theta": 5e5, "partial_rotary_factor": 0.5,
            "factor": 8, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "sliding_window": 16,
        "num_attention_heads_per_layer": [4, 6, 4, 6], "num_attention_heads": 6,
        "mlp_layer_types": ["sparse", "sparse", "sparse", "sparse"], "num_experts": EXPERTS,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "gating": "per-head",
        "shared_expert_intermediate_size": EXPERT_FF, "moe_routed_scaling_factor": 2.5,
        "rope_parameters": rope});
    let network = [
        vec![
            listed("mlp.gate", &[EXPERTS, WIDTH]),
            raw("mlp.experts.e_score_correction_bias", &[EXPERTS]),
        ],
        one_by_one("mlp", PROJECTIONS),
        gated("mlp.shared_expert", EXPERT_FF),
    ]
    .concat();
    let of = |count: usize| {
        [heads(count, KV, HEAD), vec![listed("self_attn.g_proj", &[count, WIDTH])]].concat()
    };
    let every = vec![two_norms(), head_norms(), network];
    let tiny = checkpoint(config("LagunaForCausalLM", "laguna", fields), every, TIED);
    let back = exported_as_it_was(&by_turns(tiny, [&of(4), &of(6)])).config;
    assert_eq!(back["num_attention_heads_per_layer"], json!([4, 6, 4, 6]));
    assert_eq!(back["rope_parameters"], rope);
    assert_eq!(back["gating"], "per-head");
}

#[test]
fn hrm_has_two_stacks() {
    const OF_STACK: usize = 2;
    let fields = rms(json!({"head_dim": HEAD, "num_key_value_heads": null, "H_cycles": 2,
        "L_cycles": 1, "num_layers_per_stack": OF_STACK, "num_hidden_layers": 8,
        "embedding_scale": 50.0, "prefix_lm": true}));
    let mut tiny = Tiny::new(config("HrmTextForCausalLM", "hrm_text", fields)).byte_level(VOCAB);
    tiny = tiny.tensors(&[
        ("model.embed_tokens.weight", &[VOCAB, WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
        ("model.z_L_init", &[WIDTH]),
    ]);
    for stack in ["L", "H"] {
        for (name, shape) in [
            ("attn.gqkv_proj", [4 * HEADS * HEAD, WIDTH]),
            ("attn.o_proj", [WIDTH, HEADS * HEAD]),
            ("mlp.gate_up_proj", [2 * FF, WIDTH]),
            ("mlp.down_proj", [WIDTH, FF]),
        ] {
            let name = format!("model.{stack}_module.layers.{{}}.{name}.weight");
            tiny = tiny.layers(OF_STACK, &[(&name, &shape)]);
        }
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["num_layers_per_stack"], OF_STACK);
    assert_eq!(back["num_hidden_layers"], 8);
}

#[test]
fn minimax_chooses_blocks_of_tokens() {
    let of_indexer = json!({"sparse_num_index_heads": 2, "sparse_index_dim": HEAD,
        "sparse_topk_blocks": 4, "sparse_block_size": 16, "sparse_local_block": 1});
    let fields = rms(json!({"head_dim": HEAD, "rotary_dim": 8, "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF, "dense_intermediate_size": FF,
        "n_shared_experts": 1, "routed_scaling_factor": 2.0, "moe_layer_freq": [1, 1, 1, 1],
        "scoring_func": "sigmoid", "sparse_attention_config": of_indexer}));
    let network = [
        vec![
            listed("block_sparse_moe.gate", &[EXPERTS, WIDTH]),
            raw("block_sparse_moe.e_score_correction_bias", &[EXPERTS]),
        ],
        one_by_one("block_sparse_moe", ["w1", "w2", "w3"]),
        gated("block_sparse_moe.shared_experts", EXPERT_FF),
    ]
    .concat();
    let indexer = vec![
        listed("self_attn.index_q_proj", &[2 * HEAD, WIDTH]),
        listed("self_attn.index_k_proj", &[HEAD, WIDTH]),
        listed("self_attn.index_q_norm", &[HEAD]),
        listed("self_attn.index_k_norm", &[HEAD]),
    ];
    let layer = vec![two_norms(), attention(), head_norms(), network, indexer];
    let class = "MiniMaxM3SparseForCausalLM";
    let back =
        exported_as_it_was(&checkpoint(config(class, "minimax_m3", fields), layer, UNTIED)).config;
    assert_eq!(back["sparse_attention_config"], of_indexer);
    assert_eq!(back["intermediate_size"], EXPERT_FF);
}
