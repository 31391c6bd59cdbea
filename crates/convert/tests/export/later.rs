//! There and back: decoders of later families whose layers are all alike, or dense before experts.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::newer::{TIED, UNTIED};
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tiny::Tiny;
use crate::tokenizer_files::piece;

pub const EXPERTS: usize = 4;
pub const EXPERT_FF: usize = 32;
const RANK: usize = 24;
const FIXED: usize = 12;
const ROTATED: usize = 8;
const VALUE: usize = 20;

pub fn with(mut all: Value, fields: Value) -> Value {
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

pub fn rms(fields: Value) -> Value {
    with(json!({"rms_norm_eps": 1e-5, "rope_theta": 1e6}), fields)
}

pub fn two_norms() -> Vec<Listed> {
    norms(&["input_layernorm", "post_attention_layernorm"])
}

pub fn head_norms() -> Vec<Listed> {
    vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])]
}

pub fn one_by_one(stem: &str, parts: [&str; 3]) -> Vec<Listed> {
    let of_expert = |e: usize| {
        let name = move |part: &str| format!("{stem}.experts.{e}.{part}");
        let [gate, down, up] = parts;
        vec![
            listed(&name(gate), &[EXPERT_FF, WIDTH]),
            listed(&name(down), &[WIDTH, EXPERT_FF]),
            listed(&name(up), &[EXPERT_FF, WIDTH]),
        ]
    };
    (0..EXPERTS).flat_map(of_expert).collect()
}

pub const PROJECTIONS: [&str; 3] = ["gate_proj", "down_proj", "up_proj"];

pub fn raw(name: &str, shape: &[usize]) -> Listed {
    (format!("model.layers.{{}}.{name}"), shape.to_vec())
}

/// A router with what helps it to choose, experts, and one that is always asked.
pub fn beside_shared() -> Vec<Listed> {
    let router = vec![
        listed("mlp.gate", &[EXPERTS, WIDTH]),
        raw("mlp.gate.e_score_correction_bias", &[EXPERTS]),
    ];
    [router, one_by_one("mlp", PROJECTIONS), gated("mlp.shared_experts", EXPERT_FF)].concat()
}

/// The last layer guesses further tokens, and has what joins it to the model.
pub fn further(mut tiny: Tiny) -> Tiny {
    let last = format!("model.layers.{}", LAYERS - 1);
    for (name, shape) in [
        ("eh_proj", &[WIDTH, 2 * WIDTH][..]),
        ("enorm", &[WIDTH]),
        ("hnorm", &[WIDTH]),
        ("shared_head.norm", &[WIDTH]),
    ] {
        tiny = tiny.tensors(&[(&format!("{last}.{name}.weight"), shape)]);
    }
    tiny
}

pub fn sentencepiece(tiny: &Tiny) {
    let kind = |i| if i == 0 { 2 } else { 1 };
    let pieces: Vec<u8> = (0..VOCAB).flat_map(|i| piece(&format!("c{i}"), 0.0, kind(i))).collect();
    tiny.file("tokenizer.model", pieces);
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
}

fn routed(fields: Value) -> Value {
    let all = rms(json!({"n_routed_experts": EXPERTS, "n_shared_experts": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "n_group": 2, "topk_group": 1,
        "first_k_dense_replace": 0, "routed_scaling_factor": 2.5, "norm_topk_prob": true}));
    with(all, fields)
}

