//! There and back: RWKV 6 and 7, what replaces attention in Qwen 2, PLaMo.

use serde_json::{Value, json};

use crate::decoder::{FF, HEAD, HEADS, KV, Listed};
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tiny::{Tiny, elements};
use crate::{Tensors, tiny};

const WIDTH: usize = 64;
const LAYERS: usize = 2;

fn vectors(prefix: &str, names: &[&str], shape: &[usize]) -> Vec<Listed> {
    names.iter().map(|name| (format!("{prefix}{name}"), shape.to_vec())).collect()
}

fn squares(prefix: &str, names: &[&str]) -> Vec<Listed> {
    vectors(prefix, names, &[WIDTH, WIDTH])
        .into_iter()
        .map(|(name, shape)| (name + ".weight", shape))
        .collect()
}

fn with_bias(names: &[&str]) -> Vec<Listed> {
    let both = |name: &&str| ["weight", "bias"].map(|end| (format!("{name}.{end}"), vec![WIDTH]));
    names.iter().flat_map(both).collect()
}

fn made(class: &str, fields: Value, ends: &[(&str, &[usize])], layer: &[Listed]) -> Tiny {
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    let mut all = json!({"hidden_size": WIDTH, "num_hidden_layers": LAYERS});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    tiny(class, all, ends, &layer)
}

/// Replaces the vocabulary by one of RWKV World.
fn world(tiny: &Tiny) {
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    tiny.file("rwkv_vocab_v20230424.txt", "1 '\\x00' 1\n2 b'\\xff' 1\n3 '\\'' 1\n");
}

#[test]
fn rwkv6_mixes_with_the_token_before() {
    let layer = [
        with_bias(&["rwkv.blocks.{}.ln1", "rwkv.blocks.{}.ln2", "rwkv.blocks.{}.attention.ln_x"]),
        squares("rwkv.blocks.{}.attention.", &["receptance", "key", "value", "gate", "output"]),
        vectors(
            "rwkv.blocks.{}.attention.time_maa_",
            &["x", "w", "k", "v", "r", "g"],
            &[1, 1, WIDTH],
        ),
        vectors("rwkv.blocks.{}.", &["attention.time_decay"], &[1, 1, WIDTH]),
        vectors("rwkv.blocks.{}.attention.", &["time_faaaa"], &[WIDTH / HEAD, HEAD]),
        vectors("rwkv.blocks.{}.attention.", &["time_maa_w1"], &[WIDTH, 160]),
        vectors("rwkv.blocks.{}.attention.", &["time_maa_w2"], &[5, 32, WIDTH]),
        vectors("rwkv.blocks.{}.attention.", &["time_decay_w1"], &[WIDTH, 64]),
        vectors("rwkv.blocks.{}.attention.", &["time_decay_w2"], &[64, WIDTH]),
        vectors("rwkv.blocks.{}.feed_forward.time_maa_", &["k", "r"], &[1, 1, WIDTH]),
        squares("rwkv.blocks.{}.feed_forward.", &["receptance"]),
        vectors("rwkv.blocks.{}.feed_forward.", &["key.weight"], &[224, WIDTH]),
        vectors("rwkv.blocks.{}.feed_forward.", &["value.weight"], &[WIDTH, 224]),
    ];
    let rwkv = made(
        "Rwkv6ForCausalLM",
        json!({"head_size": HEAD, "layer_norm_epsilon": 1e-5, "rescale_every": 1}),
        &[
            ("rwkv.embeddings.weight", &[6, WIDTH]),
            ("rwkv.blocks.0.pre_ln.weight", &[WIDTH]),
            ("rwkv.blocks.0.pre_ln.bias", &[WIDTH]),
            ("rwkv.ln_out.weight", &[WIDTH]),
            ("rwkv.ln_out.bias", &[WIDTH]),
            ("head.weight", &[6, WIDTH]),
        ],
        &layer.concat(),
    );
    world(&rwkv);
    let gguf = exported_as_it_was(&rwkv).gguf;
    let mixed = elements(&gguf, "blk.1.time_mix_lerp_fused.weight");
    let parts = ["w", "k", "v", "r", "g"]
        .map(|part| rwkv.values(&format!("rwkv.blocks.1.attention.time_maa_{part}")));
    assert_eq!(mixed, parts.concat());
    // The second layer is halved.
    let output = rwkv.values("rwkv.blocks.1.attention.output.weight");
    let halved: Vec<f32> = output.iter().map(|x| x / 2.0).collect();
    assert_eq!(elements(&gguf, "blk.1.time_mix_output.weight"), halved);
}

