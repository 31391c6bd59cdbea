//! There and back: decoders with experts of newer families.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tiny::Tiny;
use crate::tokenizer_files::piece;

const EXPERTS: usize = 4;
const EXPERT_FF: usize = 32;

fn one_by_one(stem: &str, [gate, down, up]: [&str; 3]) -> Vec<Listed> {
    let of_expert = |e: usize| {
        let name = move |part: &str| format!("{stem}.experts.{e}.{part}");
        vec![
            listed(&name(gate), &[EXPERT_FF, WIDTH]),
            listed(&name(down), &[WIDTH, EXPERT_FF]),
            listed(&name(up), &[EXPERT_FF, WIDTH]),
        ]
    };
    (0..EXPERTS).flat_map(of_expert).collect()
}

const PROJECTIONS: [&str; 3] = ["gate_proj", "down_proj", "up_proj"];
const NUMBERED: [&str; 3] = ["w1", "w2", "w3"];

fn head_norms(width_q: usize, width_k: usize) -> Vec<Listed> {
    vec![listed("self_attn.q_norm", &[width_q]), listed("self_attn.k_norm", &[width_k])]
}

fn two_norms() -> Vec<Listed> {
    norms(&["input_layernorm", "post_attention_layernorm"])
}

fn routed(fields: Value) -> Value {
    let mut all = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
        "n_routed_experts": EXPERTS, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "n_group": 2, "topk_group": 1,
        "first_k_dense_replace": 0, "routed_scaling_factor": 2.5, "norm_topk_prob": true});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

fn beside_shared() -> Vec<Vec<Listed>> {
    let mut router = vec![listed("mlp.gate", &[EXPERTS, WIDTH])];
    router.push(("model.layers.{}.mlp.gate.e_score_correction_bias".into(), vec![EXPERTS]));
    vec![router, one_by_one("mlp", PROJECTIONS), gated("mlp.shared_experts", EXPERT_FF)]
}

#[test]
fn olmoe_normalizes_over_all_heads() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "num_experts": EXPERTS,
        "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF});
    let router = vec![listed("mlp.gate", &[EXPERTS, WIDTH])];
    let norms = head_norms(HEADS * HEAD, KV * HEAD);
    let layer = vec![two_norms(), attention(), norms, router, one_by_one("mlp", PROJECTIONS)];
    let tiny =
        checkpoint(config("OlmoeForCausalLM", "olmoe", fields), layer, &["model.norm", "lm_head"]);
    exported_as_it_was(&tiny);
}

#[test]
fn dots_calls_the_sigmoid_by_its_method() {
    let fields = routed(json!({"scoring_func": "noaux_tc"}));
    let layer = [vec![two_norms(), attention(), head_norms(HEAD, HEAD)], beside_shared()].concat();
    let tiny =
        checkpoint(config("Dots1ForCausalLM", "dots1", fields), layer, &["model.norm", "lm_head"]);
    assert_eq!(exported_as_it_was(&tiny).config["scoring_func"], "sigmoid");
}

#[test]
fn glm_with_experts() {
    let fields = routed(json!({"partial_rotary_factor": 0.5}));
    let layer = [vec![two_norms(), attention(), head_norms(HEAD, HEAD)], beside_shared()].concat();
    let config = config("Glm4MoeForCausalLM", "glm4_moe", fields);
    let tiny = checkpoint(config, layer, &["model.norm", "lm_head"]);
    let exported = exported_as_it_was(&tiny).config;
    assert_eq!(exported["partial_rotary_factor"], 0.5);
    assert_eq!(exported["num_hidden_layers"], LAYERS);
}

#[test]
fn the_last_layer_of_glm_guesses_further_tokens() {
    let fields = routed(json!({"num_nextn_predict_layers": 1}));
    let layer = [vec![two_norms(), attention(), head_norms(HEAD, HEAD)], beside_shared()].concat();
    let further: Vec<(String, Vec<usize>)> = layer.concat();
    let mut config = config("Glm4MoeForCausalLM", "glm4_moe", fields);
    config["num_hidden_layers"] = json!(LAYERS - 1);
    let mut tiny = checkpoint(config, vec![further], &["model.norm", "lm_head"]);
    let last = format!("model.layers.{}", LAYERS - 1);
    for (name, shape) in [
        ("eh_proj", vec![WIDTH, 2 * WIDTH]),
        ("enorm", vec![WIDTH]),
        ("hnorm", vec![WIDTH]),
        ("shared_head.norm", vec![WIDTH]),
    ] {
        tiny = tiny.tensors(&[(&format!("{last}.{name}.weight"), &shape)]);
    }
    let exported = exported_as_it_was(&tiny).config;
    assert_eq!(exported["num_nextn_predict_layers"], 1);
    assert_eq!(exported["num_hidden_layers"], LAYERS - 1);
}

