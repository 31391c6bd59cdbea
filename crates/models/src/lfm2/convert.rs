//! Conversion of LFM2: the number of KV heads of a layer is 0 where it is a short convolution. The
//! FFN size of config.json is adjusted as the class does it. The audio tokenizer of LFM2.5 is
//! another class.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{
    Converter, Description, Exported, Mapping, VocabularyKind, defaults, export, hparams,
    sentence_transformers, steps, tensor_names,
};
use crate::schema::{HyperParameters, key};

/// Tensor names of LFM2, dense and MoE.
pub(crate) const NAMES: Table = &[
    ("model.embed_tokens", "token_embd"),
    // The final norm, as llama.cpp names it in this architecture.
    ("model.embedding_norm", "token_embd_norm"),
    ("lm_head", "output"),
    ("model.layers.{}.operator_norm", "blk.{}.attn_norm"),
    ("model.layers.{}.ffn_norm", "blk.{}.ffn_norm"),
    ("model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"),
    ("model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"),
    ("model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"),
    ("model.layers.{}.self_attn.out_proj", "blk.{}.attn_output"),
    ("model.layers.{}.self_attn.q_layernorm", "blk.{}.attn_q_norm"),
    ("model.layers.{}.self_attn.k_layernorm", "blk.{}.attn_k_norm"),
    ("model.layers.{}.conv.conv", "blk.{}.shortconv.conv"),
    ("model.layers.{}.conv.in_proj", "blk.{}.shortconv.in_proj"),
    ("model.layers.{}.conv.out_proj", "blk.{}.shortconv.out_proj"),
    ("model.layers.{}.feed_forward.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.feed_forward.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.feed_forward.w3", "blk.{}.ffn_up"),
    ("model.layers.{}.feed_forward.gate", "blk.{}.ffn_gate_inp"),
];

/// Field with the kernel size of the convolutions.
pub(crate) const KERNEL: &str = "conv_L_cache";

/// Keys, and their config.json fields in exports.
const FIELDS: &[(&str, &str)] =
    &[("attention.layer_norm_rms_epsilon", "norm_eps"), ("shortconv.l_cache", KERNEL)];

pub(crate) struct Lfm2;

/// Description of [`Lfm2`].
pub(crate) static LFM2: Description = Description {
    classes: &["Lfm2ForCausalLM", "LFM2ForCausalLM", "Lfm2Model", BIDIRECTIONAL_CLASS],
    architecture: "lfm2",
    model_type: "lfm2",
    pre_tokenizers: &["lfm2", "llama-bpe"],
    tensor_names: &[NAMES],
    config_fields: FIELDS,
    required_flags: &[("conv_bias", false)],
    ..Description::DECODER
};

impl Converter for Lfm2 {
    fn description(&self) -> &'static Description {
        &LFM2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        complete_config(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        dense_keys(config, keys)?;
        if sentence_transformers::modules(config)?.iter().any(|module| module.is("Dense")) {
            return Err(hparams::not_computed(
                config,
                "modules.json",
                "a dense module after the pooling",
            ));
        }
        if config.class()? == BIDIRECTIONAL_CLASS {
            keys.set(key::ATTENTION_CAUSAL, false);
        }
        sentence_transformers::pooling_key(keys, config)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        conv1d_steps(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        if export::has(model, "dense_2.weight") {
            return None;
        }
        let exported = exported.set("block_auto_adjust_ff_dim", false);
        let is_encoder = model.metadata().bool("lfm2.attention.causal") == Some(false);
        let exported = match is_encoder {
            true => exported
                .class(BIDIRECTIONAL_CLASS, "lfm2")
                .files(sentence_transformers::module_files(model)),
            false => exported,
        };
        Some(with_layer_types(model, exported))
    }
}

/// Audio tokenizer of LFM2.5: decodes codes to frames of a spectrum.
pub(crate) struct Lfm25Tokenizer;

/// Description of [`Lfm25Tokenizer`].
pub(crate) static LFM25_TOKENIZER: Description = Description {
    classes: &["Lfm25AudioTokenizer"],
    vocabulary: VocabularyKind::Codes,
    tensor_names: &[],
    model_type: "lfm25_audio_tokenizer",
    ..LFM2
};

impl Converter for Lfm25Tokenizer {
    fn description(&self) -> &'static Description {
        &LFM25_TOKENIZER
    }

    fn base(&self) -> &'static dyn Converter {
        &Lfm2
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        dense_keys(config, keys)?;
        let window = config
            .require_u32(&["sliding_window"], "the sliding window of attention, in tokens")?;
        keys.set(key::ATTENTION_SLIDING_WINDOW, window);
        let frame_size =
            config.require_u32(&["output_size"], "the size of a frame of the spectrum")?;
        keys.set(key::EMBEDDING_LENGTH_OUT, frame_size);
        Ok(())
    }

    // Code embeddings that the runtime does not need, and the window of the inverse STFT.
    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        name == "istft.window" || name.starts_with("emb.emb")
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        let gguf_name = match name.strip_prefix("lfm.") {
            Some(name) => tensor_names::renamed(&format!("model.{name}"), &[NAMES]),
            None => tensor_names::renamed(name, &[&[("lin", "dense_2")]]),
        };
        Ok(match gguf_name {
            Some(gguf_name) => {
                let steps = conv1d_steps(config, &gguf_name)?;
                Some(Mapping::one(gguf_name, steps))
            }
            None => None,
        })
    }

    fn export(&self, model: &Model, mut exported: Exported) -> Option<Exported> {
        export::has(model, "dense_2.weight").then_some(())?;
        let modules = NAMES.iter().map(|(name, _)| name.replacen("model.", "lfm.", 1));
        let modules = modules.chain(["lin".to_owned()]);
        let names =
            modules.flat_map(|module| [format!("{module}.weight"), format!("{module}.bias")]);
        exported.patterns = names.collect();
        let exported = exported.fields(&[("embedding_length_out", "output_size")]);
        let exported = exported.set("block_auto_adjust_ff_dim", false);
        Some(with_layer_types(model, exported))
    }
}

