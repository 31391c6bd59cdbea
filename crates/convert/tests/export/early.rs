//! There and back: ruGPT 3 XL, Xverse, Arctic, the first Qwen, the first Hunyuan with experts.

use serde_json::json;

use crate::decoder::*;
use crate::later::sentencepiece;
use crate::there_and_back::{exported_as_it_was, exported_but_for, there_and_back};
use crate::tiny::elements;

const EXPERTS: usize = 3;

fn square(name: &str) -> Listed {
    listed(name, &[WIDTH, WIDTH])
}

fn bias((name, shape): Listed) -> Listed {
    (name.replace(".weight", ".bias"), vec![shape[0]])
}

#[test]
fn queries_keys_and_values_become_one_matrix() {
    let matrices: Vec<Listed> = [
        vec![listed("input_layernorm", &[WIDTH]), listed("post_attention_layernorm", &[WIDTH])],
        ["q", "k", "v", "o"].map(|part| square(&format!("self_attn.{part}_proj"))).to_vec(),
        vec![listed("mlp.up_proj", &[FF, WIDTH]), listed("mlp.down_proj", &[WIDTH, FF])],
    ]
    .concat();
    let biases = matrices.iter().cloned().map(bias).collect();
    let mut fields = config("RuGPT3XLForCausalLM", "rugpt3xl", json!({"layer_norm_eps": 1e-5}));
    fields.as_object_mut().unwrap().remove("num_key_value_heads");
    let tiny = checkpoint(fields, vec![matrices, biases], &["model.norm", "lm_head"])
        .tensors(&[("model.norm.bias", &[WIDTH]), ("model.embed_positions.weight", &[256, WIDTH])]);
    let gguf = tiny.convert().unwrap();
    let parts = ["q", "k", "v"].map(|part| format!("model.layers.1.self_attn.{part}_proj"));
    for end in ["weight", "bias"] {
        let parts = parts.clone().map(|part| tiny.values(&format!("{part}.{end}"))).concat();
        assert_eq!(elements(&gguf, &format!("blk.1.attn_qkv.{end}")), parts);
    }
    // It comes back as GPT-2, of which it is one.
    there_and_back(tiny.path(), u64::MAX);
}

#[test]
fn xverse_has_tokens_without_scores() {
    let fields = json!({"rms_norm_eps": 1e-6, "num_key_value_heads": HEADS});
    let layer = vec![
        norms(&["input_layernorm", "post_attention_layernorm"]),
        ["q", "k", "v", "o"].map(|part| square(&format!("self_attn.{part}_proj"))).to_vec(),
        gated("mlp", FF),
    ];
    let tiny = checkpoint(
        config("XverseForCausalLM", "xverse", fields),
        layer,
        &["model.norm", "lm_head"],
    );
    let tokenizer = json!({
        "added_tokens": [{"id": 0, "content": "<pad>", "special": true}],
        "normalizer": null, "pre_tokenizer": null, "decoder": {"type": "Sequence", "decoders": []},
        "model": {"type": "BPE", "byte_fallback": true, "merges": [],
            "vocab": {"<pad>": 0, "a": 1, "<0x41>": 2, "\0": 3, "b": 4, "c": 5}},
    });
    tiny.file("tokenizer.json", tokenizer.to_string());
    let back = exported_but_for(&tiny, |_| false);
    let gguf = gguf::Gguf::read(&back.gguf).unwrap();
    let tokens = gguf.metadata().array("tokenizer.ggml.tokens").unwrap();
    let tokens: Vec<_> = tokens.strings().unwrap().map(|text| text.to_vec()).collect();
    assert_eq!(tokens[3], b"<b'\\x00'>");
    let types = gguf.metadata().array("tokenizer.ggml.token_type").unwrap();
    let types: Vec<_> = types.iter().map(|kind| kind.to_i64().unwrap()).collect();
    assert_eq!(types, [3, 1, 6, 6, 1, 1]);
    assert!(gguf.metadata().get("tokenizer.ggml.scores").is_none());
}

