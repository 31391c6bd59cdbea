//! GLM 4.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use super::exported::{count, has, rotated_share};
use super::hyper::{self, Keys, Rope};
use super::names::{LLAMA_LIKE, Table};
use super::qwen_vl::sections;
use super::{Exported, Family, further};
use crate::vocab;

/// Norms stand before and after attention and feed-forward; gate and what it gates are one matrix.
const NAMES: Table = &[
    ("model.layers.{}.post_self_attn_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up"),
];

pub(super) static GLM4: Family = Family {
    classes: &[TEXT, SEEING, READING],
    architecture: "glm4",
    model_type: "glm4",
    vocabulary: vocab::Kind::Glm4,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    names: &[NAMES, further::NAMES, LLAMA_LIKE],
    complete,
    keys,
    steps,
    export,
    ..Family::DEFAULT
};

const TEXT: &str = "Glm4ForCausalLM";
const SEEING: &str = "Glm4vForConditionalGeneration";
/// Has layers that guess further tokens besides.
const READING: &str = "GlmOcrForConditionalGeneration";
const FURTHER_KEY: &str = "nextn_predict_layers";

fn complete(config: &mut Config) -> Result<(), Error> {
    if config.class()? == TEXT {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1.5625e-7);
    }
    config.default("rms_norm_eps", 1e-5);
    hyper::default_attention(config)
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 0.5)?;
    keys.set("rope.dimension_count", rotated);
    if let Some(further) = config.u32(&[further::COUNT])?.filter(|_| is_reading(config)) {
        keys.set("block_count", hyper::block_count(config)?.saturating_add(further));
        keys.set(FURTHER_KEY, further);
    }
    Ok(())
}

fn is_reading(config: &Config) -> bool {
    config.class().is_ok_and(|class| class == READING)
}

/// Where positions have three dimensions, programs turn the first half of what rotates against the
/// second, while checkpoints are arranged for pairs of neighbours.
fn steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    let heads = match name.split('.').nth(2) {
        Some("attn_q") => hyper::head_count(config)?,
        Some("attn_k") => hyper::head_count_kv(config)?,
        _ => return Ok(Vec::new()),
    };
    if Rope::of(config)?.sections()?.is_none() {
        return Ok(Vec::new());
    }
    let pairs = hyper::rotated_dims(config, hyper::head_dim(config)?, 0.5)? / 2;
    let (groups, outer) = (heads.into(), pairs.into());
    Ok(vec![Step::Exchange { groups, start: 0, outer, inner: 2, len: 1 }])
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let further = count(model, FURTHER_KEY);
    let exported = match (further, model.metadata().get("glm4.rope.dimension_sections")) {
        (Some(further), _) => {
            let blocks = count(model, "block_count")?.checked_sub(further)?;
            let exported = exported.class(READING, "glm_ocr").without(&["block_count"]);
            exported.set("num_hidden_layers", blocks).set(further::COUNT, further)
        }
        (None, Some(_)) => exported.class(SEEING, "glm4v"),
        (None, None) => exported,
    };
    let exported = sections(model, exported)
        .set_some("partial_rotary_factor", rotated_share(model))
        .set("attention_bias", has(model, "blk.0.attn_q.bias"));
    Some(exported)
}