#[test]
fn minimax_rotates_a_part_of_a_head() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 5e6, "rotary_dim": 8,
        "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF,
        "scoring_func": "sigmoid"});
    let mut router = vec![listed("block_sparse_moe.gate", &[EXPERTS, WIDTH])];
    let bias = "model.layers.{}.block_sparse_moe.e_score_correction_bias";
    router.push((bias.into(), vec![EXPERTS]));
    let norms = head_norms(HEADS * HEAD, KV * HEAD);
    let experts = one_by_one("block_sparse_moe", NUMBERED);
    let layer = vec![two_norms(), attention(), norms, router, experts];
    let config = config("MiniMaxM2ForCausalLM", "minimax_m2", fields);
    let tiny = checkpoint(config, layer, &["model.norm", "lm_head"]);
    assert_eq!(exported_as_it_was(&tiny).config["rotary_dim"], 8);
}

#[test]
fn convolutions_stand_between_attention() {
    let dense = json!({"norm_eps": 1e-5, "rope_theta": 1e6, "conv_L_cache": 3,
        "block_auto_adjust_ff_dim": false, "layer_types": KINDS});
    lfm2("Lfm2ForCausalLM", "lfm2", dense, ff("", FF));
    let experts = json!({"norm_eps": 1e-5, "rope_theta": 1e6, "conv_L_cache": 3,
        "layer_types": KINDS, "num_dense_layers": 0, "num_experts": EXPERTS,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "use_expert_bias": true,
        "norm_topk_prob": true});
    let mut network = one_by_one("feed_forward", NUMBERED);
    network.push(listed("feed_forward.gate", &[EXPERTS, WIDTH]));
    network.push(("model.layers.{}.feed_forward.expert_bias".into(), vec![EXPERTS]));
    lfm2("Lfm2MoeForCausalLM", "lfm2_moe", experts, network);
}

const KINDS: [&str; LAYERS] = ["conv", "full_attention", "conv", "full_attention"];

fn ff(part: &str, width: usize) -> Vec<Listed> {
    let name = |matrix| format!("feed_forward{part}.{matrix}");
    vec![
        listed(&name("w1"), &[width, WIDTH]),
        listed(&name("w2"), &[WIDTH, width]),
        listed(&name("w3"), &[width, WIDTH]),
    ]
}

fn lfm2(class: &str, model_type: &str, fields: Value, network: Vec<Listed>) {
    let all = [norms(&["operator_norm", "ffn_norm"]), network].concat();
    let convolution = vec![
        listed("conv.conv", &[WIDTH, 1, 3]),
        listed("conv.in_proj", &[3 * WIDTH, WIDTH]),
        listed("conv.out_proj", &[WIDTH, WIDTH]),
    ];
    let mut heads = attention();
    heads[3] = listed("self_attn.out_proj", &[WIDTH, HEADS * HEAD]);
    heads.push(listed("self_attn.q_layernorm", &[HEAD]));
    heads.push(listed("self_attn.k_layernorm", &[HEAD]));
    let mut tiny =
        checkpoint(config(class, model_type, fields), vec![all], &["model.embedding_norm"]);
    for (layer, kind) in KINDS.iter().enumerate() {
        let own = if *kind == "conv" { &convolution } else { &heads };
        for (name, shape) in own {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), shape)]);
        }
    }
    let exported = exported_as_it_was(&tiny).config;
    assert_eq!(exported["layer_types"], json!(KINDS));
    assert_eq!(exported["num_key_value_heads"], KV);
}