/// Qwen 2 with these tensors in place of its attention.
fn around(class: &str, fields: Value, attention: Vec<Listed>) -> Tiny {
    let mut all = json!({"num_attention_heads": HEADS, "num_key_value_heads": KV,
        "intermediate_size": FF, "rms_norm_eps": 1e-6});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let p = "model.layers.{}.";
    let layer = [
        vectors(p, &["input_layernorm.weight", "post_attention_layernorm.weight"], &[WIDTH]),
        vectors(p, &["mlp.gate_proj.weight", "mlp.up_proj.weight"], &[FF, WIDTH]),
        vectors(p, &["mlp.down_proj.weight"], &[WIDTH, FF]),
        attention,
    ];
    const ENDS: Tensors = &[
        ("model.embed_tokens.weight", &[6, WIDTH]),
        ("model.norm.weight", &[WIDTH]),
        ("lm_head.weight", &[6, WIDTH]),
    ];
    made(class, all, ENDS, &layer.concat())
}

#[test]
fn parts_of_the_mix_stand_in_another_order_in_qwen() {
    const RANK: usize = 8;
    let p = "model.layers.{}.self_attn.";
    let attention = [
        squares(p, &["q_proj", "o_proj", "gate"]),
        vectors(p, &["k_proj.weight", "v_proj.weight"], &[KV * HEAD, WIDTH]),
        vectors(p, &["q_proj.bias"], &[WIDTH]),
        vectors(p, &["k_proj.bias", "v_proj.bias"], &[KV * HEAD]),
        vectors(&format!("{p}time_maa_"), &["x", "r", "k", "v", "w", "g"], &[1, 1, WIDTH]),
        vectors(p, &["time_decay"], &[1, 1, WIDTH]),
        vectors(p, &["time_maa_w1"], &[WIDTH, 5 * RANK]),
        vectors(p, &["time_maa_w2"], &[5, RANK, WIDTH]),
        vectors(p, &["time_decay_w1"], &[WIDTH, 64]),
        vectors(p, &["time_decay_w2"], &[64, WIDTH]),
    ];
    let fields = json!({"lora_rank_tokenshift": RANK});
    let qwen = around("RWKV6Qwen2ForCausalLM", fields, attention.concat());
    let gguf = exported_as_it_was(&qwen).gguf;
    let up = qwen.values("model.layers.0.self_attn.time_maa_w2");
    let turned = |part: usize| {
        let matrix = &up[part * RANK * WIDTH..][..RANK * WIDTH];
        (0..WIDTH * RANK).map(|i| matrix[i % RANK * WIDTH + i / RANK]).collect::<Vec<f32>>()
    };
    let sorted = [3, 1, 2, 0, 4].map(turned).concat();
    assert_eq!(elements(&gguf, "blk.0.time_mix_w2.weight"), sorted);
}

/// Decay, learning rate, mix with the first values and gate of version 7, with their ranks.
const RANKS: [(&str, usize); 4] = [("w", 64), ("a", 64), ("v", 32), ("g", 128)];

