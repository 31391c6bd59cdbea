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

    /// Fields that a configuration may leave out, because the class in `transformers` completes
    /// them.
    fn complete(&self, config: &mut Config) -> Result<(), Error> {
        let _ = config;
        Ok(())
    }

    /// Keys that stand before all others in a file of the official converter, which writes them
    /// while it computes tensors.
    fn first_metadata(&self, config: &Config, metadata: &mut Metadata) -> Result<(), Error> {
        let _ = (config, metadata);
        Ok(())
    }

    /// The hyper-parameters, as keys under the architecture's name.
    ///
    /// `file_type` is the number of the mix, which stands among them.
    fn metadata(
        &self,
        config: &Config,
        file_type: u32,
        metadata: &mut Metadata,
    ) -> Result<(), Error>;

    /// What becomes of a foreign tensor.
    fn tensor(&self, config: &Config, name: &str) -> Result<Target, Error>;

    /// What leads back from a GGUF; `None` if the model is not of this family but of another of
    /// the same architecture.
    fn exported(&self, model: &Model) -> Option<Exported> {
        let _ = model;
        None
    }

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
    /// Nothing, provided that it holds zeros: programs have no place for it.
    DroppedIfZero,
    /// The family does not know it.
    Unknown,
}

impl Target {
    /// One tensor as it is, if the family has a name for it.
    pub(crate) fn renamed(name: Option<String>) -> Self {
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

pub(crate) use exported::Exported;
pub(crate) use hyper::llama3_factors;

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
    &qwen_moe::QWEN2,
    &qwen_moe::QWEN3,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &phi::Phi2,
    &phi::Phi3,
    &stablelm::StableLm,
    &olmo::Olmo,
    &olmo::Olmo2,
    &cohere::Cohere,
    &cohere::Cohere2,
    &granite::GRANITE,
    &granite::GRANITE_MOE,
    &smollm3::SmolLm3,
    &internlm2::InternLm2,
    &minicpm::MiniCpm,
    &deepseek::DeepSeek2,
    &glm::Glm4,
    &baichuan::Baichuan,
    &chatglm::ChatGlm,
    &llama4::Llama4,
    &gpt_oss::GptOss,
];

/// The family that converts this class.
pub(crate) fn find(class: &str) -> Option<&'static dyn Family> {
    FAMILIES.iter().copied().find(|family| family.classes().contains(&class))
}

/// Whether there is a family that converts to this architecture.
pub(crate) fn is_known(architecture: &str) -> bool {
    FAMILIES.iter().any(|family| family.architecture() == architecture)
}

/// The family of a model, and what leads back from it.
pub(crate) fn exported(model: &Model) -> Option<(&'static dyn Family, Exported)> {
    let architecture = model.metadata().architecture()?;
    let mut families = FAMILIES.iter().filter(|family| family.architecture() == architecture);
    families.find_map(|family| Some((*family, family.exported(model)?)))
}

/// The class that `--like` asks for: itself, or the first of the family of that architecture.
pub(crate) fn class_like(name: &str) -> Option<&'static str> {
    let classes = FAMILIES.iter().flat_map(|family| family.classes()).copied();
    let of_family = || {
        let mut families = FAMILIES.iter();
        let family = families.find(|family| family.architecture().eq_ignore_ascii_case(name))?;
        family.classes().first().copied()
    };
    classes.into_iter().find(|class| class.eq_ignore_ascii_case(name)).or_else(of_family)
}

/// The classes of families in which every one of these tensors has a place.
pub(crate) fn classes_with_tensors<'n>(
    config: &Config,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Vec<&'static str> {
    let fitting = FAMILIES.iter().filter(|family| {
        let mut config = config.clone();
        family.complete(&mut config).is_ok()
            && names.clone().all(|name| has_place(**family, &config, &foreign::text_name(name)))
    });
    fitting.filter_map(|family| family.classes().first().copied()).collect()
}

fn has_place(family: &dyn Family, config: &Config, name: &str) -> bool {
    match family.tensor(config, name) {
        Ok(Target::Made(made)) => {
            let schema = gguf::schema::architecture(family.architecture());
            made.iter().all(|made| schema.is_none_or(|schema| is_listed(schema, &made.name)))
        }
        Ok(Target::Unknown) | Err(_) => false,
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
    let mut classes: Vec<_> =
        FAMILIES.iter().flat_map(|family| family.classes()).copied().collect();
    classes.sort_unstable();
    classes
}
