//! There and back: models whose layers are of several kinds, and encoders after BERT.

use safetensors::SafeTensors;
use serde_json::{Value, json};

use crate::decoder::*;
use crate::newer::{TIED, UNTIED};
use crate::there_and_back::{export, exported_as_it_was, exported_but_for};
use crate::tiny::Tiny;
use crate::tokenizer_files::piece;

const EXPERTS: usize = 4;
const EXPERT_FF: usize = 32;
/// Heads of linear attention.
const KEYS: usize = 2;
const VALUES: usize = 4;
const DIM: usize = 8;

fn raw(name: &str, shape: &[usize]) -> Listed {
    (format!("model.layers.{{}}.{name}"), shape.to_vec())
}

fn two_norms() -> Vec<Listed> {
    norms(&["input_layernorm", "post_attention_layernorm"])
}

/// Adds to every other layer the first list, to those between the second.
pub fn by_turns(mut tiny: Tiny, kinds: [&[Listed]; 2]) -> Tiny {
    for layer in 0..LAYERS {
        for (name, shape) in kinds[layer % 2] {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), shape)]);
        }
    }
    tiny
}

fn gated_attention() -> Vec<Listed> {
    let mut all = attention();
    all[0] = listed("self_attn.q_proj", &[2 * HEADS * HEAD, WIDTH]);
    all.push(listed("self_attn.q_norm", &[HEAD]));
    all.push(listed("self_attn.k_norm", &[HEAD]));
    all
}

fn linear_attention(fused: bool) -> Vec<Listed> {
    let (keys, values) = (KEYS * DIM, VALUES * DIM);
    let mut all = vec![
        raw("linear_attn.A_log", &[VALUES]),
        raw("linear_attn.dt_bias", &[VALUES]),
        listed("linear_attn.conv1d", &[2 * keys + values, 1, 4]),
        listed("linear_attn.norm", &[DIM]),
        listed("linear_attn.out_proj", &[WIDTH, values]),
    ];
    if fused {
        all.push(listed("linear_attn.in_proj_qkvz", &[2 * keys + 2 * values, WIDTH]));
        all.push(listed("linear_attn.in_proj_ba", &[2 * VALUES, WIDTH]));
    } else {
        all.push(listed("linear_attn.in_proj_qkv", &[2 * keys + values, WIDTH]));
        all.push(listed("linear_attn.in_proj_z", &[values, WIDTH]));
        all.push(listed("linear_attn.in_proj_a", &[VALUES, WIDTH]));
        all.push(listed("linear_attn.in_proj_b", &[VALUES, WIDTH]));
    }
    all
}

fn shared_expert() -> Vec<Listed> {
    let mut all = vec![listed("mlp.gate", &[EXPERTS, WIDTH])];
    for e in 0..EXPERTS {
        all.extend(gated(&format!("mlp.experts.{e}"), EXPERT_FF));
    }
    all.push(listed("mlp.shared_expert_gate", &[1, WIDTH]));
    all.extend(gated("mlp.shared_expert", EXPERT_FF));
    all
}

fn linear(class: &str, kind: &str, fused: bool, network: Vec<Listed>, fields: Value) {
    let kinds: Vec<_> =
        ["linear_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
    let mut all = json!({"rms_norm_eps": 1e-6, "rope_theta": 1e7, "head_dim": HEAD,
        "partial_rotary_factor": 0.25, "layer_types": kinds, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": DIM, "linear_value_head_dim": DIM, "linear_num_key_heads": KEYS,
        "linear_num_value_heads": VALUES});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let every = [two_norms(), network].concat();
    let mut tiny = checkpoint(config(class, kind, all), vec![every.clone()], UNTIED);
    tiny = by_turns(tiny, [&linear_attention(fused), &gated_attention()]);
    for (name, shape) in [every, gated_attention()].concat() {
        let name = name.replace("model.layers.{}", "mtp.layers.0");
        tiny = tiny.tensors(&[(&name, &shape)]);
    }
    let tiny = tiny.tensors(&[
        ("mtp.fc.weight", &[WIDTH, 2 * WIDTH]),
        ("mtp.pre_fc_norm_embedding.weight", &[WIDTH]),
        ("mtp.pre_fc_norm_hidden.weight", &[WIDTH]),
        ("mtp.norm.weight", &[WIDTH]),
    ]);
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["layer_types"], json!(kinds));
    assert_eq!(back["num_hidden_layers"], LAYERS);
    assert_eq!(back["linear_value_head_dim"], DIM);
}

