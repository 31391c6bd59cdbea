//! Muse Glimmer: heads of queries and keys are normalized without weights, queries by a factor; and its draft.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Function, Step};
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, captures, renamed};
use super::{Draft, Exported, Family, Mapping, dflash, drafts, gemma, windows};
use crate::vocab;

const NAMES: Table = &[("model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate")];
const QUERIES: &str = "model.layers.{}.self_attn.q_proj.weight";
const SCALE: &str = "qk_scale_factor";
const KINDS: &str = "layer_types";

pub(super) static MUSE_GLIMMER: Family = Family {
    classes: &["MuseGlimmerForConditionalGeneration"],
    architecture: "muse-glimmer",
    model_type: "muse_glimmer",
    vocabulary: vocab::Kind::BpeWithTurnEnd("<|eot|>"),
    pre_tokenizers: &["llama-bpe"],
    names: &[NAMES, gemma::NORMS, LLAMA_LIKE],
    fields: &[
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("logit_scale", "output_multiplier"),
    ],
    keys,
    special,
    steps: |config, name| {
        let ends = [".attn_norm", ".post_attention_norm", ".ffn_norm", ".post_ffw_norm"];
        match ends.iter().any(|end| name.ends_with(&format!("{end}.weight"))) {
            true => Ok(vec![Step::Map(Function::PlusOne)]),
            false => hyper::llama_order(config, name),
        }
    },
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    let cap = config.require_f32(&["final_logit_softcapping"], "the bound of the logits")?;
    keys.set("final_logit_softcapping", cap);
    let scale = config.require_f32(&["output_multiplier"], "the factor of the logits")?;
    keys.set("logit_scale", scale);
    let window = config.require_u32(&["sliding_window"], "the length of the window")?;
    keys.set("attention.sliding_window", window);
    keys.set("attention.sliding_window_pattern", Array::from(&windowed(config)?[..]));
    Ok(())
}

/// Which layers have a window.
fn windowed(config: &Config) -> Result<Vec<bool>, Error> {
    let (_, kinds) =
        config.find(&[KINDS]).ok_or_else(|| config.missing(KINDS, "what each layer is"))?;
    let kinds = kinds.as_array().into_iter().flatten();
    Ok(kinds.map(|kind| kind == "sliding_attention").collect())
}

/// What programs multiply normalized heads by stands in front of queries.
fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let Some(&[block]) = captures(QUERIES, name).as_deref() else { return Ok(None) };
    let width = config.require_u32(&["head_dim"], "the width of a head")?;
    let width = hyper::possible(config, "dimensions of a head", width)? as usize;
    let scale = config.require_f32(&[SCALE], "the factor of normalized queries")?;
    let norms = [("attn_q_norm", scale), ("attn_k_norm", 1.0)];
    let norms = norms.map(|(part, x)| (format!("blk.{block}.{part}.weight"), vec![x; width]));
    let ours = format!("blk.{block}.attn_q.weight");
    let steps = hyper::llama_order(config, &ours)?;
    match Mapping::one(ours, steps) {
        Mapping::Made(made) => Ok(Some(Mapping::Behind(norms.into(), made))),
        other => Ok(Some(other)),
    }
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let norm = model.tensors().iter().find(|t| &*t.info.name == "blk.0.attn_q_norm.weight")?;
    let mut first = [0; 4];
    norm.read_at(&mut first, 0).ok()?;
    let exported = exported.set(SCALE, f32::from_le_bytes(first));
    Some(windows::export_of_pattern(model, exported))
}

/// Its draft, which reads as DFlash does.
pub(super) static ASSISTANT: Family = Family {
    classes: &["MuseGlimmerAssistantModel"],
    architecture: "dflash",
    model_type: "muse_glimmer_assistant",
    names: &[dflash::NAMES, LLAMA_LIKE],
    draft: Some(Draft::OfTarget),
    keys: assistant_keys,
    last_keys: |config, keys| {
        if let Some(token) = config.u32(&["mask_token_id"])? {
            keys.set_whole("tokenizer.ggml.mask_token_id", token);
        }
        Ok(())
    },
    special: |_, name| {
        let bare = name.strip_prefix("model.").unwrap_or(name);
        Ok(renamed(bare, &[dflash::NAMES]).map(|ours| Mapping::one(ours, [])))
    },
    // It comes back as the draft that it is like.
    export: |_, _| None,
    ..Family::DEFAULT
};

fn assistant_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set("block_size", config.require_u32(&["block_size"], "tokens that are guessed at once")?);
    const READ: &str = "target_layer_ids";
    let read = config.u32s(READ)?;
    let read = read.ok_or_else(|| config.missing(READ, "layers of the target that are read"))?;
    let behind: Vec<i32> =
        read.into_iter().map(|layer| drafts::signed(layer.saturating_add(1))).collect();
    keys.set("target_layers", Array::from(&behind[..]));
    let window = config.u32(&["sliding_window"])?.filter(|&window| window > 0);
    if let Some(window) = window.filter(|_| config.find(&[KINDS]).is_some()) {
        keys.set("attention.sliding_window", window);
        keys.set("attention.sliding_window_pattern", Array::from(&windowed(config)?[..]));
    }
    Ok(())
}
