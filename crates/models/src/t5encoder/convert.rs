//! Conversion of T5 encoders.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, Mapping, VocabularyKind};
use crate::t5::convert::{ENCODER, FIELDS, T5, export_t5, t5_keys};

pub(crate) struct T5Encoder;

/// Description of [`T5Encoder`].
pub(crate) static T5_ENCODER: Description = Description {
    classes: &["T5EncoderModel", "MT5EncoderModel", "UMT5EncoderModel"],
    architecture: "t5encoder",
    model_type: "t5",
    vocabulary: VocabularyKind::T5,
    tensor_names: &[ENCODER],
    config_fields: FIELDS,
    ..Description::DECODER
};

impl Converter for T5Encoder {
    fn description(&self) -> &'static Description {
        &T5_ENCODER
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        t5_keys(config, keys, false)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        T5.map_tensor(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_t5(model, exported, false)
    }
}
