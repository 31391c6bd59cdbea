//! Granite dense, MoE, hybrid, sliding-window and Switch; Bamba.

use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LAYERS, QUERY_WIDTH, TIED, WIDTH, alternating_layers,
    attention, checkpoint, config, gated_ffn, layer_tensor, layer_weight, llama_layer, mamba_mixer,
    merged, norms, pre_norms, with_rms_norm,
};
use crate::fixtures::round_trip::{assert_config_round_trip, assert_round_trip};
use crate::fixtures::{assert_valid, elements, metadata_value};

#[test]
pub fn granite_hybrid_and_bamba_round_trip() {
    const INNER: usize = 2 * WIDTH;
    const STATE: usize = 16;
    let states = mamba_mixer(
        INNER,
        &[
            ("", &[INNER + 2 * STATE]),
            ("mamba.in_proj.weight", &[2 * INNER + 2 * STATE + 8, WIDTH]),
            ("mamba.norm.weight", &[INNER]),
            ("mamba.dt_bias", &[8]),
            ("mamba.A_log", &[8]),
            ("mamba.D", &[8]),
        ],
    );
    let shared = vec![
        layer_weight("shared_mlp.input_linear", &[2 * FF, WIDTH]),
        layer_weight("shared_mlp.output_linear", &[WIDTH, FF]),
    ];
    let fields = |more: Value| {
        merged(
            json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "mamba_d_state": STATE,
            "mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_n_heads": 8, "mamba_expand": 2}),
            more,
        )
    };
    let granite = json!({"shared_intermediate_size": FF, "num_local_experts": 0,
        "num_experts_per_tok": 0, "attention_multiplier": 0.5, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.25, "logits_scaling": 8.0});
    let with_kinds = |kinds: [&str; 2]| {
        let kinds: Vec<_> = kinds.into_iter().cycle().take(LAYERS).collect();
        let mut all = fields(granite.clone());
        all["layer_types"] = json!(kinds);
        config("GraniteMoeHybridForCausalLM", "granitemoehybrid", all)
    };
    let every = vec![pre_norms(), shared];
    let tiny = checkpoint(with_kinds(["mamba", "attention"]), every.clone(), TIED);
    let exported = assert_round_trip(&alternating_layers(tiny, [&states, &attention()])).config;
    assert_eq!(exported["layer_types"][1], "attention");
    assert_eq!(exported["architectures"], json!(["GraniteMoeHybridForCausalLM"]));
    // Without Mamba layers it converts to another architecture.
    let whole = checkpoint(with_kinds(["attention"; 2]), [every, vec![attention()]].concat(), TIED);
    let gguf = whole.convert().unwrap();
    let model = gguf::Gguf::read(&gguf).unwrap();
    assert_eq!(model.metadata().architecture(), Some("granite"));
    let network = gated_ffn("feed_forward", FF);
    let every = vec![norms(&["input_layernorm", "pre_ff_layernorm"]), network];
    let bamba = config(
        "BambaForCausalLM",
        "bamba",
        fields(json!({"attn_layer_indices": [1, 3], "attn_rotary_emb": 8})),
    );
    let tiny = checkpoint(bamba, every, &["model.final_layernorm", "lm_head"]);
    let exported = assert_round_trip(&alternating_layers(tiny, [&states, &attention()])).config;
    assert_eq!(exported["attn_layer_indices"], json!([1, 3]));
    assert_eq!(exported["attn_rotary_emb"], 8);
}

