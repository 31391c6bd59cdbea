//! MiniMax Text 01 and M1: most layers attend linearly, all have experts.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, number};
use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, Values, VocabularyKind, hparams};
use crate::llama::convert::{EXPERT_NAMES, experts_of_mixtral, patterns_of_mixtral};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.self_attn.output_gate", "blk.{}.attn_gate"),
    ("model.layers.{}.self_attn.norm", "blk.{}.attn_norm_2"),
    ("model.layers.{}.self_attn.out_proj", "blk.{}.attn_output"),
];

const KINDS: &str = "attn_type_list";

/// Of so many layers the last is not linear: what programs know.
const PERIOD: u64 = 8;

/// By how much a layer's input counts beside what the layer adds.
const ALPHAS: [&str; 3] =
    ["layernorm_full_attention_alpha", "layernorm_linear_attention_alpha", "layernorm_mlp_alpha"];

const BETAS: [&str; 3] =
    ["layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta"];

/// Set by the rows of the embedding.
const NEVER_DRAWN: &str = "suppress_tokens";

const NEVER_DRAWN_KEY: &str = "tokenizer.ggml.suppress_tokens";

const EMBEDDING: &str = "model.embed_tokens.weight";

pub(crate) struct Minimax01;

/// Description of [`Minimax01`].
pub(crate) static MINIMAX01: Description = Description {
    classes: &["MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"],
    architecture: "minimax-01",
    model_type: "minimax_text_01",
    vocabulary: VocabularyKind::BpeWithTemplateFile,
    pre_tokenizers: &["gpt-4o", "llama-bpe"],
    tensor_names: &[NAMES, EXPERT_NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::EXPERT_COUNT, "num_local_experts"),
        (key::ROPE_DIMENSION_COUNT, "rotary_dim"),
        (key::RESIDUAL_SCALE, ALPHAS[0]),
    ],
    ..Description::DECODER
};

impl Converter for Minimax01 {
    fn description(&self) -> &'static Description {
        &MINIMAX01
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        let kinds = config.u32s(KINDS)?.unwrap_or_default();
        let usual = |(layer, kind): (u64, &u32)| u32::from(is_full(layer)) == *kind;
        match (0..).zip(&kinds).all(usual) {
            true => Ok(()),
            false => Err(hparams::not_computed(config, KINDS, Value::from(kinds))),
        }
    }

    // Tokens that are in the embedding only to fill it have rows of zeros, and must never be drawn.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let tokenizer = config.file("tokenizer.json")?.unwrap_or_default();
        let Some(tokens) =
            tokenizer["model"]["vocab"].as_object().map(|tokens| tokens.len() as u64)
        else {
            return Ok(());
        };
        let ids = values.rows_of_zeros(EMBEDDING, tokens, "the embedding")?;
        config.set(NEVER_DRAWN, ids);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let ids = config.u32s(NEVER_DRAWN)?.unwrap_or_default();
        if !ids.is_empty() {
            let ids: Vec<i32> =
                ids.into_iter().map(|id| id.try_into().unwrap_or(i32::MAX)).collect();
            keys.before_vocabulary(NEVER_DRAWN_KEY, Array::from(&ids[..]));
        }
        let alpha = config.require_f64(&[ALPHAS[0]], "by how much a layer's input counts")?;
        for (fields, expected) in [(ALPHAS, alpha), (BETAS, 1.0)] {
            for field in fields {
                let stated =
                    config.require_f64(&[field], "by how much a part of a layer counts")?;
                if stated != expected {
                    return Err(hparams::not_computed(config, field, stated));
                }
            }
        }
        keys.set(key::RESIDUAL_SCALE, alpha as f32);
        let rotated = config.require_u32(&["rotary_dim"], "how much of a head rotates")?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotated);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // What the other layers call `o_proj`.
        let numbered = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        if let Some((layer, "self_attn.out_proj.weight")) = numbered
            && layer.parse::<u64>().is_ok_and(is_full)
        {
            return Ok(Some(Mapping::Unknown));
        }
        experts_of_mixtral(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let kinds = (0..blocks).map(|layer| u32::from(is_full(layer)));
        let alpha = number(model, key::RESIDUAL_SCALE)?;
        let mut exported =
            exported.patterns(patterns_of_mixtral()).set(KINDS, kinds.collect::<Vec<_>>());
        for field in ALPHAS {
            exported = exported.set(field, alpha);
        }
        for field in BETAS {
            exported = exported.set(field, 1.0);
        }
        if let Some(ids) = model.metadata().array(NEVER_DRAWN_KEY) {
            let ids: Vec<u64> = ids.iter().filter_map(|id| id.to_u64()).collect();
            exported = exported.unwritten(NEVER_DRAWN, ids.into());
        }
        Some(exported)
    }
}

/// Whether this layer is not linear.
const fn is_full(layer: u64) -> bool {
    layer % PERIOD == PERIOD - 1
}
