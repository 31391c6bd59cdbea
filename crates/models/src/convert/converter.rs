//! The trait of a model class's conversion.

use std::borrow::Cow;

use gguf::{Error, Metadata};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Step, Tensor};
use gguf_store::Model;

use super::export::Exported;
use super::foreign;
use super::keys::Keys;
use super::mapping::Mapping;
use super::tensor_names::{self, LLAMA_LIKE, Table, renamed};
use super::tensor_values::Values;
use super::vocabulary::VocabularyKind;
use super::{hparams, rope};

/// Tensors that no checkpoint file holds: names, and values of one dimension.
pub type ExtraTensors = Vec<(String, Vec<f32>)>;

/// Whose vocabulary kind a draft model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draft {
    /// That of its own converter.
    Own,
    /// That of the target model's converter.
    Target,
}

/// Tables of a conversion.
pub struct Description {
    /// Class names in `architectures` of config.json. Exports write the first.
    pub classes: &'static [&'static str],
    /// `general.architecture` of the output.
    pub architecture: &'static str,
    /// `model_type` in the config.json of exports.
    pub model_type: &'static str,
    /// Tokenizer files that the classes ship.
    pub vocabulary: VocabularyKind,
    /// Preferred names of `tokenizer.ggml.pre` among those with the same regular expressions, best first.
    pub pre_tokenizers: &'static [&'static str],
    /// Prefix of checkpoint tensor names; some checkpoints leave it out.
    pub tensor_prefix: &'static str,
    /// Checkpoint tensor names behind the prefix, and their GGUF names. The first match counts.
    pub tensor_names: &'static [Table],
    /// Pairs of a key under the architecture's name and its field of config.json, where exports need
    /// other fields or keys than most.
    pub config_fields: &'static [(&'static str, &'static str)],
    /// Flags of config.json that must have this value: no runtime computes the architecture with the other
    /// value.
    pub required_flags: &'static [(&'static str, bool)],
}

impl Description {
    /// A decoder with Llama's tensor names and a byte-level BPE vocabulary, without classes.
    pub(crate) const DECODER: Self = Self {
        classes: &[],
        architecture: "",
        model_type: "",
        vocabulary: VocabularyKind::Bpe,
        pre_tokenizers: &[],
        tensor_prefix: "",
        tensor_names: &[LLAMA_LIKE],
        config_fields: &[],
        required_flags: &[],
    };
}

