//! Conversion of EAGLE 3 drafts. `midlayer` becomes `blk.0`, and the differences of `d2t` become
//! target ids. Keys of the target are written first, as llama.cpp's converter does.

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use serde_json::Value;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{
    Converter, Description, Draft, Exported, ExtraTensors, Mapping, Values, VocabularyKind,
    defaults, draft, export, hparams, rope, steps, target,
};
use crate::schema::key;

/// Names of the only layer and of the tensors outside it. `fc` projects the hidden states of the
/// target.
const NAMES: Table = &[
    ("embed_tokens", "token_embd"),
    ("norm", "output_norm"),
    ("fc", "fc"),
    ("input_norm", "enc.output_norm"),
    ("midlayer.input_layernorm", "blk.0.attn_norm"),
    ("midlayer.hidden_norm", "blk.0.attn_norm_2"),
    ("midlayer.self_attn.q_proj", "blk.0.attn_q"),
    ("midlayer.self_attn.k_proj", "blk.0.attn_k"),
    ("midlayer.self_attn.v_proj", "blk.0.attn_v"),
    ("midlayer.self_attn.o_proj", "blk.0.attn_output"),
    ("midlayer.post_attention_layernorm", "blk.0.ffn_norm"),
    ("midlayer.mlp.gate_proj", "blk.0.ffn_gate"),
    ("midlayer.mlp.up_proj", "blk.0.ffn_up"),
    ("midlayer.mlp.down_proj", "blk.0.ffn_down"),
    ("model.layers.{}.hidden_norm", "blk.{}.attn_norm_2"),
];

pub(crate) const DRAFT_VOCAB_SIZE: &str = "draft_vocab_size";

const AUX_LAYER_IDS: &str = "eagle_aux_hidden_state_layer_ids";

const TARGET_HIDDEN_SIZE: &str = "target_hidden_size";

const NORM_FLAGS: [&str; 2] = ["norm_before_residual", "norm_before_fc"];

pub(crate) struct Eagle3;

/// Description of [`Eagle3`].
pub(crate) static EAGLE3: Description = Description {
    classes: &[
        "LlamaForCausalLMEagle3",
        "Eagle3LlamaForCausalLM",
        "Eagle3Speculator",
        "Eagle3DraftModel",
    ],
    architecture: "eagle3",
    model_type: "llama",
    vocabulary: VocabularyKind::Llama,
    pre_tokenizers: &["llama-bpe"],
    tensor_names: &[NAMES, LLAMA_LIKE],
    config_fields: &[
        (key::NORM_BEFORE_RESIDUAL, NORM_FLAGS[0]),
        (key::NORM_BEFORE_FC, NORM_FLAGS[1]),
    ],
    ..Description::DECODER
};

impl Converter for Eagle3 {
    fn description(&self) -> &'static Description {
        &EAGLE3
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        draft::flatten(config);
        config.require_u32(&[DRAFT_VOCAB_SIZE], "the vocabulary size of the draft")?;
        let blocks = hparams::block_count(config)?;
        if blocks != 1 {
            return Err(hparams::not_computed(config, "num_hidden_layers", blocks));
        }
        if defaults::is_llama(config) {
            config.default("rms_norm_eps", 1e-6);
        }
        defaults::attention(config)
    }

    fn draft(&self) -> Option<Draft> {
        Some(Draft::Own)
    }

    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        let tokens = config
            .part(target::FIELD)
            .require_u32(&["vocab_size"], "the vocabulary size of the target")?;
        draft::read_list(config, values, tokens, None)
    }

    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let target = config.part(target::FIELD);
        let target_layers = match config.u32s(AUX_LAYER_IDS)?.filter(|layers| !layers.is_empty()) {
            Some(layers) => layers.into_iter().map(draft::signed).collect::<Vec<_>>(),
            None => {
                let blocks = hparams::block_count(&target)?;
                let last = draft::signed(blocks).saturating_sub(3);
                vec![2, draft::signed(blocks / 2), last]
            }
        };
        keys.set(key::TARGET_LAYERS, Array::from(&target_layers[..]));
        let width = match config.u32(&[TARGET_HIDDEN_SIZE])? {
            Some(width) => width,
            None => target.require_u32(&["hidden_size"], "the hidden size of the target")?,
        };
        keys.set(key::TARGET_HIDDEN_SIZE, width);
        for name in NORM_FLAGS {
            keys.set(name, config.bool(name)?.unwrap_or(false));
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, defaults::head_dim(config)?)
    }

    fn map_tensor(&self, _: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        Ok(draft::is_no_weight(name).then_some(Mapping::Dropped))
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        rope::rope_freqs(config)
    }

    fn list_tensor(&self) -> Option<&'static str> {
        Some(draft::LIST)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let target_layers = draft::numbers(model, key::TARGET_LAYERS)?;
        let width = export::count(model, key::TARGET_HIDDEN_SIZE)?;
        let tokens = export::count(model, key::VOCAB_SIZE)?;
        let exported = exported
            .set(AUX_LAYER_IDS, target_layers)
            .set(TARGET_HIDDEN_SIZE, width)
            .set("num_hidden_layers", 1);
        let exported = exported.unwritten(target::FIELD, serde_json::json!({"vocab_size": tokens}));
        let draft_vocab_size = draft::list_shape(model).unwrap_or(tokens);
        draft::export_list(model, exported.set(DRAFT_VOCAB_SIZE, Value::from(draft_vocab_size)))
    }
}
