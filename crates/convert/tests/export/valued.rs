//! There and back: where keys hold values of tensors, and where matrices change by what they hold.

use serde_json::json;

use crate::decoder::*;
use crate::there_and_back::{exported_as_it_was, there_and_back};
use crate::tiny::{Tiny, elements};

const EXPERTS: usize = 3;

fn raw(name: &str, shape: &[usize]) -> Listed {
    (format!("model.layers.{{}}.{name}"), shape.to_vec())
}

fn head_norms() -> Vec<Listed> {
    vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])]
}

#[test]
fn parameters_of_the_activation_become_keys() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e6, "hidden_act": "xielu"});
    let mut layer = norms(&["attention_layernorm", "feedforward_layernorm"]);
    layer.extend(
        ["alpha_n", "alpha_p", "beta", "eps"].map(|part| raw(&format!("mlp.act_fn.{part}"), &[1])),
    );
    layer.extend([listed("mlp.up_proj", &[FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])]);
    let layer = vec![layer, attention(), head_norms()];
    let config = config("ApertusForCausalLM", "apertus", fields);
    let tiny = checkpoint(config.clone(), layer.clone(), &["model.norm", "lm_head"]);
    let gguf = exported_as_it_was(&tiny).gguf;
    let model = gguf::Gguf::read(&gguf).unwrap();
    let beta = model.metadata().array("xielu.beta").unwrap();
    let beta: Vec<f64> = beta.iter().map(|number| number.to_f64().unwrap()).collect();
    let stored = (0..LAYERS).map(|i| tiny.values(&format!("model.layers.{i}.mlp.act_fn.beta"))[0]);
    assert_eq!(beta, stored.map(f64::from).collect::<Vec<_>>());
    let without = layer
        .into_iter()
        .map(|part| part.into_iter().filter(|(n, _)| !n.ends_with("beta")).collect());
    let tiny = checkpoint(config, without.collect(), &["model.norm", "lm_head"]);
    let fault = tiny.convert().unwrap_err().to_string();
    assert!(fault.contains("model.layers.0.mlp.act_fn.beta"), "{fault}");
}

