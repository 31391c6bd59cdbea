//! There and back, of the first transformers, of state spaces and of small families.

mod there_and_back;
mod tiny;

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::{Value, json};
use there_and_back::{convert, export, there_and_back};
use tiny::{Tiny, assert_sound, elements};

/// Names and shapes, slowest dimension first.
type Tensors<'a> = &'a [(&'a str, &'a [usize])];

/// A checkpoint with two layers and six tokens.
fn tiny(class: &str, fields: Value, tensors: Tensors, of_layer: Tensors) -> Tiny {
    let mut config = json!({ "architectures": [class], "vocab_size": 6 });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Tiny::new(config).byte_level(6).tensors(tensors).layers(2, of_layer)
}

/// The checkpoint goes there and back, and what is exported has the very tensors of the
/// checkpoint, under their names. Returns the GGUF.
#[track_caller]
fn exported_as_it_was(tiny: &Tiny) -> Vec<u8> {
    let gguf = tiny.convert().unwrap();
    assert_sound(&gguf);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("first.gguf");
    std::fs::write(&path, &gguf).unwrap();
    export(&path, dir.path(), u64::MAX);
    let read = |dir: &Path| std::fs::read(dir.join("model.safetensors")).unwrap();
    let (there, back) = (read(tiny.path()), read(dir.path()));
    let [there, back] = [&there, &back].map(|bytes| SafeTensors::deserialize(bytes).unwrap());
    let names = |tensors: &SafeTensors| {
        let mut names: Vec<String> = tensors.names().into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(&back), names(&there));
    for (name, tensor) in there.iter() {
        let exported = back.tensor(name).unwrap();
        assert_eq!(exported.shape(), tensor.shape(), "{name}");
        if name.ends_with(".A_log") {
            // Several logarithms round to one decay, which is off by half a last bit at most.
            let (exported, tensor) = (floats(exported.data()), floats(tensor.data()));
            assert!(exported.iter().zip(&tensor).all(|(x, y)| (x - y).abs() <= f32::EPSILON));
        } else {
            assert!(exported.data() == tensor.data(), "{name}");
        }
    }
    there_and_back(tiny.path(), u64::MAX);
    gguf
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
}

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
        let gguf = dir.path().join("model.gguf");
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
fn gpt_neox_says_how_it_rotates() {
    let neox = tiny(
        "GPTNeoXForCausalLM",
        json!({
            "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2,
            "intermediate_size": 16, "layer_norm_eps": 1e-6, "max_position_embeddings": 4,
            "rotary_emb_base": 50000, "rotary_pct": 0.5, "use_parallel_residual": false,
        }),
        &[
            ("gpt_neox.embed_in.weight", &[6, 8]),
            ("gpt_neox.final_layer_norm.weight", &[8]),
            ("gpt_neox.final_layer_norm.bias", &[8]),
            ("embed_out.weight", &[6, 8]),
        ],
        &[
            ("gpt_neox.layers.{}.input_layernorm.weight", &[8]),
            ("gpt_neox.layers.{}.input_layernorm.bias", &[8]),
            ("gpt_neox.layers.{}.attention.query_key_value.weight", &[24, 8]),
            ("gpt_neox.layers.{}.attention.query_key_value.bias", &[24]),
            ("gpt_neox.layers.{}.attention.dense.weight", &[8, 8]),
            ("gpt_neox.layers.{}.attention.dense.bias", &[8]),
            ("gpt_neox.layers.{}.post_attention_layernorm.weight", &[8]),
            ("gpt_neox.layers.{}.post_attention_layernorm.bias", &[8]),
            ("gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", &[16, 8]),
            ("gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", &[16]),
            ("gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", &[8, 16]),
            ("gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", &[8]),
        ],
    );
    exported_as_it_was(&neox);
}