#[test]
pub fn granite_swa_round_trip() {
    let scales = with_rms_norm(json!({"attention_multiplier": 0.5, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.25, "logits_scaling": 8.0, "sliding_window": 32,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
            "sliding_attention"], "no_rope_layers": [0, 1, 1, 1]}));
    let sinks = vec![layer_tensor("self_attn.sinks", &[HEADS])];
    let layer = [llama_layer(), vec![sinks.clone()]].concat();
    let dense = config("GraniteSWAForCausalLM", "granite_swa", scales.clone());
    let exported = assert_round_trip(&checkpoint(dense, layer, TIED)).config;
    assert_eq!(exported["no_rope_layers"], json!([0, 1, 1, 1]));
    let experts = vec![
        layer_weight("block_sparse_moe.router", &[EXPERTS, WIDTH]),
        layer_tensor("block_sparse_moe.experts.gate_up_proj", &[EXPERTS, 2 * FF, WIDTH]),
        layer_tensor("block_sparse_moe.experts.down_proj", &[EXPERTS, WIDTH, FF]),
        layer_weight("shared_mlp.input_linear", &[2 * EXPERT_FF, WIDTH]),
        layer_weight("shared_mlp.output_linear", &[WIDTH, EXPERT_FF]),
    ];
    let fields = json!({"num_local_experts": EXPERTS, "num_experts_per_tok": 2,
        "shared_intermediate_size": EXPERT_FF});
    let routed = config("GraniteMoeSWAForCausalLM", "granitemoe_swa", merged(scales, fields));
    let layer = vec![pre_norms(), attention(), sinks, experts];
    let exported = assert_round_trip(&checkpoint(routed, layer, TIED)).config;
    assert_eq!(exported["shared_intermediate_size"], EXPERT_FF);
    assert_eq!(exported["architectures"], json!(["GraniteMoeSWAForCausalLM"]));
}

