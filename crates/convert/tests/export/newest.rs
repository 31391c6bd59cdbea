//! There and back: the newest models whose layers are of several kinds, with compressed attention in some.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::hybrids::by_turns;
use crate::newer::UNTIED;
use crate::there_and_back::{exported_as_it_was, there_and_back};
use crate::tiny::elements;

const EXPERTS: usize = 4;
const EXPERT_FF: usize = 32;
const RANK: usize = 24;
const FIXED: usize = 12;
const ROTATED: usize = 8;
const VALUE: usize = 20;
const INNER: usize = HEADS * HEAD;

fn raw(name: &str, shape: &[usize]) -> Listed {
    (format!("model.layers.{{}}.{name}"), shape.to_vec())
}

fn with(mut all: Value, fields: Value) -> Value {
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

fn fields(own: Value) -> Value {
    let all = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e6, "num_key_value_heads": HEADS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0, "routed_scaling_factor": 2.5,
        "norm_topk_prob": true, "kv_lora_rank": RANK, "q_lora_rank": RANK, "qk_nope_head_dim": FIXED,
        "qk_rope_head_dim": ROTATED, "v_head_dim": VALUE});
    with(all, own)
}

/// Experts, with a bias of this name.
fn network(bias: &str) -> Vec<Listed> {
    let mut all = norms(&["input_layernorm", "post_attention_layernorm"]);
    all.push(listed("mlp.gate", &[EXPERTS, WIDTH]));
    all.push(raw(&format!("mlp.gate.{bias}"), &[EXPERTS]));
    all.extend((0..EXPERTS).flat_map(|e| gated(&format!("mlp.experts.{e}"), EXPERT_FF)));
    all.extend(gated("mlp.shared_experts", EXPERT_FF));
    all
}

/// Compressed attention of so many heads, where so much rotates.
fn compressed(
    q: &str,
    heads: usize,
    rank: usize,
    [fixed, rotated, value]: [usize; 3],
) -> Vec<Listed> {
    let name = |part: &str| format!("{q}.{part}");
    vec![
        listed(&name("q_a_proj"), &[RANK, WIDTH]),
        listed(&name("q_a_layernorm"), &[RANK]),
        listed(&name("q_b_proj"), &[heads * (fixed + rotated), RANK]),
        listed(&name("kv_a_proj_with_mqa"), &[rank + rotated, WIDTH]),
        listed(&name("kv_a_layernorm"), &[rank]),
        listed(&name("kv_b_proj"), &[heads * (fixed + value), rank]),
    ]
}

fn delta(q: &str) -> Vec<Listed> {
    let mut all = vec![
        listed(&format!("{q}.o_norm"), &[HEAD]),
        listed(&format!("{q}.b_proj"), &[HEADS, WIDTH]),
    ];
    all.push(raw(&format!("{q}.A_log"), &[HEADS]));
    all.push(raw(&format!("{q}.dt_bias"), &[INNER]));
    all.push(listed(&format!("{q}.o_proj"), &[WIDTH, INNER]));
    for part in ["q", "k", "v"] {
        all.push(listed(&format!("{q}.{part}_proj"), &[INNER, WIDTH]));
        all.push(listed(&format!("{q}.{part}_conv1d"), &[INNER, 1, 4]));
    }
    all
}

fn indexer() -> Vec<Listed> {
    vec![
        listed("self_attn.indexer.wq_b", &[2 * HEAD, RANK]),
        listed("self_attn.indexer.wk", &[HEAD, WIDTH]),
        listed("self_attn.indexer.k_norm", &[HEAD]),
        raw("self_attn.indexer.k_norm.bias", &[HEAD]),
        listed("self_attn.indexer.weights_proj", &[2, WIDTH]),
    ]
}

