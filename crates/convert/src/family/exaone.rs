//! Exaone: the third generation, the fourth, whose norms follow what they normalize, and that with experts.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::dots::export_of_routed;
use super::exported::count;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, block_of, renamed};
use super::olmo::NORMS;
use super::{Exported, Family, Mapping, experts, further, windows};

pub(super) static EXAONE4: Family = Family {
    classes: &["Exaone4ForCausalLM", SEEING],
    architecture: "exaone4",
    model_type: "exaone4",
    pre_tokenizers: &["exaone4", "exaone"],
    names: &[NORMS, further::NAMES, LLAMA_LIKE],
    complete,
    keys: |config, keys| {
        self::keys(config, keys)?;
        let further = config.u32(&[further::COUNT])?.filter(|&further| further > 0);
        further_keys(config, keys, further)
    },
    special: |config, name| further_special(config, name, &[NORMS, further::NAMES, LLAMA_LIKE]),
    computed: hyper::rope_freqs,
    export,
    ..Family::DEFAULT
};

const SEEING: &str = "Exaone4_5_ForConditionalGeneration";

/// Layers behind the last, which guess further tokens.
fn further_keys(config: &Config, keys: &mut Keys, further: Option<u32>) -> Result<(), Error> {
    let blocks = hyper::block_count(config)?;
    keys.set("block_count", blocks.saturating_add(further.unwrap_or(0)));
    keys.set_u32("nextn_predict_layers", further);
    Ok(())
}

/// What such layers have under names of their own.
fn further_special(
    config: &Config,
    name: &str,
    tables: &[Table],
) -> Result<Option<Mapping>, Error> {
    let blocks = hyper::block_count(config)?;
    let Some(name) = further::name_in_layer(name, blocks) else {
        let is_beyond = block_of(name).is_some_and(|block| block >= blocks);
        return Ok(is_beyond.then_some(Mapping::Unknown));
    };
    if let Some(mapping) = routed(config, &name)? {
        return Ok(Some(mapping));
    }
    Ok(renamed(&name, tables).map(|ours| Mapping::one(ours, [])))
}

const PATTERN: &str = "sliding_window_pattern";

fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    // A letter for each layer of a period: L for a window.
    let letters = config.find(&[PATTERN]).and_then(|(_, value)| value.as_str().map(str::to_owned));
    if let Some(letters) = letters {
        let kind = |letter| if letter == 'L' { "sliding_attention" } else { "full_attention" };
        let count = hyper::block_count(config)? as usize;
        let kinds: Vec<_> = letters.chars().cycle().take(count).map(kind).collect();
        config.default("layer_types", kinds);
        config.set(PATTERN, 0);
    }
    hyper::default_attention(config)
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.vocab_size(config)?;
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set("attention.sliding_window", window);
        keys.set("attention.sliding_window_pattern", Array::from(&windows::layers(config, 4)?[..]));
    }
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let exported = windows::export_of_pattern(model, exported);
    if count(model, "nextn_predict_layers").is_none() {
        return Some(exported);
    }
    further::export(model, exported.class(SEEING, "exaone4_5"), EXAONE4.names, &[], further::COUNT)
}

const FIRST_NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.attention.q_proj", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.attention.k_proj", "blk.{}.attn_k"),
    ("transformer.h.{}.attn.attention.v_proj", "blk.{}.attn_v"),
    ("transformer.h.{}.attn.attention.out_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.ln_2", "blk.{}.ffn_norm"),
    ("transformer.h.{}.mlp.c_fc_0", "blk.{}.ffn_gate"),
    ("transformer.h.{}.mlp.c_fc_1", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down"),
];
const EPSILON: &str = "layer_norm_epsilon";
const RMS: &str = "attention.layer_norm_rms_epsilon";

/// Exaone 3 and 3.5.
pub(super) static EXAONE: Family = Family {
    classes: &["ExaoneForCausalLM"],
    architecture: "exaone",
    model_type: "exaone",
    pre_tokenizers: &["exaone"],
    names: &[FIRST_NAMES],
    fields: &[(RMS, EPSILON)],
    complete: |config| {
        config.default(EPSILON, 1e-5);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        let head_dim = hyper::width(config)? / hyper::head_count(config)?.max(1);
        keys.set("rope.dimension_count", hyper::rotated_dims(config, head_dim, 1.0)?);
        // Programs want the epsilon under this name.
        keys.set(RMS, hyper::layer_norm_epsilon(config)?);
        Ok(())
    },
    computed: hyper::rope_freqs,
    ..Family::DEFAULT
};

const EXPERT_TABLES: &[Table] = &[experts::BESIDE_SHARED, further::NAMES, LLAMA_LIKE];
const ROUTER_BIAS: &str = "model.layers.{}.mlp.e_score_correction_bias";
const DENSE: &[&str] = &["first_k_dense_replace", "first_last_k_dense_replace"];

/// What becomes of experts and of what helps to choose them, which newer checkpoints have under a name of
/// its own.
fn routed(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(bias) = experts::router_bias(ROUTER_BIAS, name) {
        return Ok(Some(bias));
    }
    experts::routed(config, name)
}

/// K-Exaone.
pub(super) static EXAONE_MOE: Family = Family {
    classes: &["ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"],
    architecture: "exaone-moe",
    model_type: "exaone_moe",
    pre_tokenizers: &["exaone-moe"],
    names: EXPERT_TABLES,
    fields: &[
        ("expert_shared_count", "num_shared_experts"),
        ("expert_group_count", "n_group"),
        ("expert_group_used_count", "topk_group"),
        ("expert_weights_scale", "routed_scaling_factor"),
        ("leading_dense_block_count", "first_k_dense_replace"),
    ],
    complete,
    keys: |config, keys| {
        self::keys(config, keys)?;
        let further = config.u32(&[further::COUNT])?.unwrap_or(0);
        let number = |field: &str| config.require_u32(&[field], "the size of the experts");
        let (width, shared) = (number(experts::WIDTH[0])?, number("num_shared_experts")?);
        keys.set("expert_feed_forward_length", width);
        keys.set("expert_shared_count", shared);
        keys.set("expert_shared_feed_forward_length", width.saturating_mul(shared));
        keys.set_f32("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
        if let Some(norm) = config.bool("norm_topk_prob")? {
            keys.set("expert_weights_norm", norm);
        }
        keys.set("leading_dense_block_count", config.u32(DENSE)?.unwrap_or(0));
        further_keys(config, keys, Some(further))?;
        keys.else_not_stretched();
        Ok(())
    },
    special: |config, name| match further_special(config, name, EXPERT_TABLES)? {
        None => routed(config, name),
        found => Ok(found),
    },
    computed: hyper::rope_freqs,
    export: |model, exported| {
        let exported = export_of_routed(model, exported.patterns([ROUTER_BIAS]));
        let exported = windows::export_of_pattern(model, exported);
        let patterns = [&experts::one_by_one()[..], &[ROUTER_BIAS]].concat();
        further::export(model, exported, EXPERT_TABLES, &patterns, further::COUNT)
    },
    ..Family::DEFAULT
};