fn compressed() -> Vec<Listed> {
    vec![
        listed("self_attn.q_a_proj", &[RANK, WIDTH]),
        listed("self_attn.q_a_layernorm", &[RANK]),
        listed("self_attn.q_b_proj", &[HEADS * (FIXED + ROTATED), RANK]),
        listed("self_attn.kv_a_proj_with_mqa", &[RANK + ROTATED, WIDTH]),
        listed("self_attn.kv_a_layernorm", &[RANK]),
        listed("self_attn.kv_b_proj", &[HEADS * (FIXED + VALUE), RANK]),
        listed("self_attn.o_proj", &[WIDTH, HEADS * VALUE]),
    ]
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

const COMPRESSED: [(&str, usize); 8] = [
    ("num_key_value_heads", HEADS),
    ("q_lora_rank", RANK),
    ("kv_lora_rank", RANK),
    ("qk_nope_head_dim", FIXED),
    ("qk_rope_head_dim", ROTATED),
    ("v_head_dim", VALUE),
    ("num_nextn_predict_layers", 1),
    ("num_hidden_layers", LAYERS - 1),
];

#[test]
fn layers_that_guess_further_tokens_come_along_with_compressed_attention() {
    let mut fields = routed(json!({"scoring_func": "sigmoid"}));
    for (field, value) in COMPRESSED {
        fields[field] = json!(value);
    }
    let layer = vec![two_norms(), compressed(), beside_shared()];
    let config_of = |class, kind, fields: &Value| config(class, kind, fields.clone());
    let lite = config_of("Glm4MoeLiteForCausalLM", "glm4_moe_lite", &fields);
    let back = exported_as_it_was(&further(checkpoint(lite, layer.clone(), UNTIED))).config;
    assert_eq!(back["num_hidden_layers"], LAYERS - 1);
    assert_eq!(back["architectures"], json!(["Glm4MoeLiteForCausalLM"]));
    for (field, value) in [("index_n_heads", 2), ("index_head_dim", HEAD), ("index_topk", 8)] {
        fields[field] = json!(value);
    }
    let layer = [layer, vec![indexer()]].concat();
    let third = config_of("DeepseekV32ForCausalLM", "deepseek_v32", &fields);
    let back = exported_as_it_was(&further(checkpoint(third, layer.clone(), UNTIED))).config;
    assert_eq!(back["index_topk"], 8);
    fields["indexer_types"] = json!(["full", "shared", "full"]);
    let fifth = config_of("GlmMoeDsaForCausalLM", "glm_moe_dsa", &fields);
    let back = exported_as_it_was(&further(checkpoint(fifth, layer, UNTIED))).config;
    assert_eq!(back["indexer_types"], json!(["full", "shared", "full"]));
}

#[test]
fn streams_of_the_residual_are_mixed() {
    const STREAMS: usize = 2;
    let mut fields = routed(
        json!({"num_nextn_predict_layers": 0, "n_group": null, "topk_group": null,
        "hc_mult": STREAMS, "hc_eps": 1e-6, "hc_magnitude": 2.0, "swiglu_limit": 7.0, "index_n_heads": 2,
        "index_head_dim": HEAD, "index_topk": 8, "indexer_types": vec!["full"; LAYERS]}),
    );
    for (field, value) in COMPRESSED.iter().filter(|(field, _)| !field.starts_with("num_")) {
        fields[*field] = json!(value);
    }
    let mut mixed = vec![listed("self_attn.gate_proj", &[HEADS * VALUE, WIDTH])];
    mixed.push(raw("self_attn.learnable_sink_param", &[HEADS]));
    for part in ["attn", "mlp"] {
        let name = |end: &str| format!("hc_{part}_layer.hc_pre.hc_{end}");
        mixed.push(raw(&name("fn"), &[2 * STREAMS, STREAMS * WIDTH]));
        mixed.push(raw(&name("base"), &[2 * STREAMS]));
        mixed.push(raw(&name("scale"), &[2]));
    }
    let layer = vec![two_norms(), compressed(), indexer(), beside_shared(), mixed];
    let tiny = checkpoint(config("HYV4ForCausalLM", "hy_v4", fields), layer, UNTIED).tensors(&[
        ("model.hc_head.hc_head_fn", &[STREAMS, STREAMS * WIDTH]),
        ("model.hc_head.hc_head_base", &[STREAMS]),
        ("model.hc_head.hc_head_scale", &[1]),
    ]);
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["hc_magnitude"], 2.0);
    assert_eq!(back["swiglu_limit"], 7.0);
    assert_eq!(back["architectures"], json!(["HYV4ForCausalLM"]));
}

