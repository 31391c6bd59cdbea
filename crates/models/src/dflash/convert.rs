//! DFlash and DSpark: drafts that guess a block of tokens at once, from what some layers of another model
//! compute. DSpark guesses each token of a block from the one before, too.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::json;

use crate::convert::export::{count, has, number};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, renamed};
use crate::convert::{
    Converter, Description, Draft, Exported, Mapping, Values, draft, export, hparams,
    sliding_window, target, tensor_names,
};
use crate::schema::key;

/// Names without `model.`, which these checkpoints lack or have.
pub(crate) const NAMES: Table = &[
    ("fc", "fc"),
    ("hidden_norm", "enc.output_norm"),
    ("lm_head", "output"),
    ("markov_head.markov_w1", "markov_w1"),
    ("markov_head.markov_w2", "markov_w2"),
    ("confidence_head.proj", "conf_proj"),
    ("candidate_selector.hidden_projection", "selector_hidden"),
    ("layers.{}.attention_conv.kernel_projection", "blk.{}.attn_conv_proj"),
    ("layers.{}.mlp_conv.kernel_projection", "blk.{}.ffn_conv_proj"),
];

/// The same of what has no end in checkpoints.
const PARAMETERS: [(&str, &str); 6] = [
    ("candidate_selector.predecessor_codebook", "selector_predecessor.weight"),
    ("candidate_selector.successor_codebook", "selector_successor.weight"),
    ("layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"),
    ("layers.{}.self_attn.attention_sink_bias", "blk.{}.attn_sinks.weight"),
    ("layers.{}.attention_conv.base_kernel", "blk.{}.attn_conv_base"),
    ("layers.{}.mlp_conv.base_kernel", "blk.{}.ffn_conv_base"),
];

/// Where fields of the draft stand, unless they stand at the top.
pub(crate) const OWN: &str = "dflash_config";

const READ: &str = "target_layer_ids";

const BLOCK: &str = "block_size";

const MASK: &str = "mask_token_id";

const ANCHOR: &str = "sample_from_anchor";

const TOKENS: &str = "draft_vocab_size";

const EMBEDDING: &str = "has_embed_tokens";

const BY_HALVES: &str = "rope_is_neox_style";

const KINDS: &str = "layer_types";

/// Set by the names of tensors.
pub(crate) const CONFIDENCE: &str = "has_confidence_head";

/// Keys and fields of the second version.
const SECOND: [(&str, &str); 4] = [
    ("conv_kernel_size", "conv_kernel_size"),
    ("conv_group_size", "conv_group_size"),
    ("selector_rank", "selector_rank"),
    ("selector_top_k", "selector_top_k"),
];

pub(crate) struct Dflash;

/// Description of [`Dflash`].
pub(crate) static DFLASH: Description = Description {
    classes: &["DFlashDraftModel", "DFlash2DraftModel"],
    architecture: "dflash",
    model_type: "qwen3",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Dflash {
    fn description(&self) -> &'static Description {
        &DFLASH
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete(config)
    }

    fn draft(&self) -> Option<Draft> {
        Some(Draft::Target)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)
    }

    fn trailing_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        if let Some(token) = own(config).u32(&[MASK])? {
            keys.set_whole(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        // Nor of drafts that have layers of another kind.
        const OTHERS: [&str; 2] = ["dflash.sample_from_anchor", "dflash.hyper_connection.count"];
        let is_first = OTHERS.iter().all(|key| model.metadata().get(key).is_none());
        is_first.then(|| export(model, exported))?
    }
}

/// DSpark.
pub(crate) struct Dspark;

/// Description of [`Dspark`].
pub(crate) static DSPARK: Description = Description {
    classes: &[
        "Qwen3DSparkModel",
        "DSparkDraftModel",
        "DSparkSpeculator",
        "Lfm2DSparkDraftModel",
        "LingDSparkModel",
    ],
    ..DFLASH
};

