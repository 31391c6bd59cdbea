//! Conversion of MPT, of the authors' own class and of that in `transformers`, which reads fewer
//! fields.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Map, Value};

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{Table, captures};
use crate::convert::{Converter, Description, Exported, Mapping, export, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("transformer.wte", "token_embd"),
    ("transformer.wpe", "position_embd"),
    ("transformer.norm_f", "output_norm"),
    ("lm_head", "output"),
    ("transformer.blocks.{}.norm_1", "blk.{}.attn_norm"),
    ("transformer.blocks.{}.attn.Wqkv", "blk.{}.attn_qkv"),
    ("transformer.blocks.{}.attn.q_ln", "blk.{}.attn_q_norm"),
    ("transformer.blocks.{}.attn.k_ln", "blk.{}.attn_k_norm"),
    ("transformer.blocks.{}.attn.out_proj", "blk.{}.attn_output"),
    ("transformer.blocks.{}.norm_2", "blk.{}.ffn_norm"),
    ("transformer.blocks.{}.ffn.up_proj", "blk.{}.ffn_up"),
    ("transformer.blocks.{}.ffn.down_proj", "blk.{}.ffn_down"),
];

/// Scales by which AWQ divides the activations of the FFN.
const ACTIVATION_SCALES: &str = "transformer.blocks.{}.ffn.act.scales";

/// Class in `transformers`, which ignores some fields that the authors' class reads: it always has ALiBi with
/// the default maximum bias.
const TRANSFORMERS_CLASS: &str = "MptForCausalLM";

/// Default of the maximum ALiBi bias.
const DEFAULT_ALIBI_BIAS: f32 = 8.0;

/// Epsilon of the layer norms: the default of PyTorch, as the authors' configurations have no field for it.
const EPSILON: f32 = 1e-5;

pub(crate) struct Mpt;

/// Description of [`Mpt`].
pub(crate) static MPT: Description = Description {
    classes: &["MPTForCausalLM", TRANSFORMERS_CLASS],
    architecture: "mpt",
    model_type: "mpt",
    pre_tokenizers: &["mpt"],
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "n_layers"),
        (key::CONTEXT_LENGTH, "max_seq_len"),
        (key::EMBEDDING_LENGTH, "d_model"),
        (key::ATTENTION_HEAD_COUNT, "n_heads"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
    ],
    ..Description::DECODER
};

impl Converter for Mpt {
    fn description(&self) -> &'static Description {
        &MPT
    }

    // llama.cpp's converter writes no file type either.
    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let attention = config.part("attn_config");
        hparams::expect(&attention, "rope", false)?;
        hparams::expect(&attention, "prefix_lm", false)?;
        // GGUF has no key of MPT for an attention scale other than 1/sqrt(head dimension).
        if let Some(scale) = attention.f32(&["softmax_scale"])? {
            return Err(hparams::not_computed(&attention, "softmax_scale", scale));
        }
        let is_transformers_class = config.class()? == TRANSFORMERS_CLASS;
        let width = config.require_u32(&["d_model"], "the embedding length")?;
        let expansion =
            config.u32(&["expansion_ratio"])?.filter(|_| !is_transformers_class).unwrap_or(4);
        keys.set(key::CONTEXT_LENGTH, config.require_u32(&["max_seq_len"], "the context length")?);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::FEED_FORWARD_LENGTH, expansion.saturating_mul(width));
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        let heads =
            attention.u32(&["kv_n_heads"])?.filter(|&heads| heads > 0 && !is_transformers_class);
        if let Some(heads) = heads {
            keys.set(key::ATTENTION_HEAD_COUNT_KV, heads);
        }
        let epsilon = config.f32(&["layer_norm_epsilon"])?.filter(|_| is_transformers_class);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, epsilon.unwrap_or(EPSILON));
        if let Some(bound) = attention.f32(&["clip_qkv"])? {
            keys.set(key::ATTENTION_CLAMP_KQV, bound);
        }
        let bias = match attention.bool("alibi")? {
            _ if is_transformers_class => DEFAULT_ALIBI_BIAS,
            Some(true) => attention.f32(&["alibi_bias_max"])?.unwrap_or(DEFAULT_ALIBI_BIAS),
            _ => 0.0,
        };
        keys.set(key::ATTENTION_MAX_ALIBI_BIAS, bias);
        Ok(())
    }

    fn map_tensor(&self, _config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let scales = captures(ACTIVATION_SCALES, name);
        let Some(&[block]) = scales.as_deref() else { return Ok(None) };
        Ok(Some(Mapping::one(format!("blk.{block}.ffn.act.scales"), [])))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let number = |key| export::number(model, key);
        let bias = number("attention.max_alibi_bias").filter(|bias| *bias > 0.0);
        let mut attention = Map::new();
        attention.insert("alibi".into(), bias.is_some().into());
        attention.insert("qk_ln".into(), export::has(model, "blk.0.attn_q_norm.weight").into());
        // DefaultValue fields are left out, as `transformers` refuses null in some of them.
        for (field, value) in [
            ("alibi_bias_max", bias.map(export::whole)),
            ("clip_qkv", number("attention.clamp_kqv").map(Value::from)),
            ("kv_n_heads", number("attention.head_count_kv").map(export::whole)),
        ] {
            attention.extend(value.map(|value| (field.to_owned(), value)));
        }
        let expansion = export::ratio(model, key::FEED_FORWARD_LENGTH, "embedding_length");
        let exported = exported
            .patterns([ACTIVATION_SCALES])
            .without(&[key::FEED_FORWARD_LENGTH, key::ATTENTION_HEAD_COUNT_KV])
            .set_some("expansion_ratio", expansion)
            .set("no_bias", !export::has(model, "blk.0.attn_qkv.bias"))
            .set("attn_config", attention);
        Some(exported)
    }
}
