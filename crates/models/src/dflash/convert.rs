//! Conversion of DFlash and DSpark drafts with the layers of Qwen 3. Fields of the draft stand in
//! `dflash_config` or at the top of config.json; the vocabulary and missing embeddings are those of
//! the target. Target layer numbers are written 1 higher: the hidden state after the layer.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::json;

use crate::convert::export::{count, has, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table, captures, renamed};
use crate::convert::{
    Converter, Description, Draft, Exported, Mapping, Values, defaults, draft, export, hparams,
    rope, sliding_window, target, tensor_names,
};
use crate::schema::key;

/// Names without the prefix `model.`, which some checkpoints lack.
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

/// Checkpoint names without a suffix, and GGUF names.
const PARAMETERS: [(&str, &str); 6] = [
    ("candidate_selector.predecessor_codebook", "selector_predecessor.weight"),
    ("candidate_selector.successor_codebook", "selector_successor.weight"),
    ("layers.{}.self_attn.sinks", "blk.{}.attn_sinks.weight"),
    ("layers.{}.self_attn.attention_sink_bias", "blk.{}.attn_sinks.weight"),
    ("layers.{}.attention_conv.base_kernel", "blk.{}.attn_conv_base"),
    ("layers.{}.mlp_conv.base_kernel", "blk.{}.ffn_conv_base"),
];

/// Object in config.json with the fields of the draft; some checkpoints have them at the top.
pub(crate) const DFLASH_CONFIG: &str = "dflash_config";

const TARGET_LAYER_IDS: &str = "target_layer_ids";

const BLOCK_SIZE: &str = "block_size";

const MASK_TOKEN_ID: &str = "mask_token_id";

const SAMPLE_FROM_ANCHOR: &str = "sample_from_anchor";

const DRAFT_VOCAB_SIZE: &str = "draft_vocab_size";

const HAS_EMBED_TOKENS: &str = "has_embed_tokens";

const ROPE_IS_NEOX_STYLE: &str = "rope_is_neox_style";

const LAYER_TYPES: &str = "layer_types";

/// Field set from the tensor names.
pub(crate) const HAS_CONFIDENCE_HEAD: &str = "has_confidence_head";

/// Keys and fields of DFlash 2.
const DFLASH2_FIELDS: [(&str, &str); 4] = [
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
        if let Some(token) = dflash_config(config).u32(&[MASK_TOKEN_ID])? {
            keys.set_unprefixed(key::TOKENIZER_GGML_MASK_TOKEN_ID, token);
        }
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        map_draft_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        // Other converters export DSpark and drafts of DeepSeek V4.
        const OTHER_DRAFTS: [&str; 2] =
            ["dflash.sample_from_anchor", "dflash.hyper_connection.count"];
        let is_dflash = OTHER_DRAFTS.iter().all(|key| model.metadata().get(key).is_none());
        is_dflash.then(|| export(model, exported))?
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

    // Both forms of the configuration are brought to the fields of DFlash.
    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        const AUX_LAYER_IDS: &str = "aux_hidden_state_layer_ids";
        const MARKOV_HEAD_TYPE: &str = "markov_head_type";
        let (nested, aux_layers) = (draft::is_nested(config), config.u32s(AUX_LAYER_IDS)?);
        config.default(SAMPLE_FROM_ANCHOR, !nested && aux_layers.is_none());
        draft::flatten(config);
        if let Some((_, layer_type)) =
            config.find(&[MARKOV_HEAD_TYPE]).filter(|(_, layer_type)| *layer_type != "vanilla")
        {
            return Err(hparams::not_computed(config, MARKOV_HEAD_TYPE, layer_type));
        }
        let mask = config.u32(&[MASK_TOKEN_ID])?;
        let target_layers = match aux_layers {
            Some(layers) => Some(layers.iter().map(|layer| layer.saturating_sub(1)).collect()),
            None => config.u32s(TARGET_LAYER_IDS)?,
        };
        config
            .default(DFLASH_CONFIG, json!({MASK_TOKEN_ID: mask, TARGET_LAYER_IDS: target_layers}));
        complete(config)
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        infer_confidence_head(config, names)
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let tokens = config.require_u32(&["vocab_size"], "the vocabulary size of the target")?;
        let draft_vocab_size = draft_vocab_size(config)?;
        if draft_vocab_size > tokens {
            let what = format!("{draft_vocab_size}, but the target has {tokens} tokens");
            return Err(hparams::not_computed(config, DRAFT_VOCAB_SIZE, what));
        }
        draft::read_list(
            config,
            values,
            tokens,
            Some(draft_vocab_size).filter(|&size| size < tokens),
        )
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self::keys(config, keys)?;
        keys.set(SAMPLE_FROM_ANCHOR, config.bool(SAMPLE_FROM_ANCHOR)?.unwrap_or(true));
        keys.set(HAS_CONFIDENCE_HEAD, config.bool(HAS_CONFIDENCE_HEAD)?.unwrap_or(false));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if draft::is_no_weight(name) {
            return Ok(Some(Mapping::Dropped));
        }
        // Runtimes use the output projection of the target.
        let tokens = config.u32(&["vocab_size"])?;
        if name.ends_with("lm_head.weight") && tokens == Some(draft_vocab_size(config)?) {
            return Ok(Some(Mapping::Dropped));
        }
        map_draft_tensor(config, name)
    }

    fn list_tensor(&self) -> Option<&'static str> {
        Some(draft::LIST)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let anchor = model.metadata().bool("dflash.sample_from_anchor")?;
        let exported = export(model, exported)?.set(SAMPLE_FROM_ANCHOR, anchor);
        let exported =
            exported.unwritten(HAS_CONFIDENCE_HEAD, has(model, "conf_proj.weight").into());
        let exported = exported.set_some(DRAFT_VOCAB_SIZE, draft::list_shape(model));
        draft::export_list(model, exported)
    }
}