#[test]
fn rwkv7_has_layers_of_low_rank() {
    let p = "model.layers.{}.attn.";
    let mut layer = vec![
        with_bias(&["model.layers.{}.attn_norm", "model.layers.{}.ffn_norm"]),
        with_bias(&["model.layers.{}.attn.g_norm"]),
        squares(p, &["r_proj", "k_proj", "v_proj", "o_proj"]),
        vectors(&format!("{p}x_"), &["r", "w", "k", "v", "a", "g"], &[1, 1, WIDTH]),
        vectors(p, &["k_k", "k_a"], &[WIDTH]),
        vectors(p, &["r_k"], &[WIDTH / HEAD, HEAD]),
        vectors("model.layers.{}.", &["ffn.x_k"], &[WIDTH]),
        vectors("model.layers.{}.", &["ffn.key.weight"], &[FF, WIDTH]),
        vectors("model.layers.{}.", &["ffn.value.weight"], &[WIDTH, FF]),
    ];
    let ranked = |part: &str, rank: usize| {
        let bias = vectors(p, &[&format!("{part}_lora.lora.2.bias")], &[WIDTH]);
        [
            vectors(p, &[&format!("{part}_lora.lora.0.weight")], &[rank, WIDTH]),
            vectors(p, &[&format!("{part}_lora.lora.2.weight")], &[WIDTH, rank]),
            if part == "g" { vec![] } else { bias },
        ]
        .concat()
    };
    layer.extend(RANKS.iter().filter(|(part, _)| *part != "v").map(|&(of, rank)| ranked(of, rank)));
    let mut rwkv = made(
        "RWKV7ForCausalLM",
        json!({"head_dim": HEAD, "norm_eps": 1e-5, "intermediate_size": FF,
            "decay_low_rank_dim": 64, "a_low_rank_dim": 64, "v_low_rank_dim": 32,
            "gate_low_rank_dim": 128}),
        &[
            ("model.embeddings.weight", &[6, WIDTH]),
            ("model.layers.0.pre_norm.weight", &[WIDTH]),
            ("model.layers.0.pre_norm.bias", &[WIDTH]),
            ("model.norm.weight", &[WIDTH]),
            ("model.norm.bias", &[WIDTH]),
            ("lm_head.weight", &[6, WIDTH]),
        ],
        &layer.concat(),
    );
    // The first layer mixes with no values.
    for (name, shape) in ranked("v", 32) {
        rwkv = rwkv.tensors(&[(&name.replace("{}", "1"), &shape)]);
    }
    world(&rwkv);
    let gguf = exported_as_it_was(&rwkv).gguf;
    let rate = rwkv.values("model.layers.0.attn.a_lora.lora.0.weight");
    assert_eq!(elements(&gguf, "blk.0.time_mix_a1.weight"), rate);
    assert_eq!(elements(&gguf, "blk.0.time_mix_v1.weight"), rate);
    assert_eq!(
        elements(&gguf, "blk.1.time_mix_v1.weight"),
        rwkv.values("model.layers.1.attn.v_lora.lora.0.weight")
    );
}

#[test]
fn version_7_in_qwen_may_lack_the_gate() {
    for gate in [true, false] {
        let p = "model.layers.{}.self_attn.time_mixer.";
        let mixed: &[&str] = if gate { &["g"] } else { &[] };
        let mut attention = vec![
            squares(p, &["receptance", "key", "value", "output"]),
            vectors(&format!("{p}x_"), &["r", "w", "k", "v", "a"], &[1, 1, WIDTH]),
            vectors(&format!("{p}x_"), mixed, &[1, 1, WIDTH]),
            vectors(p, &["k_k", "k_a"], &[WIDTH]),
            vectors(p, &["r_k"], &[WIDTH / HEAD, HEAD]),
        ];
        let ranked = |part: &str, rank: usize| {
            [
                vectors(p, &[&format!("{part}1")], &[WIDTH, rank]),
                vectors(p, &[&format!("{part}2")], &[rank, WIDTH]),
                if part == "g" {
                    vec![]
                } else {
                    vectors(p, &[&format!("{part}0")], &[1, 1, WIDTH])
                },
            ]
            .concat()
        };
        let usual = RANKS.iter().filter(|(part, _)| match *part {
            "v" => false,
            "g" => gate,
            _ => true,
        });
        attention.extend(usual.map(|&(part, rank)| ranked(part, rank)));
        let fields = json!({"head_size": HEAD, "wkv_version": 7, "wkv_has_gate": gate});
        let mut qwen = around("RwkvHybridForCausalLM", fields, attention.concat());
        for (name, shape) in ranked("v", 32) {
            qwen = qwen.tensors(&[(&name.replace("{}", "1"), &shape)]);
        }
        let back = exported_as_it_was(&qwen);
        assert_eq!(back.config["wkv_has_gate"], gate);
    }
}

