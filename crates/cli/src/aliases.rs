//! Alternative names of commands.

/// Alternative names of commands, and the command or compatible program that they stand for.
const ALIASES: &[(&str, &str)] = &[
    ("dump", "gguf-dump"),
    ("set-metadata", "gguf-set-metadata"),
    ("new-metadata", "gguf-new-metadata"),
    ("gguf-split", "llama-gguf-split"),
    ("export-lora", "llama-export-lora"),
    ("info", "inspect"),
    ("show", "inspect"),
    ("ls", "inspect"),
    ("ppl", "perplexity"),
    ("run", "generate"),
    ("validate", "check"),
    ("benchmark", "bench"),
    ("kld", "divergence"),
    ("version", "--version"),
    ("llama-cli", "generate"),
    ("llama-run", "generate"),
    ("llama-simple", "generate"),
    ("llama-simple-chat", "chat"),
    ("llama-embedding", "embed"),
];

/// Returns the command or program that an alternative name stands for.
pub fn resolved(word: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name)
}

/// Returns the alternative names that are those of llama.cpp's programs.
pub fn programs() -> impl Iterator<Item = &'static str> {
    ALIASES.iter().map(|(alias, _)| *alias).filter(|alias| alias.starts_with("llama-"))
}