/// Sets whether a draft has a confidence head.
pub(crate) fn infer_confidence_head(
    config: &mut Config,
    names: &mut dyn Iterator<Item = Cow<'_, str>>,
) {
    let is_confidence_head =
        |name: Cow<str>| name.contains("confidence_head.proj") || name.contains("confidence_proj.");
    let has_head = names.map(is_confidence_head).max().unwrap_or(false);
    config.set(HAS_CONFIDENCE_HEAD, has_head);
}

/// Returns the vocabulary size of the draft.
fn draft_vocab_size(config: &Config) -> Result<u32, Error> {
    match config.u32(&[DRAFT_VOCAB_SIZE])?.filter(|&tokens| tokens > 0) {
        Some(tokens) => Ok(tokens),
        None => config.require_u32(&["vocab_size"], "the vocabulary size"),
    }
}

/// Returns the fields of the draft.
fn dflash_config(config: &Config) -> Config {
    config.part(DFLASH_CONFIG)
}

fn complete(config: &mut Config) -> Result<(), Error> {
    // Defaults of the class in `transformers`.
    if config.json()["model_type"] == "qwen3" {
        config.default("head_dim", 128);
        config.default("num_key_value_heads", 32);
        config.default("rms_norm_eps", 1e-6);
        defaults::attention(config)?;
        if config.find(&[LAYER_TYPES]).is_none() {
            let first = config.u32(&["max_window_layers"])?.unwrap_or(28);
            let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
            let use_sliding_window = config.bool("use_sliding_window")? == Some(true);
            let layer_type = |layer| match use_sliding_window && layer >= first {
                true => "sliding_attention",
                false => "full_attention",
            };
            config.set(LAYER_TYPES, (0..blocks).map(layer_type).collect::<Vec<_>>());
        }
    }
    Ok(())
}

pub(crate) fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let dflash_config = dflash_config(config);
    if let Some(rotary_dims) = rope::stated_rotated_dims(config)? {
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
    }
    keys.set_f32(key::ATTENTION_VALUE_SCALE, dflash_config.f32(&["attention_value_scale"])?);
    let block = dflash_config.u32(&[BLOCK_SIZE])?.or(config.u32(&[BLOCK_SIZE])?).unwrap_or(16);
    keys.set(BLOCK_SIZE, block);
    if dflash_config.find(&[DFLASH2_FIELDS[0].1]).is_some() {
        for (key, field) in DFLASH2_FIELDS {
            keys.set(key, dflash_config.require_u32(&[field], "a size of the draft")?);
        }
    }
    let either =
        |field: &str| Ok::<_, Error>(dflash_config.f32(&[field])?.or(config.f32(&[field])?));
    keys.set_f32(key::LOGIT_SCALE, either("output_multiplier")?);
    let cap = either("final_logit_softcapping")?.filter(|&cap| cap > 0.0);
    keys.set_f32(key::FINAL_LOGIT_SOFTCAPPING, cap);
    keys.set_f32(key::EMBEDDING_SCALE, either("input_embedding_scale")?);
    let target_layers = match dflash_config.u32s(TARGET_LAYER_IDS)? {
        Some(target_layers) => Some(target_layers),
        None => config.u32s(TARGET_LAYER_IDS)?,
    };
    if let Some(target_layers) = target_layers.filter(|target_layers| !target_layers.is_empty()) {
        let aux_layers: Vec<i32> =
            target_layers.into_iter().map(|layer| draft::signed(layer.saturating_add(1))).collect();
        keys.set(key::TARGET_LAYERS, Array::from(&aux_layers[..]));
    }
    sliding_window_keys(config, &dflash_config, keys)?;
    let is_causal = match config.bool("is_causal")? {
        Some(is_causal) => Some(is_causal),
        None => dflash_config.bool("causal")?,
    };
    if let Some(is_causal) = is_causal {
        keys.set(key::ATTENTION_CAUSAL, is_causal);
    }
    if has_mrope(&config.part(target::FIELD)) {
        // A draft has text positions only.
        let half = draft::signed(hparams::head_dim(config)? / 2);
        keys.set(key::ROPE_DIMENSION_SECTIONS, Array::from(&[half, 0, 0, 0][..]));
    }
    Ok(())
}