#[test]
fn ling_has_gates_of_heads_between_delta_attention() {
    let own = json!({"head_dim": HEAD, "layer_group_size": 2, "short_conv_kernel_size": 4, "no_kda_lora": true,
        "kda_safe_gate": true, "kda_lower_bound": -5.0, "num_experts": EXPERTS, "num_shared_experts": 1,
        "gated_attention_proj_granularity_type": "head_wise", "score_function": "sigmoid",
        "moe_shared_expert_intermediate_size": EXPERT_FF,
        "expert_swiglu_limit_list": [7.0, 7.0, 0.0, 0.0]});
    let mut linear = delta("attention");
    linear.push(listed("attention.f_proj", &[INNER, WIDTH]));
    linear.push(listed("attention.g_proj", &[INNER, WIDTH]));
    let mut full = compressed("attention", HEADS, RANK, [FIXED, ROTATED, VALUE]);
    full.push(listed("attention.o_proj", &[WIDTH, HEADS * VALUE]));
    full.push(listed("attention.g_proj", &[HEADS, WIDTH]));
    let made = config("BailingMoeV3ForCausalLM", "bailing_moe_v3", fields(own.clone()));
    let tiny = checkpoint(made, vec![network("expert_bias")], UNTIED);
    let back = exported_as_it_was(&by_turns(named(tiny), [&linear, &full])).config;
    assert_eq!(back["layer_group_size"], 2);
    assert_eq!(back["expert_swiglu_limit_list"], json!([7.0, 7.0, 0.0, 0.0]));
    let other = with(own, json!({"gated_attention_proj_granularity_type": "element_wise"}));
    let other = config("BailingMoeV3ForCausalLM", "bailing_moe_v3", fields(other));
    let tiny = checkpoint(other, vec![network("expert_bias")], UNTIED);
    let fault = by_turns(named(tiny), [&linear, &full]).convert().unwrap_err().to_string();
    assert!(fault.contains("`gated_attention_proj_granularity_type`"), "{fault}");
}

/// With the embedding as Ling names it.
fn named(tiny: crate::tiny::Tiny) -> crate::tiny::Tiny {
    tiny.renamed("model.embed_tokens.weight", "model.word_embeddings.weight")
}

#[test]
fn glm_mixes_streams_around_delta_attention() {
    const STREAMS: usize = 2;
    const COUNT: usize = (2 + STREAMS) * STREAMS;
    let kinds: Vec<_> =
        ["linear_attention", "indexed_attention"].into_iter().cycle().take(LAYERS).collect();
    let own = json!({"qk_rope_head_dim": 0, "mla_use_nope": true, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
        "scoring_func": "sigmoid", "swiglu_limit": 10.0, "index_kpool": 4, "index_n_heads": 2, "index_head_dim": HEAD,
        "index_topk": 8, "indexer_types": vec!["full"; LAYERS], "hc_mult": STREAMS, "hc_eps": 1e-6,
        "hc_sinkhorn_iters": 20, "layer_types": kinds, "linear_attn_config": {"num_heads": HEADS, "head_dim": HEAD,
        "short_conv_kernel_size": 4, "gate_lower_bound": -5.0}});
    let mut every = network("e_score_correction_bias");
    for part in ["attn", "ffn"] {
        every.push(raw(&format!("hc_{part}_fn"), &[COUNT, STREAMS * WIDTH]));
        every.push(raw(&format!("hc_{part}_base"), &[COUNT]));
        every.push(raw(&format!("hc_{part}_scale"), &[3]));
    }
    let mut linear = delta("self_attn");
    for part in ["f", "g"] {
        linear.push(listed(&format!("self_attn.{part}_a_proj"), &[HEAD, WIDTH]));
        linear.push(listed(&format!("self_attn.{part}_b_proj"), &[INNER, HEAD]));
    }
    let mut full = compressed("self_attn", HEADS, RANK, [FIXED, 0, VALUE]);
    full.extend(indexer());
    full.push(listed("self_attn.o_proj", &[WIDTH, HEADS * VALUE]));
    full.push(raw("self_attn.indexer.index_kpool_compress_ape", &[4, HEAD]));
    full.push(raw("self_attn.indexer.index_kpool_compress_gate", &[HEAD, WIDTH]));
    let config = config("Glm5NextForConditionalGeneration", "glm5_next", fields(own));
    let tiny = by_turns(checkpoint(config, vec![every], UNTIED), [&linear, &full]);
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["layer_types"][2], "linear_attention");
    assert_eq!(back["linear_attn_config"]["gate_lower_bound"], -5.0);
    assert_eq!(back["hc_sinkhorn_iters"], 20);
}

