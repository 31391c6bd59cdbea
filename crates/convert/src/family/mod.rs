//! Model families: one small file each, registered by class name.
//!
//! A family says which hyper-parameters become which metadata, which foreign tensor becomes which
//! of ours, and what happens to its rows on the way.

mod afmoe;
mod apertus;
mod arcee;
mod arctic;
mod baichuan;
mod bailing;
mod bailing_v3;
mod bert;
mod bitnet;
mod bloom;
mod chameleon;
mod chatglm;
mod codeshell;
mod cogvlm;
mod cohere;
mod cohere_moe;
mod compressed;
mod dbrx;
mod deci;
mod deepseek;
mod deepseek4;
mod deepseek_ocr;
mod definition;
mod dflash;
mod diffusion;
mod distilbert;
mod dots;
mod dots3_note;
mod drafts;
mod eagle3;
pub(crate) mod encoder;
mod ernie;
mod eurobert;
mod exaone;
mod experts;
mod exported;
mod falcon;
mod falcon_h1;
pub(crate) mod foreign;
mod further;
mod gemma;
mod gemma3n;
mod gemma4;
mod gemma4_draft;
mod glm;
mod glm5_next;
mod glm_moe;
mod gpt2;
mod gpt_oss;
mod gptj;
mod gptneox;
mod granite;
mod granite_hybrid;
mod granite_swa;
mod granite_switch;
mod grok;
mod grove_moe;
mod hrm_text;
mod hunyuan;
mod hy;
mod hy_v4;
mod hyper;
mod internlm2;
mod jais;
mod jamba;
mod jina_bert;
mod kimi_k3;
mod kimi_linear;
mod laguna;
mod lfm2;
mod llada;
mod llama;
mod llama4;
mod maincoder;
mod mamba;
mod mellum;
mod mimo;
mod minicpm;
mod minimax;
mod minimax_01;
mod ministral;
mod mistral4;
mod modern_bert;
mod modules;
mod mpt;
mod muse_glimmer;
pub mod names;
mod nanbeige;
mod native;
mod nemotron;
mod nemotron_h;
mod neo_bert;
mod nomic_bert;
mod olmo;
mod olmoe;
mod openelm;
mod orion;
mod pangu;
mod phi;
mod phimoe;
mod plamo;
mod pocket_tts;
mod qwen;
mod qwen3_tts;
mod qwen4_exp;
mod qwen_moe;
mod qwen_next;
mod qwen_vl;
mod refact;
mod rwkv;
mod rwkv6;
mod rwkv7;
mod seed_oss;
mod smallthinker;
mod smollm3;
mod spark;
mod stablelm;
mod starcoder;
mod state_space;
mod step;
mod t5;
mod talkie;
mod values;
mod wavtokenizer;
mod whisper;
mod windows;
mod xverse;

pub(crate) use definition::{Draft, ExpertSlot, Family, MappedTensor, Mapping};
pub use encoder::encoder_classes;
pub(crate) use encoder::{Encoder, Made, Parts};
pub(crate) use exported::Exported;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
pub(crate) use hyper::llama3_factors;
pub(crate) use values::Values;