fn sliding_window_keys(
    config: &Config,
    dflash_config: &Config,
    keys: &mut Keys,
) -> Result<(), Error> {
    let use_swa = dflash_config.bool("use_swa")? == Some(true);
    if !use_swa && config.bool("use_sliding_window")? != Some(true) {
        return Ok(());
    }
    let own_length = dflash_config.u32(&["swa_window_size"])?.filter(|&length| length > 0);
    let Some(length) = own_length.or(config.u32(&["sliding_window"])?) else { return Ok(()) };
    let flags: Vec<bool> = match use_swa {
        true => {
            let blocks = hparams::possible(config, "layers", hparams::block_count(config)?)?;
            vec![true; blocks as usize]
        }
        false => sliding_layers(config),
    };
    keys.set(key::ATTENTION_SLIDING_WINDOW, length);
    keys.set(key::ATTENTION_SLIDING_WINDOW_PATTERN, Array::from(&flags[..]));
    Ok(())
}

/// Returns which layers have a sliding window.
fn sliding_layers(config: &Config) -> Vec<bool> {
    let sliding_layers =
        config.find(&[LAYER_TYPES]).and_then(|(_, sliding_layers)| sliding_layers.as_array());
    sliding_layers
        .into_iter()
        .flatten()
        .map(|layer_type| layer_type == "sliding_attention")
        .collect()
}

/// Returns whether the target has M-RoPE.
fn has_mrope(target: &Config) -> bool {
    let rope = target.find(&["rope_parameters", "rope_scaling"]);
    rope.is_some_and(|(_, rope)| rope.get("mrope_section").is_some())
}

pub(crate) fn map_draft_tensor(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let bare = name.strip_prefix("model.").unwrap_or(name);
    if bare == "embed_tokens.weight" && config.bool(HAS_EMBED_TOKENS)? == Some(false) {
        return Ok(Some(Mapping::Dropped));
    }
    let stem = bare.strip_suffix(".weight").unwrap_or(bare);
    let parameter = PARAMETERS.iter().find_map(|(hf_name, gguf_name)| {
        Some(tensor_names::filled(gguf_name, &captures(hf_name, stem)?))
    });
    let Some(gguf_name) = parameter.or_else(|| renamed(bare, &[NAMES])) else {
        return map_permuted_qk(config, name);
    };
    Ok(Some(Mapping::one(gguf_name, [])))
}

/// Maps query, key and their norms with rows permuted from the interleaved to the NeoX layout.
fn map_permuted_qk(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if config.bool(ROPE_IS_NEOX_STYLE)? != Some(false) {
        return Ok(None);
    }
    let Some(gguf_name) = renamed(name, &[LLAMA_LIKE]) else { return Ok(None) };
    let heads = match () {
        () if gguf_name.ends_with(".attn_q.weight") => hparams::head_count(config)?,
        () if gguf_name.ends_with(".attn_k.weight") => hparams::head_count_kv(config)?,
        () if gguf_name.ends_with("_q_norm.weight") || gguf_name.ends_with("_k_norm.weight") => 1,
        () => return Ok(None),
    };
    Ok(Some(Mapping::one(gguf_name, [Step::SeparatePairs { heads: heads.into() }])))
}

fn export(model: &Model, mut exported: Exported) -> Option<Exported> {
    let metadata = model.metadata();
    // Drafts of Gemma 4 cannot be exported.
    if metadata.get("dflash.hidden_activation").is_some() {
        return None;
    }
    for pattern in &mut exported.patterns {
        if let Some(bare) = pattern.strip_prefix("model.") {
            *pattern = bare.to_owned();
        }
    }
    let mut dflash_config = json!({BLOCK_SIZE: count(model, BLOCK_SIZE)});
    if let Some(target_layers) = draft::numbers(model, key::TARGET_LAYERS) {
        dflash_config[TARGET_LAYER_IDS] = target_layers.iter().map(|layer| layer - 1).collect();
    }
    for (key, field) in DFLASH2_FIELDS {
        if let Some(number) = count(model, key) {
            dflash_config[field] = number.into();
        }
    }
    for (key, field) in [
        ("attention.value_scale", "attention_value_scale"),
        ("logit_scale", "output_multiplier"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("embedding_scale", "input_embedding_scale"),
    ] {
        if let Some(number) = number(model, key) {
            dflash_config[field] = number.into();
        }
    }
    if let Some(token) = metadata.u64(key::TOKENIZER_GGML_MASK_TOKEN_ID) {
        dflash_config[MASK_TOKEN_ID] = token.into();
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
    Some(exported.set(DFLASH_CONFIG, dflash_config))
}