impl Converter for Dspark {
    fn description(&self) -> &'static Description {
        &DSPARK
    }

    fn base(&self) -> &'static dyn Converter {
        &Dflash
    }

    // Fields of both ways to write a configuration stand where those of DFlash do.
    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        const BEHIND: &str = "aux_hidden_state_layer_ids";
        const HEAD: &str = "markov_head_type";
        let (nested, behind) = (draft::is_nested(config), config.u32s(BEHIND)?);
        config.default(ANCHOR, !nested && behind.is_none());
        draft::flatten(config);
        if let Some((_, kind)) = config.find(&[HEAD]).filter(|(_, kind)| *kind != "vanilla") {
            return Err(hparams::not_computed(config, HEAD, kind));
        }
        let mask = config.u32(&[MASK])?;
        let read = match behind {
            Some(layers) => Some(layers.iter().map(|layer| layer.saturating_sub(1)).collect()),
            None => config.u32s(READ)?,
        };
        config.default(OWN, json!({MASK: mask, READ: read}));
        complete(config)
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        survey_confidence(config, names)
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let tokens = config.require_u32(&["vocab_size"], "the target's tokens")?;
        let guessed = guessed(config)?;
        if guessed > tokens {
            let what = format!("{guessed}, of {tokens} tokens in all");
            return Err(hparams::not_computed(config, TOKENS, what));
        }
        draft::read_list(config, values, tokens, Some(guessed).filter(|&few| few < tokens))
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)?;
        keys.set(ANCHOR, config.bool(ANCHOR)?.unwrap_or(true));
        keys.set(CONFIDENCE, config.bool(CONFIDENCE)?.unwrap_or(false));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if draft::is_no_weight(name) {
            return Ok(Some(Mapping::Dropped));
        }
        // That of the target is read.
        let tokens = config.u32(&["vocab_size"])?;
        if name.ends_with("lm_head.weight") && tokens == Some(guessed(config)?) {
            return Ok(Some(Mapping::Dropped));
        }
        special(config, name)
    }

    fn list_tensor(&self) -> Option<&'static str> {
        Some(draft::LIST)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let anchor = model.metadata().bool("dflash.sample_from_anchor")?;
        let exported = export(model, exported)?.set(ANCHOR, anchor);
        let exported = exported.unwritten(CONFIDENCE, has(model, "conf_proj.weight").into());
        let exported = exported.set_some(TOKENS, draft::list_shape(model));
        draft::export_list(model, exported)
    }
}

/// Whether a draft tells how sure it is.
pub(crate) fn survey_confidence(
    config: &mut Config,
    names: &mut dyn Iterator<Item = Cow<'_, str>>,
) {
    let is_of_it =
        |name: Cow<str>| name.contains("confidence_head.proj") || name.contains("confidence_proj.");
    let found = names.map(is_of_it).max().unwrap_or(false);
    config.set(CONFIDENCE, found);
}

/// How many tokens a draft guesses among.
fn guessed(config: &Config) -> Result<u32, Error> {
    match config.u32(&[TOKENS])?.filter(|&tokens| tokens > 0) {
        Some(tokens) => Ok(tokens),
        None => config.require_u32(&["vocab_size"], "the number of tokens"),
    }
}

/// The fields of the draft.
fn own(config: &Config) -> Config {
    config.part(OWN)
}

fn complete(config: &mut Config) -> Result<(), Error> {
    // `transformers` completes those of its own class.
    if config.json()["model_type"] == "qwen3" {
        config.default("head_dim", 128);
        config.default("num_key_value_heads", 32);
        config.default("rms_norm_eps", 1e-6);
        hparams::default_attention(config)?;
        if config.find(&[KINDS]).is_none() {
            let first = config.u32(&["max_window_layers"])?.unwrap_or(28);
            let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
            let windowed = config.bool("use_sliding_window")? == Some(true);
            let kind = |layer| match windowed && layer >= first {
                true => "sliding_attention",
                false => "full_attention",
            };
            config.set(KINDS, (0..blocks).map(kind).collect::<Vec<_>>());
        }
    }
    Ok(())
}

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let own = own(config);
    if let Some(rotated) = hparams::stated_rotated_dims(config)? {
        keys.set(key::ROPE_DIMENSION_COUNT, rotated);
    }
    keys.set_f32(key::ATTENTION_VALUE_SCALE, own.f32(&["attention_value_scale"])?);
    let block = own.u32(&[BLOCK])?.or(config.u32(&[BLOCK])?).unwrap_or(16);
    keys.set(BLOCK, block);
    if own.find(&[SECOND[0].1]).is_some() {
        for (key, field) in SECOND {
            keys.set(key, own.require_u32(&[field], "a size of the draft")?);
        }
    }
    let either = |field: &str| Ok::<_, Error>(own.f32(&[field])?.or(config.f32(&[field])?));
    keys.set_f32(key::LOGIT_SCALE, either("output_multiplier")?);
    let cap = either("final_logit_softcapping")?.filter(|&cap| cap > 0.0);
    keys.set_f32(key::FINAL_LOGIT_SOFTCAPPING, cap);
    keys.set_f32(key::EMBEDDING_SCALE, either("input_embedding_scale")?);
    let read = match own.u32s(READ)? {
        Some(read) => Some(read),
        None => config.u32s(READ)?,
    };
    if let Some(read) = read.filter(|read| !read.is_empty()) {
        let behind: Vec<i32> =
            read.into_iter().map(|layer| draft::signed(layer.saturating_add(1))).collect();
        keys.set(key::TARGET_LAYERS, Array::from(&behind[..]));
    }
    window(config, &own, keys)?;
    let is_causal = match config.bool("is_causal")? {
        Some(is_causal) => Some(is_causal),
        None => own.bool("causal")?,
    };
    if let Some(is_causal) = is_causal {
        keys.set(key::ATTENTION_CAUSAL, is_causal);
    }
    if turns_by_sections(&config.part(target::FIELD)) {
        // A draft counts tokens only.
        let half = draft::signed(hparams::head_dim(config)? / 2);
        keys.set(key::ROPE_DIMENSION_SECTIONS, Array::from(&[half, 0, 0, 0][..]));
    }
    Ok(())
}