#[test]
fn slopes_tell_how_large_biases_are() {
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
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let tiny = Tiny::new(config.clone()).byte_level(VOCAB).layers(2, &layer).tensors(&[
        ("transformer.wte.weight", &[VOCAB, WIDTH]),
        ("transformer.ln_f.weight", &[WIDTH]),
        ("transformer.ln_f.bias", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ]);
    let bias = |gguf: &gguf::Bytes| {
        gguf::Gguf::read(gguf).unwrap().metadata().get("jais.attention.max_alibi_bias").cloned()
    };
    assert_eq!(bias(&exported_as_it_was(&tiny).gguf), Some(8f32.into()));
    // The first slope of this number is 2^(-x/4), rounded.
    let tiny = tiny.tensors(&[("transformer.relative_pe.slopes", &[HEADS])]);
    let first = f64::from(tiny.values("transformer.relative_pe.slopes")[0]);
    let expected = -(first.log2() * 4.0).round();
    assert_eq!(bias(&tiny.convert().unwrap()), Some((expected as f32).into()));
    let mut scaled = config;
    scaled["embeddings_scale"] = serde_json::Value::Null;
    let tiny =
        Tiny::new(scaled).byte_level(VOCAB).tensors(&[("transformer.wte.weight", &[VOCAB, WIDTH])]);
    let fault = tiny.convert().unwrap_err().to_string();
    assert!(fault.contains("`embeddings_scale`"), "{fault}");
}

#[test]
fn a_gain_becomes_the_factor_of_the_logits() {
    let config = config(
        "TalkieForCausalLM",
        "talkie",
        json!({"head_dim": HEAD, "rope_theta": 1e6, "num_key_value_heads": HEADS}),
    );
    let mut layer: Vec<(String, Vec<usize>)> = vec![("attn.head_gain.head_g".into(), vec![HEADS])];
    layer.extend(
        ["attn_gain", "mlp_gain", "embed_skip"].map(|part| (format!("{part}.a_g"), vec![1])),
    );
    for part in ["query", "key", "value", "resid"] {
        layer.push((format!("attn.attn_{part}.weight"), vec![WIDTH, WIDTH]));
    }
    layer.push(("mlp.mlp_gate.weight".into(), vec![FF, WIDTH]));
    layer.push(("mlp.mlp_linear.weight".into(), vec![FF, WIDTH]));
    layer.push(("mlp.mlp_resid.weight".into(), vec![WIDTH, FF]));
    let names: Vec<String> =
        layer.iter().map(|(name, _)| format!("model.blocks.{{}}.{name}")).collect();
    let layer: Vec<(&str, &[usize])> =
        names.iter().zip(&layer).map(|(name, (_, shape))| (&**name, &**shape)).collect();
    let tiny = Tiny::new(config).byte_level(VOCAB).layers(LAYERS, &layer).tensors(&[
        ("model.embed.weight", &[VOCAB, WIDTH]),
        ("lm_head", &[VOCAB, WIDTH]),
        ("lm_head_gain.w_g", &[1]),
    ]);
    let gguf = exported_as_it_was(&tiny).gguf;
    let model = gguf::Gguf::read(&gguf).unwrap();
    let gain = tiny.values("lm_head_gain.w_g")[0];
    assert_eq!(model.metadata().get("talkie.logit_scale"), Some(&gain.into()));
    // The second half of a head is negative.
    let (ours, stored) = (
        elements(&gguf, "blk.0.attn_q.weight"),
        tiny.values("model.blocks.0.attn.attn_query.weight"),
    );
    let half = HEAD / 2 * WIDTH;
    assert_eq!(ours[..half], stored[..half]);
    assert_eq!(ours[half], -stored[half]);
    assert_eq!(ours[2 * half], stored[2 * half]);
}

#[test]
fn most_layers_attend_linearly() {
    const BLOCKS: usize = 8;
    let mut fields = json!({"num_hidden_layers": BLOCKS, "head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e7,
        "rotary_dim": HEAD / 2, "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1], "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2});
    for part in ["full_attention", "linear_attention", "mlp"] {
        fields[format!("layernorm_{part}_alpha")] = json!(3.5);
        fields[format!("layernorm_{part}_beta")] = json!(1.0);
    }
    let mut every = norms(&["input_layernorm", "post_attention_layernorm"]);
    every.push(listed("block_sparse_moe.gate", &[EXPERTS, WIDTH]));
    for e in 0..EXPERTS {
        for (part, shape) in [("w1", [FF, WIDTH]), ("w2", [WIDTH, FF]), ("w3", [FF, WIDTH])] {
            every.push(listed(&format!("block_sparse_moe.experts.{e}.{part}"), &shape));
        }
    }
    let inner = HEADS * HEAD;
    let linear = vec![
        listed("self_attn.qkv_proj", &[3 * inner, WIDTH]),
        listed("self_attn.output_gate", &[inner, WIDTH]),
        listed("self_attn.norm", &[inner]),
        listed("self_attn.out_proj", &[WIDTH, inner]),
    ];
    let made = |fields: &serde_json::Value| {
        let config = config("MiniMaxText01ForCausalLM", "minimax_text_01", fields.clone());
        let mut tiny = Tiny::new(config).byte_level(VOCAB).tensors(&[
            ("model.embed_tokens.weight", &[VOCAB, WIDTH]),
            ("model.norm.weight", &[WIDTH]),
            ("lm_head.weight", &[VOCAB, WIDTH]),
        ]);
        for layer in 0..BLOCKS {
            let own = if layer == BLOCKS - 1 { attention() } else { linear.clone() };
            for (name, shape) in every.iter().chain(&own) {
                tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), shape)]);
            }
        }
        tiny
    };
    let back = exported_as_it_was(&made(&fields)).config;
    assert_eq!(back["layernorm_mlp_alpha"], 3.5);
    fields["layernorm_mlp_beta"] = json!(0.5);
    let fault = made(&fields).convert().unwrap_err().to_string();
    assert!(fault.contains("`layernorm_mlp_beta` is 0.5"), "{fault}");
}

