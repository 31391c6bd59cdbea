//! Model families: one small file each, registered by class name.
//!
//! A family says which hyper-parameters become which metadata, which foreign tensor becomes which
//! of ours, and what happens to its rows on the way.

mod baichuan;
mod bert;
mod bloom;
mod chatglm;
mod cohere;
mod deepseek;
mod experts;
mod exported;
mod falcon;
pub(crate) mod foreign;
mod gemma;
mod glm;
mod gpt2;
mod gpt_oss;
mod gptj;
mod gptneox;
mod granite;
mod hyper;
mod internlm2;
mod llama;
mod llama4;
mod mamba;
mod minicpm;
mod mpt;
pub mod names;
mod nomic_bert;
mod olmo;
mod phi;
mod qwen;
mod qwen_moe;
mod rwkv;
mod smollm3;
mod stablelm;
mod starcoder;
mod t5;
mod whisper;

use gguf::{Error, Metadata};
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;
use gguf_store::Model;
use hyper::Keys;
use names::{LLAMA_LIKE, Table, renamed};

use crate::vocab;

/// Tensors that no file holds: names, and values of one dimension.
type Computed = Vec<(String, Vec<f32>)>;

/// What a family is: data, and functions for what differs from most families.
pub(crate) struct Family {
    /// The class names in `architectures` that it converts. The first is that of exports.
    pub classes: &'static [&'static str],
    /// `general.architecture` of the result.
    pub architecture: &'static str,
    /// `model_type` in configurations of the first class.
    model_type: &'static str,
    /// Which tokenizer files the family ships.
    pub vocabulary: vocab::Kind,
    /// The pre-tokenizers that it prefers among those of the same structure, best first.
    pub pre_tokenizers: &'static [&'static str],
    /// What foreign tensor names begin with; some checkpoints leave it out.
    prefix: &'static str,
    /// Foreign tensor names behind the prefix, and ours. The first that fits counts.
    names: &'static [Table],
    /// Keys under the architecture's name and the fields they come from, where exports need other
    /// fields than most, or other keys.
    fields: &'static [(&'static str, &'static str)],
    /// Fields whose other value asks for what no program computes with the architecture.
    expects: &'static [(&'static str, bool)],
    /// Sets fields that a configuration may leave out, because the class in `transformers`
    /// completes them.
    complete: fn(&mut Config) -> Result<(), Error>,
    /// Keys that stand before all others in a file of llama.cpp's converter, which writes them
    /// while it computes tensors.
    first_keys: fn(&Config, &mut Keys) -> Result<(), Error>,
    /// The hyper-parameters, as keys under the architecture's name.
    keys: fn(&Config, &mut Keys) -> Result<(), Error>,
    /// What becomes of a foreign tensor behind the prefix if `names` do not tell; asked before
    /// them.
    special: fn(&Config, &str) -> Result<Option<Mapping>, Error>,
    /// What is done to a tensor that `names` have, by our name.
    steps: fn(&Config, &str) -> Result<Vec<Step>, Error>,
    /// Tensors that no file holds.
    computed: fn(&Config) -> Result<Computed, Error>,
    /// What leads back from a GGUF beside the data above; `None` if the model is not of this
    /// family but of another of the same architecture.
    export: fn(&Model, Exported) -> Option<Exported>,
}

impl Family {
    /// A decoder named like llama, with a byte-level vocabulary, whose configuration says all.
    const DEFAULT: Self = Self {
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
        first_keys: |_, _| Ok(()),
        keys: |config, keys| keys.stated(config),
        special: |_, _| Ok(None),
        steps: |_, _| Ok(Vec::new()),
        computed: |_| Ok(Vec::new()),
        export: |_, exported| Some(exported),
    };