/// Conversion of the checkpoints of some Hugging Face classes to one architecture, and back.
///
/// Methods that a converter does not override are those of its [`base`](Converter::base): by default
/// a decoder with Llama's tensor names and a byte-level BPE vocabulary.
pub trait Converter: Sync {
    /// Returns the converter whose methods apply where this one does not override them.
    fn base(&self) -> &'static dyn Converter {
        &Decoder
    }

    /// Returns the tables of the conversion.
    fn description(&self) -> &'static Description;

    /// Sets fields that config.json may leave out because the class in `transformers` has a default.
    ///
    /// # Errors
    /// If a field has an invalid value.
    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        self.base().complete_config(config)
    }

    /// Returns the converter of the model if config.json says that it is of another architecture than
    /// the class usually is.
    fn variant(&self, config: &Config) -> Option<&'static dyn Converter> {
        self.base().variant(config)
    }

    /// Sets fields that only the names of the checkpoint's tensors tell.
    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        self.base().infer_from_names(config, names)
    }

    /// Sets fields that only values of the checkpoint's tensors tell.
    ///
    /// # Errors
    /// If a tensor is missing or cannot be read.
    fn infer_from_values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        self.base().infer_from_values(config, values)
    }

    /// Returns whose vocabulary the model has if it is a draft model.
    fn draft(&self) -> Option<Draft> {
        self.base().draft()
    }

    /// Writes the keys that stand before all others in the output of llama.cpp's converter, which
    /// writes them while it computes tensors.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    fn leading_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self.base().leading_keys(config, keys)
    }

    /// Writes the hyper-parameters as keys under the architecture's name.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self.base().hyper_parameters(config, keys)
    }

    /// Writes the keys that stand after the vocabulary.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    fn trailing_keys(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        self.base().trailing_keys(config, keys)
    }

    /// Returns whether a checkpoint tensor is dropped.
    fn skip_tensor(&self, config: &Config, name: &str) -> bool {
        self.base().skip_tensor(config, name)
    }

    /// Maps a checkpoint tensor, named without the prefix, that the table of names does
    /// not cover. It is called first; `None` leaves the tensor to the tables.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        self.base().map_tensor(config, name)
    }

    /// Returns a tensor computed from several checkpoint tensors, in the place of the one with this name.
    /// It is called before [`map_tensor`](Self::map_tensor).
    ///
    /// # Errors
    /// If a tensor is missing or has a wrong shape.
    fn combine_tensor(
        &self,
        config: &Config,
        checkpoint: &Checkpoint,
        name: &str,
    ) -> Result<Option<Tensor>, Error> {
        self.base().combine_tensor(config, checkpoint, name)
    }

    /// Returns the steps for a tensor that the tables map, by its GGUF name.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        self.base().modify_tensor(config, name)
    }

    /// Sorts tensors in the order of llama.cpp's converter, where it is not the order in which the
    /// checkpoint completes them.
    fn order_tensors(&self, tensors: &mut [Tensor]) {
        self.base().order_tensors(tensors)
    }

    /// Returns the suffixes of stacked tensors whose slots follow one another as rows instead of along a
    /// new dimension.
    fn row_stacked_suffixes(&self) -> &'static [&'static str] {
        self.base().row_stacked_suffixes()
    }

    /// Returns whether a matrix, by its GGUF name, is F32 where others are F16 or BF16, beside those that
    /// are F32 in all architectures.
    fn keeps_f32(&self, config: &Config, name: &str) -> bool {
        self.base().keeps_f32(config, name)
    }

    /// Returns whether tensors keep the checkpoint's types unless the user names others: floats their
    /// own, block types theirs, FP8 becomes Q8_0.
    fn keeps_types(&self) -> bool {
        self.base().keeps_types()
    }

    /// Returns whether the chat template stands before all keys but the architecture.
    fn chat_template_first(&self) -> bool {
        self.base().chat_template_first()
    }

    /// Returns tensors that no checkpoint file holds.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        self.base().extra_tensors(config)
    }

    /// Returns the field of config.json whose list of integers becomes the last tensor, under the same
    /// name.
    fn list_tensor(&self) -> Option<&'static str> {
        self.base().list_tensor()
    }

    /// Returns why no checkpoint can be exported from a GGUF, if so.
    fn export_refusal(&self) -> Option<&'static str> {
        self.base().export_refusal()
    }

    /// Completes the description of an export. `None` if the model is not of these classes but of others
    /// with the same architecture.
    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        self.base().export(model, exported)
    }
}

/// The root of all converters: a decoder with Llama's tensor names, a byte-level BPE vocabulary and a
/// config.json that states all hyper-parameters.
pub(crate) struct Decoder;

impl Converter for Decoder {
    fn description(&self) -> &'static Description {
        &Description::DECODER
    }

    fn complete_config(&self, _: &mut Config) -> Result<(), Error> {
        Ok(())
    }

    fn variant(&self, _: &Config) -> Option<&'static dyn Converter> {
        None
    }

    fn infer_from_names(&self, _: &mut Config, _: &mut dyn Iterator<Item = Cow<'_, str>>) {}

    fn infer_from_values(&self, _: &mut Config, _: &Values) -> Result<(), Error> {
        Ok(())
    }

    fn draft(&self) -> Option<Draft> {
        None
    }

    fn leading_keys(&self, _: &Config, _: &mut Keys) -> Result<(), Error> {
        Ok(())
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)
    }

    fn trailing_keys(&self, _: &Config, _: &mut Keys) -> Result<(), Error> {
        Ok(())
    }

    fn skip_tensor(&self, _: &Config, _: &str) -> bool {
        false
    }

    fn map_tensor(&self, _: &Config, _: &str) -> Result<Option<Mapping>, Error> {
        Ok(None)
    }

    fn combine_tensor(&self, _: &Config, _: &Checkpoint, _: &str) -> Result<Option<Tensor>, Error> {
        Ok(None)
    }

    fn modify_tensor(&self, _: &Config, _: &str) -> Result<Vec<Step>, Error> {
        Ok(Vec::new())
    }

    fn order_tensors(&self, _: &mut [Tensor]) {}

    fn row_stacked_suffixes(&self) -> &'static [&'static str] {
        &[]
    }

    fn keeps_f32(&self, _: &Config, _: &str) -> bool {
        false
    }

    fn keeps_types(&self) -> bool {
        false
    }

    fn chat_template_first(&self) -> bool {
        false
    }

    fn extra_tensors(&self, _: &Config) -> Result<ExtraTensors, Error> {
        Ok(Vec::new())
    }

    fn list_tensor(&self) -> Option<&'static str> {
        None
    }

    fn export_refusal(&self) -> Option<&'static str> {
        None
    }

    fn export(&self, _: &Model, exported: Exported) -> Option<Exported> {
        Some(exported)
    }
}