#[test]
fn solar_comes_back_as_its_sibling() {
    let layer = vec![two_norms(), attention(), beside_shared()];
    let fields = routed(json!({"head_dim": HEAD, "partial_rotary_factor": 1.0}));
    let tiny = checkpoint(config("SolarOpenForCausalLM", "solar_open", fields), layer, UNTIED);
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["architectures"], json!(["Glm4MoeForCausalLM"]));
    assert_eq!(back["partial_rotary_factor"].as_f64(), Some(1.0));
}

#[test]
fn glm_that_sees_turns_halves() {
    let layer = vec![
        two_norms(),
        attention(),
        norms(&["post_self_attn_layernorm", "post_mlp_layernorm"]),
        vec![listed("mlp.gate_up_proj", &[2 * FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])],
    ];
    let scaling = json!({"type": "default", "mrope_section": [2, 1, 1]});
    let fields = rms(json!({"rope_scaling": scaling, "partial_rotary_factor": 0.5,
        "head_dim": HEAD}));
    let class = "Glm4vForConditionalGeneration";
    let seeing = config(class, "glm4v", fields.clone());
    let back = exported_as_it_was(&checkpoint(seeing, layer.clone(), UNTIED)).config;
    assert_eq!(back["architectures"], json!([class]));
    let fields =
        with(fields, json!({"num_nextn_predict_layers": 1, "num_hidden_layers": LAYERS - 1}));
    let class = "GlmOcrForConditionalGeneration";
    let reading = further(checkpoint(config(class, "glm_ocr", fields), layer, UNTIED));
    assert_eq!(exported_as_it_was(&reading).config["architectures"], json!([class]));
}

#[test]
fn exaone_began_with_other_names() {
    let layer: Vec<Listed> = [
        ("ln_1", &[WIDTH][..]),
        ("attn.attention.q_proj", &[HEADS * HEAD, WIDTH]),
        ("attn.attention.k_proj", &[KV * HEAD, WIDTH]),
        ("attn.attention.v_proj", &[KV * HEAD, WIDTH]),
        ("attn.attention.out_proj", &[WIDTH, HEADS * HEAD]),
        ("ln_2", &[WIDTH]),
        ("mlp.c_fc_0", &[FF, WIDTH]),
        ("mlp.c_fc_1", &[FF, WIDTH]),
        ("mlp.c_proj", &[WIDTH, FF]),
    ]
    .map(|(name, shape)| (format!("transformer.h.{{}}.{name}.weight"), shape.to_vec()))
    .to_vec();
    let fields = json!({"layer_norm_epsilon": 1e-5, "rope_theta": 1e6, "head_dim": HEAD});
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.ln_f", &[WIDTH])];
    exported_as_it_was(&named(config("ExaoneForCausalLM", "exaone", fields), &top, &layer));
}

/// A checkpoint with these tensors outside of layers, and these in each.
pub fn named(config: Value, top: &[(&str, &[usize])], layer: &[Listed]) -> Tiny {
    let mut tiny = Tiny::new(config).byte_level(VOCAB);
    for (name, shape) in top.iter().chain(&[("lm_head", &[VOCAB, WIDTH][..])]) {
        tiny = tiny.tensors(&[(&format!("{name}.weight"), shape)]);
    }
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    tiny.layers(LAYERS, &layer)
}

#[test]
fn exaone_guesses_further_tokens_under_names_of_their_own() {
    let mut network = beside_shared();
    network[1] = raw("mlp.e_score_correction_bias", &[EXPERTS]);
    let layer = vec![two_norms(), attention(), head_norms(), network];
    let fields = rms(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "num_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0,
        "routed_scaling_factor": 2.5, "norm_topk_prob": true, "scoring_func": "sigmoid",
        "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 1, "sliding_window": 32,
        "sliding_window_pattern": "LLLG"}));
    let class = "ExaoneMoEForCausalLM";
    let back = exported_as_it_was(&guessing(config(class, "exaone_moe", fields), layer)).config;
    assert_eq!(back["num_nextn_predict_layers"], 1);
    let norms = norms(&["post_attention_layernorm", "post_feedforward_layernorm"]);
    let layer = vec![norms, attention(), gated("mlp", FF), head_norms()];
    let fields = rms(json!({"head_dim": HEAD, "num_nextn_predict_layers": 1}));
    let class = "Exaone4_5_ForConditionalGeneration";
    let back = exported_as_it_was(&guessing(config(class, "exaone4_5", fields), layer)).config;
    assert_eq!(back["architectures"], json!([class]));
}

