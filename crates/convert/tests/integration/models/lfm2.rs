//! LFM2: text models, vision and audio encoders, audio tokenizer.

use gguf::Gguf;
use serde_json::{Value, json};

use crate::fixtures::decoder::{
    EXPERT_FF, EXPERTS, FF, HEAD, HEADS, KV, LAYERS, NUMBERED, NamedShape, VOCAB, WIDTH, attention,
    checkpoint, config, expert_ffns, layer_weight, norms,
};
use crate::fixtures::mmproj::{convert_mmproj, with_preprocessor_config};
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tiny, elements};

#[test]
pub fn lfm2_and_lfm2_moe_round_trip() {
    let dense = json!({"norm_eps": 1e-5, "rope_theta": 1e6, "conv_L_cache": 3,
        "block_auto_adjust_ff_dim": false, "layer_types": LAYER_TYPES});
    assert_lfm2_round_trip("Lfm2ForCausalLM", "lfm2", dense, numbered_ffn("", FF));
    let experts = json!({"norm_eps": 1e-5, "rope_theta": 1e6, "conv_L_cache": 3,
        "layer_types": LAYER_TYPES, "num_dense_layers": 0, "num_experts": EXPERTS,
        "num_experts_per_tok": 2, "moe_intermediate_size": EXPERT_FF, "use_expert_bias": true,
        "norm_topk_prob": true});
    let mut network = expert_ffns("feed_forward", NUMBERED);
    network.push(layer_weight("feed_forward.gate", &[EXPERTS, WIDTH]));
    network.push(("model.layers.{}.feed_forward.expert_bias".into(), vec![EXPERTS]));
    assert_lfm2_round_trip("Lfm2MoeForCausalLM", "lfm2_moe", experts, network);
}

const LAYER_TYPES: [&str; LAYERS] = ["conv", "full_attention", "conv", "full_attention"];

fn numbered_ffn(part: &str, width: usize) -> Vec<NamedShape> {
    let name = |matrix| format!("feed_forward{part}.{matrix}");
    vec![
        layer_weight(&name("w1"), &[width, WIDTH]),
        layer_weight(&name("w2"), &[WIDTH, width]),
        layer_weight(&name("w3"), &[width, WIDTH]),
    ]
}

fn assert_lfm2_round_trip(class: &str, model_type: &str, fields: Value, network: Vec<NamedShape>) {
    let all = [norms(&["operator_norm", "ffn_norm"]), network].concat();
    let convolution = vec![
        layer_weight("conv.conv", &[WIDTH, 1, 3]),
        layer_weight("conv.in_proj", &[3 * WIDTH, WIDTH]),
        layer_weight("conv.out_proj", &[WIDTH, WIDTH]),
    ];
    let mut heads = attention();
    heads[3] = layer_weight("self_attn.out_proj", &[WIDTH, HEADS * HEAD]);
    heads.push(layer_weight("self_attn.q_layernorm", &[HEAD]));
    heads.push(layer_weight("self_attn.k_layernorm", &[HEAD]));
    let mut tiny =
        checkpoint(config(class, model_type, fields), vec![all], &["model.embedding_norm"]);
    for (layer, kind) in LAYER_TYPES.iter().enumerate() {
        let own = if *kind == "conv" { &convolution } else { &heads };
        for (name, shape) in own {
            tiny = tiny.tensors(&[(&name.replace("{}", &layer.to_string()), shape)]);
        }
    }
    let exported = assert_round_trip(&tiny).config;
    assert_eq!(exported["layer_types"], json!(LAYER_TYPES));
    assert_eq!(exported["num_key_value_heads"], KV);
}

