//! Models with a state.

use serde_json::json;

use crate::key;
use crate::tiny::{Tiny, assert_sound, elements};

#[test]
fn mamba2_spreads_numbers_over_heads() {
    let tiny = Tiny::new(json!({
        "architectures": ["Mamba2ForCausalLM"], "hidden_size": 8, "expand": 2, "head_dim": 4,
        "n_groups": 2, "state_size": 4, "conv_kernel": 4, "num_hidden_layers": 1,
        "layer_norm_epsilon": 1e-5, "vocab_size": 6, "pad_vocab_size_multiple": 1,
    }))
    .byte_level(6)
    .tensors(&[
        ("backbone.embeddings.weight", &[6, 8]),
        ("backbone.norm_f.weight", &[8]),
        ("lm_head.weight", &[6, 8]),
        ("backbone.layers.0.norm.weight", &[8]),
        ("backbone.layers.0.mixer.A_log", &[4]),
        ("backbone.layers.0.mixer.D", &[4]),
        ("backbone.layers.0.mixer.dt_bias", &[4]),
        ("backbone.layers.0.mixer.conv1d.weight", &[32, 1, 4]),
        ("backbone.layers.0.mixer.conv1d.bias", &[32]),
        ("backbone.layers.0.mixer.in_proj.weight", &[52, 8]),
        ("backbone.layers.0.mixer.norm.weight", &[16]),
        ("backbone.layers.0.mixer.out_proj.weight", &[8, 16]),
    ]);
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "mamba2.ssm.time_step_rank"), 4);
    let exp = |x: &f32| -(f64::from(*x).exp() as f32);
    let decay: Vec<f32> = tiny.values("backbone.layers.0.mixer.A_log").iter().map(exp).collect();
    assert_eq!(elements(&gguf, "blk.0.ssm_a"), decay);
    let bias = tiny.values("backbone.layers.0.mixer.dt_bias");
    assert_eq!(elements(&gguf, "blk.0.ssm_dt.bias"), bias);
}

#[test]
fn rwkv_keeps_its_vectors() {
    let tiny = Tiny::new(json!({
        "architectures": ["RwkvForCausalLM"], "hidden_size": 8, "attention_hidden_size": 8,
        "intermediate_size": 32, "num_hidden_layers": 2, "context_length": 16,
        "layer_norm_epsilon": 1e-5, "rescale_every": 6, "vocab_size": 6,
    }))
    .tensors(&[
        ("rwkv.embeddings.weight", &[6, 8]),
        ("rwkv.blocks.0.pre_ln.weight", &[8]),
        ("rwkv.blocks.0.pre_ln.bias", &[8]),
        ("rwkv.ln_out.weight", &[8]),
        ("rwkv.ln_out.bias", &[8]),
        ("head.weight", &[6, 8]),
    ])
    .layers(
        2,
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
            ("rwkv.blocks.{}.feed_forward.key.weight", &[32, 8]),
            ("rwkv.blocks.{}.feed_forward.receptance.weight", &[8, 8]),
            ("rwkv.blocks.{}.feed_forward.value.weight", &[8, 32]),
        ],
    );
    tiny.file("rwkv_vocab_v20230424.txt", "1 '\\x00' 1\n2 b'\\xff' 1\n3 '\\'' 1\n");
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    assert_eq!(key(&gguf, "rwkv.architecture_version"), 4);
    assert_eq!(key(&gguf, "rwkv.rescale_every_n_layers"), 6);
    assert_eq!(key(&gguf, "tokenizer.ggml.model"), "rwkv");
    assert_eq!(key(&gguf, "tokenizer.ggml.bos_token_id"), 0);
    assert_eq!(key(&gguf, "tokenizer.chat_template"), "rwkv-world");
    for (ours, foreign) in [
        ("blk.1.time_mix_decay.weight", "rwkv.blocks.1.attention.time_decay"),
        ("blk.1.time_mix_lerp_r.weight", "rwkv.blocks.1.attention.time_mix_receptance"),
        ("blk.1.channel_mix_lerp_k.weight", "rwkv.blocks.1.feed_forward.time_mix_key"),
        ("token_embd_norm.bias", "rwkv.blocks.0.pre_ln.bias"),
    ] {
        assert_eq!(elements(&gguf, ours), tiny.values(foreign), "{ours}");
    }
}