/// With one more layer that guesses further tokens.
fn guessing(config: Value, layer: Vec<Vec<Listed>>) -> Tiny {
    let mut tiny = checkpoint(config, layer.clone(), UNTIED);
    for (name, shape) in layer.concat() {
        let name = name.replace("model.layers.{}", "mtp.layers.0");
        tiny = tiny.tensors(&[(&name, &shape)]);
    }
    tiny.tensors(&[
        ("mtp.fc.weight", &[WIDTH, 2 * WIDTH]),
        ("mtp.pre_fc_norm_embedding.weight", &[WIDTH]),
        ("mtp.pre_fc_norm_hidden.weight", &[WIDTH]),
        ("mtp.norm.weight", &[WIDTH]),
    ])
}

#[test]
fn hunyuan_with_experts() {
    let network = [
        vec![listed("mlp.router.gate", &[EXPERTS, WIDTH]), raw("mlp.expert_bias", &[EXPERTS])],
        one_by_one("mlp", PROJECTIONS),
        gated("mlp.shared_mlp", EXPERT_FF),
    ];
    let layer = vec![two_norms(), attention(), head_norms(), network.concat()];
    let fields = rms(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "num_shared_experts": 1, "router_scaling_factor": 2.5,
        "route_norm": true}));
    exported_as_it_was(&checkpoint(config("HYV3ForCausalLM", "hy_v3", fields), layer, UNTIED));
}

#[test]
fn windows_stand_among_experts() {
    let experts = |fields: Value| {
        let all = rms(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
            "moe_intermediate_size": EXPERT_FF, "norm_topk_prob": true, "sliding_window": 32}));
        with(all, fields)
    };
    let router = vec![listed("mlp.gate", &[EXPERTS, WIDTH])];
    let layer =
        vec![two_norms(), attention(), head_norms(), router, one_by_one("mlp", PROJECTIONS)];
    let kinds =
        json!(["sliding_attention", "full_attention", "sliding_attention", "full_attention"]);
    let fields = experts(json!({"layer_types": kinds}));
    let mellum = checkpoint(config("MellumForCausalLM", "mellum", fields), layer.clone(), UNTIED);
    assert_eq!(exported_as_it_was(&mellum).config["layer_types"], kinds);
    let fields = experts(json!({"layer_types": kinds, "nope_on_global_attention": true,
        "partial_rotary_factor": 0.5}));
    let maple = checkpoint(config("MapleForCausalLM", "maple", fields), layer, UNTIED);
    assert_eq!(exported_as_it_was(&maple).config["partial_rotary_factor"], 0.5);
}

#[test]
fn smallthinker_has_experts_everywhere() {
    let router = vec![listed("block_sparse_moe.primary_router", &[EXPERTS, WIDTH])];
    let experts = one_by_one("block_sparse_moe", ["gate", "down", "up"]);
    let layer = vec![two_norms(), attention(), router, experts];
    let fields = rms(json!({"head_dim": HEAD, "moe_num_primary_experts": EXPERTS,
        "moe_num_active_primary_experts": 2, "moe_ffn_hidden_size": EXPERT_FF,
        "moe_primary_router_apply_softmax": false, "sliding_window_size": 32,
        "sliding_window_layout": [0, 1, 1, 1]}));
    let mut config = config("SmallThinkerForCausalLM", "smallthinker", fields);
    config.as_object_mut().unwrap().remove("intermediate_size");
    let back = exported_as_it_was(&checkpoint(config, layer, TIED)).config;
    assert_eq!(back["sliding_window_layout"], json!([0, 1, 1, 1]));
    assert_eq!(back["moe_primary_router_apply_softmax"], false);
}

