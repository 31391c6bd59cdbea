//! Conversion of the decoder of WavTokenizer.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::{Value, json};

use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Description, Exported, VocabularyKind, hparams};
use crate::schema::key;

const NAMES: Table = &[
    ("backbone.embedding", "token_embd"),
    ("backbone.embed", "conv1d"),
    ("backbone.norm", "token_embd_norm"),
    ("backbone.final_layer_norm", "output_norm"),
    ("head.out", "output"),
    ("backbone.posnet.{}.conv1", "posnet.{}.conv1"),
    ("backbone.posnet.{}.conv2", "posnet.{}.conv2"),
    ("backbone.posnet.{}.norm1", "posnet.{}.norm1"),
    ("backbone.posnet.{}.norm2", "posnet.{}.norm2"),
    ("backbone.posnet.{}.norm", "posnet.{}.attn_norm"),
    ("backbone.posnet.{}.q", "posnet.{}.attn_q"),
    ("backbone.posnet.{}.k", "posnet.{}.attn_k"),
    ("backbone.posnet.{}.v", "posnet.{}.attn_v"),
    ("backbone.posnet.{}.proj_out", "posnet.{}.attn_output"),
    ("backbone.convnext.{}.dwconv", "convnext.{}.dw"),
    ("backbone.convnext.{}.norm", "convnext.{}.norm"),
    ("backbone.convnext.{}.pwconv1", "convnext.{}.pw1"),
    ("backbone.convnext.{}.pwconv2", "convnext.{}.pw2"),
    ("backbone.convnext.{}.gamma", "convnext.{}.gamma"),
];

/// Parts of the model: their prefix in metadata keys, which is also the field of config.json.
const PARTS: [&str; 2] = ["posnet", "convnext"];

/// Ends of names of codebook statistics, which only training uses.
const TRAINING_ONLY: [&str; 3] = ["codebook.cluster_size", "codebook.embed_avg", "codebook.inited"];

pub(crate) struct Wavtokenizer;

/// Description of [`Wavtokenizer`].
pub(crate) static WAVTOKENIZER: Description = Description {
    classes: &["WavTokenizerDec"],
    architecture: "wavtokenizer-dec",
    model_type: "wavtokenizer_dec",
    vocabulary: VocabularyKind::Codes,
    tensor_names: &[NAMES],
    config_fields: &[
        (key::BLOCK_COUNT, "n_layer"),
        (key::ATTENTION_HEAD_COUNT, "n_head"),
        (key::FEATURES_LENGTH, "n_embd_features"),
        (key::FEED_FORWARD_LENGTH, "n_ff"),
        (key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_epsilon"),
        (key::ATTENTION_GROUP_NORM_EPSILON, "group_norm_epsilon"),
        (key::ATTENTION_GROUP_NORM_GROUPS, "group_norm_groups"),
    ],
    ..Description::DECODER
};

impl Converter for Wavtokenizer {
    fn description(&self) -> &'static Description {
        &WAVTOKENIZER
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.set(key::BLOCK_COUNT, hparams::block_count(config)?);
        keys.set(key::CONTEXT_LENGTH, hparams::context_length(config)?);
        keys.set(key::EMBEDDING_LENGTH, hparams::width(config)?);
        keys.set(key::ATTENTION_HEAD_COUNT, hparams::head_count(config)?);
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, hparams::layer_norm_epsilon(config)?);
        keys.file_type();
        keys.vocab_size(config)?;
        let features =
            config.require_u32(&["n_embd_features"], "the embedding length of a code")?;
        keys.set(key::FEATURES_LENGTH, features);
        let ffn_width = config.require_u32(&["n_ff"], "the FFN width")?;
        keys.set(key::FEED_FORWARD_LENGTH, ffn_width);
        const EPSILON: &str = "epsilon of the group norms";
        let epsilon = config.require_f32(&["group_norm_epsilon"], EPSILON)?;
        keys.set(key::ATTENTION_GROUP_NORM_EPSILON, epsilon);
        let groups = config
            .require_u32(&["group_norm_groups"], "the number of groups of the group norms")?;
        keys.set(key::ATTENTION_GROUP_NORM_GROUPS, groups);
        for part in PARTS {
            let part_config = config.part(part);
            let number = |field, meaning| match config.find(&[part]) {
                Some(_) => part_config.require_u32(&[field], meaning),
                None => {
                    Err(config.missing(part, "the embedding length and number of layers of a part"))
                }
            };
            keys.set(
                &format!("{part}.embedding_length"),
                number("n_embd", "the embedding length of a part")?,
            );
            keys.set(
                &format!("{part}.block_count"),
                number("n_layer", "the number of layers of a part")?,
            );
        }
        keys.set(key::ATTENTION_CAUSAL, false);
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, name: &str) -> bool {
        TRAINING_ONLY.iter().any(|end| name.ends_with(end))
    }

    fn keeps_f32(&self, _: &Config, name: &str) -> bool {
        [".norm1.weight", ".norm2.weight"].iter().any(|end| name.ends_with(end))
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        let numbers = |part: &str| -> Option<Value> {
            let number = |key: &str| count(model, &format!("{part}.{key}"));
            Some(json!({"n_embd": number("embedding_length")?, "n_layer": number("block_count")?}))
        };
        let with = |exported: Exported, part: &&str| exported.set_some(part, numbers(part));
        Some(PARTS.iter().fold(exported, with))
    }
}
