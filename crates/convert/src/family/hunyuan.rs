//! Hunyuan, dense, and what sees with it: norms of queries and keys, positions stretched by their base.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use super::exported::{count, head_dim, number, shortest};
use super::hyper::{self, Keys, Rope};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, Mapping, experts};
use crate::vocab;

const NORMS: Table = &[
    ("model.layers.{}.self_attn.query_layernorm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.self_attn.key_layernorm", "blk.{}.attn_k_norm"),
];

/// What the models are for, whatever their configuration says.
const CONTEXT: u32 = 1 << 18;

pub(super) static HUNYUAN_DENSE: Family = Family {
    classes: &["HunYuanDenseV1ForCausalLM"],
    architecture: "hunyuan-dense",
    model_type: "hunyuan_v1_dense",
    vocabulary: vocab::Kind::Hunyuan,
    pre_tokenizers: &["hunyuan-dense"],
    names: &[NORMS, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        let head_dim = hyper::head_dim(config)?;
        config.default("head_dim", head_dim);
        hyper::default_attention(config)
    },
    keys,
    special: |config, name| {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        Ok((tied && name == "lm_head.weight").then_some(Mapping::Dropped))
    },
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let mut dense = config.clone();
    // Dense models state one expert.
    if config.u32(&["num_experts"])?.is_some_and(|count| count <= 1) {
        dense.set("num_experts", Value::Null);
    }
    keys.stated(&dense)?;
    stretched(config, keys, 50.0)
}

/// Positions are stretched by their base. `usual` is the factor where none is stated.
fn stretched(config: &Config, keys: &mut Keys, usual: f64) -> Result<(), Error> {
    let rope = Rope::of(config)?;
    if rope.is("dynamic") {
        let alpha = rope.f64("alpha")?.unwrap_or(usual);
        let base = f64::from(rope.base.unwrap_or(hyper::DEFAULT_BASE));
        let dims = f64::from(hyper::head_dim(config)?);
        keys.set("rope.freq_base", (base * alpha.powf(dims / (dims - 2.0))) as f32);
        keys.set("rope.scaling.type", "none");
        keys.set("rope.scaling.factor", 1.0f32);
        keys.set("rope.scaling.original_context_length", CONTEXT);
        keys.set("context_length", CONTEXT);
    }
    Ok(())
}

/// The factor of the base is what leads to the base that was stretched.
fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = exported.set("use_qk_norm", true);
    if number(model, "rope.scaling.original_context_length").is_none() {
        return Some(exported);
    }
    let stretched = number(model, "rope.freq_base")?;
    let dims = head_dim(model)? as f64;
    let power = dims / (dims - 2.0);
    let base = f64::from(hyper::DEFAULT_BASE);
    let leads_back = |alpha: f64| (base * alpha.powf(power)) as f32 == stretched as f32;
    let alpha = shortest((stretched / base).powf(1.0 / power), leads_back);
    let scaling = json!({"rope_type": "dynamic", "alpha": alpha, "factor": 1.0});
    Some(exported.without(&["rope.freq_base"]).set("rope_theta", base).set("rope_scaling", scaling))
}

/// Hunyuan that sees: positions have four dimensions.
pub(super) static HUNYUAN_VL: Family = Family {
    classes: &["HunYuanVLForConditionalGeneration"],
    architecture: "hunyuan_vl",
    model_type: "hunyuan_vl",
    keys: seeing_keys,
    export: export_seeing,
    ..HUNYUAN_DENSE
};

/// Dimensions that rotate for each dimension of positions: as the models state them, and as
/// `transformers` does.
const SECTIONS: [&str; 2] = ["xdrope_section", "mrope_section"];