#[test]
fn linear_attention_stands_between_layers_of_the_usual_kind() {
    let experts = json!({"num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "shared_expert_intermediate_size": EXPERT_FF});
    linear("Qwen3NextForCausalLM", "qwen3_next", true, shared_expert(), experts.clone());
    linear("Qwen3_5ForCausalLM", "qwen3_5_text", false, gated("mlp", FF), json!({}));
    linear("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", false, shared_expert(), experts);
}

pub fn state_space(inner: usize, others: &[(&str, &[usize])]) -> Vec<Listed> {
    let mut all = vec![
        raw("mamba.conv1d.bias", others[0].1),
        listed("mamba.conv1d", &[others[0].1[0], 1, 4]),
        listed("mamba.out_proj", &[WIDTH, inner]),
    ];
    all.extend(others[1..].iter().map(|(name, shape)| raw(name, shape)));
    all
}

#[test]
fn jamba_has_experts_in_some_layers() {
    const INNER: usize = 2 * WIDTH;
    let states = state_space(
        INNER,
        &[
            ("", &[INNER]),
            ("mamba.in_proj.weight", &[2 * INNER, WIDTH]),
            ("mamba.x_proj.weight", &[4 + 2 * 8, INNER]),
            ("mamba.dt_proj.weight", &[INNER, 4]),
            ("mamba.dt_proj.bias", &[INNER]),
            ("mamba.dt_layernorm.weight", &[4]),
            ("mamba.b_layernorm.weight", &[8]),
            ("mamba.c_layernorm.weight", &[8]),
            ("mamba.A_log", &[INNER, 8]),
            ("mamba.D", &[INNER]),
        ],
    );
    let mut experts = vec![listed("feed_forward.router", &[EXPERTS, WIDTH])];
    for e in 0..EXPERTS {
        experts.extend(gated(&format!("feed_forward.experts.{e}"), FF));
    }
    let every = norms(&["input_layernorm", "pre_ff_layernorm"]);
    let fields = json!({"rms_norm_eps": 1e-6, "mamba_d_state": 8, "mamba_d_conv": 4,
        "mamba_expand": 2, "mamba_dt_rank": 4, "attn_layer_period": 2, "attn_layer_offset": 1,
        "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": EXPERTS,
        "num_experts_per_tok": 2});
    let tiny = checkpoint(
        config("JambaForCausalLM", "jamba", fields),
        vec![every],
        &["model.final_layernorm", "lm_head"],
    );
    let tiny = by_turns(
        tiny,
        [&[states, gated("feed_forward", FF)].concat(), &[attention(), experts].concat()],
    );
    let kind = |i| if i == 0 { 2 } else { 1 };
    let pieces: Vec<u8> = (0..VOCAB).flat_map(|i| piece(&format!("c{i}"), 0.0, kind(i))).collect();
    tiny.file("tokenizer.model", pieces);
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    let back = exported_but_for(&tiny, |_| false).config;
    assert_eq!(back["attn_layer_period"], 2);
    assert_eq!(back["expert_layer_offset"], 1);
}

#[test]
fn granite_has_state_spaces_or_none() {
    const INNER: usize = 2 * WIDTH;
    const STATE: usize = 16;
    let states = state_space(
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
        listed("shared_mlp.input_linear", &[2 * FF, WIDTH]),
        listed("shared_mlp.output_linear", &[WIDTH, FF]),
    ];
    let fields = |more: Value| {
        let mut all = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "mamba_d_state": STATE,
            "mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_n_heads": 8, "mamba_expand": 2});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
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
    let every = vec![two_norms(), shared];
    let tiny = checkpoint(with_kinds(["mamba", "attention"]), every.clone(), TIED);
    let back = exported_as_it_was(&by_turns(tiny, [&states, &attention()])).config;
    assert_eq!(back["layer_types"][1], "attention");
    assert_eq!(back["architectures"], json!(["GraniteMoeHybridForCausalLM"]));
    // Without a state space it is of another architecture.
    let whole = checkpoint(with_kinds(["attention"; 2]), [every, vec![attention()]].concat(), TIED);
    let gguf = whole.convert().unwrap();
    let model = gguf::Gguf::read(&gguf).unwrap();
    assert_eq!(model.metadata().architecture(), Some("granite"));
    let network = gated("feed_forward", FF);
    let every = vec![norms(&["input_layernorm", "pre_ff_layernorm"]), network];
    let bamba = config(
        "BambaForCausalLM",
        "bamba",
        fields(json!({"attn_layer_indices": [1, 3], "attn_rotary_emb": 8})),
    );
    let tiny = checkpoint(bamba, every, &["model.final_layernorm", "lm_head"]);
    let back = exported_as_it_was(&by_turns(tiny, [&states, &attention()])).config;
    assert_eq!(back["attn_layer_indices"], json!([1, 3]));
    assert_eq!(back["attn_rotary_emb"], 8);
}

#[test]
fn an_assistant_of_gemma_has_no_keys_of_its_own() {
    const WIDE: usize = 24;
    const OF_TARGET: usize = 128;
    let heads = |width: usize| {
        vec![
            listed("self_attn.q_proj", &[HEADS * width, WIDTH]),
            listed("self_attn.o_proj", &[WIDTH, HEADS * width]),
            listed("self_attn.q_norm", &[width]),
        ]
    };
    let mut every = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ]);
    every.extend(gated("mlp", FF));
    every.push(raw("layer_scalar", &[1]));
    let kinds: Vec<_> =
        ["sliding_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
    let parameters = json!({
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "global_head_dim": WIDE,
        "num_kv_shared_layers": LAYERS, "sliding_window": 32, "layer_types": kinds,
        "backbone_hidden_size": OF_TARGET, "rope_parameters": parameters});
    let config = config("Gemma4AssistantForCausalLM", "gemma4_assistant", fields);
    let tiny = checkpoint(config, vec![every], TIED).tensors(&[
        ("pre_projection.weight", &[WIDTH, 2 * OF_TARGET]),
        ("post_projection.weight", &[OF_TARGET, WIDTH]),
        ("masked_embedding.centroids.weight", &[3, WIDTH]),
    ]);
    let tiny = by_turns(tiny, [&heads(HEAD), &heads(WIDE)]);
    let tokenizer = json!({"decoder": {"type": "Sequence", "decoders": []}, "model": {
        "type": "BPE", "byte_fallback": true, "merges": [],
        "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}}});
    tiny.file("tokenizer.json", tokenizer.to_string());
    let made = tempfile::tempdir().unwrap();
    let path = made.path().join("first.gguf");
    std::fs::write(&path, tiny.convert().unwrap()).unwrap();
    let exported = tempfile::tempdir().unwrap();
    export(&path, exported.path(), u64::MAX);
    let read = |file: &str| std::fs::read(exported.path().join(file)).unwrap();
    let there = std::fs::read(tiny.path().join("model.safetensors")).unwrap();
    let weights = read("model.safetensors");
    let [there, weights] = [&there, &weights].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    // What narrows down the tokens that are guessed has no place.
    assert_eq!(weights.len(), there.len() - 1);
    for (name, tensor) in weights.iter() {
        assert!(tensor.data() == there.tensor(name).unwrap().data(), "{name}");
    }
    let back: Value = serde_json::from_slice(&read("config.json")).unwrap();
    assert_eq!(back["backbone_hidden_size"], OF_TARGET);
    assert_eq!(back["architectures"], json!(["Gemma4AssistantForCausalLM"]));
}

#[test]
fn gemma_has_wide_heads_without_windows() {
    const WIDE: usize = 24;
    const PER_LAYER: usize = 8;
    let heads = |width: usize, kv: usize| {
        vec![
            listed("self_attn.q_proj", &[HEADS * width, WIDTH]),
            listed("self_attn.k_proj", &[kv * width, WIDTH]),
            listed("self_attn.o_proj", &[WIDTH, HEADS * width]),
            listed("self_attn.q_norm", &[width]),
            listed("self_attn.k_norm", &[width]),
        ]
    };
    let mut every = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        "post_per_layer_input_norm",
    ]);
    every.extend(gated("mlp", FF));
    every.push(raw("layer_scalar", &[1]));
    every.push(listed("per_layer_input_gate", &[PER_LAYER, WIDTH]));
    every.push(listed("per_layer_projection", &[WIDTH, PER_LAYER]));
    let kinds: Vec<_> =
        ["sliding_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
    let parameters = json!({
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
            "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    });
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "global_head_dim": WIDE,
        "num_global_key_value_heads": 1, "hidden_size_per_layer_input": PER_LAYER,
        "num_kv_shared_layers": 0, "sliding_window": 32, "layer_types": kinds,
        "final_logit_softcapping": 30.0, "rope_parameters": parameters});
    let config = config("Gemma4ForCausalLM", "gemma4_text", fields);
    let tiny = checkpoint(config, vec![every], TIED).tensors(&[
        ("model.embed_tokens_per_layer.weight", &[VOCAB, LAYERS * PER_LAYER]),
        ("model.per_layer_model_projection.weight", &[LAYERS * PER_LAYER, WIDTH]),
        ("model.per_layer_projection_norm.weight", &[PER_LAYER]),
    ]);
    let value = listed("self_attn.v_proj", &[KV * HEAD, WIDTH]);
    let windowed = [heads(HEAD, KV), vec![value]].concat();
    let tiny = by_turns(tiny, [&windowed, &heads(WIDE, 1)]);
    let tokenizer = json!({"decoder": {"type": "Sequence", "decoders": []}, "model": {
        "type": "BPE", "byte_fallback": true, "merges": [],
        "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}}});
    tiny.file("tokenizer.json", tokenizer.to_string());
    let made = tempfile::tempdir().unwrap();
    let path = made.path().join("first.gguf");
    std::fs::write(&path, tiny.convert().unwrap()).unwrap();
    let exported = tempfile::tempdir().unwrap();
    let notes = export(&path, exported.path(), u64::MAX);
    assert_eq!(notes, ["left out the tokenizer: its kind `gemma4` is not known"]);
    let read = |file: &str| std::fs::read(exported.path().join(file)).unwrap();
    let there = std::fs::read(tiny.path().join("model.safetensors")).unwrap();
    let weights = read("model.safetensors");
    let [there, weights] = [&there, &weights].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    assert_eq!(weights.len(), there.len());
    for (name, tensor) in weights.iter() {
        assert!(tensor.data() == there.tensor(name).unwrap().data(), "{name}");
    }
    let back: Value = serde_json::from_slice(&read("config.json")).unwrap();
    assert_eq!(back["global_head_dim"], WIDE);
    assert_eq!(back["num_global_key_value_heads"], 1);
    assert_eq!(back["num_key_value_heads"], KV);
    assert_eq!(back["rope_parameters"], parameters);
}

#[test]
fn distilled_bert_has_names_of_its_own() {
    let config = json!({"architectures": ["DistilBertModel"], "model_type": "distilbert",
        "dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": FF,
        "max_position_embeddings": 16, "vocab_size": VOCAB});
    let mut layer = Vec::new();
    for (name, shape) in [
        ("attention.q_lin", &[WIDTH, WIDTH][..]),
        ("attention.k_lin", &[WIDTH, WIDTH]),
        ("attention.v_lin", &[WIDTH, WIDTH]),
        ("attention.out_lin", &[WIDTH, WIDTH]),
        ("sa_layer_norm", &[WIDTH]),
        ("ffn.lin1", &[FF, WIDTH]),
        ("ffn.lin2", &[WIDTH, FF]),
        ("output_layer_norm", &[WIDTH]),
    ] {
        layer.push((format!("transformer.layer.{{}}.{name}.weight"), shape));
        layer.push((format!("transformer.layer.{{}}.{name}.bias"), &shape[..1]));
    }
    let layer: Vec<(&str, &[usize])> =
        layer.iter().map(|(name, shape)| (&**name, *shape)).collect();
    let tiny = Tiny::new(config).layers(LAYERS, &layer).tensors(&[
        ("embeddings.word_embeddings.weight", &[VOCAB, WIDTH]),
        ("embeddings.position_embeddings.weight", &[16, WIDTH]),
        ("embeddings.LayerNorm.weight", &[WIDTH]),
        ("embeddings.LayerNorm.bias", &[WIDTH]),
    ]);
    tiny.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    assert_eq!(exported_but_for(&tiny, |_| false).config["n_layers"], LAYERS);
}

#[test]
fn encoders_that_rotate() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 2.5e5, "head_dim": HEAD,
        "classifier_pooling": "mean"});
    let tiny = checkpoint(config("EuroBertModel", "eurobert", fields), llama_block(), TIED);
    assert_eq!(exported_as_it_was(&tiny).config["classifier_pooling"], "mean");
    let layer: Vec<(&str, &[usize])> = vec![
        ("layers.{}.attn.Wqkv.weight", &[3 * WIDTH, WIDTH]),
        ("layers.{}.attn.Wo.weight", &[WIDTH, WIDTH]),
        ("layers.{}.mlp_norm.weight", &[WIDTH]),
        ("layers.{}.mlp.Wi.weight", &[2 * FF, WIDTH]),
        ("layers.{}.mlp.Wo.weight", &[WIDTH, FF]),
    ];
    let kinds = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"];
    let mut config = config(
        "ModernBertModel",
        "modernbert",
        json!({"norm_eps": 1e-5, "local_attention": 8, "global_rope_theta": 1.6e5,
            "local_rope_theta": 1e4, "layer_types": kinds, "hidden_activation": "gelu"}),
    );
    config.as_object_mut().unwrap().remove("num_key_value_heads");
    let mut tiny = Tiny::new(config).byte_level(VOCAB).layers(LAYERS, &layer).tensors(&[
        ("embeddings.tok_embeddings.weight", &[VOCAB, WIDTH]),
        ("embeddings.norm.weight", &[WIDTH]),
        ("final_norm.weight", &[WIDTH]),
    ]);
    for layer in 1..LAYERS {
        tiny = tiny.tensors(&[(&format!("layers.{layer}.attn_norm.weight"), &[WIDTH])]);
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["layer_types"], json!(kinds));
    assert_eq!(back["local_attention"], 8);
}

const INNER: usize = 2 * WIDTH;
const STATE: usize = 16;
const NEMOTRON_STATES: &[(&str, &[usize])] = &[
    ("in_proj.weight", &[2 * INNER + 4 * STATE + 8, WIDTH]),
    ("conv1d.weight", &[INNER + 4 * STATE, 1, 4]),
    ("conv1d.bias", &[INNER + 4 * STATE]),
    ("norm.weight", &[INNER]),
    ("out_proj.weight", &[WIDTH, INNER]),
    ("A_log", &[8]),
    ("D", &[8]),
    ("dt_bias", &[8]),
];
const NEMOTRON_HEADS: &[(&str, &[usize])] = &[
    ("q_proj.weight", &[HEADS * HEAD, WIDTH]),
    ("k_proj.weight", &[KV * HEAD, WIDTH]),
    ("v_proj.weight", &[KV * HEAD, WIDTH]),
    ("o_proj.weight", &[WIDTH, HEADS * HEAD]),
];

/// Experts of this width, which read and write so many numbers.
fn nemotron_experts(width: usize, latent: usize) -> Vec<(String, Vec<usize>)> {
    let mut experts = vec![
        ("gate.weight".to_owned(), vec![EXPERTS, WIDTH]),
        ("gate.e_score_correction_bias".to_owned(), vec![EXPERTS]),
        ("shared_experts.up_proj.weight".to_owned(), vec![FF, WIDTH]),
        ("shared_experts.down_proj.weight".to_owned(), vec![WIDTH, FF]),
    ];
    for e in 0..EXPERTS {
        experts.push((format!("experts.{e}.up_proj.weight"), vec![width, latent]));
        experts.push((format!("experts.{e}.down_proj.weight"), vec![latent, width]));
    }
    experts
}

/// A checkpoint of these layers.
fn nemotron(config: Value, layers: &[Vec<(&str, &[usize])>]) -> Tiny {
    let mut tiny = Tiny::new(config).byte_level(VOCAB).tensors(&[
        ("backbone.embeddings.weight", &[VOCAB, WIDTH]),
        ("backbone.norm_f.weight", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ]);
    for (layer, own) in layers.iter().enumerate() {
        let stem = format!("backbone.layers.{layer}");
        tiny = tiny.tensors(&[(&format!("{stem}.norm.weight"), &[WIDTH])]);
        for (name, shape) in own {
            tiny = tiny.tensors(&[(&format!("{stem}.mixer.{name}"), shape)]);
        }
    }
    tiny
}

fn nemotron_fields(more: Value) -> Value {
    let mut fields = json!({"rms_norm_eps": 1e-5, "layer_norm_epsilon": 1e-5,
        "head_dim": HEAD, "ssm_state_size": STATE,
        "conv_kernel": 4, "n_groups": 2, "mamba_num_heads": 8, "mamba_head_dim": 16,
        "num_hidden_layers": 3});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fields
}

#[test]
fn layers_of_nemotron_puzzle_differ_in_their_experts() {
    const LATENT: usize = 32;
    let mut routed = json!({"n_routed_experts": EXPERTS, "n_shared_experts": 1, "n_group": 1,
        "topk_group": 1, "moe_shared_expert_intermediate_size": FF, "norm_topk_prob": true,
        "routed_scaling_factor": 2.5, "moe_latent_size": LATENT, "num_hidden_layers": 4});
    routed["block_configs"] = json!([{"block_type": "mamba"}, {"block_type": "attention"},
        {"block_type": "moe", "moe_intermediate_size": 32, "num_experts_per_tok": 1},
        {"block_type": "moe", "moe_intermediate_size": 64, "num_experts_per_tok": 2}]);
    let config = config("NemotronHPuzzleForCausalLM", "nemotron_h_puzzle", nemotron_fields(routed));
    let experts = [32, 64].map(|width| {
        let mut experts = nemotron_experts(width, LATENT);
        experts.push(("fc1_latent_proj.weight".to_owned(), vec![LATENT, WIDTH]));
        experts.push(("fc2_latent_proj.weight".to_owned(), vec![WIDTH, LATENT]));
        experts
    });
    let mut layers = vec![NEMOTRON_STATES.to_vec(), NEMOTRON_HEADS.to_vec()];
    for experts in &experts {
        layers.push(experts.iter().map(|(name, shape)| (&**name, &**shape)).collect());
    }
    let back = exported_as_it_was(&nemotron(config, &layers)).config;
    assert_eq!(back["architectures"], json!(["NemotronHPuzzleForCausalLM"]));
    assert_eq!(back["block_configs"][3]["num_experts_per_tok"], 2);
    assert_eq!(back["block_configs"][2]["moe_intermediate_size"], 32);
}

#[test]
fn layers_of_nemotron_are_of_one_kind_each() {
    let network: &[(&str, &[usize])] =
        &[("up_proj.weight", &[FF, WIDTH]), ("down_proj.weight", &[WIDTH, FF])];
    let experts = nemotron_experts(EXPERT_FF, WIDTH);
    let experts: Vec<(&str, &[usize])> =
        experts.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let routed = json!({"num_experts_per_tok": 2, "n_routed_experts": EXPERTS,
        "n_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "n_group": 1,
        "topk_group": 1, "moe_shared_expert_intermediate_size": FF, "norm_topk_prob": true,
        "routed_scaling_factor": 2.5});
    for (letters, last, more) in [("M*-", network, json!({})), ("M*E", &experts[..], routed)] {
        let mut fields = nemotron_fields(more);
        fields["hybrid_override_pattern"] = json!(letters);
        let config = config("NemotronHForCausalLM", "nemotron_h", fields);
        let layers = [NEMOTRON_STATES, NEMOTRON_HEADS, last].map(<[_]>::to_vec);
        let tiny = nemotron(config, &layers);
        let back = exported_as_it_was(&tiny).config;
        assert_eq!(back["hybrid_override_pattern"], letters);
        assert_eq!(back["mamba_head_dim"], 16);
    }
}

#[test]
fn delta_attention_stands_between_compressed_attention() {
    const RANK: usize = 24;
    const INNER: usize = HEADS * HEAD;
    let mut delta = vec![
        listed("self_attn.o_norm", &[HEAD]),
        listed("self_attn.b_proj", &[HEADS, WIDTH]),
        listed("self_attn.o_proj", &[WIDTH, INNER]),
        raw("self_attn.A_log", &[1, 1, HEADS, 1]),
        raw("self_attn.dt_bias", &[INNER]),
    ];
    for part in ["q", "k", "v"] {
        delta.push(listed(&format!("self_attn.{part}_proj"), &[INNER, WIDTH]));
        delta.push(listed(&format!("self_attn.{part}_conv1d"), &[INNER, 1, 4]));
    }
    for part in ["f", "g"] {
        delta.push(listed(&format!("self_attn.{part}_a_proj"), &[HEAD, WIDTH]));
        delta.push(listed(&format!("self_attn.{part}_b_proj"), &[INNER, HEAD]));
    }
    let compressed = vec![
        listed("self_attn.q_proj", &[HEADS * 20, WIDTH]),
        listed("self_attn.kv_a_proj_with_mqa", &[RANK + 8, WIDTH]),
        listed("self_attn.kv_a_layernorm", &[RANK]),
        listed("self_attn.kv_b_proj", &[HEADS * 32, RANK]),
        listed("self_attn.o_proj", &[WIDTH, HEADS * 20]),
    ];
    let mut network = gated("block_sparse_moe.shared_experts", EXPERT_FF);
    network.push(listed("block_sparse_moe.gate", &[EXPERTS, WIDTH]));
    network.push(raw("block_sparse_moe.gate.e_score_correction_bias", &[EXPERTS]));
    for e in 0..EXPERTS {
        for (part, shape) in
            [("w1", [EXPERT_FF, WIDTH]), ("w2", [WIDTH, EXPERT_FF]), ("w3", [EXPERT_FF, WIDTH])]
        {
            network.push(listed(&format!("block_sparse_moe.experts.{e}.{part}"), &shape));
        }
    }
    let linear = json!({"full_attn_layers": [2, 4], "kda_layers": [1, 3], "head_dim": HEAD,
        "num_heads": HEADS, "short_conv_kernel_size": 4});
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "kv_lora_rank": RANK,
        "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 20,
        "num_key_value_heads": HEADS, "num_experts": EXPERTS, "num_experts_per_token": 2,
        "num_shared_experts": 1, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0,
        "routed_scaling_factor": 2.5, "moe_router_activation_func": "sigmoid",
        "linear_attn_config": linear});
    let every = vec![two_norms(), network];
    let config = config("KimiLinearForCausalLM", "kimi_linear", fields);
    let tiny = by_turns(checkpoint(config, every, UNTIED), [&delta, &compressed]);
    assert_eq!(exported_as_it_was(&tiny).config["linear_attn_config"], linear);
}
