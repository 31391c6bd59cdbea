//! The tables of single architectures, one file per family.

mod baichuan;
mod bert;
mod clip;
mod command_r;
mod compressed;
mod deci;
mod deepseek;
mod dots;
mod drafts;
mod exaone;
mod falcon;
mod gemma;
mod glm;
mod gpt;
mod gpt_oss;
mod grok;
mod hybrid;
mod lfm2;
mod llama;
mod mamba;
mod mellum;
mod nemotron;
mod olmo;
mod phi;
mod plamo;
mod qwen;
mod qwen_next;
mod rwkv;
mod seeing;
mod speaking;
mod stablelm;
mod t5;
mod valued;
mod wavtokenizer;
mod whisper;
mod windowed;

use crate::schema::architecture::{Architecture, Block, Item};

/// All architectures that the tables know.
pub static ARCHITECTURES: &[&Architecture] = &[
    &llama::LLAMA,
    &llama::LLAMA_EMBED,
    &llama::MISTRAL3,
    &llama::ARCEE,
    &llama::SEED_OSS,
    &llama::MAINCODER,
    &llama::HUNYUAN_DENSE,
    &llama::JAIS2,
    &llama::ORION,
    &llama::ERNIE4_5,
    &llama::ERNIE4_5_MOE,
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
    &gpt::CODESHELL,
    &gpt::STARCODER2,
    &gpt_oss::GPT_OSS,
    &falcon::FALCON,
    &stablelm::STABLELM,
    &phi::PHI2,
    &phi::PHI3,
    &phi::PHIMOE,
    &qwen::QWEN2,
    &qwen::QWEN2MOE,
    &qwen::QWEN3,
    &qwen::QWEN3MOE,
    &qwen::QWEN2VL,
    &qwen::QWEN3VL,
    &qwen::QWEN3VLMOE,
    &qwen::DREAM,
    &qwen::RND1,
    &qwen::LLADA_MOE,
    &gemma::GEMMA,
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gemma::GEMMA_EMBEDDING,
    &olmo::OLMO,
    &olmo::OLMO2,
    &olmo::OLMOE,
    &olmo::EXAONE4,
    &command_r::COMMAND_R,
    &command_r::COHERE2,
    &glm::CHATGLM,
    &glm::GLM4,
    &glm::GLM4_MOE,
    &deepseek::DEEPSEEK,
    &deepseek::DEEPSEEK2,
    &deepseek::BAILING_MOE,
    &deepseek::BAILING_MOE2,
    &dots::DOTS1,
    &dots::MINIMAX_M2,
    &dots::AFMOE,
    &lfm2::LFM2,
    &lfm2::LFM2_MOE,
    &deepseek::DEEPSEEK32,
    &deepseek::GLM_DSA,
    &deepseek::KIMI_LINEAR,
    &qwen_next::QWEN3NEXT,
    &qwen_next::QWEN35,
    &qwen_next::QWEN35MOE,
    &qwen_next::QWEN4EXP,
    &exaone::EXAONE,
    &exaone::EXAONE_MOE,
    &exaone::HY_V3,
    &gemma::GEMMA3N,
    &gemma::GEMMA4,
    &hybrid::JAMBA,
    &hybrid::GRANITE_HYBRID,
    &hybrid::NEMOTRON_H,
    &hybrid::NEMOTRON_H_MOE,
    &mellum::MELLUM,
    &mellum::MAPLE,
    &mellum::SMALLTHINKER,
    &mellum::SPARK2_5,
    &mellum::GRANITE_SWA,
    &mellum::COHERE2_MOE,
    &nemotron::NEMOTRON,
    &nemotron::OPENELM,
    &nemotron::DBRX,
    &nemotron::REFACT,
    &compressed::MINICPM3,
    &compressed::PLM,
    &llama::NANBEIGE,
    &llama::PANGU_EMBEDDED,
    &hybrid::FALCON_H1,
    &seeing::PADDLEOCR,
    &seeing::HUNYUAN_VL,
    &seeing::CHAMELEON,
    &seeing::COGVLM,
    &seeing::DEEPSEEK2_OCR,
    &grok::GROK,
    &grok::GROVEMOE,
    &deci::DECI,
    &deci::LLADA,
    &deci::HRM_TEXT,
    &dots::MINIMAX_M3,
    &windowed::STEP35,
    &windowed::MIMO2,
    &windowed::LAGUNA,
    &llama::XVERSE,
    &grok::ARCTIC,
    &qwen::QWEN,
    &plamo::PLAMO,
    &plamo::PLAMO2,
    &plamo::PLAMO3,
    &exaone::HUNYUAN_MOE,
    &rwkv::RWKV6_QWEN2,
    &rwkv::ARWKV7,
    &drafts::EAGLE3,
    &drafts::DFLASH,
    &valued::APERTUS,
    &valued::TALKIE,
    &valued::BITNET,
    &gpt::JAIS,
    &dots::MINIMAX_01,
    &gemma::MUSE_GLIMMER,
    &gemma::GEMMA4_ASSISTANT,
    &deepseek::HY_V4,
    &deepseek::BAILING_MOE3,
    &deepseek::GLM5_NEXT,
    &deepseek::DOTS3_NOTE,
    &deepseek::KIMI_K3,
    &deepseek::MISTRAL4,
    &deepseek::DEEPSEEK4,
    &llama::GRANITE_SWITCH,
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
    &bert::MODERN_BERT,
    &bert::EUROBERT,
    &bert::NEO_BERT,
    &t5::T5,
    &t5::T5ENCODER,
    &whisper::WHISPER,
    &wavtokenizer::WAVTOKENIZER,
    &speaking::QWEN3_TTS,
    &speaking::POCKET_TTS,
    &clip::CLIP,
];

/// The usual layers: `blk.0.` and so on, `block_count` of them.
const fn layers(items: &'static [Item]) -> Block {
    Block { prefix: "blk.", from: "0", to: "n_layer", items }
}