const FAMILIES: &[&Family] = &[
    &llama::LLAMA,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &gpt2::GPT2,
    &gptj::GPTJ,
    &gptneox::GPTNEOX,
    &mpt::MPT,
    &bloom::BLOOM,
    &falcon::FALCON,
    &starcoder::STARCODER,
    &starcoder::STARCODER2,
    &mamba::MAMBA,
    &mamba::MAMBA2,
    &rwkv::RWKV4,
    &whisper::WHISPER,
    &bert::BERT,
    &bert::ROBERTA,
    &nomic_bert::NOMIC_BERT,
    &t5::T5,
    &t5::T5_ENCODER,
    &qwen_moe::QWEN2MOE,
    &qwen_moe::QWEN3MOE,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gemma::GEMMA_EMBEDDING,
    &phi::PHI2,
    &phi::PHI3,
    &stablelm::STABLELM,
    &olmo::OLMO,
    &olmo::OLMO2,
    &cohere::COHERE,
    &cohere::COHERE2,
    &granite::GRANITE,
    &granite::GRANITE_MOE,
    &smollm3::SMOLLM3,
    &internlm2::INTERNLM2,
    &minicpm::MINICPM,
    &deepseek::DEEPSEEK2,
    &glm::GLM4,
    &baichuan::BAICHUAN,
    &chatglm::CHATGLM,
    &llama4::LLAMA4,
    &gpt_oss::GPT_OSS,
    &llama::LLAMA_EMBED,
    &arcee::ARCEE,
    &diffusion::DREAM,
    &diffusion::RND1,
    &dots::DOTS1,
    &exaone::EXAONE4,
    &glm_moe::GLM4_MOE,
    &hunyuan::HUNYUAN_DENSE,
    &jais::JAIS2,
    &lfm2::LFM2,
    &lfm2::LFM2_MOE,
    &maincoder::MAINCODER,
    &minimax::MINIMAX_M2,
    &ministral::MISTRAL3,
    &mistral4::MISTRAL4,
    &granite_switch::GRANITE_SWITCH,
    &olmoe::OLMOE,
    &qwen_vl::QWEN2VL,
    &qwen_vl::QWEN3VL,
    &qwen_vl::QWEN3VLMOE,
    &seed_oss::SEED_OSS,
    &deepseek::DEEPSEEK,
    &diffusion::LLADA_MOE,
    &afmoe::AFMOE,
    &bailing::BAILING_MOE,
    &bailing::BAILING_MOE2,
    &codeshell::CODESHELL,
    &ernie::ERNIE4_5,
    &ernie::ERNIE4_5_MOE,
    &orion::ORION,
    &phimoe::PHIMOE,
    &glm_moe::SOLAR_OPEN,
    &deepseek::GLM4_MOE_LITE,
    &deepseek::DEEPSEEK32,
    &deepseek::GLM_DSA,
    &internlm2::INTERNLM3,
    &qwen_next::QWEN3NEXT,
    &qwen_next::QWEN35,
    &qwen_next::QWEN35MOE,
    &qwen4_exp::QWEN4_EXP,
    &deepseek4::DEEPSEEK4,
    &exaone::EXAONE,
    &exaone::EXAONE_MOE,
    &hy::HY_V3,
    &distilbert::DISTILBERT,
    &eurobert::EUROBERT,
    &modern_bert::MODERN_BERT,
    &gemma3n::GEMMA3N,
    &gemma4::GEMMA4,
    &jamba::JAMBA,
    &granite_hybrid::GRANITE_HYBRID,
    &mellum::MELLUM,
    &mellum::MAPLE,
    &smallthinker::SMALLTHINKER,
    &spark::SPARK2_5,
    &nemotron::NEMOTRON,
    &nemotron_h::NEMOTRON_H,
    &nemotron_h::NEMOTRON_H_MOE,
    &granite_swa::GRANITE_SWA,
    &cohere_moe::COHERE2_MOE,
    &kimi_linear::KIMI_LINEAR,
    &openelm::OPENELM,
    &dbrx::DBRX,
    &refact::REFACT,
    &compressed::MINICPM3,
    &compressed::PLM,
    &nanbeige::NANBEIGE,
    &pangu::PANGU_EMBEDDED,
    &falcon_h1::FALCON_H1,
    &ernie::PADDLEOCR,
    &hunyuan::HUNYUAN_VL,
    &deepseek_ocr::DEEPSEEK2_OCR,
    &qwen_vl::QWEN3ASR,
    &qwen_vl::QWEN3OMNI,
    &grove_moe::GROVE_MOE,
    &grok::GROK,
    &deci::DECI,
    &llada::LLADA,
    &chameleon::CHAMELEON,
    &cogvlm::COGVLM,
    &neo_bert::NEO_BERT,
    &jina_bert::JINA_BERT,
    &hrm_text::HRM_TEXT,
    &step::STEP35,
    &mimo::MIMO2,
    &laguna::LAGUNA,
    &minimax::MINIMAX_M3,
    &gpt2::RUGPT3XL,
    &rwkv6::RWKV6,
    &rwkv6::RWKV6_QWEN2,
    &rwkv7::RWKV7,
    &rwkv7::ARWKV7,
    &xverse::XVERSE,
    &arctic::ARCTIC,
    &qwen::QWEN,
    &plamo::PLAMO,
    &plamo::PLAMO2,
    &plamo::PLAMO3,
    &hunyuan::HUNYUAN_MOE,
    &eagle3::EAGLE3,
    &dflash::DFLASH,
    &dflash::DSPARK,
    &deepseek4::DSPARK,
    &apertus::APERTUS,
    &jais::JAIS,
    &talkie::TALKIE,
    &minimax_01::MINIMAX_01,
    &bitnet::BITNET,
    &bailing::SARVAM,
    &muse_glimmer::MUSE_GLIMMER,
    &muse_glimmer::ASSISTANT,
    &gemma4_draft::DSPARK,
    &gemma4_draft::ASSISTANT,
    &nemotron_h::NEMOTRON_H_PUZZLE,
    &hy_v4::HY_V4,
    &bailing_v3::BAILING_MOE3,
    &glm5_next::GLM5_NEXT,
    &dots3_note::DOTS3_NOTE,
    &kimi_k3::KIMI_K3,
    &wavtokenizer::WAVTOKENIZER,
    &lfm2::LFM25_TOKENIZER,
    &qwen3_tts::QWEN3_TTS,
    &pocket_tts::POCKET_TTS,
];