#[test]
fn spark_gates_its_heads() {
    let own = vec![
        listed("self_attn.q_k_v_proj", &[(HEADS + 2 * KV) * HEAD, WIDTH]),
        listed("self_attn.g_proj", &[HEADS, WIDTH]),
        listed("self_attn.o_proj", &[WIDTH, HEADS * HEAD]),
    ];
    let layer = vec![two_norms(), own, gated("mlp", FF)];
    let parameters = json!({
        "full_attention": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4,
            "partial_rotary_factor": 1.0},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "sliding_window": 32,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
            "full_attention"], "rope_parameters": parameters});
    let tiny = checkpoint(config("Spark2_5ForCausalLM", "spark2_5", fields), layer, TIED);
    assert_eq!(exported_as_it_was(&tiny).config["rope_parameters"], parameters);
}

#[test]
fn norms_of_nemotron_are_differences_from_one() {
    let weights = two_norms();
    let biases = |(name, shape): &Listed| (name.replace("weight", "bias"), shape.clone());
    let biases = weights.iter().map(biases).collect();
    let network = vec![listed("mlp.up_proj", &[FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])];
    let fields = json!({"norm_eps": 1e-5, "rope_theta": 1e4, "head_dim": HEAD,
        "partial_rotary_factor": 0.5});
    let layer = vec![weights, biases, attention(), network];
    let config = config("NemotronForCausalLM", "nemotron", fields);
    let tiny = checkpoint(config, layer, UNTIED).tensors(&[("model.norm.bias", &[WIDTH])]);
    sentencepiece(&tiny);
    assert_eq!(exported_but_for(&tiny, |_| false).config["partial_rotary_factor"], 0.5);
}

#[test]
fn layers_of_openelm_have_widths_of_their_own() {
    let config = json!({"architectures": ["OpenELMForCausalLM"], "model_type": "openelm",
        "model_dim": WIDTH, "head_dim": HEAD, "num_transformer_layers": 2,
        "max_context_length": 256, "vocab_size": VOCAB, "ffn_dim_divisor": 32,
        "num_query_heads": [2, 4], "num_kv_heads": [1, 2], "ffn_multipliers": [0.5, 1.7],
        "rope_freq_constant": 10000.0, "share_input_output_layers": true,
        "normalize_qk_projections": true});
    let mut tiny = Tiny::new(config).byte_level(VOCAB).tensors(&[
        ("transformer.token_embeddings.weight", &[VOCAB, WIDTH]),
        ("transformer.norm.weight", &[WIDTH]),
    ]);
    for (layer, heads, kv, width) in [(0, 2, 1, 32), (1, 4, 2, 128)] {
        for (name, shape) in [
            ("attn_norm", &[WIDTH][..]),
            ("attn.qkv_proj", &[(heads + 2 * kv) * HEAD, WIDTH]),
            ("attn.q_norm", &[HEAD]),
            ("attn.k_norm", &[HEAD]),
            ("attn.out_proj", &[WIDTH, heads * HEAD]),
            ("ffn_norm", &[WIDTH]),
            ("ffn.proj_1", &[2 * width, WIDTH]),
            ("ffn.proj_2", &[WIDTH, width]),
        ] {
            tiny = tiny.tensors(&[(&format!("transformer.layers.{layer}.{name}.weight"), shape)]);
        }
    }
    sentencepiece(&tiny);
    let back = exported_but_for(&tiny, |_| false).config;
    assert_eq!(back["ffn_multipliers"], json!([0.5, 2.0]));
    assert_eq!(back["num_query_heads"], json!([2, 4]));
}

