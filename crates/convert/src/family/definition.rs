//! What a family is: a table with functions for what differs.

use std::borrow::Cow;

use gguf::{Error, Metadata};
use gguf_checkpoint::Checkpoint;
use gguf_checkpoint::config::Config;
use gguf_pipeline::{Step, Tensor};
use gguf_store::Model;

use super::exported::Exported;
use super::foreign;
use super::hyper::{self, Keys};
use super::names::{self, LLAMA_LIKE, Table, renamed};
use super::values::Values;
use crate::vocab;

/// Tensors that no file holds: names, and values of one dimension.
type Computed = Vec<(String, Vec<f32>)>;

/// A draft guesses tokens of another model, whose vocabulary it has: of which kind that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draft {
    /// That of its family.
    OfFamily,
    /// That of the other model's family.
    OfTarget,
}

/// What a family is: data, and functions for what differs from most families.
pub(crate) struct Family {
    /// The class names in `architectures` that it converts. The first is that of exports.
    pub classes: &'static [&'static str],
    /// `general.architecture` of the result.
    pub architecture: &'static str,
    /// `model_type` in configurations of the first class.
    pub(super) model_type: &'static str,
    /// Which tokenizer files the family ships.
    pub vocabulary: vocab::Kind,
    /// The pre-tokenizers that it prefers among those of the same structure, best first.
    pub pre_tokenizers: &'static [&'static str],
    /// What foreign tensor names begin with; some checkpoints leave it out.
    pub(super) prefix: &'static str,
    /// Foreign tensor names behind the prefix, and ours. The first that fits counts.
    pub(super) names: &'static [Table],
    /// Keys under the architecture's name and the fields they come from, where exports need other
    /// fields than most, or other keys.
    pub(super) fields: &'static [(&'static str, &'static str)],
    /// Fields whose other value asks for what no program computes with the architecture.
    pub(super) expects: &'static [(&'static str, bool)],
    /// Sets fields that a configuration may leave out, because the class in `transformers`
    /// completes them.
    pub(super) complete: fn(&mut Config) -> Result<(), Error>,
    /// The family that a model is of although its class is of this one: whose architecture depends on its
    /// configuration.
    pub(super) instead: fn(&Config) -> Option<&'static Family>,
    /// Sets fields that only the names of the checkpoint's tensors tell.
    pub(super) survey: fn(&mut Config, &mut dyn Iterator<Item = Cow<'_, str>>),
    /// Sets fields that only values of the checkpoint's tensors tell.
    pub(super) values: fn(&mut Config, &Values) -> Result<(), Error>,
    /// Whether its models are drafts.
    pub draft: Option<Draft>,
    /// Keys that stand before all others in a file of llama.cpp's converter, which writes them
    /// while it computes tensors.
    pub(super) first_keys: fn(&Config, &mut Keys) -> Result<(), Error>,
    /// The hyper-parameters, as keys under the architecture's name.
    pub(super) keys: fn(&Config, &mut Keys) -> Result<(), Error>,
    /// Keys that stand behind the vocabulary.
    pub(super) last_keys: fn(&Config, &mut Keys) -> Result<(), Error>,
    /// Whether a foreign tensor is left out, by its name in the checkpoint.
    pub(super) leaves_out: fn(&Config, &str) -> bool,
    /// What becomes of a foreign tensor behind the prefix if `names` do not tell; asked before
    /// them.
    pub(super) special: fn(&Config, &str) -> Result<Option<Mapping>, Error>,
    /// A tensor that is computed of several, by the name of the one in whose place it stands; asked before all
    /// else.
    pub whole: fn(&Config, &Checkpoint, &str) -> Result<Option<Tensor>, Error>,
    /// What is done to a tensor that `names` have, by our name.
    pub(super) steps: fn(&Config, &str) -> Result<Vec<Step>, Error>,
    /// Puts tensors in the order in which llama.cpp's converter writes them, where that is not the one in which the
    /// checkpoint completes them.
    pub arranged: fn(&mut [Tensor]),
    /// How names end of tensors whose parts follow one another as rows, not along a new dimension.
    pub rows_of_parts: &'static [&'static str],
    /// Whether a matrix is F32 where others are F16 or BF16, by our name, beside those that are so in all families.
    pub kept: fn(&Config, &str) -> bool,
    /// Whether tensors keep the types that checkpoints have, unless others are asked for: floats each their own, what
    /// is in blocks these, and floats of eight bits Q8_0.
    pub keeps_types: bool,
    /// Whether the chat template stands in front of all keys but the architecture.
    pub template_first: bool,
    /// Tensors that no file holds.
    pub(super) computed: fn(&Config) -> Result<Computed, Error>,
    /// A list of whole numbers that stands behind all tensors: its name, which is also that of the field that
    /// holds it.
    pub list: Option<&'static str>,
    /// Why nothing leads back from a GGUF, if that is so.
    pub one_way: Option<&'static str>,
    /// What leads back from a GGUF beside the data above; `None` if the model is not of this
    /// family but of another of the same architecture.
    pub(super) export: fn(&Model, Exported) -> Option<Exported>,
}

