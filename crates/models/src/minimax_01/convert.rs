//! Conversion of MiniMax-Text-01 and MiniMax-M1. Kinds of layers and equal alphas are required,
//! since runtimes know only these. Tokens with an embedding of zeros are listed as suppressed
//! tokens.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::export::{count, number};
use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, Mapping, Values, VocabularyKind, hparams};
use crate::llama::convert::{ROUTER_NAMES, map_mixtral_expert, mixtral_expert_patterns};
use crate::schema::key;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.qkv_proj", "blk.{}.attn_qkv"),
    ("model.layers.{}.self_attn.output_gate", "blk.{}.attn_gate"),
    ("model.layers.{}.self_attn.norm", "blk.{}.attn_norm_2"),
    ("model.layers.{}.self_attn.out_proj", "blk.{}.attn_output"),
];

/// Field with the attention kind of each layer, 1 for full attention.
const ATTENTION_TYPES: &str = "attn_type_list";

/// The last of this many layers has full attention; runtimes know only this pattern.
const FULL_ATTENTION_INTERVAL: u64 = 8;

/// Fields with the multiplier of the residual stream.
const ALPHAS: [&str; 3] =
    ["layernorm_full_attention_alpha", "layernorm_linear_attention_alpha", "layernorm_mlp_alpha"];

/// Fields with the multiplier of the block output.
const BETAS: [&str; 3] =
    ["layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta"];

/// Field for the suppressed tokens, set by [`Minimax01::infer_from_values`].
const SUPPRESSED_TOKENS: &str = "suppress_tokens";

/// Token embedding.
const EMBEDDING: &str = "model.embed_tokens.weight";

pub(crate) struct Minimax01;

/// Description of [`Minimax01`].
pub(crate) static MINIMAX01: Description = Description {
    classes: &["MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM"],
    architecture: "minimax-01",
    model_type: "minimax_text_01",
    vocabulary: VocabularyKind::BpeWithTemplateFile,
    pre_tokenizers: &["gpt-4o", "llama-bpe"],
    tensor_names: &[NAMES, ROUTER_NAMES, LLAMA_LIKE],
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
        let kinds = config.u32s(ATTENTION_TYPES)?.unwrap_or_default();
        let is_known = |(layer, kind): (u64, &u32)| u32::from(is_full(layer)) == *kind;
        match (0..).zip(&kinds).all(is_known) {
            true => Ok(()),
            false => Err(hparams::not_computed(config, ATTENTION_TYPES, Value::from(kinds))),
        }
    }

    // Rows of zeros pad the embedding; their tokens must not be sampled.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let tokenizer = config.file("tokenizer.json")?.unwrap_or_default();
        let Some(tokens) =
            tokenizer["model"]["vocab"].as_object().map(|tokens| tokens.len() as u64)
        else {
            return Ok(());
        };
        let ids = values.rows_of_zeros(EMBEDDING, tokens, "the embedding")?;
        config.set(SUPPRESSED_TOKENS, ids);
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        let ids = config.u32s(SUPPRESSED_TOKENS)?.unwrap_or_default();
        if !ids.is_empty() {
            let ids: Vec<i32> =
                ids.into_iter().map(|id| id.try_into().unwrap_or(i32::MAX)).collect();
            keys.set_unprefixed(key::TOKENIZER_GGML_SUPPRESS_TOKENS, Array::from(&ids[..]));
        }
        let alpha = config.require_f64(&[ALPHAS[0]], "the multiplier of the residual stream")?;
        for (fields, expected) in [(ALPHAS, alpha), (BETAS, 1.0)] {
            for field in fields {
                let stated = config.require_f64(
                    &[field],
                    "a multiplier of the residual stream or of a block output",
                )?;
                if stated != expected {
                    return Err(hparams::not_computed(config, field, stated));
                }
            }
        }
        keys.set(key::RESIDUAL_SCALE, alpha as f32);
        let rotary_dims = config.require_u32(&["rotary_dim"], "the rotary dimensions of a head")?;
        keys.set(key::ROPE_DIMENSION_COUNT, rotary_dims);
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        // `out_proj` exists in linear-attention layers only; the others have `o_proj`.
        let in_layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split_once('.'));
        if let Some((layer, "self_attn.out_proj.weight")) = in_layer
            && layer.parse::<u64>().is_ok_and(is_full)
        {
            return Ok(Some(Mapping::Unknown));
        }
        map_mixtral_expert(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let blocks = count(model, key::BLOCK_COUNT)?.min(1 << 16);
        let kinds = (0..blocks).map(|layer| u32::from(is_full(layer)));
        let alpha = number(model, key::RESIDUAL_SCALE)?;
        let mut exported = exported
            .patterns(mixtral_expert_patterns())
            .set(ATTENTION_TYPES, kinds.collect::<Vec<_>>());
        for field in ALPHAS {
            exported = exported.set(field, alpha);
        }
        for field in BETAS {
            exported = exported.set(field, 1.0);
        }
        if let Some(ids) = model.metadata().array(key::TOKENIZER_GGML_SUPPRESS_TOKENS) {
            let ids: Vec<u64> = ids.iter().filter_map(|id| id.to_u64()).collect();
            exported = exported.unwritten(SUPPRESSED_TOKENS, ids.into());
        }
        Some(exported)
    }
}

/// Returns whether a layer has full attention.
const fn is_full(layer: u64) -> bool {
    layer % FULL_ATTENTION_INTERVAL == FULL_ATTENTION_INTERVAL - 1
}