#[test]
fn unmasking_models_keep_their_mask() {
    let fields = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e6, "mask_token_id": 5});
    let dream = checkpoint(
        config("DreamModel", "Dream", fields.clone()),
        llama_block(),
        &["model.norm", "lm_head"],
    );
    // The token of the tiny vocabulary is an ordinary one, which is not sound.
    assert_eq!(exported_but_for(&dream, |_| false).config["mask_token_id"], 5);
    let mut fields = fields;
    fields.as_object_mut().unwrap().extend(
        json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
            "moe_intermediate_size": EXPERT_FF})
        .as_object()
        .unwrap()
        .clone(),
    );
    let router = vec![listed("mlp.gate", &[EXPERTS, WIDTH])];
    let layer = vec![
        two_norms(),
        attention(),
        head_norms(HEAD, HEAD),
        router,
        one_by_one("mlp", PROJECTIONS),
    ];
    let rnd = checkpoint(config("RND1", "rnd1", fields), layer, &["model.norm", "lm_head"]);
    assert_eq!(exported_but_for(&rnd, |_| false).config["mask_token_id"], 5);
}

#[test]
fn experts_of_models_that_see_are_stored_the_other_way() {
    let scaling = json!({"type": "default", "mrope_section": [4, 2, 2]});
    let mut fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "rope_scaling": scaling, "vision_config": {"deepstack_visual_indexes": [0, 1]}});
    let dense = [llama_block(), vec![head_norms(HEAD, HEAD)]].concat();
    let config_of = |class, kind, fields: &Value| config(class, kind, fields.clone());
    let tiny = checkpoint(
        config_of("Qwen3VLForConditionalGeneration", "qwen3_vl", &fields),
        dense,
        &["model.norm"],
    );
    let exported = exported_as_it_was(&tiny).config;
    assert_eq!(exported["rope_scaling"], scaling);
    assert_eq!(exported["vision_config"], fields["vision_config"]);
    for (field, value) in
        [("num_experts", EXPERTS), ("num_experts_per_tok", 2), ("moe_intermediate_size", EXPERT_FF)]
    {
        fields[field] = json!(value);
    }
    let stacked = vec![
        listed("mlp.gate", &[EXPERTS, WIDTH]),
        ("model.layers.{}.mlp.experts.gate_up_proj".into(), vec![EXPERTS, WIDTH, 2 * EXPERT_FF]),
        ("model.layers.{}.mlp.experts.down_proj".into(), vec![EXPERTS, EXPERT_FF, WIDTH]),
    ];
    let layer = vec![two_norms(), attention(), head_norms(HEAD, HEAD), stacked];
    let config = config_of("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", &fields);
    exported_but_for(&checkpoint(config, layer, &["model.norm"]), |_| false);
}

#[test]
fn the_first_deepseek_has_attention_as_llama() {
    let mut fields = routed(json!({"norm_topk_prob": false, "scoring_func": "softmax"}));
    for field in ["n_group", "topk_group", "routed_scaling_factor"] {
        fields.as_object_mut().unwrap().remove(field);
    }
    let mut layer = [vec![two_norms(), attention()], beside_shared()].concat();
    layer[2].pop();
    let config = config("DeepseekForCausalLM", "deepseek", fields);
    exported_as_it_was(&checkpoint(config, layer, &["model.norm", "lm_head"]));
}

#[test]
fn bailing_fuses_queries_keys_and_values() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 6e5,
        "num_experts": EXPERTS, "num_shared_experts": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0, "norm_topk_prob": true});
    let fused = (HEADS + 2 * KV) * HEAD;
    let heads = vec![
        listed("attention.query_key_value", &[fused, WIDTH]),
        listed("attention.dense", &[WIDTH, HEADS * HEAD]),
    ];
    let mut network = beside_shared();
    network[0].pop();
    let first = [vec![two_norms(), heads.clone()], network.clone()].concat();
    bailing(config("BailingMoeForCausalLM", "bailing_moe", fields.clone()), first);
    let mut second = fields;
    second["partial_rotary_factor"] = json!(0.5);
    second["routed_scaling_factor"] = json!(2.5);
    second["score_function"] = json!("sigmoid");
    network[0].push(("model.layers.{}.mlp.gate.expert_bias".into(), vec![EXPERTS]));
    let norms = vec![
        listed("attention.query_layernorm", &[HEAD]),
        listed("attention.key_layernorm", &[HEAD]),
    ];
    let layer = [vec![two_norms(), heads, norms], network].concat();
    bailing(config("BailingMoeV2ForCausalLM", "bailing_moe_v2", second), layer);
}

