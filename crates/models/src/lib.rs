//! Model architectures, one folder per value of `general.architecture`.
//!
//! A folder has up to three files: `schema.rs` (metadata keys and tensors), `convert.rs` (conversion
//! from Hugging Face checkpoints and back; feature `convert`) and `graph.rs` (the computation graph;
//! feature `graph`). [`registry`] lists all architectures. Shared parts are in `blocks/` (layers of
//! graphs), `convert/` (tools of converters), `schema/` (the table of keys, groups of tensors) and
//! `mmproj/` (vision and audio encoders).
//!
//! ```
//! use gguf_models::schema;
//! let key = schema::key("llama.block_count").unwrap();
//! assert_eq!(key.name, "{arch}.block_count");
//! assert!(schema::architecture("llama").unwrap().required.concat().contains(&"block_count"));
//! ```

#[cfg(feature = "graph")]
mod blocks;
#[cfg(feature = "convert")]
pub mod convert;
#[cfg(feature = "graph")]
mod graph;
#[cfg(feature = "convert")]
pub mod mmproj;
pub mod ollama;
pub mod pre_tokenizer;
pub mod registry;
pub mod schema;
pub mod token;

#[cfg(feature = "graph")]
pub use graph::{
    DraftFeatures, GraphSource, Purpose, build as build_graph, build_for as build_graph_for,
    model_graph,
};

mod afmoe;
mod apertus;
mod arcee;
mod arctic;
mod arwkv7;
mod baichuan;
mod bailingmoe;
mod bailingmoe2;
mod bailingmoe3;
mod bert;
mod bitnet;
mod bloom;
mod chameleon;
mod chatglm;
mod clip;
mod codeshell;
mod cogvlm;
mod cohere2;
mod cohere2moe;
mod command_r;
mod dbrx;
mod deci;
mod deepseek;
mod deepseek2;
mod deepseek2_ocr;
mod deepseek32;
mod deepseek4;
mod dflash;
mod dots1;
mod dots3note;
mod dream;
mod eagle3;
mod ernie4_5;
mod ernie4_5_moe;
mod eurobert;
mod exaone;
mod exaone4;
mod exaone_moe;
mod falcon;
mod falcon_h1;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod gemma4_assistant;
mod gemma_embedding;
mod glm4;
mod glm4moe;
mod glm5_next;
mod glm_dsa;
mod gpt2;
mod gpt_oss;
mod gptj;
mod gptneox;
mod granite;
mod granite_swa;
mod granitehybrid;
mod granitemoe;
mod graniteswitch;
mod grok;
mod grovemoe;
mod hrm_text;
mod hunyuan_dense;
mod hunyuan_moe;
mod hunyuan_vl;
mod hy_v3;
mod hy_v4;
mod internlm2;
mod jais;
mod jais2;
mod jamba;
mod jina_bert_v2;
mod jina_bert_v3;
mod kimi_k3;
mod kimi_linear;
mod laguna;
mod lfm2;
mod lfm2moe;
mod llada;
mod llada_moe;
mod llama;
mod llama4;
mod llama_embed;
mod maincoder;
mod mamba;
mod mamba2;
mod maple;
mod mellum;
mod mimo2;
mod minicpm;
mod minicpm3;
mod minimax_01;
mod minimax_m2;
mod minimax_m3;
mod mistral3;
mod mistral4;
mod modern_bert;
mod mpt;
mod muse_glimmer;
mod nanbeige;
mod nemotron;
mod nemotron_h;
mod nemotron_h_moe;
mod neo_bert;
mod nomic_bert;
mod nomic_bert_moe;
mod olmo;
mod olmo2;
mod olmoe;
mod openelm;
mod orion;
mod paddleocr;
mod pangu_embedded;
mod phi2;
mod phi3;
mod phimoe;
mod plamo;
mod plamo2;
mod plamo3;
mod plm;
mod pockettts;
mod qwen;
mod qwen2;
mod qwen2moe;
mod qwen2vl;
mod qwen3;
mod qwen35;
mod qwen35moe;
mod qwen3moe;
mod qwen3next;
mod qwen3tts;
mod qwen3vl;
mod qwen3vlmoe;
mod qwen4exp;
mod refact;
mod rnd1;
mod rwkv;
mod rwkv6;
mod rwkv6qwen2;
mod rwkv7;
mod seed_oss;
mod smallthinker;
mod smollm3;
mod spark2_5;
mod stablelm;
mod starcoder;
mod starcoder2;
mod step35;
mod t5;
mod t5encoder;
mod talkie;
mod wavtokenizer_dec;
mod whisper;
mod xverse;
