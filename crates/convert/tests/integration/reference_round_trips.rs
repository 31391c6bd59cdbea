//! Round trips of the checkpoints of the reference data.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::fixtures::reference_checkpoint;
use crate::fixtures::round_trip::{
    assert_fields, assert_gguf_round_trip, convert, decoded, export, read_json,
};

/// Checkpoints whose exported configurations are compared field by field.
const COMPARED: [&str; 9] =
    ["gpt2", "gptj", "gpt_neox", "mpt", "bloom", "falcon", "mamba", "rwkv", "stablelm"];

fn compared_checkpoints() -> Vec<PathBuf> {
    COMPARED.iter().filter_map(|name| reference_checkpoint(name)).collect()
}

#[test]
fn reference_checkpoints_round_trip() {
    let others =
        ["llama", "mistral", "mixtral", "qwen2", "qwen3", "mixed-llama", "bert", "whisper"];
    for name in others.iter().chain(&COMPARED) {
        let Some(checkpoint) = reference_checkpoint(name) else { return };
        assert_gguf_round_trip(&checkpoint);
    }
}

#[test]
fn reference_configurations_round_trip() {
    for name in ["llama", "mixtral", "qwen3moe", "gemma2", "gemma3", "phi3", "olmo2"] {
        let Some(checkpoint) = reference_checkpoint(name) else { return };
        assert_gguf_round_trip(&checkpoint);
        let dir = tempfile::tempdir().unwrap();
        let made = tempfile::tempdir().unwrap();
        let path = made.path().join("first.gguf");
        convert(&checkpoint, &path, None);
        export(&path, dir.path());
        let config = |dir: &Path| read_json(dir.join("config.json"));
        assert_fields(&config(dir.path()), &config(&checkpoint));
    }
}

/// Fields of config.json that no GGUF key holds. Those that change what the model computes have the defaults of
/// `transformers`.
const FIELDS_WITHOUT_KEY: [&str; 37] = [
    "activation_function",
    "alibi",
    "apply_residual_connection_post_layernorm",
    "attention_dropout",
    "attn_pdrop",
    "bias",
    "embd_pdrop",
    "emb_pdrop",
    "hidden_act",
    "hidden_dropout",
    "init_device",
    "initializer_range",
    "learned_pos_emb",
    "n_ctx",   // the same as n_positions
    "n_embed", // the same as hidden_size
    "norm_type",
    "num_attention_heads", // of Bloom, where it is n_head
    "offset_alibi",
    "parallel_attn",
    "pretraining_tp",
    "rescale_prenorm_residual",
    "resid_pdrop",
    "residual_in_fp32",
    "rope_theta", // of StableLM, where it is 10000
    "rotary",
    "rotary_emb_base", // 10000
    "scale_attn_weights",
    "slow_but_exact",
    "summary_type",
    "time_step_floor",
    "time_step_init_scheme",
    "time_step_max",
    "time_step_min",
    "time_step_scale",
    "tokenizer_name",
    "transformers_version",
    "use_cache",
];

#[test]
fn exported_hyper_parameters_equal_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    for folder in compared_checkpoints() {
        let name = folder.file_name().unwrap();
        let (gguf, exported) = (dir.path().join("model.gguf"), dir.path().join(name));
        convert(&folder, &gguf, Some("f32".parse().unwrap()));
        export(&gguf, &exported);
        let read = |dir: &Path| -> Value {
            serde_json::from_slice(&std::fs::read(dir.join("config.json")).unwrap()).unwrap()
        };
        for (field, value) in read(&folder).as_object().unwrap() {
            let found = &read(&exported)[field];
            match found {
                _ if value.is_null() || field == "torch_dtype" => {}
                Value::Null => assert!(FIELDS_WITHOUT_KEY.contains(&&**field), "{name:?}: {field}"),
                Value::Object(found) => {
                    for (part, found) in found {
                        assert_eq!(*found, value[part], "{name:?}: {field}.{part}");
                    }
                }
                Value::Number(found) => {
                    assert_eq!(found.as_f64(), value.as_f64(), "{name:?}: {field}");
                }
                found => assert_eq!(found, value, "{name:?}: {field}"),
            }
        }
    }
}

/// Loaders of `tokenizer.json` assign the ids behind the vocabulary to added tokens that the vocabulary lacks.
#[test]
fn special_tokens_keep_their_ids() {
    for folder in compared_checkpoints() {
        let dir = tempfile::tempdir().unwrap();
        let made = tempfile::tempdir().unwrap();
        let gguf = made.path().join("model.gguf");
        convert(&folder, &gguf, None);
        export(&gguf, dir.path());
        let bytes = std::fs::read(dir.path().join("tokenizer.json")).unwrap();
        let tokenizer: Value = serde_json::from_slice(&bytes).unwrap();
        let vocab = tokenizer["model"]["vocab"].as_object().unwrap();
        let mut end = vocab.len();
        for token in tokenizer["added_tokens"].as_array().unwrap() {
            let number = vocab.get(token["content"].as_str().unwrap()).cloned();
            let number = number.unwrap_or_else(|| {
                end += 1;
                (end - 1).into()
            });
            assert_eq!(token["id"], number, "{} {token}", folder.display());
        }
    }
}

#[test]
fn quantized_models_export_decoded() {
    for folder in compared_checkpoints() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first.gguf"), dir.path().join("second.gguf"));
        convert(&folder, &first, Some("q8_0".parse().unwrap()));
        let exported = dir.path().join("exported");
        export(&first, &exported);
        convert(&exported, &second, Some("f32".parse().unwrap()));
        let (before, after) = (decoded(&first), decoded(&second));
        assert_eq!(after.len(), before.len(), "{}", folder.display());
        for ((exported, _, elements), (name, _, values)) in after.iter().zip(&before) {
            assert!(exported == name && elements == values, "{} {name}", folder.display());
        }
    }
}