fn bailing(config: Value, layer: Vec<Vec<Listed>>) {
    let layer: Vec<Listed> = layer.into_iter().flatten().collect();
    let layer: Vec<(&str, &[usize])> =
        layer.iter().map(|(name, shape)| (&**name, &**shape)).collect();
    let top: &[(&str, &[usize])] = &[
        ("model.word_embeddings.weight", &[VOCAB, WIDTH]),
        ("model.norm.weight", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ];
    let tiny = Tiny::new(config).byte_level(VOCAB).tensors(top).layers(LAYERS, &layer);
    exported_as_it_was(&tiny);
}

#[test]
fn llada_has_a_mask_of_its_class() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 5e4,
        "num_experts": EXPERTS, "num_experts_per_tok": 2, "expert_intermediate_size": EXPERT_FF,
        "mask_token_id": 5});
    let router = vec![listed("mlp.gate", &[EXPERTS, WIDTH])];
    let experts = one_by_one("mlp", PROJECTIONS);
    let layer = vec![two_norms(), attention(), head_norms(HEAD, HEAD), router, experts];
    let config = config("LLaDAMoEModelLM", "llada", fields);
    let tiny = checkpoint(config, layer, &["model.norm", "lm_head"]);
    let exported = exported_but_for(&tiny, |_| false).config;
    assert_eq!(exported["expert_intermediate_size"], EXPERT_FF);
}

#[test]
fn trinity_gates_its_attention() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
        "num_experts": EXPERTS, "num_shared_experts": 1, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "num_dense_layers": 0, "route_norm": true,
        "route_scale": 2.5, "score_func": "sigmoid", "mup_enabled": true, "sliding_window": 32});
    let norms = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_mlp_layernorm",
        "post_mlp_layernorm",
    ]);
    let mut network = beside_shared();
    network[0] = vec![
        listed("mlp.router.gate", &[EXPERTS, WIDTH]),
        ("model.layers.{}.mlp.expert_bias".into(), vec![EXPERTS]),
    ];
    let gate = vec![listed("self_attn.gate_proj", &[HEADS * HEAD, WIDTH])];
    let layer = [vec![norms, attention(), gate, head_norms(HEAD, HEAD)], network].concat();
    let config = config("AfmoeForCausalLM", "afmoe", fields);
    let exported =
        exported_as_it_was(&checkpoint(config, layer, &["model.norm", "lm_head"])).config;
    assert_eq!(exported["score_func"], "sigmoid");
    assert_eq!(exported["route_scale"], 2.5);
}

#[test]
fn ernie_has_its_bias_in_one_row() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 5e5,
        "moe_num_experts": EXPERTS, "moe_k": 2, "moe_num_shared_experts": 1,
        "moe_intermediate_size": EXPERT_FF, "moe_layer_interval": 1, "moe_layer_start_index": 0});
    let mut network = beside_shared();
    network[0][1] =
        ("model.layers.{}.mlp.moe_statics.e_score_correction_bias".into(), vec![1, EXPERTS]);
    let layer = [vec![two_norms(), attention()], network].concat();
    let config = config("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", fields);
    let tiny = checkpoint(config, layer, &["model.norm"]);
    let pieces: Vec<u8> =
        (0..VOCAB).flat_map(|i| piece(&format!("c{i}"), 0.0, if i == 0 { 2 } else { 1 })).collect();
    tiny.file("tokenizer.model", pieces);
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    assert_eq!(exported_but_for(&tiny, |_| false).config["moe_k"], 2);
}

#[test]
fn phi_with_experts_has_biases_and_norms_with_the_mean() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2, "intermediate_size": EXPERT_FF, "sliding_window": 200,
        "original_max_position_embeddings": 256});
    let bias = |(name, shape): &Listed| (name.replace("weight", "bias"), vec![shape[0]]);
    let attended = [two_norms(), attention()].concat();
    let biases = attended.iter().map(bias).collect();
    let router = vec![listed("block_sparse_moe.gate", &[EXPERTS, WIDTH])];
    let layer = vec![attended, biases, router, one_by_one("block_sparse_moe", NUMBERED)];
    let config = config("PhiMoEForCausalLM", "phimoe", fields);
    let tiny = checkpoint(config, layer, &["model.norm", "lm_head"])
        .tensors(&[("model.norm.bias", &[WIDTH]), ("lm_head.bias", &[VOCAB])]);
    assert_eq!(exported_as_it_was(&tiny).config["num_local_experts"], EXPERTS);
}