#[test]
fn dots_has_windows_or_an_indexer() {
    const FEWER: usize = 2;
    const SMALLER: usize = 16;
    let kinds: Vec<_> =
        ["sliding_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
    let own = json!({"swa_num_attention_heads": FEWER, "swa_kv_lora_rank": SMALLER, "swa_qk_nope_head_dim": 16,
        "swa_qk_rope_head_dim": ROTATED, "swa_v_head_dim": 28, "swa_head_dim": 24, "swa_q_lora_rank": RANK,
        "swa_rope_theta": 1e4, "sliding_window_size": 32, "layer_types": kinds, "n_routed_experts": EXPERTS,
        "n_shared_experts": 1, "scoring_func": "sigmoid", "index_n_heads": 2, "index_head_dim": HEAD, "index_topk": 8});
    let mut every = network("e_score_correction_bias");
    every.push(listed("self_attn.k_rope_only_layernorm", &[ROTATED]));
    let mut windowed = compressed("self_attn", FEWER, SMALLER, [16, ROTATED, 28]);
    windowed.push(listed("self_attn.o_proj", &[WIDTH, FEWER * 28]));
    windowed.push(listed("self_attn.linear_gate", &[FEWER, WIDTH]));
    let mut full = compressed("self_attn", HEADS, RANK, [FIXED, ROTATED, VALUE]);
    full.push(listed("self_attn.o_proj", &[WIDTH, HEADS * VALUE]));
    full.push(listed("self_attn.linear_gate", &[HEADS, WIDTH]));
    full.extend(indexer());
    let made = |own: &Value| {
        let config = config("Dots3NoteTextForCausalLM", "dots3_note_text", fields(own.clone()));
        by_turns(checkpoint(config, vec![every.clone()], UNTIED), [&windowed, &full])
    };
    let back = exported_as_it_was(&made(&own)).config;
    assert_eq!(back["swa_num_attention_heads"], FEWER);
    assert_eq!(back["num_attention_heads"], HEADS);
    assert_eq!(back["swa_qk_nope_head_dim"], 16);
    let fault = made(&with(own, json!({"use_dsa": false}))).convert().unwrap_err().to_string();
    assert!(fault.contains("`use_dsa` is false"), "{fault}");
}

#[test]
fn kimi_scores_what_earlier_layers_gave() {
    const LATENT: usize = 40;
    let own = json!({"mla_use_nope": true, "num_experts": EXPERTS, "num_experts_per_token": 2,
        "num_shared_experts": 1, "moe_renormalize": true, "hidden_act": "situ", "moe_router_activation_func": "sigmoid",
        "routed_expert_hidden_size": LATENT, "attn_res_block_size": 4, "activation_situ_beta": 1.5,
        "activation_situ_linear_beta": 0.5, "linear_attn_config": {"full_attn_layers": [2, 4], "kda_layers": [1, 3],
        "head_dim": HEAD, "num_heads": HEADS, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0}});
    let mut every = norms(&["input_layernorm", "post_attention_layernorm"]);
    for part in ["self_attention_res", "mlp_res"] {
        every.push(listed(&format!("{part}_norm"), &[WIDTH]));
        every.push(listed(&format!("{part}_proj"), &[1, WIDTH]));
    }
    every.push(listed("block_sparse_moe.gate", &[EXPERTS, WIDTH]));
    every.push(raw("block_sparse_moe.gate.e_score_correction_bias", &[EXPERTS]));
    every.extend(gated("block_sparse_moe.shared_experts", EXPERT_FF));
    every.push(listed("block_sparse_moe.routed_expert_down_proj", &[LATENT, WIDTH]));
    every.push(listed("block_sparse_moe.routed_expert_up_proj", &[WIDTH, LATENT]));
    every.push(listed("block_sparse_moe.routed_expert_norm", &[LATENT]));
    for e in 0..EXPERTS {
        for (part, shape) in
            [("w1", [EXPERT_FF, LATENT]), ("w2", [LATENT, EXPERT_FF]), ("w3", [EXPERT_FF, LATENT])]
        {
            every.push(listed(&format!("block_sparse_moe.experts.{e}.{part}"), &shape));
        }
    }
    let mut linear = delta("self_attn");
    linear.push(listed("self_attn.f_a_proj", &[HEAD, WIDTH]));
    linear.push(listed("self_attn.f_b_proj", &[INNER, HEAD]));
    linear.push(listed("self_attn.g_proj", &[INNER, WIDTH]));
    let mut full = compressed("self_attn", HEADS, RANK, [FIXED, ROTATED, VALUE]);
    full.push(listed("self_attn.o_proj", &[WIDTH, HEADS * VALUE]));
    full.push(listed("self_attn.g_proj", &[HEADS * VALUE, WIDTH]));
    let config = config("KimiK3ForConditionalGeneration", "kimi_k3", fields(own));
    let tiny = checkpoint(config, vec![every], UNTIED).tensors(&[
        ("model.output_attn_res_norm.weight", &[WIDTH]),
        ("model.output_attn_res_proj.weight", &[1, WIDTH]),
    ]);
    let tiny = by_turns(tiny, [&linear, &full]);
    let norm = tiny.values("model.layers.1.mlp_res_norm.weight");
    let row = tiny.values("model.layers.1.mlp_res_proj.weight");
    let product: Vec<f32> = norm.iter().zip(row).map(|(norm, row)| norm * row).collect();
    assert_eq!(elements(&tiny.convert().unwrap(), "blk.1.ffn_res_score.weight"), product);
    // What counts is the product, which comes back as the norm.
    there_and_back(tiny.path(), u64::MAX);
}

#[test]
fn mistral_keeps_gates_above_what_they_gate_and_sharpens_attention() {
    let own = json!({"n_routed_experts": EXPERTS, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
            "original_max_position_embeddings": 64, "mscale_all_dim": 1.0, "mscale": 1.0,
            "llama_4_scaling_beta": 0.1}});
    let mut every = norms(&["input_layernorm", "post_attention_layernorm"]);
    every.extend(compressed("self_attn", HEADS, RANK, [FIXED, ROTATED, VALUE]));
    every.push(listed("self_attn.o_proj", &[WIDTH, HEADS * VALUE]));
    every.push(listed("mlp.gate", &[EXPERTS, WIDTH]));
    every.push(raw("mlp.experts.gate_up_proj", &[EXPERTS, 2 * EXPERT_FF, WIDTH]));
    every.push(raw("mlp.experts.down_proj", &[EXPERTS, WIDTH, EXPERT_FF]));
    every.extend(gated("mlp.shared_experts", EXPERT_FF));
    let config = config("Mistral3ForConditionalGeneration", "mistral4", fields(own));
    let tiny = checkpoint(config, vec![every], UNTIED);
    let back = exported_as_it_was(&tiny);
    let model = gguf::Gguf::read(&back.gguf).unwrap();
    assert_eq!(model.metadata().architecture(), Some("mistral4"));
    let vocabulary = gguf_convert::hf::vocabulary(tiny.path()).unwrap();
    assert_eq!(vocabulary.metadata.architecture(), Some("mistral4"));
    let sharper = model.metadata().get("mistral4.attention.temperature_scale");
    assert_eq!(sharper, Some(&gguf::Value::F32(0.1)));
    assert_eq!(back.config["model_type"], "mistral4");
}

