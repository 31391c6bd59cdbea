//! Conversion of Hugging Face checkpoints: the trait [`Converter`] and the tools of its implementations.

pub mod assembly;
pub mod configuration;
pub(crate) mod converter;
pub(crate) mod defaults;
pub(crate) mod draft;
pub(crate) mod export;
pub mod folded;
pub mod foreign;
pub(crate) mod hparams;
pub(crate) mod keys;
pub(crate) mod mapping;
pub(crate) mod moe;
pub(crate) mod mtp;
pub(crate) mod rope;
pub mod rope_check;
pub(crate) mod sentence_transformers;
pub(crate) mod sliding_window;
pub(crate) mod ssm;
pub(crate) mod steps;
pub mod target;
pub mod tensor_names;
pub(crate) mod tensor_values;
pub(crate) mod vocabulary;

use std::borrow::Cow;

pub use converter::{Converter, Description, Draft, ExtraTensors};
pub use export::Exported;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
pub use keys::Keys;
pub use mapping::{ExpertSlot, MappedTensor, Mapping};
pub use rope::{implied_attention_factor, llama3_factors};
pub use tensor_values::Values;
pub use vocabulary::VocabularyKind;

use crate::registry::ROWS;
use crate::schema;

/// Returns all converters, sorted by architecture.
pub fn converters() -> impl Iterator<Item = &'static dyn Converter> + Clone {
    ROWS.iter().flat_map(|row| row.converters).copied()
}

/// Returns the converter of a class.
pub fn find(class: &str) -> Option<&'static dyn Converter> {
    converters().find(|converter| converter.classes().contains(&class))
}

/// Returns whether some class converts to this architecture.
pub fn is_known(architecture: &str) -> bool {
    converters().any(|converter| converter.architecture() == architecture)
}

/// Returns why no checkpoint can be exported from a model of this architecture, if so.
pub fn export_refusal(architecture: &str) -> Option<&'static str> {
    converters().find(|converter| converter.architecture() == architecture)?.export_refusal()
}

/// Returns the converter of a model, and the description of its export.
pub fn exported(model: &Model) -> Option<(&'static dyn Converter, Exported)> {
    let architecture = model.metadata().architecture()?;
    let mut converters = converters().filter(|converter| converter.architecture() == architecture);
    converters.find_map(|converter| Some((converter, converter.exported(model)?)))
}

/// Returns the class that `--like NAME` means: the class NAME, or the first of the architecture NAME.
pub fn class_like(name: &str) -> Option<&'static str> {
    let mut classes = converters().flat_map(|converter| converter.classes()).copied();
    classes.find(|class| class.eq_ignore_ascii_case(name)).or_else(|| {
        let mut converters = converters();
        let converter =
            converters.find(|converter| converter.architecture().eq_ignore_ascii_case(name))?;
        converter.classes().first().copied()
    })
}

/// Returns the first known class that has the same body under another head: `LlamaForCausalLM` for
/// `LlamaForTokenClassification`. `None` if `class` has no head.
pub fn class_with_body(class: &str) -> Option<&'static str> {
    let body = |class: &str| {
        let end = ["For", "LMHead", "Model"].iter().filter_map(|part| class.find(part)).min()?;
        Some(class[..end].to_ascii_lowercase())
    };
    let wanted = body(class).filter(|body| !body.is_empty() && !class.ends_with("Model"))?;
    let mut classes = converters().flat_map(|converter| converter.classes()).copied();
    classes.find(|known| body(known).is_some_and(|body| body == wanted))
}

/// Widespread architectures, which unknown models resemble most often, in this order.
const WIDESPREAD: &[&str] = &[
    "llama", "qwen2", "qwen3", "gpt2", "gptneox", "bert", "qwen2moe", "qwen3moe", "gemma3", "phi3",
];

/// Returns the first class of each converter that has a place for every one of these tensors and does
/// not drop all of them, those of widespread architectures first.
pub fn classes_with_tensors<'n>(
    config: &Config,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<&'static str> {
    let fitting = converters().filter(|converter| {
        let mut config = config.clone();
        let mut any_mapped = false;
        let all_have_places = converter.complete_config(&mut config).is_ok()
            && names.clone().all(|name| {
                let name: Cow<'_, str> = foreign::text_name(name);
                match is_mapped(*converter, &config, &name) {
                    Some(mapped) => {
                        any_mapped |= mapped;
                        true
                    }
                    None => false,
                }
            });
        all_have_places && any_mapped
    });
    let mut fitting: Vec<_> = fitting.collect();
    fitting.sort_by_key(|converter| {
        let place = WIDESPREAD.iter().position(|name| *name == converter.architecture());
        place.unwrap_or(WIDESPREAD.len())
    });
    fitting.into_iter().filter_map(|converter| converter.classes().first().copied()).collect()
}

