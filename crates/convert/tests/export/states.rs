//! State spaces.

use serde_json::json;

use crate::there_and_back::exported_as_it_was;
use crate::tiny;

#[test]
fn mamba2_comes_back() {
    let mamba = tiny(
        "Mamba2ForCausalLM",
        json!({
            "hidden_size": 8, "expand": 2, "head_dim": 4, "num_heads": 4, "n_groups": 2,
            "state_size": 4, "conv_kernel": 4, "num_hidden_layers": 2, "layer_norm_epsilon": 1e-6,
            "pad_vocab_size_multiple": 1,
        }),
        &[
            ("backbone.embeddings.weight", &[6, 8]),
            ("backbone.norm_f.weight", &[8]),
            ("lm_head.weight", &[6, 8]),
        ],
        &[
            ("backbone.layers.{}.norm.weight", &[8]),
            ("backbone.layers.{}.mixer.A_log", &[4]),
            ("backbone.layers.{}.mixer.D", &[4]),
            ("backbone.layers.{}.mixer.dt_bias", &[4]),
            ("backbone.layers.{}.mixer.conv1d.weight", &[32, 1, 4]),
            ("backbone.layers.{}.mixer.conv1d.bias", &[32]),
            ("backbone.layers.{}.mixer.in_proj.weight", &[52, 8]),
            ("backbone.layers.{}.mixer.norm.weight", &[16]),
            ("backbone.layers.{}.mixer.out_proj.weight", &[8, 16]),
        ],
    );
    exported_as_it_was(&mamba);
}

#[test]
fn falcon_mamba_is_told_from_mamba() {
    for kind in ["mamba", "falcon_mamba"] {
        let mamba = tiny(
            "MambaForCausalLM",
            json!({
                "model_type": kind, "hidden_size": 8, "expand": 2, "state_size": 4,
                "num_hidden_layers": 2, "layer_norm_epsilon": 1e-5, "time_step_rank": 2,
                "tie_word_embeddings": false,
            }),
            &[
                ("backbone.embeddings.weight", &[6, 8]),
                ("backbone.norm_f.weight", &[8]),
                ("lm_head.weight", &[6, 8]),
            ],
            &[
                ("backbone.layers.{}.norm.weight", &[8]),
                ("backbone.layers.{}.mixer.A_log", &[16, 4]),
                ("backbone.layers.{}.mixer.D", &[16]),
                ("backbone.layers.{}.mixer.conv1d.weight", &[16, 1, 4]),
                ("backbone.layers.{}.mixer.conv1d.bias", &[16]),
                ("backbone.layers.{}.mixer.x_proj.weight", &[10, 16]),
                ("backbone.layers.{}.mixer.dt_proj.weight", &[16, 2]),
                ("backbone.layers.{}.mixer.dt_proj.bias", &[16]),
                ("backbone.layers.{}.mixer.in_proj.weight", &[32, 8]),
                ("backbone.layers.{}.mixer.out_proj.weight", &[8, 16]),
            ],
        );
        exported_as_it_was(&mamba);
    }
}

#[test]
fn rwkv_comes_back() {
    let rwkv = tiny(
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
    );
    exported_as_it_was(&rwkv);
    // World, the vocabulary of later models.
    std::fs::remove_file(rwkv.path().join("tokenizer.json")).unwrap();
    rwkv.file("rwkv_vocab_v20230424.txt", "1 '\\x00' 1\n2 b'\\xff' 1\n3 '\\'' 1\n");
    exported_as_it_was(&rwkv);
}