fn window(config: &Config, own: &Config, keys: &mut Keys) -> Result<(), Error> {
    let all = own.bool("use_swa")? == Some(true);
    if !all && config.bool("use_sliding_window")? != Some(true) {
        return Ok(());
    }
    let own_length = own.u32(&["swa_window_size"])?.filter(|&length| length > 0);
    let Some(length) = own_length.or(config.u32(&["sliding_window"])?) else { return Ok(()) };
    let flags: Vec<bool> = match all {
        true => {
            let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
            vec![true; blocks as usize]
        }
        false => kinds(config),
    };
    keys.set(key::ATTENTION_SLIDING_WINDOW, length);
    keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&flags[..]));
    Ok(())
}

/// Which layers have a window.
fn kinds(config: &Config) -> Vec<bool> {
    let kinds = config.find(&[KINDS]).and_then(|(_, kinds)| kinds.as_array());
    kinds.into_iter().flatten().map(|kind| kind == "sliding_attention").collect()
}

/// Whether the target rotates by time, height and width.
fn turns_by_sections(target: &Config) -> bool {
    let rope = target.find(&["rope_parameters", "rope_scaling"]);
    rope.is_some_and(|(_, rope)| rope.get("mrope_section").is_some())
}

pub(crate) fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let bare = name.strip_prefix("model.").unwrap_or(name);
    if bare == "embed_tokens.weight" && config.bool(EMBEDDING)? == Some(false) {
        return Ok(Some(Mapping::Dropped));
    }
    let stem = bare.strip_suffix(".weight").unwrap_or(bare);
    let parameter = PARAMETERS
        .iter()
        .find_map(|(foreign, ours)| Some(tensor_names::filled(ours, &captures(foreign, stem)?)));
    let Some(ours) = parameter.or_else(|| renamed(bare, &[NAMES])) else {
        return turned(config, name);
    };
    Ok(Some(Mapping::one(ours, [])))
}

/// Queries, keys and their norms, where neighbours rotate against each other.
fn turned(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if config.bool(BY_HALVES)? != Some(false) {
        return Ok(None);
    }
    let Some(ours) = renamed(name, &[LLAMA_LIKE]) else { return Ok(None) };
    let heads = match () {
        () if ours.ends_with(".attn_q.weight") => hparams::head_count(config)?,
        () if ours.ends_with(".attn_k.weight") => hparams::head_count_kv(config)?,
        () if ours.ends_with("_q_norm.weight") || ours.ends_with("_k_norm.weight") => 1,
        () => return Ok(None),
    };
    Ok(Some(Mapping::one(ours, [Step::SeparatePairs { heads: heads.into() }])))
}

fn export(model: &Model, mut exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    // Of Gemma's drafts there is no way back.
    if metadata.get("dflash.hidden_activation").is_some() {
        return None;
    }
    for pattern in &mut exported.patterns {
        if let Some(bare) = pattern.strip_prefix("model.") {
            *pattern = bare.to_owned();
        }
    }
    let mut own = json!({BLOCK: count(model, BLOCK)});
    if let Some(read) = draft::numbers(model, key::TARGET_LAYERS) {
        own[READ] = read.iter().map(|layer| layer - 1).collect();
    }
    for (key, field) in SECOND {
        if let Some(number) = count(model, key) {
            own[field] = number.into();
        }
    }
    for (key, field) in [
        ("attention.value_scale", "attention_value_scale"),
        ("logit_scale", "output_multiplier"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("embedding_scale", "input_embedding_scale"),
    ] {
        if let Some(number) = number(model, key) {
            own[field] = number.into();
        }
    }
    if let Some(token) = metadata.u64("tokenizer.ggml.mask_token_id") {
        own[MASK] = token.into();
    }
    let mut exported = exported
        .patterns(PARAMETERS.map(|(name, _)| name))
        .without(&[key::ATTENTION_SLIDING_WINDOW])
        .set_some("is_causal", metadata.bool("dflash.attention.causal"))
        .set_some("partial_rotary_factor", export::rotated_share(model));
    if let Some(length) = count(model, key::ATTENTION_SLIDING_WINDOW) {
        exported = exported.set("sliding_window", length).set("use_sliding_window", true);
        exported = sliding_window::export_of_pattern(model, exported);
    }
    if metadata.get("dflash.rope.dimension_sections").is_some() {
        let target = json!({"rope_parameters": {"mrope_section": []}});
        exported = exported.unwritten(target::FIELD, target);
    }
    Some(exported.set(OWN, own))
}