#[test]
fn mpt_comes_back_with_its_attention() {
    let attention = json!({
        "alibi": false, "clip_qkv": 6.0, "kv_n_heads": 2, "qk_ln": true, "prefix_lm": false,
    });
    let mpt = tiny(
        "MPTForCausalLM",
        json!({
            "d_model": 8, "n_heads": 2, "n_layers": 2, "max_seq_len": 4, "expansion_ratio": 2,
            "attn_config": attention, "no_bias": false,
        }),
        &[
            ("transformer.wte.weight", &[6, 8]),
            ("transformer.wpe.weight", &[4, 8]),
            ("transformer.norm_f.weight", &[8]),
        ],
        &[
            ("transformer.blocks.{}.norm_1.weight", &[8]),
            ("transformer.blocks.{}.attn.Wqkv.weight", &[24, 8]),
            ("transformer.blocks.{}.attn.Wqkv.bias", &[24]),
            ("transformer.blocks.{}.attn.q_ln.weight", &[8]),
            ("transformer.blocks.{}.attn.k_ln.weight", &[8]),
            ("transformer.blocks.{}.attn.out_proj.weight", &[8, 8]),
            ("transformer.blocks.{}.norm_2.weight", &[8]),
            ("transformer.blocks.{}.ffn.up_proj.weight", &[16, 8]),
            ("transformer.blocks.{}.ffn.down_proj.weight", &[8, 16]),
        ],
    );
    exported_as_it_was(&mpt);
}

/// What all generations have.
const FALCON: Tensors = &[
    ("transformer.word_embeddings.weight", &[6, 8]),
    ("transformer.ln_f.weight", &[8]),
    ("transformer.ln_f.bias", &[8]),
    ("lm_head.weight", &[6, 8]),
];
const FALCON_LAYER: Tensors = &[
    ("transformer.h.{}.self_attention.dense.weight", &[8, 8]),
    ("transformer.h.{}.mlp.dense_h_to_4h.weight", &[24, 8]),
    ("transformer.h.{}.mlp.dense_4h_to_h.weight", &[8, 24]),
];

#[test]
fn every_generation_of_falcon_comes_back() {
    let one_norm: Tensors = &[
        ("transformer.h.{}.input_layernorm.weight", &[8]),
        ("transformer.h.{}.input_layernorm.bias", &[8]),
    ];
    let two_norms: Tensors = &[
        ("transformer.h.{}.ln_attn.weight", &[8]),
        ("transformer.h.{}.ln_attn.bias", &[8]),
        ("transformer.h.{}.ln_mlp.weight", &[8]),
        ("transformer.h.{}.ln_mlp.bias", &[8]),
    ];
    // The second and third have the layout of the second generation, the fourth every head its
    // keys.
    for (fields, norms, rows) in [
        (json!({"multi_query": true}), one_norm, 12),
        (json!({"num_kv_heads": 2, "new_decoder_architecture": true}), two_norms, 16),
        (
            json!({"num_kv_heads": 2, "new_decoder_architecture": true,
                "num_ln_in_parallel_attn": 1}),
            one_norm,
            16,
        ),
        (json!({"multi_query": false}), one_norm, 24),
    ] {
        let mut config = json!({
            "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2,
            "layer_norm_epsilon": 1e-5, "rope_theta": 500000.0, "ffn_hidden_size": 24,
            "max_position_embeddings": 8192,
        });
        config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let falcon = tiny("FalconForCausalLM", config, FALCON, FALCON_LAYER)
            .layers(2, norms)
            .layers(2, &[("transformer.h.{}.self_attention.query_key_value.weight", &[rows, 8])]);
        let gguf = exported_as_it_was(&falcon);
        let name = norms.last().unwrap().0.replace("{}", "1");
        assert_eq!(elements(&gguf, "blk.1.attn_norm.bias"), falcon.values(&name));
    }
}