fn seeing_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let fields = config.find(&["rope_parameters", "rope_scaling"]).map(|(_, fields)| fields);
    let sections = SECTIONS.iter().find_map(|field| fields?.get(field)?.as_array());
    let Some(sections) = sections else { return self::keys(config, keys) };
    let rope = Rope::of(config)?;
    let mut plain = config.clone();
    let mut fields = fields.cloned().unwrap_or_default();
    fields["rope_type"] = "default".into();
    fields[SECTIONS[1]] = sections.clone().into();
    plain.set("rope_scaling", fields);
    plain.set("rope_parameters", Value::Null);
    plain.set("rope_theta", rope.base.unwrap_or(hyper::DEFAULT_BASE));
    self::keys(&plain, keys)?;
    let context = hyper::context_length(config)?;
    keys.set("rope.scaling.type", "none");
    keys.set("rope.scaling.factor", rope.f64("factor")?.unwrap_or(1.0) as f32);
    keys.set_f32("rope.scaling.alpha", rope.f64("alpha")?.map(|alpha| alpha as f32));
    keys.set("rope.scaling.original_context_length", context);
    Ok(())
}

fn export_seeing(model: &Model, exported: Exported) -> Option<Exported> {
    let Some(sections) = model.metadata().array("hunyuan_vl.rope.dimension_sections") else {
        return export(model, exported);
    };
    let sections: Vec<_> = sections.iter().filter_map(|number| number.to_u64()).collect();
    let scaling = json!({"type": "xdrope", "alpha": number(model, "rope.scaling.alpha"),
        "factor": number(model, "rope.scaling.factor"), SECTIONS[0]: sections});
    Some(exported.set("use_qk_norm", true).set("rope_scaling", scaling))
}

const ROUTED: Table = &[
    ("model.layers.{}.mlp.gate.wg", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_mlp.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_mlp.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_mlp.down_proj", "blk.{}.ffn_down_shexp"),
];

/// Keys of experts, and the fields that say it for every layer.
const OF_LAYERS: [(&str, &str); 3] = [
    ("expert_feed_forward_length", "moe_intermediate_size"),
    ("expert_used_count", "moe_topk"),
    ("expert_shared_count", "num_shared_expert"),
];

/// Hunyuan with experts, the first: beside those that a router chooses there is one of full width.
pub(super) static HUNYUAN_MOE: Family = Family {
    classes: &["HunYuanMoEV1ForCausalLM"],
    architecture: "hunyuan-moe",
    model_type: "hunyuan_v1_moe",
    vocabulary: vocab::Kind::HunyuanMoe,
    pre_tokenizers: &["hunyuan"],
    names: &[NORMS, ROUTED, LLAMA_LIKE],
    expects: &[("attention_bias", false)],
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set("expert_shared_feed_forward_length", hyper::feed_forward(config)?);
        for (key, field) in OF_LAYERS {
            keys.set(key, of_all_layers(config, field)?);
        }
        stretched(config, keys, 1000.0)
    },
    special: |config, name| {
        let tied = config.bool("tie_word_embeddings")?.unwrap_or(false);
        if tied && name == "lm_head.weight" {
            return Ok(Some(Mapping::Dropped));
        }
        experts::mapping(config, name, || of_all_layers(config, OF_LAYERS[0].1))
    },
    export: |model, exported| {
        let blocks = count(model, "block_count")?.min(1 << 16) as usize;
        let mut exported = export(model, exported)?.patterns(experts::one_by_one()).without(&[
            "expert_feed_forward_length",
            "expert_used_count",
            "expert_shared_count",
        ]);
        for (key, field) in OF_LAYERS {
            exported = exported.set_some(field, count(model, key).map(|of| vec![of; blocks]));
        }
        Some(exported)
    },
    ..Family::DEFAULT
};

/// The number in a list of one for each layer, which must be the same for all.
fn of_all_layers(config: &Config, field: &str) -> Result<u32, Error> {
    let numbers = match config.find(&[field]) {
        Some((_, Value::Array(_))) => config.u32s(field)?.unwrap_or_default(),
        _ => vec![config.require_u32(&[field], "a number of every layer")?],
    };
    match numbers[..] {
        [first, ref others @ ..] if others.iter().all(|other| *other == first) => Ok(first),
        _ => Err(hyper::not_computed(config, field, format!("{numbers:?}"))),
    }
}
