//! Model families: one small file each, registered by class name.
//!
//! A family says which hyper-parameters become which metadata, which foreign tensor becomes which
//! of ours, and what happens to its rows on the way.

mod bert;
mod bloom;
mod falcon;
mod gpt2;
mod gptj;
mod gptneox;
mod hyper;
mod llama;
mod mamba;
mod mpt;
mod names;
mod nomic_bert;
mod qwen;
mod rwkv;
mod starcoder;
mod t5;
mod whisper;

use gguf::Metadata;

use crate::Error;
use crate::config::Config;
use crate::step::Step;
use crate::vocab;

/// What a family knows.
pub(crate) trait Family: Sync {
    /// The class names in `architectures` that it converts.
    fn classes(&self) -> &'static [&'static str];

    /// `general.architecture` of the result.
    fn architecture(&self) -> &'static str;

    /// Which tokenizer files the family ships.
    fn vocabulary(&self) -> vocab::Kind;

    /// The pre-tokenizers that it prefers among those of the same structure, best first.
    fn pre_tokenizers(&self) -> &'static [&'static str];

    /// Rows of the embedding: ids below it that no token has become padding.
    fn vocab_size(&self, config: &Config) -> Result<Option<u32>, Error> {
        config.u32(&["vocab_size"])
    }

    /// The hyper-parameters, as keys under the architecture's name.
    ///
    /// `file_type` is the number of the mix, which stands among them.
    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata<'static>,
    ) -> Result<(), Error>;

    /// What becomes of a foreign tensor.
    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error>;

    /// Tensors that no file holds: names, and values of one dimension.
    fn computed(&self, config: &Config) -> Result<Vec<(String, Vec<f32>)>, Error> {
        let _ = config;
        Ok(Vec::new())
    }
}

/// What becomes of a foreign tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// What is made of it: mostly one tensor; several where it is stored fused.
    Made(Vec<Made>),
    /// The tensor of this name, unless another foreign tensor has become it already: what a
    /// checkpoint may store more than once.
    Shared(&'static str),
    /// Nothing: a buffer that programs compute themselves.
    Dropped,
    /// The family does not know it.
    Unknown,
}

impl Target {
    /// One tensor as it is, if the family has a name for it.
    pub(crate) fn named(name: Option<String>) -> Self {
        name.map_or(Self::Unknown, |name| Self::one(name, []))
    }

    /// One tensor, after these steps.
    pub(crate) fn one(name: impl Into<String>, steps: impl Into<Vec<Step>>) -> Self {
        Self::Made(vec![Made { name: name.into(), steps: steps.into(), part: None }])
    }
}

/// A tensor of the output, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Made {
    /// Name in the output, of the whole.
    pub name: String,
    /// What is done to the foreign tensor, in order.
    pub steps: Vec<Step>,
    /// Which part of the whole it is; `None` for all of it. Parts follow one another along a new,
    /// slowest dimension.
    pub part: Option<Part>,
}

/// One of several parts of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Which one, from 0.
    pub index: u32,
    /// How many there are.
    pub count: u32,
}

const FAMILIES: &[&dyn Family] = &[
    &llama::Llama,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &gpt2::Gpt2,
    &gptj::GptJ,
    &gptneox::GptNeoX,
    &mpt::Mpt,
    &bloom::Bloom,
    &falcon::Falcon,
    &starcoder::StarCoder,
    &starcoder::StarCoder2,
    &mamba::Mamba::First,
    &mamba::Mamba::Second,
    &rwkv::Rwkv4,
    &whisper::Whisper,
    &bert::Bert::Bert,
    &bert::Bert::Roberta,
    &nomic_bert::NomicBert,
    &t5::T5::Both,
    &t5::T5::Encoder,
];

/// The family that converts this class.
pub(crate) fn find(class: &str) -> Option<&'static dyn Family> {
    FAMILIES.iter().copied().find(|family| family.classes().contains(&class))
}

/// All class names that can be converted, in alphabetical order.
pub fn classes() -> Vec<&'static str> {
    let mut classes: Vec<_> =
        FAMILIES.iter().flat_map(|family| family.classes()).copied().collect();
    classes.sort_unstable();
    classes
}