/// Returns whether a checkpoint tensor is mapped (`true`) or dropped; `None` if it has no place.
fn is_mapped(converter: &'static dyn Converter, config: &Config, name: &str) -> Option<bool> {
    match converter.mapping(config, name) {
        Ok(Mapping::Tensors(made) | Mapping::WithVectors(_, made)) => {
            let schema = schema::architecture(converter.architecture());
            let are_listed =
                made.iter().all(|made| schema.is_none_or(|schema| is_listed(schema, &made.name)));
            are_listed.then_some(true)
        }
        Ok(Mapping::Unknown) | Err(_) => None,
        Ok(_) => Some(false),
    }
}

/// Returns whether files of an architecture have tensors of this name.
fn is_listed(schema: &'static schema::Architecture, name: &str) -> bool {
    let mut parts = name.split('.');
    let pattern = match (parts.next(), parts.next()) {
        (Some("blk"), Some(number)) => name.replacen(number, "{i}", 1),
        _ => name.to_owned(),
    };
    schema.tensor_names().any(|(listed, _)| listed == pattern)
}

/// Returns all convertible classes in alphabetical order.
pub fn classes() -> Vec<&'static str> {
    let mut classes: Vec<_> =
        architectures_of_classes().into_iter().map(|(class, _)| class).collect();
    classes.dedup();
    classes
}

