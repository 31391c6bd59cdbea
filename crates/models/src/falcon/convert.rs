//! Conversion of both generations of Falcon. QKV rows are regrouped from groups of query heads with
//! their KV head to all queries, all keys, all values.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, export, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.word_embeddings", "token_embd"),
    ("transformer.ln_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.h.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("transformer.h.{}.self_attention.dense", "blk.{}.attn_output"),
    ("transformer.h.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("transformer.h.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

const ONE_NORM: Table = &[("transformer.h.{}.input_layernorm", "blk.{}.attn_norm")];

/// With two norms, runtimes apply `attn_norm` before the FFN and `attn_norm_2` before attention.
const TWO_NORMS: Table = &[
    ("transformer.h.{}.ln_mlp", "blk.{}.attn_norm"),
    ("transformer.h.{}.ln_attn", "blk.{}.attn_norm_2"),
];

/// Context length of models whose configuration does not state it.
const CONTEXT: u32 = 2048;

pub(crate) struct Falcon;

/// Description of [`Falcon`].
pub(crate) static FALCON: Description = Description {
    classes: &["FalconForCausalLM", "RWForCausalLM"],
    architecture: "falcon",
    model_type: "falcon",
    pre_tokenizers: &["falcon"],
    tensor_names: &[NAMES, ONE_NORM, TWO_NORMS],
    config_fields: &[
        (key::FEED_FORWARD_LENGTH, "ffn_hidden_size"),
        (key::ATTENTION_HEAD_COUNT_KV, "num_kv_heads"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
    ],
    required_flags: &[("alibi", false), ("bias", false), ("parallel_attn", true)],
    ..Description::DECODER
};

impl Converter for Falcon {
    fn description(&self) -> &'static Description {
        &FALCON
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let feed_forward = config.u32(&["ffn_hidden_size"])?;
        keys.set(key::CONTEXT_LENGTH, config.u32(&["max_position_embeddings"])?.unwrap_or(CONTEXT));
        keys.set(key::TENSOR_DATA_LAYOUT, "jploski"); // see `modify_tensor`
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::FEED_FORWARD_LENGTH, feed_forward.unwrap_or(width.saturating_mul(4)));
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, head_count_kv(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.rope_unless_default(config)?;
        keys.file_type();
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        if !name.contains(".attn_qkv.") {
            return Ok(Vec::new());
        }
        // The checkpoint stores groups of query heads, each followed by its KV head.
        let groups = head_count_kv(config)?;
        let head_dim = u64::from(hparams::head_dim(config)?);
        let queries = u64::from(hparams::head_count(config)? / groups) * head_dim;
        let kinds = [queries, head_dim, head_dim];
        Ok(vec![Step::Regroup { groups: groups.into(), kinds }])
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let has_two_norms = export::has(model, "blk.0.attn_norm_2.weight");
        let heads = export::count(model, key::ATTENTION_HEAD_COUNT);
        let head_count_kv = export::head_count_kv(model);
        let is_multi_query = head_count_kv == Some(1);
        let is_second_generation = has_two_norms || (!is_multi_query && head_count_kv != heads);
        let unused_names = if has_two_norms { ONE_NORM } else { TWO_NORMS };
        let exported = exported
            .without_names(unused_names)
            .fields(&[
                ("feed_forward_length", "ffn_hidden_size"),
                ("attention.head_count_kv", "num_kv_heads"),
                ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
            ])
            .set("new_decoder_architecture", is_second_generation)
            .set("multi_query", is_second_generation || is_multi_query)
            .set_some(
                "num_ln_in_parallel_attn",
                is_second_generation.then(|| 1 + u8::from(has_two_norms)),
            );
        Some(exported)
    }
}

/// Returns the number of KV heads.
///
/// The class of the first generation ignores `num_kv_heads`: it has one KV head (`multi_query`) or
/// as many as query heads. Configurations with the original field `n_head_kv` state it only for the
/// second generation.
fn head_count_kv(config: &Config) -> Result<u32, Error> {
    let original_field = config.u32(&["n_head_kv"])?;
    let is_second_generation =
        config.bool("new_decoder_architecture")?.unwrap_or(original_field.is_some());
    if is_second_generation {
        let stated = config.u32(&["num_kv_heads"])?.or(original_field).filter(|&heads| heads > 0);
        stated.map_or_else(|| hparams::head_count(config), Ok)
    } else if config.bool("multi_query")?.unwrap_or(true) {
        Ok(1)
    } else {
        hparams::head_count(config)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::Mapping;

    #[test]
    fn kv_head_count_by_generation() {
        for (config, heads) in [
            // falcon-7b, as first uploaded and as it is now.
            (json!({"n_head": 71, "multi_query": true}), 1),
            (
                json!({"num_attention_heads": 71, "num_kv_heads": 71, "multi_query": true,
                "new_decoder_architecture": false}),
                1,
            ),
            // falcon-40b, likewise.
            (json!({"n_head": 128, "n_head_kv": 8}), 8),
            (
                json!({"num_attention_heads": 128, "num_kv_heads": 8, "multi_query": true,
                "new_decoder_architecture": true}),
                8,
            ),
            (
                json!({"num_attention_heads": 64, "multi_query": false,
                "new_decoder_architecture": false}),
                64,
            ),
        ] {
            assert_eq!(head_count_kv(&Config::of(config)).unwrap(), heads);
        }
    }

    #[test]
    fn qkv_rows_are_regrouped() {
        let config = Config::of(json!({"hidden_size": 64, "num_attention_heads": 8,
            "num_kv_heads": 2, "new_decoder_architecture": true}));
        let name = "transformer.h.3.self_attention.query_key_value.weight";
        let step = Step::Regroup { groups: 2, kinds: [32, 8, 8] };
        let mapping = (&Falcon as &dyn Converter).mapping(&config, name).unwrap();
        assert_eq!(mapping, Mapping::one("blk.3.attn_qkv.weight", [step]));
    }
}
