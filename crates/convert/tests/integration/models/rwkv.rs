//! RWKV 4, 6 and 7, and Qwen2 with RWKV mixers.

use serde_json::{Value, json};

use crate::fixtures::decoder::{FF, HEAD, HEADS, KV, NamedShape, WIDTH, merged};
use crate::fixtures::recurrent::{recurrent_model, square_weights, tensors_of};
use crate::fixtures::round_trip::assert_round_trip;
use crate::fixtures::{Tensors, Tiny, assert_valid, elements, metadata_value, two_layer_model};

fn norm_tensors(names: &[&str]) -> Vec<NamedShape> {
    let both = |name: &&str| ["weight", "bias"].map(|end| (format!("{name}.{end}"), vec![WIDTH]));
    names.iter().flat_map(both).collect()
}

/// Replaces the tokenizer by RWKV World.
fn use_rwkv_world(tiny: &Tiny) {
    std::fs::remove_file(tiny.path().join("tokenizer.json")).unwrap();
    tiny.file("rwkv_vocab_v20230424.txt", "1 '\\x00' 1\n2 b'\\xff' 1\n3 '\\'' 1\n");
}

#[test]
pub fn rwkv6_round_trip() {
    let layer = [
        norm_tensors(&[
            "rwkv.blocks.{}.ln1",
            "rwkv.blocks.{}.ln2",
            "rwkv.blocks.{}.attention.ln_x",
        ]),
        square_weights(
            "rwkv.blocks.{}.attention.",
            &["receptance", "key", "value", "gate", "output"],
        ),
        tensors_of(
            "rwkv.blocks.{}.attention.time_maa_",
            &["x", "w", "k", "v", "r", "g"],
            &[1, 1, WIDTH],
        ),
        tensors_of("rwkv.blocks.{}.", &["attention.time_decay"], &[1, 1, WIDTH]),
        tensors_of("rwkv.blocks.{}.attention.", &["time_faaaa"], &[WIDTH / HEAD, HEAD]),
        tensors_of("rwkv.blocks.{}.attention.", &["time_maa_w1"], &[WIDTH, 160]),
        tensors_of("rwkv.blocks.{}.attention.", &["time_maa_w2"], &[5, 32, WIDTH]),
        tensors_of("rwkv.blocks.{}.attention.", &["time_decay_w1"], &[WIDTH, 64]),
        tensors_of("rwkv.blocks.{}.attention.", &["time_decay_w2"], &[64, WIDTH]),
        tensors_of("rwkv.blocks.{}.feed_forward.time_maa_", &["k", "r"], &[1, 1, WIDTH]),
        square_weights("rwkv.blocks.{}.feed_forward.", &["receptance"]),
        tensors_of("rwkv.blocks.{}.feed_forward.", &["key.weight"], &[224, WIDTH]),
        tensors_of("rwkv.blocks.{}.feed_forward.", &["value.weight"], &[WIDTH, 224]),
    ];
    let rwkv = recurrent_model(
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
    use_rwkv_world(&rwkv);
    let gguf = assert_round_trip(&rwkv).gguf;
    let mixed = elements(&gguf, "blk.1.time_mix_lerp_fused.weight");
    let parts = ["w", "k", "v", "r", "g"]
        .map(|part| rwkv.values(&format!("rwkv.blocks.1.attention.time_maa_{part}")));
    assert_eq!(mixed, parts.concat());
    // Output projections of the second half of layers are divided by two.
    let output = rwkv.values("rwkv.blocks.1.attention.output.weight");
    let halved: Vec<f32> = output.iter().map(|x| x / 2.0).collect();
    assert_eq!(elements(&gguf, "blk.1.time_mix_output.weight"), halved);
}

/// Builds Qwen2 with these tensors instead of attention.
fn qwen2_with_mixer(class: &str, fields: Value, attention: Vec<NamedShape>) -> Tiny {
    let all = merged(
        json!({"num_attention_heads": HEADS, "num_key_value_heads": KV,
        "intermediate_size": FF, "rms_norm_eps": 1e-6}),
        fields,
    );
    let p = "model.layers.{}.";
    let layer = [
        tensors_of(p, &["input_layernorm.weight", "post_attention_layernorm.weight"], &[WIDTH]),
        tensors_of(p, &["mlp.gate_proj.weight", "mlp.up_proj.weight"], &[FF, WIDTH]),
        tensors_of(p, &["mlp.down_proj.weight"], &[WIDTH, FF]),
        attention,
    ];
    const ENDS: Tensors = &[
        ("model.embed_tokens.weight", &[6, WIDTH]),
        ("model.norm.weight", &[WIDTH]),
        ("lm_head.weight", &[6, WIDTH]),
    ];
    recurrent_model(class, all, ENDS, &layer.concat())
}

#[test]
pub fn rwkv6_qwen2_round_trip() {
    const RANK: usize = 8;
    let p = "model.layers.{}.self_attn.";
    let attention = [
        square_weights(p, &["q_proj", "o_proj", "gate"]),
        tensors_of(p, &["k_proj.weight", "v_proj.weight"], &[KV * HEAD, WIDTH]),
        tensors_of(p, &["q_proj.bias"], &[WIDTH]),
        tensors_of(p, &["k_proj.bias", "v_proj.bias"], &[KV * HEAD]),
        tensors_of(&format!("{p}time_maa_"), &["x", "r", "k", "v", "w", "g"], &[1, 1, WIDTH]),
        tensors_of(p, &["time_decay"], &[1, 1, WIDTH]),
        tensors_of(p, &["time_maa_w1"], &[WIDTH, 5 * RANK]),
        tensors_of(p, &["time_maa_w2"], &[5, RANK, WIDTH]),
        tensors_of(p, &["time_decay_w1"], &[WIDTH, 64]),
        tensors_of(p, &["time_decay_w2"], &[64, WIDTH]),
    ];
    let fields = json!({"lora_rank_tokenshift": RANK});
    let qwen = qwen2_with_mixer("RWKV6Qwen2ForCausalLM", fields, attention.concat());
    let gguf = assert_round_trip(&qwen).gguf;
    let up = qwen.values("model.layers.0.self_attn.time_maa_w2");
    let turned = |part: usize| {
        let matrix = &up[part * RANK * WIDTH..][..RANK * WIDTH];
        (0..WIDTH * RANK).map(|i| matrix[i % RANK * WIDTH + i / RANK]).collect::<Vec<f32>>()
    };
    let sorted = [3, 1, 2, 0, 4].map(turned).concat();
    assert_eq!(elements(&gguf, "blk.0.time_mix_w2.weight"), sorted);
}

/// LoRA ranks of RWKV-7: decay, learning rate, value residual, gate.
const LORA_RANKS: [(&str, usize); 4] = [("w", 64), ("a", 64), ("v", 32), ("g", 128)];

#[test]
pub fn rwkv7_round_trip() {
    let p = "model.layers.{}.attn.";
    let mut layer = vec![
        norm_tensors(&["model.layers.{}.attn_norm", "model.layers.{}.ffn_norm"]),
        norm_tensors(&["model.layers.{}.attn.g_norm"]),
        square_weights(p, &["r_proj", "k_proj", "v_proj", "o_proj"]),
        tensors_of(&format!("{p}x_"), &["r", "w", "k", "v", "a", "g"], &[1, 1, WIDTH]),
        tensors_of(p, &["k_k", "k_a"], &[WIDTH]),
        tensors_of(p, &["r_k"], &[WIDTH / HEAD, HEAD]),
        tensors_of("model.layers.{}.", &["ffn.x_k"], &[WIDTH]),
        tensors_of("model.layers.{}.", &["ffn.key.weight"], &[FF, WIDTH]),
        tensors_of("model.layers.{}.", &["ffn.value.weight"], &[WIDTH, FF]),
    ];
    let ranked = |part: &str, rank: usize| {
        let bias = tensors_of(p, &[&format!("{part}_lora.lora.2.bias")], &[WIDTH]);
        [
            tensors_of(p, &[&format!("{part}_lora.lora.0.weight")], &[rank, WIDTH]),
            tensors_of(p, &[&format!("{part}_lora.lora.2.weight")], &[WIDTH, rank]),
            if part == "g" { vec![] } else { bias },
        ]
        .concat()
    };
    layer.extend(
        LORA_RANKS.iter().filter(|(part, _)| *part != "v").map(|&(of, rank)| ranked(of, rank)),
    );
    let mut rwkv = recurrent_model(
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
    // The first layer has no value residual.
    for (name, shape) in ranked("v", 32) {
        rwkv = rwkv.tensors(&[(&name.replace("{}", "1"), &shape)]);
    }
    use_rwkv_world(&rwkv);
    let gguf = assert_round_trip(&rwkv).gguf;
    let rate = rwkv.values("model.layers.0.attn.a_lora.lora.0.weight");
    assert_eq!(elements(&gguf, "blk.0.time_mix_a1.weight"), rate);
    assert_eq!(elements(&gguf, "blk.0.time_mix_v1.weight"), rate);
    assert_eq!(
        elements(&gguf, "blk.1.time_mix_v1.weight"),
        rwkv.values("model.layers.1.attn.v_lora.lora.0.weight")
    );
}

#[test]
pub fn rwkv_hybrid_round_trip_with_and_without_gate() {
    for gate in [true, false] {
        let p = "model.layers.{}.self_attn.time_mixer.";
        let mixed: &[&str] = if gate { &["g"] } else { &[] };
        let mut attention = vec![
            square_weights(p, &["receptance", "key", "value", "output"]),
            tensors_of(&format!("{p}x_"), &["r", "w", "k", "v", "a"], &[1, 1, WIDTH]),
            tensors_of(&format!("{p}x_"), mixed, &[1, 1, WIDTH]),
            tensors_of(p, &["k_k", "k_a"], &[WIDTH]),
            tensors_of(p, &["r_k"], &[WIDTH / HEAD, HEAD]),
        ];
        let ranked = |part: &str, rank: usize| {
            [
                tensors_of(p, &[&format!("{part}1")], &[WIDTH, rank]),
                tensors_of(p, &[&format!("{part}2")], &[rank, WIDTH]),
                if part == "g" {
                    vec![]
                } else {
                    tensors_of(p, &[&format!("{part}0")], &[1, 1, WIDTH])
                },
            ]
            .concat()
        };
        let usual = LORA_RANKS.iter().filter(|(part, _)| match *part {
            "v" => false,
            "g" => gate,
            _ => true,
        });
        attention.extend(usual.map(|&(part, rank)| ranked(part, rank)));
        let fields = json!({"head_size": HEAD, "wkv_version": 7, "wkv_has_gate": gate});
        let mut qwen = qwen2_with_mixer("RwkvHybridForCausalLM", fields, attention.concat());
        for (name, shape) in ranked("v", 32) {
            qwen = qwen.tensors(&[(&name.replace("{}", "1"), &shape)]);
        }
        let exported = assert_round_trip(&qwen);
        assert_eq!(exported.config["wkv_has_gate"], gate);
    }
}

#[test]
fn rwkv_hybrid_with_another_wkv_version_fails() {
    let fields = json!({"head_size": HEAD, "wkv_version": 6});
    let error = qwen2_with_mixer("RwkvHybridForCausalLM", fields, vec![]).convert().unwrap_err();
    assert!(error.to_string().contains("`wkv_version` is 6"), "{error}");
}

/// Builds RWKV 4 with two layers and a byte-level tokenizer.
fn rwkv4() -> Tiny {
    two_layer_model(
        "RwkvForCausalLM",
        json!({
            "hidden_size": 8, "attention_hidden_size": 8, "intermediate_size": 24,
            "num_hidden_layers": 2, "context_length": 16, "layer_norm_epsilon": 1e-6,
            "rescale_every": 3,
        }),
        &[
            ("rwkv.embeddings.weight", &[6, 8]),
            ("rwkv.blocks.0.pre_ln.weight", &[8]),
            ("rwkv.blocks.0.pre_ln.bias", &[8]),
            ("rwkv.ln_out.weight", &[8]),
            ("rwkv.ln_out.bias", &[8]),
            ("head.weight", &[6, 8]),
        ],
        &[
            ("rwkv.blocks.{}.ln1.weight", &[8]),
            ("rwkv.blocks.{}.ln1.bias", &[8]),
            ("rwkv.blocks.{}.ln2.weight", &[8]),
            ("rwkv.blocks.{}.ln2.bias", &[8]),
            ("rwkv.blocks.{}.attention.time_decay", &[8]),
            ("rwkv.blocks.{}.attention.time_first", &[8]),
            ("rwkv.blocks.{}.attention.time_mix_key", &[1, 1, 8]),
            ("rwkv.blocks.{}.attention.time_mix_value", &[1, 1, 8]),
            ("rwkv.blocks.{}.attention.time_mix_receptance", &[1, 1, 8]),
            ("rwkv.blocks.{}.attention.key.weight", &[8, 8]),
            ("rwkv.blocks.{}.attention.value.weight", &[8, 8]),
            ("rwkv.blocks.{}.attention.receptance.weight", &[8, 8]),
            ("rwkv.blocks.{}.attention.output.weight", &[8, 8]),
            ("rwkv.blocks.{}.feed_forward.time_mix_key", &[1, 1, 8]),
            ("rwkv.blocks.{}.feed_forward.time_mix_receptance", &[1, 1, 8]),
            ("rwkv.blocks.{}.feed_forward.key.weight", &[24, 8]),
            ("rwkv.blocks.{}.feed_forward.receptance.weight", &[8, 8]),
            ("rwkv.blocks.{}.feed_forward.value.weight", &[8, 24]),
        ],
    )
}

#[test]
pub fn rwkv4_round_trip() {
    let rwkv = rwkv4();
    assert_round_trip(&rwkv);
    use_rwkv_world(&rwkv);
    assert_round_trip(&rwkv);
}

#[test]
fn rwkv4_vectors_keep_their_values() {
    let tiny = rwkv4();
    use_rwkv_world(&tiny);
    let gguf = tiny.convert().unwrap();
    assert_valid(&gguf);
    assert_eq!(metadata_value(&gguf, "rwkv.architecture_version"), 4);
    assert_eq!(metadata_value(&gguf, "rwkv.rescale_every_n_layers"), 3);
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.model"), "rwkv");
    assert_eq!(metadata_value(&gguf, "tokenizer.ggml.bos_token_id"), 0);
    assert_eq!(metadata_value(&gguf, "tokenizer.chat_template"), "rwkv-world");
    for (ours, foreign) in [
        ("blk.1.time_mix_decay.weight", "rwkv.blocks.1.attention.time_decay"),
        ("blk.1.time_mix_lerp_r.weight", "rwkv.blocks.1.attention.time_mix_receptance"),
        ("blk.1.channel_mix_lerp_k.weight", "rwkv.blocks.1.feed_forward.time_mix_key"),
        ("token_embd_norm.bias", "rwkv.blocks.0.pre_ln.bias"),
    ] {
        assert_eq!(elements(&gguf, ours), tiny.values(foreign), "{ours}");
    }
}