/// Returns all convertible classes in alphabetical order, each with its architecture; twice where the
/// architecture depends on config.json.
pub fn architectures_of_classes() -> Vec<(&'static str, &'static str)> {
    let pairs = converters().flat_map(|converter| {
        converter.classes().iter().map(move |class| (*class, converter.architecture()))
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use gguf::Metadata;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_architecture_that_converts_has_a_schema() {
        let without: Vec<_> = converters()
            .map(|converter| converter.architecture())
            .filter(|name| schema::architecture(name).is_none())
            .collect();
        assert_eq!(without, [""; 0]);
    }

    #[test]
    fn stretched_positions_are_written() {
        // Their classes do not stretch so: GPT-J, Nomic's, CodeShell and drafts of Gemma not at all, Phi 3 and MiniCPM 3 by
        // factors of their own; Pocket TTS has no configuration.
        const OTHERS: [&str; 8] = [
            "codeshell",
            "gptj",
            "minicpm3",
            "neo-bert",
            "nomic-bert",
            "phi3",
            "phimoe",
            "pockettts",
        ];
        let stretches = |converter: &&'static dyn Converter| {
            let schema = schema::architecture(converter.architecture()).unwrap();
            let stretches = schema.optional.concat().contains(&"rope.scaling.factor");
            let others = OTHERS.contains(&converter.architecture());
            stretches
                && !others
                && converter.classes()[0] != crate::dflash::gemma4::DSPARK.classes[0]
        };
        let without = converters().filter(stretches).filter(|converter| {
            let further = json!({
                "embedding_multiplier_scale": 1.0, "output_multiplier_scale": 1.0,
                "max_sequence_length": 64, "mlp_hidden_size": 96, "H_cycles": 1, "L_cycles": 1, "mamba_n_heads": 8,
                "embedding_scale": 1.0, "num_attention_groups": 4, "moe_num_experts": 4,
                "moe_topk": 2, "num_shared_expert": 1, "sliding_window_pattern": 2,
                "moe_top_k": 2, "share_expert_dim": 32, "hybrid_layer_pattern": [0, 1, 0, 1],
                "shared_expert_intermediate_size": 32, "moe_routed_scaling_factor": 1.0,
                "draft_vocab_size": 8, "rotary_dim": 8, "final_logit_softcapping": 1.0, "output_multiplier": 1.0,
                "block_size": 4, "target_layer_ids": [1], "backbone_hidden_size": 64,
                "hc_mult": 2, "hc_eps": 1e-6, "hc_magnitude": 2.0,
                "layer_group_size": 2, "short_conv_kernel_size": 4, "kda_lower_bound": -5.0, "q_lora_rank": 16,
                "index_kpool": 4, "hc_sinkhorn_iters": 20,
            });
            let newest = json!({
                "gated_attention_proj_granularity_type": "head_wise",
                "moe_shared_expert_intermediate_size": 32, "n_shared_experts": 1, "swa_num_attention_heads": 4,
                "swa_q_lora_rank": 16, "swa_kv_lora_rank": 16, "swa_qk_nope_head_dim": 8, "swa_qk_rope_head_dim": 8,
                "swa_v_head_dim": 16, "sliding_window_size": 8,
                "activation_situ_beta": 1.0, "activation_situ_linear_beta": 1.0, "attn_res_block_size": 4,
                "layernorm_full_attention_alpha": 1.0, "layernorm_full_attention_beta": 1.0,
                "layernorm_linear_attention_alpha": 1.0, "layernorm_linear_attention_beta": 1.0,
                "layernorm_mlp_alpha": 1.0, "layernorm_mlp_beta": 1.0,
            });
            let last = json!({
                "output_size": 64, "talker_config": {"vocab_size": 8}, "text_vocab_size": 8,
                "codec_eos_token_id": 1, "max_lora_rank": 8, "num_adapters": 1, "adapter_token_ids": [1],
                "adapter_substitute_token_ids": [2], "shared_intermediate_size": 96,
                "output_gate_type": "sigmoid", "indexer_n_heads": 2, "indexer_head_dim": 16,
                "indexer_budget": 8, "indexer_compress_ratio": 4, "compress_ratios": [0, 0, 0, 0],
                "num_hash_layers": 0, "dspark_block_size": 4, "dspark_target_layer_ids": [1],
                "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_index_dim": 16,
                    "sparse_topk_blocks": 8, "sparse_block_size": 8, "sparse_local_block": 1},
            });
            let mut config = Config::of(json!({
                "architectures": [converter.classes()[0]], "hidden_size": 64, "intermediate_size": 96,
                "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 8,
                "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5,
                "norm_epsilon": 1e-5, "layer_norm_epsilon": 1e-5, "sliding_window": 8,
                "head_dim": 16, "query_pre_attn_scalar": 16, "num_local_experts": 4, "scale_emb": 1, "scale_depth": 1,
                "index_n_heads": 2, "index_head_dim": 16, "index_topk": 8, "num_shared_experts": 1,
                "hybrid_override_pattern": "M*-M", "routed_scaling_factor": 1.0,
                "linear_attn_config": {"full_attn_layers": [1], "short_conv_kernel_size": 4, "head_dim": 16}, "first_k_dense_replace": 0, "moe_ffn_hidden_size": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
                "qk_rope_head_dim": 8, "v_head_dim": 16, "global_head_dim": 16,
                "moe_intermediate_size": 32, "n_positions": 64, "num_query_groups": 4,
                "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"],
                "dim_model_base": 64, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 3.0},
            }));
            for (field, value) in [further, newest, last].iter().filter_map(Value::as_object).flatten() {
                config.set(field, value.clone());
            }
            match converter.architecture() {
                "eagle3" => config.set("num_hidden_layers", 1),
                "nemotron_h_moe" => {
                    config.set("block_configs", json!([{"block_type": "attention"}]));
                }
                "glm5-next" => config.set("qk_rope_head_dim", 0),
                "graniteswitch" => config.set("num_local_experts", 0),
                "kimi-k3" => {
                    config.set("hidden_act", "situ");
                    config.set("moe_router_activation_func", "sigmoid");
                }
                _ => {}
            }
            converter.complete_config(&mut config).unwrap();
            let mut metadata = Metadata::new();
            converter.metadata(&config, 0, &mut metadata).unwrap();
            let key =
                |name: &str| metadata.get(&format!("{}.rope.scaling.{name}", converter.architecture()));
            key("factor") != Some(&3f32.into()) || key("type") != Some(&"linear".into())
        });
        let without: Vec<_> = without.map(|converter| converter.classes()[0]).collect();
        assert_eq!(without, [""; 0]);
    }

    /// `interop/models_page.py` generates `docs/models.md` from `docs/models.json`.
    #[test]
    fn every_class_is_documented() {
        let read = |name: &str| {
            let path =
                std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
            std::fs::read_to_string(path).unwrap()
        };
        let models: Value = serde_json::from_str(&read("models.json")).unwrap();
        let row = |architecture: &str, class: &str| models[architecture]["classes"].get(class);
        let classes = architectures_of_classes();
        let classes = classes.iter().filter(|(class, name)| row(name, class).is_none());
        let classes: Vec<_> = classes.map(|(class, name)| format!("{class} ({name})")).collect();
        assert_eq!(classes, [""; 0], "docs/models.json lacks these classes");
        let names = ROWS.iter().map(|row| row.schema.name);
        let names: Vec<_> = names.filter(|name| models.get(name).is_none()).collect();
        assert_eq!(names, [""; 0], "docs/models.json lacks these architectures");
        let architectures = models.as_object().unwrap();
        let encoders = crate::mmproj::encoder_classes().into_iter().filter(|class| {
            let mut rows = architectures.values().filter_map(|row| row["classes"].get(class));
            !rows.any(|row| row["encoder"].is_string())
        });
        let encoders: Vec<_> = encoders.collect();
        assert_eq!(encoders, [""; 0], "docs/models.json lacks these encoders");
        let page = read("models.md");
        let names: Vec<_> =
            architectures.keys().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
        assert_eq!(names, [""; 0], "docs/models.md is not current: run interop/models_page.py");
    }
}
