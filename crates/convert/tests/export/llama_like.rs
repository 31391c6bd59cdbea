//! There and back: decoders that differ from llama in keys, in names or in a norm.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::newer::{TIED, UNTIED, check};
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tokenizer_files::piece;

fn rms(fields: Value) -> Value {
    let mut all = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e6});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

fn head_norms(q: &str, k: &str) -> Vec<Listed> {
    vec![listed(&format!("self_attn.{q}"), &[HEAD]), listed(&format!("self_attn.{k}"), &[HEAD])]
}

fn two_norms() -> Vec<Listed> {
    norms(&["input_layernorm", "post_attention_layernorm"])
}

#[test]
fn arcee_has_no_gates() {
    let network = vec![listed("mlp.up_proj", &[FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])];
    let layer = vec![two_norms(), attention(), network];
    check(config("ArceeForCausalLM", "arcee", rms(json!({}))), layer, UNTIED);
}

#[test]
fn encoders_and_models_without_an_order_of_their_own() {
    let bare = rms(json!({}));
    check(config("LlamaBidirectionalModel", "llama_bidirec", bare), llama_block(), TIED);
    let wide = rms(json!({"head_dim": HEAD}));
    check(config("SeedOssForCausalLM", "seed_oss", wide.clone()), llama_block(), UNTIED);
    let normed = [llama_block(), vec![head_norms("q_norm", "k_norm")]].concat();
    check(config("MaincoderForCausalLM", "maincoder", wide), normed, UNTIED);
}

