//! Conversion of PLaMo-13B. Checkpoints interleave the query heads of different KV heads; GGUF has
//! the query heads of one KV head side by side.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, VocabularyKind, export, hparams};
use crate::schema::key;

/// Names of the embedding, the output norm and the output matrix.
pub(crate) const EMBEDDING_AND_OUTPUT: Table =
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
    tensor_names: &[EMBEDDING_AND_OUTPUT, NAMES],
    ..Description::DECODER
};

impl Converter for Plamo {
    fn description(&self) -> &'static Description {
        &PLAMO
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        /// Context length, for which config.json has no field.
        const CONTEXT_LENGTH: u32 = 4096;
        let [heads, kv] = head_counts(config)?;
        keys.set(key::CONTEXT_LENGTH, CONTEXT_LENGTH);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, hparams::feed_forward(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, kv);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    // Query head i of a checkpoint belongs to KV head `i % kv`; that of a GGUF file to KV head `i / (heads / kv)`.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        let [heads, kv] = head_counts(config)?;
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
        Some(
            exported
                .set("num_key_value_heads", heads)
                .set(QUERIES_PER_KV_HEAD[0], heads.checked_div(kv)?),
        )
    }
}

/// Number of query heads that share a KV head. `num_key_value_heads` of config.json is the number of query heads.
const QUERIES_PER_KV_HEAD: &[&str] = &["n_shared_head"];

/// Returns the numbers of query heads and KV heads.
fn head_counts(config: &Config) -> Result<[u32; 2], Error> {
    let heads = hparams::head_count(config)?;
    let shared = config.u32(QUERIES_PER_KV_HEAD)?.unwrap_or(8);
    match heads.checked_div(shared) {
        Some(kv) if kv > 0 && kv * shared == heads => Ok([heads, kv]),
        _ => Err(hparams::not_computed(config, QUERIES_PER_KV_HEAD[0], shared)),
    }
}

/// Returns the epsilon of the norms.
pub(crate) fn epsilon(config: &Config) -> Result<f32, Error> {
    config.require_f32(&["rms_norm_eps"], "epsilon of the norms")
}