#[test]
fn arctic_has_a_network_beside_its_experts() {
    let fields =
        json!({"rms_norm_eps": 1e-5, "num_local_experts": EXPERTS, "num_experts_per_tok": 2});
    let mut network = vec![
        listed("residual_layernorm", &[WIDTH]),
        listed("block_sparse_moe.gate", &[EXPERTS, WIDTH]),
    ];
    network.extend(["w1", "w2", "w3"].map(|part| square(&format!("residual_mlp.{part}"))));
    for expert in 0..EXPERTS {
        let name = |part: &str| format!("block_sparse_moe.experts.{expert}.{part}");
        network.push(listed(&name("w1"), &[FF, WIDTH]));
        network.push(listed(&name("w2"), &[WIDTH, FF]));
        network.push(listed(&name("w3"), &[FF, WIDTH]));
    }
    let layer = vec![norms(&["input_layernorm", "post_attention_layernorm"]), attention(), network];
    let tiny = checkpoint(
        config("ArcticForCausalLM", "arctic", fields),
        layer,
        &["model.norm", "lm_head"],
    );
    sentencepiece(&tiny);
    // One token takes the place of another.
    let added = json!({"added_tokens_decoder": {"5": {"content": "<|end|>", "special": true}},
        "eos_token": "<|end|>"});
    tiny.file("tokenizer_config.json", added.to_string());
    let back = exported_but_for(&tiny, |_| false);
    let gguf = gguf::Gguf::read(&back.gguf).unwrap();
    let types = gguf.metadata().array("tokenizer.ggml.token_type").unwrap();
    assert_eq!(types.iter().last().unwrap().to_i64(), Some(3));
}

#[test]
fn the_first_qwen_counts_gate_and_input_together() {
    let layer: Vec<Listed> = [
        ("ln_1.weight", &[WIDTH][..]),
        ("ln_2.weight", &[WIDTH]),
        ("attn.c_attn.weight", &[3 * WIDTH, WIDTH]),
        ("attn.c_attn.bias", &[3 * WIDTH]),
        ("attn.c_proj.weight", &[WIDTH, WIDTH]),
        ("mlp.w1.weight", &[FF, WIDTH]),
        ("mlp.w2.weight", &[FF, WIDTH]),
        ("mlp.c_proj.weight", &[WIDTH, FF]),
    ]
    .map(|(name, shape)| (format!("transformer.h.{{}}.{name}"), shape.to_vec()))
    .to_vec();
    let mut fields = config(
        "QWenLMHeadModel",
        "qwen",
        json!({"layer_norm_epsilon": 1e-6, "rotary_emb_base": 10000.0, "no_bias": true,
            "intermediate_size": 2 * FF}),
    );
    fields.as_object_mut().unwrap().remove("num_key_value_heads");
    let top = [("transformer.wte", &[VOCAB, WIDTH][..]), ("transformer.ln_f", &[WIDTH])];
    let back = exported_as_it_was(&crate::later::named(fields, &top, &layer)).config;
    assert_eq!(back["rotary_emb_base"].as_f64(), Some(10000.0));
}

#[test]
fn hunyuan_states_experts_for_every_layer() {
    let mut network = vec![listed("mlp.gate.wg", &[EXPERTS, WIDTH])];
    network.extend(gated("mlp.shared_mlp", FF));
    for expert in 0..EXPERTS {
        network.extend(gated(&format!("mlp.experts.{expert}"), FF));
    }
    let heads = ["query_layernorm", "key_layernorm"]
        .map(|name| listed(&format!("self_attn.{name}"), &[HEAD]))
        .to_vec();
    let layer =
        vec![norms(&["input_layernorm", "post_attention_layernorm"]), attention(), heads, network];
    let fields = json!({"rms_norm_eps": 1e-5, "rope_theta": 10000.0, "num_experts": EXPERTS,
        "moe_topk": vec![2; LAYERS], "num_shared_expert": vec![1; LAYERS],
        "moe_intermediate_size": vec![FF; LAYERS], "tie_word_embeddings": true,
        "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}});
    let fields = config("HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", fields);
    let tiny = checkpoint(fields.clone(), layer.clone(), &["model.norm"]);
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["moe_topk"], fields["moe_topk"]);
    assert_eq!(back["rope_scaling"]["alpha"], 1000.0);
    let mut uneven = fields;
    uneven["moe_topk"][1] = json!(3);
    let error = checkpoint(uneven, layer, &["model.norm"]).convert().unwrap_err().to_string();
    assert!(error.contains("`moe_topk` is [2, 3, 2, 2]"), "{error}");
}