#[test]
fn matrices_get_three_values() {
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4, "hidden_act": "silu"});
    let own = vec![listed("self_attn.inner_attn_ln", &[WIDTH]), listed("mlp.ffn_layernorm", &[FF])];
    let layer = [llama_block(), vec![own]].concat();
    let made = config("BitnetForCausalLM", "bitnet", fields);
    let tiny = checkpoint(made.clone(), layer.clone(), TIED);
    let ours = elements(&tiny.convert().unwrap(), "blk.1.ffn_up.weight");
    let stored = tiny.values("model.layers.1.mlp.up_proj.weight");
    let size = stored.iter().map(|x| f64::from(x.abs())).sum::<f64>() / stored.len() as f64;
    for (ours, x) in ours.iter().zip(stored) {
        let expected = (f64::from(x) / size).round().clamp(-1.0, 1.0) * size;
        // Two divisions in single precision.
        assert!((f64::from(*ours) - expected).abs() <= 1e-6 * size, "{ours} of {x}");
    }
    there_and_back(tiny.path(), u64::MAX);
    let mut other = made;
    other["hidden_act"] = json!("relu2");
    let fault = checkpoint(other, layer, TIED).convert().unwrap_err().to_string();
    assert!(fault.contains("`hidden_act`"), "{fault}");
}

const TIED: &[&str] = &["model.norm"];
const UNTIED: &[&str] = &["model.norm", "lm_head"];

#[test]
fn biases_of_routers_are_nothing_on_average() {
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 6e5, "num_experts": EXPERTS,
        "num_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 0,
        "norm_topk_prob": true, "routed_scaling_factor": 2.5, "score_function": "sigmoid"});
    let mut layer = norms(&["input_layernorm", "post_attention_layernorm"]);
    layer.push(listed("attention.query_key_value", &[(HEADS + 2 * KV) * HEAD, WIDTH]));
    layer.push(listed("attention.dense", &[WIDTH, HEADS * HEAD]));
    layer.push(listed("attention.query_layernorm", &[HEAD]));
    layer.push(listed("attention.key_layernorm", &[HEAD]));
    layer.push(listed("mlp.gate", &[EXPERTS, WIDTH]));
    layer.push(raw("mlp.gate.expert_bias", &[EXPERTS]));
    layer.extend((0..EXPERTS).flat_map(|e| gated(&format!("mlp.experts.{e}"), 32)));
    layer.extend(gated("mlp.shared_experts", 32));
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let tiny = Tiny::new(config("SarvamMoEForCausalLM", "sarvam_moe", fields))
        .byte_level(VOCAB)
        .tensors(&[
            ("model.word_embeddings.weight", &[VOCAB, WIDTH]),
            ("model.norm.weight", &[WIDTH]),
            ("lm_head.weight", &[VOCAB, WIDTH]),
        ])
        .layers(LAYERS, &layer);
    let bias = elements(&tiny.convert().unwrap(), "blk.2.exp_probs_b.bias");
    // Three numbers one after the other, of which the second is the mean.
    assert_eq!(bias[1], 0.0);
    assert_eq!(bias[0], -bias[2]);
    there_and_back(tiny.path(), u64::MAX);
}

#[test]
fn norms_of_heads_hold_a_factor() {
    let kinds: Vec<_> =
        ["sliding_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
    let fields = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "layer_types": kinds,
        "sliding_window": 16, "qk_scale_factor": 1.25, "final_logit_softcapping": 30.0, "output_multiplier": 0.5});
    let mut layer = norms(&[
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ]);
    layer.push(listed("self_attn.gate_proj", &[HEADS * HEAD, WIDTH]));
    let layer = vec![layer, attention(), gated("mlp", FF)];
    let config = config("MuseGlimmerForConditionalGeneration", "muse_glimmer", fields);
    let back = exported_as_it_was(&checkpoint(config, layer, UNTIED));
    assert_eq!(elements(&back.gguf, "blk.3.attn_q_norm.weight"), [1.25; HEAD]);
    assert_eq!(back.config["qk_scale_factor"], 1.25);
}