#[test]
pub fn lfm2_5_audio_tokenizer_round_trip() {
    const FRAME: usize = 10;
    const FF: usize = 96;
    let own = json!({"norm_eps": 1e-5, "conv_L_cache": 3, "rope_theta": 1e6, "layer_types":
        ["conv", "full_attention"], "num_hidden_layers": 2, "block_auto_adjust_ff_dim": false,
        "sliding_window": 30, "output_size": FRAME});
    let of_all: &[(&str, &[usize])] = &[
        ("lfm.layers.{}.operator_norm.weight", &[WIDTH]),
        ("lfm.layers.{}.ffn_norm.weight", &[WIDTH]),
        ("lfm.layers.{}.feed_forward.w1.weight", &[FF, WIDTH]),
        ("lfm.layers.{}.feed_forward.w2.weight", &[WIDTH, FF]),
        ("lfm.layers.{}.feed_forward.w3.weight", &[FF, WIDTH]),
    ];
    let head = WIDTH / HEADS;
    let made = |own: Value| {
        let config = config("Lfm25AudioTokenizer", "lfm25_audio_tokenizer", own);
        Tiny::new(config).layers(2, of_all).tensors(&[
            ("lfm.embed_tokens.weight", &[VOCAB, WIDTH]),
            ("lfm.embedding_norm.weight", &[WIDTH]),
            ("lin.weight", &[FRAME, WIDTH]),
            ("lin.bias", &[FRAME]),
            ("lfm.layers.0.conv.conv.weight", &[WIDTH, 1, 3]),
            ("lfm.layers.0.conv.in_proj.weight", &[3 * WIDTH, WIDTH]),
            ("lfm.layers.0.conv.out_proj.weight", &[WIDTH, WIDTH]),
            ("lfm.layers.1.self_attn.q_proj.weight", &[WIDTH, WIDTH]),
            ("lfm.layers.1.self_attn.k_proj.weight", &[KV * head, WIDTH]),
            ("lfm.layers.1.self_attn.v_proj.weight", &[KV * head, WIDTH]),
            ("lfm.layers.1.self_attn.out_proj.weight", &[WIDTH, WIDTH]),
            ("lfm.layers.1.self_attn.q_layernorm.weight", &[head]),
            ("lfm.layers.1.self_attn.k_layernorm.weight", &[head]),
        ])
    };
    let tiny = made(own.clone());
    let exported = assert_round_trip(&tiny);
    assert_eq!(exported.config["output_size"], FRAME);
    assert_eq!(exported.config["sliding_window"], 30);
    assert_eq!(elements(&exported.gguf, "dense_2.bias"), tiny.values("lin.bias"));
    let mut without = own;
    without.as_object_mut().unwrap().remove("output_size");
    let error = made(without).convert().unwrap_err().to_string();
    assert!(error.contains("has no field `output_size`"), "{error}");
}

#[test]
fn lfm2_vl_patch_embedding_is_channel_first() {
    let config = json!({"architectures": ["Lfm2VlForConditionalGeneration"], "model_type": "lfm2_vl",
        "text_config": {"hidden_size": 8}, "vision_config": {"hidden_size": 2, "intermediate_size": 8,
            "num_hidden_layers": 3, "num_attention_heads": 2, "patch_size": 2},
        "vision_feature_layer": -2});
    let name = "model.vision_tower.vision_model.embeddings.patch_embedding.weight";
    let tiny = with_preprocessor_config(Tiny::new(config)).tensors(&[(name, &[2, 12])]);
    let (bytes, _) = convert_mmproj(&tiny, "f32").unwrap();
    let stored = tiny.values(name);
    let places = (0..2).flat_map(|row| {
        (0..3).flat_map(move |colour| (0..4).map(move |pixel| (row, colour, pixel)))
    });
    let expected: Vec<f32> =
        places.map(|(row, colour, pixel)| stored[row * 12 + pixel * 3 + colour]).collect();
    assert_eq!(elements(&bytes, "v.patch_embd.weight"), expected);
    let model = Gguf::read(&bytes).unwrap();
    assert_eq!(model.metadata().u64("clip.vision.block_count"), Some(2), "without the last layer");
}

#[test]
fn lfm2_audio_batch_norm_is_folded() {
    let config = json!({"architectures": ["Lfm2AudioForConditionalGeneration"],
        "lfm": {"hidden_size": 8},
        "encoder": {"d_model": 4, "n_heads": 2, "n_layers": 1, "feat_in": 16}});
    let norm = |end: &str| format!("conformer.layers.0.conv.batch_norm.{end}");
    let names = ["weight", "bias", "running_mean", "running_var"].map(norm);
    let tensors: Vec<(&str, &[usize])> = names.iter().map(|name| (&**name, &[4][..])).collect();
    let tiny = Tiny::new(config).tensors(&tensors);
    let (bytes, _) = convert_mmproj(&tiny, "f32").unwrap();
    let [weight, bias, mean, variance] = names.each_ref().map(|name| tiny.values(name));
    for i in 0..4 {
        let scale = weight[i] / (variance[i] + 1e-5).sqrt();
        assert_eq!(elements(&bytes, "a.blk.0.conv_norm.weight")[i], scale);
        assert_eq!(elements(&bytes, "a.blk.0.conv_norm.bias")[i], bias[i] - mean[i] * scale);
    }
}