#[test]
fn experts_of_dbrx_are_stacked() {
    let layer: Vec<Listed> = [
        ("norm_attn_norm.norm_1.weight", &[WIDTH][..]),
        ("norm_attn_norm.attn.Wqkv.weight", &[(HEADS + 2 * KV) * HEAD, WIDTH]),
        ("norm_attn_norm.attn.out_proj.weight", &[WIDTH, WIDTH]),
        ("norm_attn_norm.norm_2.weight", &[WIDTH]),
        ("ffn.router.layer.weight", &[EXPERTS, WIDTH]),
        ("ffn.experts.mlp.w1", &[EXPERTS * EXPERT_FF, WIDTH]),
        ("ffn.experts.mlp.w2", &[EXPERTS * EXPERT_FF, WIDTH]),
        ("ffn.experts.mlp.v1", &[EXPERTS * EXPERT_FF, WIDTH]),
    ]
    .map(|(name, shape)| (format!("transformer.blocks.{{}}.{name}"), shape.to_vec()))
    .to_vec();
    let config = json!({"architectures": ["DbrxForCausalLM"], "model_type": "dbrx",
        "d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "max_seq_len": 256,
        "vocab_size": VOCAB,
        "attn_config": {"clip_qkv": 8, "kv_n_heads": KV, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": EXPERT_FF, "moe_num_experts": EXPERTS, "moe_top_k": 2}});
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.norm_f", &[WIDTH])];
    let back = exported_as_it_was(&named(config.clone(), &top, &layer)).config;
    assert_eq!(back["attn_config"], config["attn_config"]);
    assert_eq!(back["ffn_config"], config["ffn_config"]);
}

#[test]
fn refact_has_one_head_of_keys() {
    const INNER: usize = 256;
    let layer: Vec<Listed> = [
        ("ln_1", &[WIDTH][..]),
        ("attn.q", &[WIDTH, WIDTH]),
        ("attn.kv", &[2 * HEAD, WIDTH]),
        ("attn.c_proj", &[WIDTH, WIDTH]),
        ("ln_2", &[WIDTH]),
        ("mlp.gate_up_proj", &[2 * INNER, WIDTH]),
        ("mlp.c_proj", &[WIDTH, INNER]),
    ]
    .map(|(name, shape)| (format!("transformer.h.{{}}.{name}.weight"), shape.to_vec()))
    .to_vec();
    let config = json!({"architectures": ["GPTRefactForCausalLM"], "model_type": "gpt_refact",
        "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": 256,
        "vocab_size": VOCAB, "layer_norm_epsilon": 1e-5, "multi_query": true});
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.ln_f", &[WIDTH])];
    exported_as_it_was(&named(config, &top, &layer));
}

#[test]
fn keys_and_values_are_unpacked_by_one_matrix() {
    let value = WIDTH / HEADS;
    let mut own = compressed();
    own[5] = listed("self_attn.kv_b_proj", &[HEADS * (FIXED + value), RANK]);
    own[6] = listed("self_attn.o_proj", &[WIDTH, HEADS * value]);
    let widths = json!({"q_lora_rank": RANK, "kv_lora_rank": RANK, "qk_nope_head_dim": FIXED,
        "qk_rope_head_dim": ROTATED, "num_key_value_heads": HEADS, "v_head_dim": value});
    let fields = rms(widths.clone());
    let layer = vec![two_norms(), own.clone(), gated("mlp", FF)];
    let tiny = checkpoint(config("MiniCPM3ForCausalLM", "minicpm3", fields), layer, TIED);
    sentencepiece(&tiny);
    exported_but_for(&tiny, |_| false);
    let whole = listed("self_attn.q_proj", &[HEADS * (FIXED + ROTATED), WIDTH]);
    let own = [vec![whole], own[3..].to_vec()].concat();
    let network = vec![listed("mlp.up_proj", &[FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])];
    let mut fields = rms(widths);
    fields.as_object_mut().unwrap().remove("q_lora_rank");
    let layer = vec![two_norms(), own, network];
    exported_as_it_was(&checkpoint(config("PLMForCausalLM", "plm", fields), layer, TIED));
}

#[test]
fn models_as_llama_but_for_a_part() {
    let fields = rms(json!({"num_loops": 2, "skip_loop_final_norm": true}));
    let nanbeige = config("NanbeigeForCausalLM", "nanbeige", fields);
    let back = exported_as_it_was(&checkpoint(nanbeige, llama_block(), UNTIED)).config;
    assert_eq!((&back["num_loops"], &back["skip_loop_final_norm"]), (&json!(2), &json!(true)));
    let fields = rms(json!({"head_dim": HEAD}));
    let internlm = config("InternLM3ForCausalLM", "internlm3", fields);
    let tiny = checkpoint(internlm, llama_block(), UNTIED);
    sentencepiece(&tiny);
    let back = exported_but_for(&tiny, |_| false).config;
    assert_eq!(back["architectures"], json!(["LlamaForCausalLM"]));
    let bias = vec![raw("self_attn.o_proj.bias", &[WIDTH])];
    let layer = [llama_block(), vec![bias]].concat();
    let pangu = config("PanguEmbeddedForCausalLM", "PanguEmbedded", rms(json!({})));
    let tiny = checkpoint(pangu, layer, UNTIED);
    sentencepiece(&tiny);
    exported_but_for(&tiny, |_| false);
}

#[test]
fn granite_with_windows_keeps_gates_beside_what_they_gate() {
    let scales = rms(json!({"attention_multiplier": 0.5, "embedding_multiplier": 12.0,
        "residual_multiplier": 0.25, "logits_scaling": 8.0, "sliding_window": 32,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
            "sliding_attention"], "no_rope_layers": [0, 1, 1, 1]}));
    let sinks = vec![raw("self_attn.sinks", &[HEADS])];
    let layer = [llama_block(), vec![sinks.clone()]].concat();
    let dense = config("GraniteSWAForCausalLM", "granite_swa", scales.clone());
    let back = exported_as_it_was(&checkpoint(dense, layer, TIED)).config;
    assert_eq!(back["no_rope_layers"], json!([0, 1, 1, 1]));
    let experts = vec![
        listed("block_sparse_moe.router", &[EXPERTS, WIDTH]),
        raw("block_sparse_moe.experts.gate_up_proj", &[EXPERTS, 2 * FF, WIDTH]),
        raw("block_sparse_moe.experts.down_proj", &[EXPERTS, WIDTH, FF]),
        listed("shared_mlp.input_linear", &[2 * EXPERT_FF, WIDTH]),
        listed("shared_mlp.output_linear", &[WIDTH, EXPERT_FF]),
    ];
    let fields = json!({"num_local_experts": EXPERTS, "num_experts_per_tok": 2,
        "shared_intermediate_size": EXPERT_FF});
    let routed = config("GraniteMoeSWAForCausalLM", "granitemoe_swa", with(scales, fields));
    let layer = vec![two_norms(), attention(), sinks, experts];
    let back = exported_as_it_was(&checkpoint(routed, layer, TIED)).config;
    assert_eq!(back["shared_intermediate_size"], EXPERT_FF);
    assert_eq!(back["architectures"], json!(["GraniteMoeSWAForCausalLM"]));
}

#[test]
fn cohere_has_dense_layers_of_another_width() {
    let attention = [norms(&["input_layernorm"]), attention()].concat();
    let fields = json!({"layer_norm_eps": 1e-5, "rope_theta": 5e4, "head_dim": HEAD,
        "intermediate_size": EXPERT_FF, "prefix_dense_intermediate_size": FF,
        "first_k_dense_replace": 1, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "num_shared_experts": 1, "expert_selection_fn": "sigmoid", "norm_topk_prob": true,
        "logit_scale": 0.25, "sliding_window": 32, "layer_types": ["sliding_attention",
            "sliding_attention", "sliding_attention", "full_attention"]});
    let config = config("Cohere2MoeForCausalLM", "cohere2_moe", fields);
    let mut tiny = checkpoint(config, vec![attention], TIED);
    let routed = [
        vec![listed("mlp.gate", &[EXPERTS, WIDTH])],
        one_by_one("mlp", PROJECTIONS),
        gated("mlp.shared_experts", EXPERT_FF),
    ];
    for layer in 0..LAYERS {
        let network = if layer == 0 { gated("mlp", FF) } else { routed.concat() };
        for (name, shape) in network {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), &shape)]);
        }
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["intermediate_size"], EXPERT_FF);
    assert_eq!(back["prefix_dense_intermediate_size"], FF);
}