#[test]
fn granite_has_adapters_behind_one_that_adds_nothing() {
    const ADAPTERS: usize = 2;
    const LORA: usize = 8;
    let own = json!({"num_hidden_layers": LAYERS + 1, "num_adapters": ADAPTERS, "max_lora_rank": LORA,
        "adapter_token_ids": [3, 4], "adapter_substitute_token_ids": [1, 2], "control_token_gain": 12.5,
        "shared_intermediate_size": FF, "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "logits_scaling": 8.0});
    let adapted = |stem: &str, slice: &str, columns: usize, rows: usize| {
        let name = |letter: &str| format!("{stem}.lora_{letter}{slice}");
        [
            raw(&name("A"), &[ADAPTERS, 1, LORA, columns]),
            raw(&name("B"), &[ADAPTERS, 1, rows, LORA]),
        ]
    };
    let mut every = norms(&["input_layernorm", "post_attention_layernorm"]);
    let (q, k) = (INNER, KV * HEAD);
    every.push(listed("self_attn.qkv_proj.base_layer", &[q + 2 * k, WIDTH]));
    for (slice, rows) in [("_slices.0", q), ("_slices.1", k), ("_slices.2", k)] {
        every.extend(adapted("self_attn.qkv_proj", slice, WIDTH, rows));
    }
    every.push(listed("self_attn.o_proj.base_layer", &[WIDTH, q]));
    every.extend(adapted("self_attn.o_proj", "", q, WIDTH));
    every.push(listed("shared_mlp.input_linear.base_layer", &[2 * FF, WIDTH]));
    every.extend(adapted("shared_mlp.input_linear", "_slices.0", WIDTH, FF));
    every.extend(adapted("shared_mlp.input_linear", "_slices.1", WIDTH, FF));
    every.push(listed("shared_mlp.output_linear.base_layer", &[WIDTH, FF]));
    every.extend(adapted("shared_mlp.output_linear", "", FF, WIDTH));
    let made = config("GraniteSwitchForCausalLM", "granite_switch", own.clone());
    let tiny = checkpoint(made, vec![every.clone()], &["model.norm"]);
    let back = exported_as_it_was(&tiny);
    assert_eq!(back.config["num_hidden_layers"], LAYERS + 1);
    assert_eq!(back.config["adapter_substitute_token_ids"], json!([1, 2]));
    assert_eq!(back.config["control_token_gain"], 12.5);

    let stored = tiny.values("model.layers.1.self_attn.qkv_proj.lora_B_slices.1");
    let ours = elements(&back.gguf, "blk.1.attn_k.lora_b");
    let of_one = k * LORA;
    assert_eq!(ours[..of_one], vec![0.0; of_one]);
    // Row 1 of the first head is the first of its second half.
    let half = HEAD / 2 * LORA;
    assert_eq!(ours[of_one + LORA..of_one + 2 * LORA], stored[half..half + LORA]);
    let (ours, stored) = (
        elements(&back.gguf, "blk.1.attn_qkv.weight"),
        tiny.values("model.layers.1.self_attn.qkv_proj.base_layer.weight"),
    );
    let half = HEAD / 2 * WIDTH;
    assert_eq!(ours[WIDTH..2 * WIDTH], stored[half..half + WIDTH]);
    assert_eq!(ours[(q + k) * WIDTH..], stored[(q + k) * WIDTH..], "values stay");

    let routed = with(own, json!({"num_local_experts": EXPERTS}));
    let made = config("GraniteSwitchForCausalLM", "granite_switch", routed);
    let fault = checkpoint(made, vec![every], &["model.norm"]).convert().unwrap_err().to_string();
    assert!(fault.contains("`num_local_experts` is 4"), "{fault}");
}