#[test]
pub fn granite_and_granite_moe_round_trip() {
    let fields = json!({"rms_norm_eps": 1e-6, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.22, "logits_scaling": 8.0, "attention_multiplier": 0.015625,
        "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "rope_theta": 1e4});
    let mut dense = fields.clone();
    dense.as_object_mut().unwrap().retain(|name, _| !name.contains("experts"));
    assert_config_round_trip(config("GraniteForCausalLM", "granite", dense), llama_layer(), TIED);
    let experts = || {
        vec![
            pre_norms(),
            attention(),
            vec![
                layer_weight("block_sparse_moe.router.layer", &[EXPERTS, WIDTH]),
                layer_weight("block_sparse_moe.input_linear", &[EXPERTS, 2 * FF, WIDTH]),
                layer_weight("block_sparse_moe.output_linear", &[EXPERTS, WIDTH, FF]),
            ],
        ]
    };
    assert_config_round_trip(
        config("GraniteMoeForCausalLM", "granitemoe", fields.clone()),
        experts(),
        TIED,
    );
    let shared_expert = vec![
        layer_weight("shared_mlp.input_linear", &[2 * EXPERT_FF, WIDTH]),
        layer_weight("shared_mlp.output_linear", &[WIDTH, EXPERT_FF]),
    ];
    let mut shared = fields;
    shared["shared_intermediate_size"] = json!(EXPERT_FF);
    let class = "GraniteMoeSharedForCausalLM";
    let all = [experts(), vec![shared_expert.clone()]].concat();
    assert_config_round_trip(config(class, "granitemoeshared", shared.clone()), all, TIED);
    // Without routed experts, the shared expert is the whole feed-forward network.
    shared["num_local_experts"] = json!(0);
    shared["num_experts_per_tok"] = json!(0);
    shared["intermediate_size"] = json!(EXPERT_FF);
    let block = vec![pre_norms(), attention(), shared_expert];
    assert_config_round_trip(config(class, "granitemoeshared", shared), block, TIED);
}

#[test]
pub fn granite_switch_round_trip() {
    const ADAPTERS: usize = 2;
    const LORA: usize = 8;
    let own = json!({"num_hidden_layers": LAYERS + 1, "num_adapters": ADAPTERS, "max_lora_rank": LORA,
        "adapter_token_ids": [3, 4], "adapter_substitute_token_ids": [1, 2], "control_token_gain": 12.5,
        "shared_intermediate_size": FF, "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "logits_scaling": 8.0});
    let adapted = |stem: &str, slice: &str, columns: usize, rows: usize| {
        let name = |letter: &str| format!("{stem}.lora_{letter}{slice}");
        [
            layer_tensor(&name("A"), &[ADAPTERS, 1, LORA, columns]),
            layer_tensor(&name("B"), &[ADAPTERS, 1, rows, LORA]),
        ]
    };
    let mut every = pre_norms();
    let (q, k) = (QUERY_WIDTH, KV * HEAD);
    every.push(layer_weight("self_attn.qkv_proj.base_layer", &[q + 2 * k, WIDTH]));
    for (slice, rows) in [("_slices.0", q), ("_slices.1", k), ("_slices.2", k)] {
        every.extend(adapted("self_attn.qkv_proj", slice, WIDTH, rows));
    }
    every.push(layer_weight("self_attn.o_proj.base_layer", &[WIDTH, q]));
    every.extend(adapted("self_attn.o_proj", "", q, WIDTH));
    every.push(layer_weight("shared_mlp.input_linear.base_layer", &[2 * FF, WIDTH]));
    every.extend(adapted("shared_mlp.input_linear", "_slices.0", WIDTH, FF));
    every.extend(adapted("shared_mlp.input_linear", "_slices.1", WIDTH, FF));
    every.push(layer_weight("shared_mlp.output_linear.base_layer", &[WIDTH, FF]));
    every.extend(adapted("shared_mlp.output_linear", "", FF, WIDTH));
    let made = config("GraniteSwitchForCausalLM", "granite_switch", own.clone());
    let tiny = checkpoint(made, vec![every.clone()], TIED);
    let exported = assert_round_trip(&tiny);
    assert_eq!(exported.config["num_hidden_layers"], LAYERS + 1);
    assert_eq!(exported.config["adapter_substitute_token_ids"], json!([1, 2]));
    assert_eq!(exported.config["control_token_gain"], 12.5);

    let stored = tiny.values("model.layers.1.self_attn.qkv_proj.lora_B_slices.1");
    let ours = elements(&exported.gguf, "blk.1.attn_k.lora_b");
    let of_one = k * LORA;
    assert_eq!(ours[..of_one], vec![0.0; of_one]);
    // Row 1 of head 0 is the first row of its second half.
    let half = HEAD / 2 * LORA;
    assert_eq!(ours[of_one + LORA..of_one + 2 * LORA], stored[half..half + LORA]);
    let (ours, stored) = (
        elements(&exported.gguf, "blk.1.attn_qkv.weight"),
        tiny.values("model.layers.1.self_attn.qkv_proj.base_layer.weight"),
    );
    let half = HEAD / 2 * WIDTH;
    assert_eq!(ours[WIDTH..2 * WIDTH], stored[half..half + WIDTH]);
    assert_eq!(ours[(q + k) * WIDTH..], stored[(q + k) * WIDTH..], "values stay");

    let routed = merged(own, json!({"num_local_experts": EXPERTS}));
    let made = config("GraniteSwitchForCausalLM", "granite_switch", routed);
    let error = checkpoint(made, vec![every], TIED).convert().unwrap_err().to_string();
    assert!(error.contains("`num_local_experts` is 4"), "{error}");
}

#[test]
fn granite_moe_without_routed_experts_has_the_shared_width() {
    let layer = vec![
        pre_norms(),
        attention(),
        vec![
            layer_weight("shared_mlp.input_linear", &[2 * 32, WIDTH]),
            layer_weight("shared_mlp.output_linear", &[WIDTH, 32]),
        ],
    ];
    let fields = json!({"num_local_experts": 0, "num_experts_per_tok": 2,
        "shared_intermediate_size": 32, "rms_norm_eps": 1e-6});
    let config = config("GraniteMoeSharedForCausalLM", "granitemoeshared", fields);
    let gguf = checkpoint(config, layer, TIED).convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "granitemoe.feed_forward_length"), 32);
    assert_eq!(metadata_value(&gguf, "granitemoe.expert_used_count"), 0);
}
