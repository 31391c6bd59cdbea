//! Integration tests of the crate.

mod encode_memory;
mod fuzz_seeds;
mod llama_cpp_compat;
mod llama_cpp_vocabularies;
mod renderer_instance;
mod renderer_process;
mod rwkv;
mod special_tokens;
mod support;
mod template_expressions;
mod template_lint;
mod template_llama_cpp;
mod template_prompts;
mod template_rendering;
mod template_resources;
mod tokenizer;
mod tokenizer_diff;
mod unigram;
mod wordpiece;