#[test]
fn starcoder_comes_back_with_one_head_of_keys_or_one_for_each() {
    for (multi_query, qkv) in [(true, 16), (false, 24)] {
        let starcoder = tiny(
            "GPTBigCodeForCausalLM",
            json!({
                "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 4, "n_inner": 16,
                "layer_norm_epsilon": 1e-5, "multi_query": multi_query,
            }),
            &[
                ("transformer.wte.weight", &[6, 8]),
                ("transformer.wpe.weight", &[4, 8]),
                ("transformer.ln_f.weight", &[8]),
                ("transformer.ln_f.bias", &[8]),
            ],
            &[
                ("transformer.h.{}.ln_1.weight", &[8]),
                ("transformer.h.{}.ln_1.bias", &[8]),
                ("transformer.h.{}.attn.c_attn.weight", &[qkv, 8]),
                ("transformer.h.{}.attn.c_attn.bias", &[qkv]),
                ("transformer.h.{}.attn.c_proj.weight", &[8, 8]),
                ("transformer.h.{}.attn.c_proj.bias", &[8]),
                ("transformer.h.{}.ln_2.weight", &[8]),
                ("transformer.h.{}.ln_2.bias", &[8]),
                ("transformer.h.{}.mlp.c_fc.weight", &[16, 8]),
                ("transformer.h.{}.mlp.c_fc.bias", &[16]),
                ("transformer.h.{}.mlp.c_proj.weight", &[8, 16]),
                ("transformer.h.{}.mlp.c_proj.bias", &[8]),
            ],
        );
        exported_as_it_was(&starcoder);
    }
}