#[test]
fn ministral_sharpens_on_long_texts() {
    let scaling = json!({"rope_type": "yarn", "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 64});
    let fields = rms(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let tiny =
        checkpoint(config("Ministral3ForCausalLM", "ministral3", fields), llama_block(), TIED);
    let exported = exported_as_it_was(&tiny).config;
    let field = |name: &str| exported["rope_scaling"][name].as_f64().map(|x| x as f32);
    assert_eq!(field("llama_4_scaling_beta"), Some(0.1));
    assert_eq!(field("mscale_all_dim"), Some(1.0));
    let fields = rms(json!({"head_dim": HEAD}));
    let seeing = config("Mistral3ForConditionalGeneration", "mistral3", fields);
    exported_as_it_was(&checkpoint(seeing, llama_block(), UNTIED));
}

#[test]
fn exaone_has_windows_by_letters() {
    let fields =
        rms(json!({"head_dim": HEAD, "sliding_window": 32, "sliding_window_pattern": "LLG"}));
    let norms = norms(&["post_attention_layernorm", "post_feedforward_layernorm"]);
    let layer = vec![norms, attention(), gated("mlp", FF), head_norms("q_norm", "k_norm")];
    let tiny = checkpoint(config("Exaone4ForCausalLM", "exaone4", fields), layer, UNTIED);
    let kinds = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"];
    assert_eq!(exported_as_it_was(&tiny).config["layer_types"], json!(kinds));
}

#[test]
fn hunyuan_stretches_by_the_base() {
    let norms = head_norms("query_layernorm", "key_layernorm");
    let layer = [llama_block(), vec![norms]].concat();
    let plain = json!({"head_dim": HEAD, "rms_norm_eps": 1e-5, "rope_theta": 1e4});
    let mut stretched = plain.clone();
    stretched["rope_scaling"] = json!({"type": "dynamic", "alpha": 1000.0, "factor": 1.0});
    stretched["max_position_embeddings"] = json!(262144);
    let class = "HunYuanDenseV1ForCausalLM";
    check(config(class, "hunyuan_v1_dense", plain), layer.clone(), TIED);
    let tiny = checkpoint(config(class, "hunyuan_v1_dense", stretched), layer, TIED);
    let exported = exported_as_it_was(&tiny).config;
    assert_eq!(exported["rope_scaling"]["alpha"], 1000.0);
    assert_eq!(exported["rope_theta"], 10000.0);
}

#[test]
fn jais_has_biases_everywhere() {
    let network = vec![listed("mlp.up_proj", &[FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])];
    let weights = [two_norms(), attention(), network].concat();
    let bias = |(name, shape): &Listed| (name.replace("weight", "bias"), vec![shape[0]]);
    let biases: Vec<Listed> = weights.iter().map(bias).collect();
    let fields = json!({"layer_norm_eps": 1e-5, "rope_theta": 5e5, "head_dim": HEAD});
    let tiny =
        checkpoint(config("Jais2ForCausalLM", "jais2", fields), vec![weights, biases], UNTIED);
    exported_as_it_was(&tiny.tensors(&[("model.norm.bias", &[WIDTH])]));
}

#[test]
fn positions_of_images_come_back() {
    let scaling = json!({"type": "default", "mrope_section": [4, 2, 2]});
    let fields = rms(json!({"rope_scaling": scaling}));
    let class = "Qwen2VLForConditionalGeneration";
    let tiny = checkpoint(config(class, "qwen2_vl", fields), llama_block(), UNTIED);
    assert_eq!(exported_as_it_was(&tiny).config["rope_scaling"], scaling);
}

#[test]
fn norms_of_orion_take_away_the_mean() {
    let biases =
        two_norms().into_iter().map(|(name, shape)| (name.replace("weight", "bias"), shape));
    let layer = [llama_block(), vec![biases.collect()]].concat();
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 1e4});
    sentencepiece(config("OrionForCausalLM", "orion", fields), layer, true);
}

#[test]
fn ernie_has_a_vocabulary_with_scores() {
    let fields = rms(json!({"head_dim": HEAD}));
    sentencepiece(
        config("Ernie4_5ForCausalLM", "ernie4_5", fields),
        vec![llama_block().concat()],
        false,
    );
}

fn sentencepiece(config: Value, layer: Vec<Vec<Listed>>, has_bias: bool) {
    let mut tiny = checkpoint(config, layer, UNTIED);
    if has_bias {
        tiny = tiny.tensors(&[("model.norm.bias", &[WIDTH])]);
    }
    let kind = |i| if i == 0 { 2 } else { 1 };
    let pieces: Vec<u8> = (0..VOCAB).flat_map(|i| piece(&format!("c{i}"), 0.0, kind(i))).collect();
    tiny.file("tokenizer.model", pieces);
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    exported_but_for(&tiny, |_| false);
}

#[test]
fn codeshell_rotates() {
    let width = (HEADS + 2 * KV) * HEAD;
    let layer: &[(&str, &[usize])] = &[
        ("transformer.h.{}.ln_1.weight", &[WIDTH]),
        ("transformer.h.{}.ln_1.bias", &[WIDTH]),
        ("transformer.h.{}.attn.c_attn.weight", &[width, WIDTH]),
        ("transformer.h.{}.attn.c_attn.bias", &[width]),
        ("transformer.h.{}.attn.c_proj.weight", &[WIDTH, WIDTH]),
        ("transformer.h.{}.attn.c_proj.bias", &[WIDTH]),
        ("transformer.h.{}.ln_2.weight", &[WIDTH]),
        ("transformer.h.{}.ln_2.bias", &[WIDTH]),
        ("transformer.h.{}.mlp.c_fc.weight", &[4 * WIDTH, WIDTH]),
        ("transformer.h.{}.mlp.c_fc.bias", &[4 * WIDTH]),
        ("transformer.h.{}.mlp.c_proj.weight", &[WIDTH, 4 * WIDTH]),
        ("transformer.h.{}.mlp.c_proj.bias", &[WIDTH]),
    ];
    let top: &[(&str, &[usize])] = &[
        ("transformer.wte.weight", &[VOCAB, WIDTH]),
        ("transformer.ln_f.weight", &[WIDTH]),
        ("transformer.ln_f.bias", &[WIDTH]),
        ("lm_head.weight", &[VOCAB, WIDTH]),
    ];
    let fields = json!({"model_type": "codeshell", "n_embd": WIDTH, "n_head": HEADS, "n_layer": 2,
        "n_positions": 64, "layer_norm_epsilon": 1e-5, "num_query_groups": KV});
    let exported =
        exported_as_it_was(&crate::tiny("CodeShellForCausalLM", fields, top, layer)).config;
    assert_eq!(exported["num_query_groups"], KV);
}
