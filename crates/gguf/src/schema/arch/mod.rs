//! The tables of single architectures, one file per family.

mod baichuan;
mod bert;
mod clip;
mod command_r;
mod deepseek;
mod falcon;
mod gemma;
mod glm;
mod gpt;
mod gpt_oss;
mod llama;
mod mamba;
mod olmo;
mod phi;
mod qwen;
mod rwkv;
mod stablelm;
mod t5;
mod whisper;

use crate::schema::architecture::{Architecture, Block, Item};

/// All architectures that the tables know.
pub static ARCHITECTURES: &[&Architecture] = &[
    &llama::LLAMA,
    &llama::LLAMA4,
    &llama::SMOLLM3,
    &llama::GRANITE,
    &llama::GRANITE_MOE,
    &llama::MINICPM,
    &llama::INTERNLM2,
    &baichuan::BAICHUAN,
    &gpt::GPT2,
    &gpt::GPTJ,
    &gpt::GPTNEOX,
    &gpt::BLOOM,
    &gpt::MPT,
    &gpt::STARCODER,
    &gpt::STARCODER2,
    &gpt_oss::GPT_OSS,
    &falcon::FALCON,
    &stablelm::STABLELM,
    &phi::PHI2,
    &phi::PHI3,
    &qwen::QWEN2,
    &qwen::QWEN2MOE,
    &qwen::QWEN3,
    &qwen::QWEN3MOE,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gemma::GEMMA_EMBEDDING,
    &olmo::OLMO,
    &olmo::OLMO2,
    &command_r::COMMAND_R,
    &command_r::COHERE2,
    &glm::CHATGLM,
    &glm::GLM4,
    &deepseek::DEEPSEEK2,
    &mamba::MAMBA,
    &mamba::MAMBA2,
    &rwkv::RWKV,
    &rwkv::RWKV6,
    &rwkv::RWKV7,
    &bert::BERT,
    &bert::NOMIC_BERT,
    &bert::NOMIC_BERT_MOE,
    &bert::JINA_BERT_V2,
    &bert::JINA_BERT_V3,
    &t5::T5,
    &t5::T5ENCODER,
    &whisper::WHISPER,
    &clip::CLIP,
];

/// The usual layers: `blk.0.` and so on, `block_count` of them.
const fn layers(items: &'static [Item]) -> Block {
    Block { prefix: "blk.", from: "0", to: "n_layer", items }
}
