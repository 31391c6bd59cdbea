//! T5 and its relatives: encoder and decoder, or the encoder alone.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::Table;
use crate::convert::{Converter, Exported, Mapping, VocabularyKind};
use crate::t5;
use crate::t5::convert::{ENCODER, FIELDS, export_of, keys_of};

pub(crate) struct T5Encoder;

impl Converter for T5Encoder {
    fn classes(&self) -> &'static [&'static str] {
        &["T5EncoderModel", "MT5EncoderModel", "UMT5EncoderModel"]
    }

    fn architecture(&self) -> &'static str {
        "t5encoder"
    }

    fn model_type(&self) -> &'static str {
        "t5"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::T5
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[ENCODER]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        FIELDS
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys_of(config, keys, false)
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        t5::convert::special(config, name)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_of(model, exported, false)
    }
}