/// The family that converts this class.
pub(crate) fn find(class: &str) -> Option<&'static Family> {
    FAMILIES.iter().copied().find(|family| family.classes.contains(&class))
}

pub(crate) use native::find as of_params;
pub(crate) use pocket_tts::configuration;

/// Whether there is a family that converts to this architecture.
pub(crate) fn is_known(architecture: &str) -> bool {
    FAMILIES.iter().any(|family| family.architecture == architecture)
}

/// Why no checkpoint can be made of a model of this architecture, if that is so.
pub(crate) fn one_way(architecture: &str) -> Option<&'static str> {
    FAMILIES.iter().find(|family| family.architecture == architecture)?.one_way
}

/// The family of a model, and what leads back from it.
pub(crate) fn exported(model: &Model) -> Option<(&'static Family, Exported)> {
    let architecture = model.metadata().architecture()?;
    let mut families = FAMILIES.iter().filter(|family| family.architecture == architecture);
    families.find_map(|family| Some((*family, family.exported(model)?)))
}

/// The class that `--like` asks for: itself, or the first of the family of that architecture.
pub(crate) fn class_like(name: &str) -> Option<&'static str> {
    let classes = FAMILIES.iter().flat_map(|family| family.classes).copied();
    let of_family = || {
        let mut families = FAMILIES.iter();
        let family = families.find(|family| family.architecture.eq_ignore_ascii_case(name))?;
        family.classes.first().copied()
    };
    classes.into_iter().find(|class| class.eq_ignore_ascii_case(name)).or_else(of_family)
}

/// The first known class that has the body of this class under another head: for
/// `LlamaForTokenClassification` that is `LlamaForCausalLM`. `None` if it has no head.
pub(crate) fn class_with_body(class: &str) -> Option<&'static str> {
    let body = |class: &str| {
        let end = ["For", "LMHead", "Model"].iter().filter_map(|part| class.find(part)).min()?;
        Some(class[..end].to_ascii_lowercase())
    };
    let wanted = body(class).filter(|body| !body.is_empty() && !class.ends_with("Model"))?;
    let mut classes = FAMILIES.iter().flat_map(|family| family.classes).copied();
    classes.find(|known| body(known).is_some_and(|body| body == wanted))
}

/// The classes of families in which every one of these tensors has a place, and not all of them are left out.
pub(crate) fn classes_with_tensors<'n>(
    config: &Config,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<&'static str> {
    let fitting = FAMILIES.iter().filter(|family| {
        let mut config = config.clone();
        let mut is_any_kept = false;
        let have_places = family.complete(&mut config).is_ok()
            && names.clone().all(|name| match mapped(family, &config, &foreign::text_name(name)) {
                Some(is_kept) => {
                    is_any_kept |= is_kept;
                    true
                }
                None => false,
            });
        have_places && is_any_kept
    });
    fitting.filter_map(|family| family.classes.first().copied()).collect()
}

