//! PLaMo: the first, with fewer heads of keys; the second, with state spaces in most layers; the third,
//! with windows.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, VocabularyKind, export, hparams};
use crate::schema::key;

pub(crate) const ENDS: Table =
    &[("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")];

const NAMES: Table = &[
    ("model.layers.layers.{}.norm", "blk.{}.attn_norm"),
    ("model.layers.layers.{}.self_attn.q_proj", "blk.{}.attn_q"),
    ("model.layers.layers.{}.self_attn.k_proj", "blk.{}.attn_k"),
    ("model.layers.layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    ("model.layers.layers.{}.self_attn.o_proj", "blk.{}.attn_output"),
    ("model.layers.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"),
    ("model.layers.layers.{}.mlp.up_proj", "blk.{}.ffn_up"),
    ("model.layers.layers.{}.mlp.down_proj", "blk.{}.ffn_down"),
];

pub(crate) struct Plamo;

/// Description of [`Plamo`].
pub(crate) static PLAMO: Description = Description {
    classes: &["PlamoForCausalLM"],
    architecture: "plamo",
    model_type: "plamo",
    vocabulary: VocabularyKind::SentencePiece,
    tensor_names: &[ENDS, NAMES],
    ..Description::DECODER
};

impl Converter for Plamo {
    fn description(&self) -> &'static Description {
        &PLAMO
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        /// No configuration says it.
        const CONTEXT: u32 = 4096;
        let [heads, kv] = heads(config)?;
        keys.set(key::CONTEXT_LENGTH, CONTEXT);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, kv);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    // Heads are stored for one share of all heads of keys after the other; programs have those of one head
    // of keys together.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let [heads, kv] = heads(config)?;
        let len = u64::from(hparams::width(config)? / heads.max(1));
        let (outer, inner) = (u64::from(heads / kv), u64::from(kv));
        Ok(if name.ends_with(".attn_q.weight") {
            vec![Step::Exchange { groups: 1, start: 0, outer, inner, len }]
        } else if name.ends_with(".attn_output.weight") {
            vec![Step::ExchangeColumns { outer, inner, len }]
        } else {
            Vec::new()
        })
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let (heads, kv) = (count(model, key::ATTENTION_HEAD_COUNT)?, export::head_count_kv(model)?);
        let exported = exported.without(&[key::CONTEXT_LENGTH, key::ATTENTION_HEAD_COUNT_KV]);
        Some(exported.set("num_key_value_heads", heads).set(SHARED[0], heads.checked_div(kv)?))
    }
}

/// Heads that share one of keys; what the configuration calls heads of keys are all.
const SHARED: &[&str] = &["n_shared_head"];

pub(crate) fn heads(config: &Config) -> Result<[u32; 2], Error> {
    let heads = hparams::head_count(config)?;
    let shared = config.u32(SHARED)?.unwrap_or(8);
    match heads.checked_div(shared) {
        Some(kv) if kv > 0 && kv * shared == heads => Ok([heads, kv]),
        _ => Err(hparams::not_computed(config, SHARED[0], shared)),
    }
}

pub(crate) fn epsilon(config: &Config) -> Result<f32, Error> {
    config.require_f32(&["rms_norm_eps"], "what the norms add before they divide")
}

pub(crate) fn size(config: &Config, field: &str) -> Result<u32, Error> {
    config.require_u32(&[field], "a size of the model")
}

/// The width of the state space.
pub(crate) fn inner(config: &Config) -> Result<u32, Error> {
    Ok(size(config, "mamba_num_heads")?.saturating_mul(size(config, "hidden_size_per_head")?))
}