    /// Sets fields that a configuration may leave out.
    pub(crate) fn complete(&self, config: &mut Config) -> Result<(), Error> {
        (self.complete)(config)
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

    /// Tensors that no file holds.
    pub(crate) fn computed(&self, config: &Config) -> Result<Computed, Error> {
        (self.computed)(config)
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
    /// What is made of it: mostly one tensor; several where it is stored fused.
    Made(Vec<MappedTensor>),
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
    fn one(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        Self::Made(vec![MappedTensor { name: name.into(), steps: steps.into(), slot: None }])
    }

    /// One of several parts of a tensor, as it is.
    fn slot(name: String, slot: ExpertSlot) -> Self {
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

pub(crate) use exported::Exported;
pub(crate) use hyper::llama3_factors;

const FAMILIES: &[&Family] = &[
    &llama::LLAMA,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &gpt2::GPT2,
    &gptj::GPTJ,
    &gptneox::GPTNEOX,
    &mpt::MPT,
    &bloom::BLOOM,
    &falcon::FALCON,
    &starcoder::STARCODER,
    &starcoder::STARCODER2,
    &mamba::MAMBA,
    &mamba::MAMBA2,
    &rwkv::RWKV4,
    &whisper::WHISPER,
    &bert::BERT,
    &bert::ROBERTA,
    &nomic_bert::NOMIC_BERT,
    &t5::T5,
    &t5::T5_ENCODER,
    &qwen_moe::QWEN2MOE,
    &qwen_moe::QWEN3MOE,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &phi::PHI2,
    &phi::PHI3,
    &stablelm::STABLELM,
    &olmo::OLMO,
    &olmo::OLMO2,
    &cohere::COHERE,
    &cohere::COHERE2,
    &granite::GRANITE,
    &granite::GRANITE_MOE,
    &smollm3::SMOLLM3,
    &internlm2::INTERNLM2,
    &minicpm::MINICPM,
    &deepseek::DEEPSEEK2,
    &glm::GLM4,
    &baichuan::BAICHUAN,
    &chatglm::CHATGLM,
    &llama4::LLAMA4,
    &gpt_oss::GPT_OSS,
];

/// The family that converts this class.
pub(crate) fn find(class: &str) -> Option<&'static Family> {
    FAMILIES.iter().copied().find(|family| family.classes.contains(&class))
}

/// Whether there is a family that converts to this architecture.
pub(crate) fn is_known(architecture: &str) -> bool {
    FAMILIES.iter().any(|family| family.architecture == architecture)
}

/// The family of a model, and what leads back from it.
pub(crate) fn exported(model: &Model) -> Option<(&'static Family, Exported)> {
    let architecture = model.metadata().architecture()?;
    let mut families = FAMILIES.iter().filter(|family| family.architecture == architecture);
    families.find_map(|family| Some((*family, family.exported(model)?)))
}

/// The class that `--like` asks for: itself, or the first of the family of that architecture.
pub(crate) fn class_like(name: &str) -> Option<&'static str> {
    let classes = FAMILIES.iter().flat_map(|family| family.classes).copied();
    let of_family = || {
        let mut families = FAMILIES.iter();
        let family = families.find(|family| family.architecture.eq_ignore_ascii_case(name))?;
        family.classes.first().copied()
    };
    classes.into_iter().find(|class| class.eq_ignore_ascii_case(name)).or_else(of_family)
}

/// The first known class that has the body of this class under another head: for
/// `LlamaForTokenClassification` that is `LlamaForCausalLM`. `None` if it has no head.
pub(crate) fn class_with_body(class: &str) -> Option<&'static str> {
    let body = |class: &str| {
        let end = ["For", "LMHead", "Model"].iter().filter_map(|part| class.find(part)).min()?;
        Some(class[..end].to_ascii_lowercase())
    };
    let wanted = body(class).filter(|body| !body.is_empty() && !class.ends_with("Model"))?;
    let mut classes = FAMILIES.iter().flat_map(|family| family.classes).copied();
    classes.find(|known| body(known).is_some_and(|body| body == wanted))
}

/// The classes of families in which every one of these tensors has a place.
pub(crate) fn classes_with_tensors<'n>(
    config: &Config,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<&'static str> {
    let fitting = FAMILIES.iter().filter(|family| {
        let mut config = config.clone();
        family.complete(&mut config).is_ok()
            && names.clone().all(|name| has_place(family, &config, &foreign::text_name(name)))
    });
    fitting.filter_map(|family| family.classes.first().copied()).collect()
}

fn has_place(family: &Family, config: &Config, name: &str) -> bool {
    match family.mapping(config, name) {
        Ok(Mapping::Made(made)) => {
            let schema = gguf::schema::architecture(family.architecture);
            made.iter().all(|made| schema.is_none_or(|schema| is_listed(schema, &made.name)))
        }
        Ok(Mapping::Unknown) | Err(_) => false,
        Ok(_) => true,
    }
}

/// Whether files of an architecture have tensors of this name.
fn is_listed(schema: &'static gguf::schema::Architecture, name: &str) -> bool {
    let mut parts = name.split('.');
    let of_layer = match (parts.next(), parts.next()) {
        (Some("blk"), Some(number)) => name.replacen(number, "{i}", 1),
        _ => name.to_owned(),
    };
    schema.tensor_names().any(|(listed, _)| listed == of_layer)
}

/// All class names that can be converted, in alphabetical order.
pub fn classes() -> Vec<&'static str> {
    let mut classes: Vec<_> = FAMILIES.iter().flat_map(|family| family.classes).copied().collect();
    classes.sort_unstable();
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_architecture_that_converts_has_a_schema() {
        let without: Vec<_> = FAMILIES
            .iter()
            .map(|family| family.architecture)
            .filter(|name| gguf::schema::architecture(name).is_none())
            .collect();
        assert_eq!(without, [""; 0]);
    }
}