/// Whether a tensor becomes one of the family's, or is left out; `None` if it has no place.
fn mapped(family: &Family, config: &Config, name: &str) -> Option<bool> {
    match family.mapping(config, name) {
        Ok(Mapping::Made(made) | Mapping::Behind(_, made)) => {
            let schema = gguf_models::schema::architecture(family.architecture);
            let are_listed =
                made.iter().all(|made| schema.is_none_or(|schema| is_listed(schema, &made.name)));
            are_listed.then_some(true)
        }
        Ok(Mapping::Unknown) | Err(_) => None,
        Ok(_) => Some(false),
    }
}

/// Whether files of an architecture have tensors of this name.
fn is_listed(schema: &'static gguf_models::schema::Architecture, name: &str) -> bool {
    let mut parts = name.split('.');
    let of_layer = match (parts.next(), parts.next()) {
        (Some("blk"), Some(number)) => name.replacen(number, "{i}", 1),
        _ => name.to_owned(),
    };
    schema.tensor_names().any(|(listed, _)| listed == of_layer)
}

/// All class names that can be converted, in alphabetical order.
pub fn classes() -> Vec<&'static str> {
    let mut classes: Vec<_> =
        architectures_of_classes().into_iter().map(|(class, _)| class).collect();
    classes.dedup();
    classes
}

/// The same, each with the architecture that it becomes; twice where that depends on the configuration.
pub fn architectures_of_classes() -> Vec<(&'static str, &'static str)> {
    let of_family =
        |family: &&'static Family| family.classes.iter().map(|class| (*class, family.architecture));
    let mut classes: Vec<_> = FAMILIES.iter().flat_map(of_family).collect();
    classes.sort_unstable();
    classes
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use gguf::Metadata;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_architecture_that_converts_has_a_schema() {
        let without: Vec<_> = FAMILIES
            .iter()
            .map(|family| family.architecture)
            .filter(|name| gguf_models::schema::architecture(name).is_none())
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
        let stretches = |family: &&&Family| {
            let schema = gguf_models::schema::architecture(family.architecture).unwrap();
            let stretches = schema.optional.concat().contains(&"rope.scaling.factor");
            let others = OTHERS.contains(&family.architecture);
            stretches && !others && family.classes[0] != gemma4_draft::DSPARK.classes[0]
        };
        let without = FAMILIES.iter().filter(stretches).filter(|family| {
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
                "architectures": [family.classes[0]], "hidden_size": 64, "intermediate_size": 96,
                "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 8,
                "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5,
                "norm_epsilon": 1e-5, "layer_norm_epsilon": 1e-5, "sliding_window": 8,
                "head_dim": 16, "num_local_experts": 4, "scale_emb": 1, "scale_depth": 1,
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
            match family.architecture {
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
            family.complete(&mut config).unwrap();
            let mut metadata = Metadata::new();
            family.metadata(&config, 0, &mut metadata).unwrap();
            let key =
                |name: &str| metadata.get(&format!("{}.rope.scaling.{name}", family.architecture));
            key("factor") != Some(&3f32.into()) || key("type") != Some(&"linear".into())
        });
        let without: Vec<_> = without.map(|family| family.classes[0]).collect();
        assert_eq!(without, [""; 0]);
    }

    /// A file of this crate.
    fn read(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
    }

    #[test]
    fn every_family_is_documented() {
        let page = read("../../docs/conversion.md");
        let has_row = |family: &Family| {
            let names = [family.classes[0], family.architecture].map(|name| format!("`{name}`"));
            let mut rows = page.lines().filter(|line| line.starts_with('|'));
            rows.any(|row| names.iter().all(|name| row.contains(name)))
        };
        let without = FAMILIES.iter().filter(|family| !has_row(family));
        let without: Vec<_> = without.map(|family| family.classes[0]).collect();
        assert_eq!(without, [""; 0], "docs/conversion.md has no row for them");
    }

    #[test]
    fn every_family_goes_there_and_back() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let tests: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
        let untested: Vec<_> = FAMILIES
            .iter()
            .map(|family| family.classes[0])
            .filter(|class| !tests.contains(&format!("\"{class}\"")))
            .collect();
        // These do as folders of the reference data.
        let of_zoo = ["GPT2LMHeadModel", "GPTJForCausalLM", "BloomForCausalLM"];
        assert_eq!(untested, of_zoo);
    }
}