/// Class of the encoder with bidirectional attention.
const BIDIRECTIONAL_CLASS: &str = "Lfm2BidirectionalModel";

/// Sets the defaults of `transformers`, and `layer_types` from the older list of attention layers.
pub(crate) fn complete_config(config: &mut Config) -> Result<(), Error> {
    config.default("norm_eps", 1e-5);
    config.default(KERNEL, 3);
    // Older configurations list the attention layers.
    if let Some((_, full)) = config.find(&["full_attn_idxs"]) {
        let full: Vec<u64> =
            full.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        let count = u64::from(hparams::block_count(config)?);
        let kind = |i| if full.contains(&i) { "full_attention" } else { "conv" };
        config.default("layer_types", (0..count).map(kind).collect::<Vec<_>>());
    }
    defaults::attention(config)
}

/// Writes the keys of dense models.
fn dense_keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let mut config = config.clone();
    config.set("intermediate_size", feed_forward_length(&config)?);
    keys.stated(&config)?;
    keys.set(key::ATTENTION_HEAD_COUNT_KV, Array::from(&head_counts_kv(&config)?[..]));
    keys.vocab_size(&config)?;
    keys.set_u32(key::SHORTCONV_L_CACHE, config.u32(&[KERNEL])?);
    Ok(())
}

/// Returns the number of KV heads of each layer, 0 for a convolution.
pub(crate) fn head_counts_kv(config: &Config) -> Result<Vec<i32>, Error> {
    let heads = hparams::head_count_kv(config)?.try_into().unwrap_or(i32::MAX);
    let kinds = config.find(&["layer_types"]).and_then(|(_, kinds)| kinds.as_array());
    let Some(kinds) = kinds else {
        let what = "has no field `layer_types` (the kind of each layer)";
        let help = "add the field or take the file from the model's repository";
        return Err(Error::input("config-field-missing", config.path(), what, help));
    };
    Ok(kinds.iter().map(|kind| if kind == "conv" { 0 } else { heads }).collect())
}

/// Returns the FFN size: two thirds of the stated size, times a multiplier and rounded up to a
/// multiple, unless `block_auto_adjust_ff_dim` is false.
fn feed_forward_length(config: &Config) -> Result<u32, Error> {
    let fields = &["block_ff_dim", "intermediate_size"];
    let stated = config.require_u32(fields, "the FFN size")?;
    if config.bool("block_auto_adjust_ff_dim")? == Some(false) {
        return Ok(stated);
    }
    let factor = config.f64(&["block_ffn_dim_multiplier"])?.unwrap_or(1.0);
    let multiple = config.u32(&["block_multiple_of"])?.unwrap_or(256).max(1);
    let length = (f64::from((u64::from(stated) * 2 / 3) as u32) * factor) as u32;
    Ok(length.div_ceil(multiple).saturating_mul(multiple))
}

/// Returns the steps for the depthwise convolutions, which lose the dimension of size 1.
pub(crate) fn conv1d_steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    if !name.ends_with(".shortconv.conv.weight") {
        return Ok(Vec::new());
    }
    let kernel = config.require_u32(&[KERNEL], "the kernel size of the convolutions")?;
    Ok(vec![steps::channels(kernel, hparams::width(config)?.into())])
}

/// Sets the kind of each layer and the number of KV heads of an export.
pub(crate) fn with_layer_types(model: &Model, exported: Exported) -> Exported {
    let Ok(hyper) = HyperParameters::from_metadata(model.metadata()) else { return exported };
    let blocks = export::count(model, key::BLOCK_COUNT).unwrap_or(0).min(1 << 16);
    let heads_kv = |layer| hyper.u64_in_layer(key::ATTENTION_HEAD_COUNT_KV, layer).unwrap_or(0);
    let heads: Vec<u64> = (0..blocks).map(heads_kv).collect();
    let kind = |heads: &u64| if *heads > 0 { "full_attention" } else { "conv" };
    exported
        .without(&[key::ATTENTION_HEAD_COUNT_KV])
        .set("num_key_value_heads", heads.iter().copied().max().unwrap_or(0))
        .set("layer_types", heads.iter().map(kind).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn adjusts_the_ffn_size_unless_disabled() {
        let length = |fields| feed_forward_length(&Config::of(fields)).unwrap();
        let stated = json!({"intermediate_size": 12288, "block_multiple_of": 256});
        assert_eq!(length(stated), 8192);
        let multiplied = json!({"block_ff_dim": 6656, "intermediate_size": 1, "block_multiple_of": 256,
            "block_ffn_dim_multiplier": 1.3});
        assert_eq!(length(multiplied), 5888);
        let unadjusted = json!({"intermediate_size": 7168, "block_auto_adjust_ff_dim": false});
        assert_eq!(length(unadjusted), 7168);
    }

    #[test]
    fn older_configurations_list_attention_layers() {
        let mut config = Config::of(json!({"num_hidden_layers": 3, "num_attention_heads": 4,
            "num_key_value_heads": 2, "full_attn_idxs": [1]}));
        complete_config(&mut config).unwrap();
        assert_eq!(head_counts_kv(&config).unwrap(), [0, 2, 0]);
    }
}