/// Steps of a conversion that are the same for all converters.
impl dyn Converter {
    /// Returns the class names in `architectures` of config.json. Exports write the first.
    pub fn classes(&self) -> &'static [&'static str] {
        self.description().classes
    }

    /// Returns `general.architecture` of the output.
    pub fn architecture(&self) -> &'static str {
        self.description().architecture
    }

    /// Returns which tokenizer files the classes ship.
    pub fn vocabulary(&self) -> VocabularyKind {
        self.description().vocabulary
    }

    /// Returns the preferred names of `tokenizer.ggml.pre`, best first.
    pub fn pre_tokenizers(&self) -> &'static [&'static str] {
        self.description().pre_tokenizers
    }

    /// Returns the converter of the model, whose class is one of this converter's.
    pub fn of_model(&'static self, config: &Config) -> &'static dyn Converter {
        self.variant(config).unwrap_or(self)
    }

    /// Sets fields that only the names of the checkpoint's tensors tell.
    pub fn infer_from_tensors<'n>(
        &self,
        config: &mut Config,
        names: impl Iterator<Item = &'n str>,
    ) {
        self.infer_from_names(config, &mut names.map(foreign::text_name));
    }

    /// Writes the keys that stand before all others.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    pub fn leading_metadata(&self, config: &Config, metadata: &mut Metadata) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture(), 0, metadata);
        self.leading_keys(config, &mut keys)?;
        keys.finish(config)
    }

    /// Writes the hyper-parameters, with `file_type` as `general.file_type` among them.
    ///
    /// # Errors
    /// If a field of config.json is missing, invalid, or a flag that no runtime supports.
    pub fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        for (field, expected) in self.description().required_flags {
            hparams::expect(config, field, *expected)?;
        }
        let mut keys = Keys::new(self.architecture(), file_type, metadata);
        self.hyper_parameters(config, &mut keys)?;
        keys.finish(config)
    }

    /// Writes the keys that stand after the vocabulary.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    pub fn trailing_metadata(&self, config: &Config, metadata: &mut Metadata) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture(), 0, metadata);
        self.trailing_keys(config, &mut keys)?;
        keys.finish(config)
    }

    /// Maps a checkpoint tensor.
    ///
    /// # Errors
    /// If a field of config.json is missing or invalid.
    pub fn mapping(&self, config: &Config, name: &str) -> Result<Mapping, Error> {
        if self.skip_tensor(config, name) {
            return Ok(Mapping::Dropped);
        }
        let name = &*tensor_names::with_model(name);
        let name = name.strip_prefix(self.description().tensor_prefix).unwrap_or(name);
        if let Some(mapping) = self.map_tensor(config, name)? {
            return Ok(mapping);
        }
        match renamed(name, self.description().tensor_names) {
            Some(ours) => {
                let steps = self.modify_tensor(config, &ours)?;
                Ok(Mapping::one(ours, steps))
            }
            None => Ok(Mapping::Unknown),
        }
    }

    /// Returns whether the slots of a stacked tensor follow one another as rows.
    pub fn is_row_stacked(&self, name: &str) -> bool {
        self.row_stacked_suffixes().iter().any(|suffix| name.ends_with(suffix))
    }

    /// Returns tensors that no checkpoint file holds.
    ///
    /// # Errors
    /// If RoPE scaling of config.json asks for `rope_freqs` and the converter makes none, or a field is
    /// missing or invalid.
    pub fn computed_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        let tensors = self.extra_tensors(config)?;
        rope::require_rope_freqs(config, &tensors)?;
        Ok(tensors)
    }

    /// Returns the description of an export. `None` if the model is not of these classes but of others
    /// with the same architecture.
    pub fn exported(&self, model: &Model) -> Option<Exported> {
        let Description { classes, model_type, tensor_names, tensor_prefix, config_fields, .. } =
            self.description();
        let exported = Exported::new(classes[0], model_type, tensor_names)
            .prefixed(tensor_prefix)
            .fields(config_fields);
        self.export(model, exported)
    }
}
