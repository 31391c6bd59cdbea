//! There and back: text models that see or hear, and those with experts or names of their own.

use serde_json::{Value, json};

use crate::decoder::*;
use crate::later::*;
use crate::newer::{TIED, UNTIED};
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tiny::Tiny;

#[test]
fn gemma_has_several_streams() {
    const PER_LAYER: usize = 8;
    const STREAMS: usize = 4;
    let mut layer = vec![
        norms(&[
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
            "post_per_layer_input_norm",
            "altup.router_norm",
            "laurel.post_laurel_norm",
        ]),
        attention(),
        head_norms(),
        gated("mlp", FF),
    ];
    layer.push(vec![
        listed("per_layer_input_gate", &[PER_LAYER, WIDTH]),
        listed("per_layer_projection", &[WIDTH, PER_LAYER]),
        listed("altup.correction_coefs", &[STREAMS, STREAMS]),
        listed("altup.prediction_coefs", &[STREAMS * STREAMS, STREAMS]),
        listed("altup.modality_router", &[STREAMS, WIDTH]),
        raw("altup.correct_output_scale", &[WIDTH]),
        listed("laurel.linear_left", &[PER_LAYER, WIDTH]),
        listed("laurel.linear_right", &[WIDTH, PER_LAYER]),
    ]);
    let kinds: Vec<_> =
        ["sliding_attention", "full_attention"].into_iter().cycle().take(LAYERS).collect();
    let fields = json!({"rms_norm_eps": 1e-6, "head_dim": HEAD, "rope_theta": 1e6,
        "rope_local_base_freq": 1e4, "sliding_window": 16, "layer_types": kinds,
        "intermediate_size": [FF, FF, FF, FF], "hidden_size_per_layer_input": PER_LAYER,
        "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.95, 0.9, 0.0, 0.0]});
    let config = config("Gemma3nForCausalLM", "gemma3n_text", fields);
    let mut tiny = checkpoint(config, layer, TIED).tensors(&[
        ("model.embed_tokens_per_layer.weight", &[VOCAB, LAYERS * PER_LAYER]),
        ("model.per_layer_model_projection.weight", &[LAYERS * PER_LAYER, WIDTH]),
        ("model.per_layer_projection_norm.weight", &[PER_LAYER]),
    ]);
    for stream in 0..STREAMS - 1 {
        for part in ["altup_projections", "altup_unembed_projections"] {
            tiny = tiny.tensors(&[(&format!("model.{part}.{stream}.weight"), &[WIDTH, WIDTH])]);
        }
    }
    let back = exported_as_it_was(&tiny).config;
    assert_eq!(back["activation_sparsity_pattern"], json!([0.95, 0.9, 0.0, 0.0]));
    assert_eq!(back["intermediate_size"], json!([FF, FF, FF, FF]));
}

fn query_norms() -> Vec<Listed> {
    vec![listed("self_attn.query_layernorm", &[HEAD]), listed("self_attn.key_layernorm", &[HEAD])]
}

#[test]
fn positions_of_those_that_read_have_more_dimensions() {
    let scaling = json!({"type": "default", "mrope_section": [2, 3, 3]});
    let fields = rms(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let class = "PaddleOCRVLForConditionalGeneration";
    let tiny = checkpoint(config(class, "paddleocr_vl", fields), llama_block(), UNTIED);
    sentencepiece(&tiny);
    assert_eq!(exported_but_for(&tiny, |_| false).config["rope_scaling"], scaling);

    let scaling = json!({"type": "xdrope", "alpha": 1000.0, "factor": 1.0,
        "xdrope_section": [2, 2, 2, 2]});
    let fields = rms(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let class = "HunYuanVLForConditionalGeneration";
    let layer = [llama_block(), vec![query_norms()]].concat();
    let back = exported_as_it_was(&checkpoint(config(class, "hunyuan_vl", fields), layer, TIED));
    assert_eq!(back.config["rope_scaling"], scaling);
}

#[test]
fn deepseek_reads_with_attention_as_in_llama() {
    let fields = rms(json!({"head_dim": HEAD, "n_routed_experts": EXPERTS, "n_shared_experts": 1,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "first_k_dense_replace": 0,
        "qk_rope_head_dim": 0, "n_group": 1, "topk_group": 1}));
    let mut network = beside_shared();
    network.remove(1);
    let layer = vec![two_norms(), attention(), network];
    let config = config("DeepseekOCRForCausalLM", "deepseek_vl_v2", fields);
    let tiny =
        checkpoint(config, layer, UNTIED).tensors(&[("model.sam_model.neck.0.weight", &[4, 4])]);
    let back = exported_but_for(&tiny, |name| name.contains("sam_model")).config;
    assert_eq!(back["n_routed_experts"], EXPERTS);
}

#[test]
fn those_that_hear_come_back_as_those_that_see() {
    let scaling = json!({"type": "default", "mrope_section": [2, 3, 3]});
    let speech = rms(json!({"head_dim": HEAD, "rope_scaling": scaling}));
    let layer = [llama_block(), vec![head_norms()]].concat();
    let speech = config("Qwen3ASRForConditionalGeneration", "qwen3_asr", speech);
    let back = exported_as_it_was(&checkpoint(speech, layer, TIED)).config;
    assert_eq!(back["architectures"], json!(["Qwen3VLForConditionalGeneration"]));
    // Experts come back all in one tensor, with rows and columns exchanged.
    let fields = rms(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF, "rope_scaling": scaling}));
    let experts = vec![
        listed("mlp.gate", &[EXPERTS, WIDTH]),
        raw("mlp.experts.gate_up_proj", &[EXPERTS, WIDTH, 2 * EXPERT_FF]),
        raw("mlp.experts.down_proj", &[EXPERTS, EXPERT_FF, WIDTH]),
    ];
    let omni = config("Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe", fields);
    let layer = vec![two_norms(), attention(), head_norms(), experts];
    let back = exported_as_it_was(&checkpoint(omni, layer, UNTIED)).config;
    assert_eq!(back["architectures"], json!(["Qwen3VLMoeForConditionalGeneration"]));
}

#[test]
fn images_are_tokens_or_have_matrices_of_their_own() {
    let mut layer = llama_block();
    for (part, heads) in [("q", HEADS), ("k", KV)] {
        for end in ["weight", "bias"] {
            layer.push(vec![raw(&format!("self_attn.{part}_norm.{end}"), &[heads, HEAD])]);
        }
    }
    let chameleon = "ChameleonForConditionalGeneration";
    let fields = rms(json!({"swin_norm": true}));
    let back =
        exported_as_it_was(&checkpoint(config(chameleon, "chameleon", fields), layer, UNTIED));
    assert_eq!(back.config["swin_norm"], true);
    let mut layer = two_norms();
    for expert in ["language", "vision"] {
        layer.push(listed(
            &format!("self_attn.{expert}_expert_query_key_value"),
            &[3 * WIDTH, WIDTH],
        ));
        layer.push(listed(&format!("self_attn.{expert}_expert_dense"), &[WIDTH, WIDTH]));
        layer.extend(gated(&format!("mlp.{expert}_mlp"), FF));
    }
    let fields = rms(json!({"num_key_value_heads": null}));
    let cogvlm = config("CogVLMForCausalLM", "cogvlm", fields);
    exported_as_it_was(&checkpoint(cogvlm, vec![layer], UNTIED));
}

#[test]
fn experts_of_a_group_share_one() {
    let fields = rms(json!({"head_dim": HEAD, "num_experts": EXPERTS, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FF}));
    let mut layer = [two_norms(), attention(), head_norms()].concat();
    layer.push(listed("mlp.gate", &[EXPERTS, WIDTH]));
    layer.extend(one_by_one("mlp", PROJECTIONS));
    for group in 0..EXPERTS / 2 {
        layer.extend(gated(&format!("mlp.chunk_experts.{group}"), HEAD));
    }
    let grove = config("GroveMoeForCausalLM", "grove_moe", fields);
    exported_as_it_was(&checkpoint(grove, vec![layer], UNTIED));
}

fn grok(class: &str, kind: &str, fields: Value) -> Value {
    let all = rms(json!({"num_local_experts": EXPERTS, "num_experts_per_tok": 2,
        "embedding_multiplier_scale": 78.5, "output_multiplier_scale": 0.5,
        "attn_output_multiplier": 0.08, "attn_logit_softcapping": 30.0,
        "router_logit_softcapping": 30.0}));
    config(class, kind, with(all, fields))
}

#[test]
fn grok_has_two_sets_of_names() {
    let of_layer = |name: &str, shape: &[usize]| {
        (format!("transformer.decoder_layer.{{}}.{name}.weight"), shape.to_vec())
    };
    let mut layer = vec![
        of_layer("multi_head_attention.query", &[HEADS * HEAD, WIDTH]),
        of_layer("multi_head_attention.key", &[KV * HEAD, WIDTH]),
        of_layer("multi_head_attention.value", &[KV * HEAD, WIDTH]),
        of_layer("multi_head_attention.linear", &[WIDTH, HEADS * HEAD]),
        of_layer("router", &[EXPERTS, WIDTH]),
    ];
    for norm in ["rms_norm", "rms_norm_1", "rms_norm_2", "rms_norm_3"] {
        layer.push(of_layer(norm, &[WIDTH]));
    }
    for e in 0..EXPERTS {
        layer.push(of_layer(&format!("moe.{e}.linear"), &[FF, WIDTH]));
        layer.push(of_layer(&format!("moe.{e}.linear_v"), &[FF, WIDTH]));
        layer.push(of_layer(&format!("moe.{e}.linear_1"), &[WIDTH, FF]));
    }
    let top: [(&str, &[usize]); 2] =
        [("transformer.in_out_embed", &[VOCAB, WIDTH]), ("transformer.rms_norm", &[WIDTH])];
    let first = grok("Grok1ForCausalLM", "grok-1", json!({}));
    let back = exported_as_it_was(&named(first, &top, &layer)).config;
    assert_eq!(back["embedding_multiplier_scale"], 78.5);

    let stretched = json!({"rope_type": "yarn", "scaling_factor": 16.0, "extrapolation_factor": 1.0,
        "attn_factor": 1.0, "beta_fast": 8.0, "beta_slow": 1.0, "moe_intermediate_size": EXPERT_FF,
        "original_max_position_embeddings": 64, "final_logit_softcapping": 50.0,
        "attn_temperature_len": 64, "head_dim": HEAD});
    let names = ["pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"];
    let router = vec![listed("block_sparse_moe.gate", &[EXPERTS, WIDTH])];
    let layer = vec![
        norms(&names),
        attention(),
        router,
        one_by_one("block_sparse_moe", ["w1", "w2", "w3"]),
        gated("mlp", FF),
    ];
    let second = grok("GrokForCausalLM", "grok-2", stretched);
    let back = exported_as_it_was(&checkpoint(second, layer, UNTIED)).config;
    assert_eq!(back["architectures"], json!(["GrokForCausalLM"]));
    assert_eq!(back["scaling_factor"].as_f64(), Some(16.0));
}

#[test]
fn llada_unmasks_tokens() {
    let config = json!({"architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": WIDTH,
        "n_heads": HEADS, "n_kv_heads": HEADS, "n_layers": LAYERS, "mlp_hidden_size": FF,
        "max_sequence_length": 256, "rms_norm_eps": 1e-5, "rope_theta": 5e5, "vocab_size": VOCAB});
    let layer: Vec<Listed> = [
        ("attn_norm", &[WIDTH][..]),
        ("ff_norm", &[WIDTH]),
        ("q_proj", &[WIDTH, WIDTH]),
        ("k_proj", &[WIDTH, WIDTH]),
        ("v_proj", &[WIDTH, WIDTH]),
        ("attn_out", &[WIDTH, WIDTH]),
        ("ff_proj", &[FF, WIDTH]),
        ("up_proj", &[FF, WIDTH]),
        ("ff_out", &[WIDTH, FF]),
    ]
    .map(|(name, shape)| (format!("model.transformer.blocks.{{}}.{name}.weight"), shape.to_vec()))
    .to_vec();
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let tiny = Tiny::new(config).byte_level(VOCAB).layers(LAYERS, &layer).tensors(&[
        ("model.transformer.wte.weight", &[VOCAB, WIDTH]),
        ("model.transformer.ln_f.weight", &[WIDTH]),
        ("model.transformer.ff_out.weight", &[VOCAB, WIDTH]),
    ]);
    assert_eq!(exported_as_it_was(&tiny).config["mlp_hidden_size"], FF);
}

fn encoder(config: Value, names: &[(&str, &[usize])], top: &[(&str, &[usize])]) -> Value {
    let tiny = Tiny::new(config).layers(LAYERS, names).tensors(top);
    tiny.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    exported_but_for(&tiny, |_| false).config
}

#[test]
fn encoders_with_gates() {
    let fields = json!({"max_length": 64, "norm_eps": 1e-6, "intermediate_size": 3 * FF / 2,
        "num_key_value_heads": null, "max_position_embeddings": null});
    let layer: [(&str, &[usize]); 6] = [
        ("transformer_encoder.{}.attention_norm.weight", &[WIDTH]),
        ("transformer_encoder.{}.qkv.weight", &[3 * WIDTH, WIDTH]),
        ("transformer_encoder.{}.wo.weight", &[WIDTH, WIDTH]),
        ("transformer_encoder.{}.ffn_norm.weight", &[WIDTH]),
        ("transformer_encoder.{}.ffn.w12.weight", &[2 * FF, WIDTH]),
        ("transformer_encoder.{}.ffn.w3.weight", &[WIDTH, FF]),
    ];
    let top: [(&str, &[usize]); 2] =
        [("encoder.weight", &[VOCAB, WIDTH]), ("layer_norm.weight", &[WIDTH])];
    let back = encoder(config("NeoBERT", "neobert", fields), &layer, &top);
    assert_eq!(back["intermediate_size"], 3 * FF / 2);

    let mut layer: Vec<(String, Vec<usize>)> = Vec::new();
    for (name, shape) in [
        ("attention.self.query", vec![WIDTH, WIDTH]),
        ("attention.self.key", vec![WIDTH, WIDTH]),
        ("attention.self.value", vec![WIDTH, WIDTH]),
        ("attention.output.dense", vec![WIDTH, WIDTH]),
        ("attention.output.LayerNorm", vec![WIDTH]),
        ("mlp.wo", vec![WIDTH, FF]),
        ("mlp.layernorm", vec![WIDTH]),
    ] {
        layer.push((format!("encoder.layer.{{}}.{name}.bias"), vec![shape[0]]));
        layer.push((format!("encoder.layer.{{}}.{name}.weight"), shape));
    }
    layer.push(("encoder.layer.{}.mlp.gated_layers.weight".into(), vec![2 * FF, WIDTH]));
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let fields =
        json!({"layer_norm_eps": 1e-12, "type_vocab_size": 2, "num_key_value_heads": null});
    let top: [(&str, &[usize]); 4] = [
        ("embeddings.word_embeddings.weight", &[VOCAB, WIDTH]),
        ("embeddings.token_type_embeddings.weight", &[2, WIDTH]),
        ("embeddings.LayerNorm.weight", &[WIDTH]),
        ("embeddings.LayerNorm.bias", &[WIDTH]),
    ];
    let back = encoder(config("JinaBertModel", "bert", fields), &layer, &top);
    assert_eq!(back["type_vocab_size"], 2);
}
