//! Conversion of ChatGLM 3 and GLM_NAMES 4 before their class in `transformers`, and of that class
//! (`GlmForCausalLM`). `rope_ratio` is multiplied into the base frequency.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, Description, Exported, VocabularyKind, export, hparams, rope};
use crate::schema::key;

const CHATGLM_NAMES: Table = &[
    ("transformer.embedding.word_embeddings", "token_embd"),
    ("transformer.output_layer", "output"),
    ("transformer.encoder.final_layernorm", "output_norm"),
    ("transformer.encoder.layers.{}.input_layernorm", "blk.{}.attn_norm"),
    ("transformer.encoder.layers.{}.self_attention.query_key_value", "blk.{}.attn_qkv"),
    ("transformer.encoder.layers.{}.self_attention.dense", "blk.{}.attn_output"),
    ("transformer.encoder.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm"),
    ("transformer.encoder.layers.{}.mlp.dense_h_to_4h", "blk.{}.ffn_up"),
    ("transformer.encoder.layers.{}.mlp.dense_4h_to_h", "blk.{}.ffn_down"),
];

/// Names of the class in `transformers`, whose gate and up projection are one matrix.
const GLM_NAMES: Table = &[("model.layers.{}.mlp.gate_up_proj", "blk.{}.ffn_up")];

pub(crate) struct Chatglm;

/// Description of [`Chatglm`].
pub(crate) static CHATGLM: Description = Description {
    classes: &["ChatGLMModel", "ChatGLMForConditionalGeneration", "GlmForCausalLM"],
    architecture: "chatglm",
    model_type: "chatglm",
    vocabulary: VocabularyKind::ChatGlm,
    pre_tokenizers: &["chatglm-bpe", "glm4"],
    tensor_names: &[CHATGLM_NAMES, GLM_NAMES, LLAMA_LIKE],
    ..Description::DECODER
};

impl Converter for Chatglm {
    fn description(&self) -> &'static Description {
        &CHATGLM
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        if let Some(rows) = config.u32(&["padded_vocab_size"])? {
            config.set("vocab_size", rows);
        }
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        let width = hparams::width(config)?;
        let heads = hparams::head_count(config)?;
        let context =
            config.u32(&["seq_length"])?.map_or_else(|| hparams::context_length(config), Ok)?;
        let feed_forward =
            config.require_u32(&["ffn_hidden_size", "intermediate_size"], "the FFN size")?;
        let heads_kv = config.u32(&["multi_query_group_num", "num_key_value_heads"])?;
        let epsilon = config.f32(&["layernorm_epsilon", "rms_norm_eps"])?.unwrap_or(1e-5);
        let head_dim = config.u32(&["attention_dim"])?.unwrap_or(width / heads);
        let rope = Rope::of(config)?;
        let base = rope.base.unwrap_or(10000.0);
        keys.set(key::CONTEXT_LENGTH, context);
        keys.set(key::EMBEDDING_LENGTH, width);
        keys.set(key::FEED_FORWARD_LENGTH, feed_forward);
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, heads);
        keys.set(key::ATTENTION_HEAD_COUNT_KV, heads_kv.unwrap_or(heads));
        keys.set(key::ATTENTION_LAYER_NORM_RMS_EPSILON, epsilon);
        keys.file_type();
        keys.set(key::ROPE_DIMENSION_COUNT, rope::rotated_dims(config, head_dim, 0.5)?);
        keys.set_unprefixed(key::TOKENIZER_GGML_ADD_BOS_TOKEN, false);
        keys.rope(config, &rope)?;
        keys.set(key::ROPE_FREQ_BASE, base * config.f32(&["rope_ratio"])?.unwrap_or(1.0));
        Ok(())
    }

    fn export(&self, model: &Model, _: Exported) -> Option<Exported> {
        let (metadata, index) = (model.metadata(), model.index());
        let head_dim = export::head_dim(model)?;
        if !index.contains_key("blk.0.attn_qkv.weight") {
            let exported = Exported::new("GlmForCausalLM", "glm", &[GLM_NAMES, LLAMA_LIKE])
                .set("head_dim", head_dim)
                .set_some("partial_rotary_factor", export::rotated_share(model))
                .set("attention_bias", index.contains_key("blk.0.attn_q.bias"));
            return Some(exported);
        }
        let base = export::number(model, key::ROPE_FREQ_BASE);
        let exported = Exported::new("ChatGLMModel", "chatglm", &[CHATGLM_NAMES])
            .fields(&[
                ("block_count", "num_layers"),
                ("context_length", "seq_length"),
                ("feed_forward_length", "ffn_hidden_size"),
                ("attention.head_count_kv", "multi_query_group_num"),
                ("attention.layer_norm_rms_epsilon", "layernorm_epsilon"),
            ])
            .without(&[key::ROPE_FREQ_BASE])
            .set_some("rope_ratio", base.map(|base| export::whole(base / 10000.0)))
            .set("kv_channels", head_dim)
            .set("padded_vocab_size", metadata.array(key::TOKENIZER_GGML_TOKENS)?.len())
            .set("multi_query_attention", true)
            .set("rmsnorm", true)
            .set("original_rope", true)
            .set("post_layer_norm", true)
            .set("add_bias_linear", index.contains_key("blk.0.attn_output.bias"))
            .set("add_qkv_bias", index.contains_key("blk.0.attn_qkv.bias"));
        Some(exported)
    }
}
