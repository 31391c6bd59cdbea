//! Conversion of Refact: keys and values, and gate and up projection are split; the FFN width
//! follows from the embedding length.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::moe::halves;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, MappedTensor, Mapping, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("lm_head", "output"),
    ("transformer.ln_f", "output_norm"),
    ("transformer.h.{}.ln_1", "blk.{}.attn_norm"),
    ("transformer.h.{}.attn.q", "blk.{}.attn_q"),
    ("transformer.h.{}.attn.c_proj", "blk.{}.attn_output"),
    ("transformer.h.{}.ln_2", "blk.{}.ffn_norm"),
    ("transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down"),
];

const KEYS_AND_VALUES: &str = "transformer.h.{}.attn.kv.weight";

const GATE_AND_UP: &str = "transformer.h.{}.mlp.gate_up_proj.weight";

pub(crate) struct Refact;

/// Description of [`Refact`].
pub(crate) static REFACT: Description = Description {
    classes: &["GPTRefactForCausalLM"],
    architecture: "refact",
    model_type: "gpt_refact",
    pre_tokenizers: &["refact"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "n_layer"),
        (key::CONTEXT_LENGTH, "n_positions"),
        (key::EMBEDDING_LENGTH, "n_embd"),
        (key::ATTENTION_HEAD_COUNT, "n_head"),
        (key::ATTENTION_LAYER_NORM_RMS_EPSILON, "layer_norm_epsilon"),
    ],
    required_flags: &[("multi_query", true)],
    ..Description::DECODER
};

impl Converter for Refact {
    fn description(&self) -> &'static Description {
        &REFACT
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("layer_norm_epsilon", 1e-5);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, ffn_width(config)?);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, 1u32);
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        if let Some(&[block]) = captures(KEYS_AND_VALUES, name).as_deref() {
            let len = u64::from(hparams::head_dim(config)?);
            let half = |part: &str, start| MappedTensor {
                name: format!("blk.{block}.{part}.weight"),
                steps: vec![Step::Pick { groups: 1, start, len }],
                slot: None,
            };
            return Ok(Some(Mapping::Tensors(vec![half("attn_k", 0), half("attn_v", len)])));
        }
        let found = captures(GATE_AND_UP, name);
        let Some(&[block]) = found.as_deref() else { return Ok(None) };
        let names = ["gate", "up"].map(|part| format!("blk.{block}.ffn_{part}"));
        Ok(Some(halves(names, 1, ffn_width(config)?)))
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        let computed = &["feed_forward_length", "attention.head_count_kv"];
        let patterns = [KEYS_AND_VALUES, GATE_AND_UP];
        Some(exported.patterns(patterns).without(computed).set("multi_query", true))
    }
}

/// Returns the FFN width: 8/3 of the embedding length, rounded up to a multiple of 256.
fn ffn_width(config: &Config) -> Result<u32, Error> {
    const MULTIPLE: u64 = 256;
    let width = u64::from(hparams::width(config)?) * 8 / 3;
    Ok(width.next_multiple_of(MULTIPLE).try_into().unwrap_or(u32::MAX))
}