/// Fields that decoders of after llama share.
fn decoder(fields: Value) -> Value {
    let mut config = json!({
        "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 16, "max_position_embeddings": 64,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    config
}

const NORMS: Tensors = &[
    ("model.layers.{}.input_layernorm.weight", &[8]),
    ("model.layers.{}.post_attention_layernorm.weight", &[8]),
];
const BIASES_OF_NORMS: Tensors = &[
    ("model.layers.{}.input_layernorm.bias", &[8]),
    ("model.layers.{}.post_attention_layernorm.bias", &[8]),
];
const ATTENTION: Tensors = &[
    ("model.layers.{}.self_attn.q_proj.weight", &[8, 8]),
    ("model.layers.{}.self_attn.k_proj.weight", &[4, 8]),
    ("model.layers.{}.self_attn.v_proj.weight", &[4, 8]),
    ("model.layers.{}.self_attn.o_proj.weight", &[8, 8]),
];
const BIASES: Tensors = &[
    ("model.layers.{}.self_attn.q_proj.bias", &[8]),
    ("model.layers.{}.self_attn.k_proj.bias", &[4]),
    ("model.layers.{}.self_attn.v_proj.bias", &[4]),
    ("model.layers.{}.self_attn.o_proj.bias", &[8]),
];
const GATED: Tensors = &[
    ("model.layers.{}.mlp.gate_proj.weight", &[16, 8]),
    ("model.layers.{}.mlp.up_proj.weight", &[16, 8]),
    ("model.layers.{}.mlp.down_proj.weight", &[8, 16]),
];

#[test]
fn starcoder2_comes_back() {
    let config = decoder(json!({"norm_epsilon": 1e-5, "rope_theta": 999999.0}));
    let ends: Tensors = &[
        ("model.embed_tokens.weight", &[6, 8]),
        ("model.norm.weight", &[8]),
        ("model.norm.bias", &[8]),
    ];
    let feed_forward: Tensors = &[
        ("model.layers.{}.mlp.c_fc.weight", &[16, 8]),
        ("model.layers.{}.mlp.c_fc.bias", &[16]),
        ("model.layers.{}.mlp.c_proj.weight", &[8, 16]),
        ("model.layers.{}.mlp.c_proj.bias", &[8]),
    ];
    let layer = [NORMS, BIASES_OF_NORMS, ATTENTION, BIASES, feed_forward].concat();
    exported_as_it_was(&tiny("Starcoder2ForCausalLM", config, ends, &layer));
}

#[test]
fn phi2_comes_back() {
    let config = json!({
        "hidden_size": 20, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 80, "max_position_embeddings": 64, "partial_rotary_factor": 0.4,
        "layer_norm_eps": 1e-6, "rope_theta": 20000.0,
    });
    let phi = tiny(
        "PhiForCausalLM",
        config,
        &[
            ("model.embed_tokens.weight", &[6, 20]),
            ("model.final_layernorm.weight", &[20]),
            ("model.final_layernorm.bias", &[20]),
            ("lm_head.weight", &[6, 20]),
            ("lm_head.bias", &[6]),
        ],
        &[
            ("model.layers.{}.input_layernorm.weight", &[20]),
            ("model.layers.{}.input_layernorm.bias", &[20]),
            ("model.layers.{}.self_attn.q_proj.weight", &[20, 20]),
            ("model.layers.{}.self_attn.q_proj.bias", &[20]),
            ("model.layers.{}.self_attn.k_proj.weight", &[20, 20]),
            ("model.layers.{}.self_attn.k_proj.bias", &[20]),
            ("model.layers.{}.self_attn.v_proj.weight", &[20, 20]),
            ("model.layers.{}.self_attn.v_proj.bias", &[20]),
            ("model.layers.{}.self_attn.dense.weight", &[20, 20]),
            ("model.layers.{}.self_attn.dense.bias", &[20]),
            ("model.layers.{}.mlp.fc1.weight", &[80, 20]),
            ("model.layers.{}.mlp.fc1.bias", &[80]),
            ("model.layers.{}.mlp.fc2.weight", &[20, 80]),
            ("model.layers.{}.mlp.fc2.bias", &[20]),
        ],
    );
    exported_as_it_was(&phi);
}

/// Embedding, last norm and output matrix.
const ENDS: Tensors = &[
    ("model.embed_tokens.weight", &[6, 8]),
    ("model.norm.weight", &[8]),
    ("lm_head.weight", &[6, 8]),
];

#[test]
fn norms_of_single_heads_come_back() {
    let config = decoder(json!({
        "layer_norm_eps": 1e-5, "use_parallel_residual": true, "partial_rotary_factor": 1.0,
        "qk_layernorm": true, "rope_theta": 1e6,
    }));
    let mut stablelm = tiny(
        "StableLmForCausalLM",
        config,
        ENDS,
        &[&NORMS[..1], &BIASES_OF_NORMS[..1], ATTENTION, GATED].concat(),
    )
    .tensors(&[("model.norm.bias", &[8])]);
    for (kind, heads) in [("q", 4), ("k", 2)] {
        for head in 0..heads {
            let name = format!("model.layers.{{}}.self_attn.{kind}_layernorm.norms.{head}.weight");
            stablelm = stablelm.layers(2, &[(&name, &[2])]);
        }
    }
    exported_as_it_was(&stablelm);
}

#[test]
fn smollm3_comes_back() {
    let layer = [NORMS, ATTENTION, GATED].concat();
    for base in [1e4, 5e6] {
        let config = decoder(json!({"rms_norm_eps": 1e-6, "rope_theta": base}));
        exported_as_it_was(&tiny("SmolLM3ForCausalLM", config, &ENDS[..2], &layer));
    }
}

#[test]
fn minicpm_comes_back_with_its_scales() {
    const SENTENCEPIECE: &[u8] =
        include_bytes!("../../../testdata/Tiny-KJV-Llama-4M/tokenizer.model");
    let config = decoder(json!({
        "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 3, "rms_norm_eps": 1e-5,
        "vocab_size": 2048,
    }));
    let ends: Tensors = &[("model.embed_tokens.weight", &[2048, 8]), ("model.norm.weight", &[8])];
    let layer = [NORMS, ATTENTION, GATED].concat();
    let minicpm = tiny("MiniCPMForCausalLM", config, ends, &layer);
    std::fs::remove_file(minicpm.path().join("tokenizer.json")).unwrap();
    minicpm.file("tokenizer.model", SENTENCEPIECE);
    exported_as_it_was(&minicpm);
}

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
}