impl Family {
    /// A decoder named like llama, with a byte-level vocabulary, whose configuration says all.
    pub(super) const DEFAULT: Self = Self {
        classes: &[],
        architecture: "",
        model_type: "",
        vocabulary: vocab::Kind::Bpe,
        pre_tokenizers: &[],
        prefix: "",
        names: &[LLAMA_LIKE],
        fields: &[],
        expects: &[],
        complete: |_| Ok(()),
        instead: |_| None,
        survey: |_, _| (),
        values: |_, _| Ok(()),
        draft: None,
        first_keys: |_, _| Ok(()),
        keys: |config, keys| keys.stated(config),
        last_keys: |_, _| Ok(()),
        leaves_out: |_, _| false,
        special: |_, _| Ok(None),
        whole: |_, _, _| Ok(None),
        steps: |_, _| Ok(Vec::new()),
        arranged: |_| (),
        rows_of_parts: &[],
        kept: |_, _| false,
        keeps_types: false,
        template_first: false,
        computed: |_| Ok(Vec::new()),
        list: None,
        one_way: None,
        export: |_, exported| Some(exported),
    };

    /// Sets fields that a configuration may leave out.
    pub(crate) fn complete(&self, config: &mut Config) -> Result<(), Error> {
        (self.complete)(config)
    }

    /// The family of the model, whose class is of this one.
    pub(crate) fn of_model(&'static self, config: &Config) -> &'static Self {
        (self.instead)(config).unwrap_or(self)
    }

    /// Sets fields that only the names of the checkpoint's tensors tell.
    pub(crate) fn survey<'n>(&self, config: &mut Config, names: impl Iterator<Item = &'n str>) {
        (self.survey)(config, &mut names.map(foreign::text_name));
    }

    /// Sets fields that only values of the checkpoint's tensors tell.
    pub(crate) fn values(&self, config: &mut Config, values: &Values) -> Result<(), Error> {
        (self.values)(config, values)
    }

    /// Keys that stand behind the vocabulary.
    pub(crate) fn last_metadata(
        &self,
        config: &Config,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture, 0, metadata);
        (self.last_keys)(config, &mut keys)?;
        keys.finish(config)
    }

    /// Keys that stand before all others.
    pub(crate) fn first_metadata(
        &self,
        config: &Config,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        let mut keys = Keys::new(self.architecture, 0, metadata);
        (self.first_keys)(config, &mut keys)?;
        keys.finish(config)
    }

    /// The hyper-parameters, as keys under the architecture's name.
    ///
    /// `file_type` is the number of the mix, which stands among them.
    pub(crate) fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error> {
        for (field, expected) in self.expects {
            hyper::expect(config, field, *expected)?;
        }
        let mut keys = Keys::new(self.architecture, file_type, metadata);
        (self.keys)(config, &mut keys)?;
        keys.finish(config)
    }

    /// What becomes of a foreign tensor.
    pub(crate) fn mapping(&self, config: &Config, name: &str) -> Result<Mapping, Error> {
        if (self.leaves_out)(config, name) {
            return Ok(Mapping::Dropped);
        }
        let name = &*names::with_model(name);
        let name = name.strip_prefix(self.prefix).unwrap_or(name);
        if let Some(mapping) = (self.special)(config, name)? {
            return Ok(mapping);
        }
        match renamed(name, self.names) {
            Some(ours) => {
                let steps = (self.steps)(config, &ours)?;
                Ok(Mapping::one(ours, steps))
            }
            None => Ok(Mapping::Unknown),
        }
    }

    /// Whether the parts of a tensor follow one another as rows.
    pub(crate) fn has_rows_of_parts(&self, name: &str) -> bool {
        self.rows_of_parts.iter().any(|end| name.ends_with(end))
    }

    /// Tensors that no file holds.
    pub(crate) fn computed(&self, config: &Config) -> Result<Computed, Error> {
        let computed = (self.computed)(config)?;
        hyper::require_rope_freqs(config, &computed)?;
        Ok(computed)
    }

    /// What leads back from a GGUF; `None` if the model is not of this family but of another of
    /// the same architecture.
    pub(crate) fn exported(&self, model: &Model) -> Option<Exported> {
        let exported = Exported::new(self.classes[0], self.model_type, self.names)
            .prefixed(self.prefix)
            .fields(self.fields);
        (self.export)(model, exported)
    }
}

/// What becomes of a foreign tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mapping {
    /// What is made of it: mostly one tensor; several where it is stored interleaved.
    Made(Vec<MappedTensor>),
    /// The same behind vectors that are no tensors of the checkpoint: names and values.
    Behind(Vec<(String, Vec<f32>)>, Vec<MappedTensor>),
    /// The tensor of this name, unless another foreign tensor has become it already: what a
    /// checkpoint may store more than once.
    Shared(&'static str),
    /// Nothing: a buffer that programs compute themselves.
    Dropped,
    /// Nothing, provided that it holds zeros: programs have no place for it.
    DroppedIfZero,
    /// The family does not know it.
    Unknown,
}

impl Mapping {
    /// One tensor, after these steps.
    pub(super) fn one(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        Self::Made(vec![MappedTensor { name: name.into(), steps: steps.into(), slot: None }])
    }

    /// One of several parts of a tensor, as it is.
    pub(super) fn slot(name: String, slot: ExpertSlot) -> Self {
        Self::Made(vec![MappedTensor { name, steps: Vec::new(), slot: Some(slot) }])
    }
}

/// A tensor of the output, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MappedTensor {
    /// Name in the output, of the whole.
    pub name: String,
    /// What is done to the foreign tensor, in order.
    pub steps: Vec<Step>,
    /// Which part of the whole it is; `None` for all of it.
    pub slot: Option<ExpertSlot>,
}

/// One of several parts of a tensor: the matrix of one expert among those of all, the norm of one
/// head. Parts follow one another along a new, slowest dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpertSlot {
    /// Which one, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}