#[test]
fn another_version_in_qwen_is_refused() {
    let fields = json!({"head_size": HEAD, "wkv_version": 6});
    let error = around("RwkvHybridForCausalLM", fields, vec![]).convert().unwrap_err();
    assert!(error.to_string().contains("`wkv_version` is 6"), "{error}");
}

/// The vocabulary of PLaMo 2 and 3.
fn plamo_tokens(tiny: &Tiny) {
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    let lines = [
        json!(["<|plamo:unk|>", 0.0, "UNKNOWN", null]),
        json!(["<|plamo:bos|>", 0.0, "CONTROL"]),
        json!(["<0x00>", 0.0, "BYTE"]),
        json!(["w\u{E9}", -1.5, "NORMAL", 3]),
        json!(["<|plamo:op|>", -2.0, "NORMAL"]),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    tiny.file("tokenizer.jsonl", lines);
    let roles = json!({"bos_token": "<|plamo:bos|>", "unk_token": "<|plamo:unk|>"});
    tiny.file("tokenizer_config.json", roles.to_string());
}

fn plamo(class: &str, fields: Value, mix: &[Listed]) -> Tiny {
    let p = "model.layers.layers.{}.";
    let layer = [
        vectors(p, &["pre_mixer_norm.weight", "post_mixer_norm.weight"], &[WIDTH]),
        vectors(p, &["pre_mlp_norm.weight", "post_mlp_norm.weight"], &[WIDTH]),
        vectors(p, &["mlp.gate_up_proj.weight"], &[2 * FF, WIDTH]),
        vectors(p, &["mlp.down_proj.weight"], &[WIDTH, FF]),
        mix.to_vec(),
    ];
    let mut all = json!({"num_attention_heads": HEADS, "num_key_value_heads": KV,
        "intermediate_size": FF, "rms_norm_eps": 1e-6, "max_position_embeddings": 256});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    const ENDS: Tensors =
        &[("model.embed_tokens.weight", &[6, WIDTH]), ("model.norm.weight", &[WIDTH])];
    let tiny = made(class, all, ENDS, &layer.concat());
    plamo_tokens(&tiny);
    tiny
}

fn plamo_attention() -> Vec<Listed> {
    let p = "model.layers.layers.{}.mixer.";
    [
        vectors(p, &["qkv_proj.weight"], &[(HEADS + 2 * KV) * HEAD, WIDTH]),
        vectors(p, &["o_proj.weight"], &[WIDTH, HEADS * HEAD]),
    ]
    .concat()
}

#[test]
fn plamo2_has_state_spaces() {
    const RATES: usize = 64;
    const SPACES: usize = 6;
    const STATE: usize = 8;
    let inner = SPACES * HEAD;
    let fields = json!({"hidden_size_per_head": HEAD, "mamba_d_state": STATE,
        "mamba_num_heads": SPACES, "mamba_step": 2, "mamba_d_conv": 4});
    let mut tiny = plamo("Plamo2ForCausalLM", fields, &[]);
    let p = "model.layers.layers.{}.mixer.";
    let space = [
        vectors(p, &["in_proj.weight"], &[2 * inner, WIDTH]),
        vectors(p, &["bcdt_proj.weight"], &[RATES + 2 * STATE, inner]),
        vectors(p, &["dt_proj.weight"], &[SPACES, RATES]),
        vectors(p, &["out_proj.weight"], &[WIDTH, inner]),
        vectors(p, &["A_log", "D", "dt_bias"], &[SPACES]),
        vectors(p, &["dt_norm_weight"], &[RATES]),
        vectors(p, &["B_norm_weight", "C_norm_weight"], &[STATE]),
        vectors(p, &["conv1d.weight"], &[inner, 1, 4]),
    ];
    let heads = [vectors(p, &["q_weight"], &[HEADS, HEAD]), vectors(p, &["k_weight"], &[KV, HEAD])];
    let attention = [plamo_attention(), heads.concat()].concat();
    for (layer, mix) in [("0", space.concat()), ("1", attention)] {
        for (name, shape) in mix {
            tiny = tiny.tensors(&[(&name.replace("{}", layer), &shape)]);
        }
    }
    let back = exported_as_it_was(&tiny);
    assert_eq!(back.config["mamba_step"], 2);
    assert_eq!(back.config["num_key_value_heads"], KV);
    // Norms behind a part are stored as the difference from a share of one.
    let stored = tiny.values("model.layers.layers.0.post_mixer_norm.weight");
    let norm: Vec<f32> = stored.iter().map(|x| x + 0.2).collect();
    assert_eq!(elements(&back.gguf, "blk.0.post_attention_norm"), norm);
}

#[test]
fn a_role_of_plamo_without_a_token_is_refused() {
    let tiny = plamo("Plamo3ForCausalLM", json!({"head_dim": HEAD}), &plamo_attention());
    tiny.file("tokenizer_config.json", r#"{"bos_token": "<|other|>"}"#);
    let error = tiny.convert().unwrap_err().to_string();
    assert!(error.contains("names the bos token \"<|other|>\""), "{error}");
}

#[test]
fn plamo3_has_windows_and_stretched_positions() {
    let p = "model.layers.layers.{}.mixer.";
    let norms = vectors(p, &["q_norm.weight", "k_norm.weight"], &[HEAD]);
    let mix = [plamo_attention(), norms].concat();
    let fields = json!({"head_dim": HEAD, "window_size": 32, "sliding_window_pattern": 8,
        "rope_theta": 1e6, "rope_local_theta": 1e4, "rope_scaling_factor": 4.0,
        "initial_context_length": 64});
    let back = exported_as_it_was(&plamo("Plamo3ForCausalLM", fields, &mix)).config;
    assert_eq!((&back["window_size"], &back["sliding_window_pattern"]), (&json!(32), &json!(8)));
    assert_eq!(back["rope_scaling_factor"], 4.0);
}

#[test]
fn plamo_shares_heads_of_keys() {
    let p = "model.layers.layers.{}.";
    let layer = [
        vectors(p, &["norm.weight"], &[WIDTH]),
        squares(p, &["self_attn.q_proj", "self_attn.o_proj"]),
        vectors(p, &["self_attn.k_proj.weight", "self_attn.v_proj.weight"], &[2 * 8, WIDTH]),
        vectors(p, &["mlp.gate_proj.weight", "mlp.up_proj.weight"], &[FF, WIDTH]),
        vectors(p, &["mlp.down_proj.weight"], &[WIDTH, FF]),
    ];
    let fields = json!({"num_attention_heads": 8, "num_key_value_heads": 8, "n_shared_head": 4,
        "intermediate_size": FF, "rms_norm_eps": 1e-6});
    const ENDS: Tensors = &[
        ("model.embed_tokens.weight", &[6, WIDTH]),
        ("model.norm.weight", &[WIDTH]),
        ("lm_head.weight", &[6, WIDTH]),
    ];
    let tiny = made("PlamoForCausalLM", fields, ENDS, &layer.concat());
    crate::later::sentencepiece(&tiny);
    let gguf = exported_but_for(&tiny, |_| false).gguf;
    // Eight heads of eight rows: those that share a head of keys stand apart by two.
    let stored = tiny.values("model.layers.layers.0.self_attn.q_proj.weight");
    let head = |i: usize| &stored[i * 8 * WIDTH..][..8 * WIDTH];
    let sorted = [0, 2, 4, 6, 1, 3, 5, 7].map(head).concat();
    assert_eq!(elements(&gguf, "blk.0.attn_q.weight"), sorted);
    let stored = tiny.values("model.layers.layers.0.self_attn.o_proj.weight");
    let output = elements(&gguf, "blk.0.attn_output.weight");
    assert_eq!(output[8..16], stored[16..24]);
}
