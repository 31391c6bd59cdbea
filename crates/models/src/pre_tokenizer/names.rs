//! Values of `tokenizer.ggml.pre` that llama.cpp accepts (`llama-vocab.cpp`).

/// Groups of names with the same pre-tokenizer; the most common name is first.
pub const NAMES: &[&[&str]] = &[
    &["default"],
    &[
        "gpt-2",
        "mpt",
        "olmo",
        "jais",
        "phi-2",
        "jina-es",
        "jina-de",
        "jina-v2-es",
        "jina-v2-de",
        "gigachat",
        "a.x-4.0",
        "mellum",
        "modern-bert",
        "exaone4",
    ],
    &["trillion", "granite-docling"],
    &["roberta-bpe", "jina-v1-en", "jina-v2-code"],
    &["starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"],
    &["command-r", "smollm"],
    &["falcon"],
    &["chameleon"],
    &[
        "llama-bpe",
        "llama3",
        "llama-v3",
        "falcon3",
        "falcon-h1",
        "pixtral",
        "midm-2.0",
        "lfm2",
        "jina-v5-nano",
    ],
    &["dbrx", "smaug-bpe"],
    &["glm4", "glm5"],
    &["chatglm-bpe"],
    &["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2"],
    &["stablelm2", "megrez"],
    &["qwen35"],
    &["jais-2"],
    &["minicpm5"],
    &["laguna"],
    &["bailingmoe", "bailingmoe2", "llada-moe"],
    &["seed-coder"],
    &["ufakzeka"],
    &["exaone-moe"],
    &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
    &["granite-embed-multi-97m"],
    &["tekken"],
    &["kimi-k2"],
    &["tiny_aya", "cohere2moe"],
    &["youtu"],
    &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
    &["spark2_5"],
    &["deepseek-llm"],
    &["deepseek-coder"],
    &["bloom", "gpt3-finnish"],
    &["poro-chat"],
    &["viking"],
    &["superbpe"],
    &["gemma4", "granite-embed-multi-311m"],
    &["sarvam-moe"],
    &["afmoe"],
    &["whitespace"],
];

/// Returns all names with the same pre-tokenizer as `name`, the most common first; empty if `name` is
/// unknown.
pub fn aliases(name: &str) -> &'static [&'static str] {
    NAMES.iter().find(|names| names.contains(&name)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_is_listed_once() {
        let mut seen = HashSet::new();
        assert!(NAMES.iter().copied().flatten().all(|name| seen.insert(name)));
        assert_eq!(aliases("llama3")[0], "llama-bpe");
        assert!(aliases("LLAMA3").is_empty());
    }
}
