//! The folders of the zoo: files, hyper-parameters and special tokens.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::there_and_back::{convert, decoded, export, there_and_back};

/// The folders of the zoo with these families.
const ZOO: [&str; 9] =
    ["gpt2", "gptj", "gpt_neox", "mpt", "bloom", "falcon", "mamba", "rwkv", "stablelm"];

fn zoo() -> Vec<PathBuf> {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder with the reference data");
        return Vec::new();
    };
    ZOO.map(|name| PathBuf::from(&data).join("zoo").join(name)).to_vec()
}

#[test]
fn the_zoo_goes_there_and_back() {
    for folder in zoo() {
        there_and_back(&folder, u64::MAX);
    }
}

/// Fields that no key of a GGUF holds. For what programs compute they have the values that the
/// classes in `transformers` complete.
const LEFT_OUT: [&str; 37] = [
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
fn hyper_parameters_have_the_values_of_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    for folder in zoo() {
        let name = folder.file_name().unwrap();
        let (gguf, exported) = (dir.path().join("model.gguf"), dir.path().join(name));
        convert(&folder, &gguf, Some("f32".parse().unwrap()));
        export(&gguf, &exported, u64::MAX);
        let read = |dir: &Path| -> Value {
            serde_json::from_slice(&std::fs::read(dir.join("config.json")).unwrap()).unwrap()
        };
        for (field, value) in read(&folder).as_object().unwrap() {
            let found = &read(&exported)[field];
            match found {
                _ if value.is_null() || field == "torch_dtype" => {}
                Value::Null => assert!(LEFT_OUT.contains(&&**field), "{name:?}: {field}"),
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

/// Readers of `tokenizer.json` number added tokens that the vocabulary lacks from its end on.
#[test]
fn special_tokens_keep_their_numbers() {
    for folder in zoo() {
        let dir = tempfile::tempdir().unwrap();
        let made = tempfile::tempdir().unwrap();
        let gguf = made.path().join("model.gguf");
        convert(&folder, &gguf, None);
        export(&gguf, dir.path(), u64::MAX);
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
fn quantized_models_come_back_decoded() {
    for folder in zoo() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first.gguf"), dir.path().join("second.gguf"));
        convert(&folder, &first, Some("q8_0".parse().unwrap()));
        let exported = dir.path().join("exported");
        export(&first, &exported, u64::MAX);
        convert(&exported, &second, Some("f32".parse().unwrap()));
        let (there, back) = (decoded(&first), decoded(&second));
        assert_eq!(back.len(), there.len(), "{}", folder.display());
        for ((back, _, of_back), (name, _, values)) in back.iter().zip(&there) {
            assert!(back == name && of_back == values, "{} {name}", folder.display());
        }
    }
}
