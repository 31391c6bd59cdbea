//! Token types as corrected by llama.cpp, which recognises some tokens by their texts.

use gguf_models::token::TokenType;
use hashbrown::HashMap;

use crate::vocabulary::Vocabulary;

/// End-of-text and end-of-turn tokens: control tokens, regardless of their type in the file.
const END_TOKENS: [&str; 22] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "[e~[",
];

/// Fill-in-the-middle (FIM) tokens: their roles, and the texts by which a token is recognised if no
/// key names it.
const FIM_TOKENS: [(&str, &[&str]); 6] = [
    (
        "fim_pre",
        &[
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<\u{ff5c}fim\u{2581}begin\u{ff5c}>",
            "<PRE>",
            "\u{2581}<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ],
    ),
    (
        "fim_suf",
        &[
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<\u{ff5c}fim\u{2581}hole\u{ff5c}>",
            "<SUF>",
            "\u{2581}<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ],
    ),
    (
        "fim_mid",
        &[
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<\u{ff5c}fim\u{2581}end\u{ff5c}>",
            "<MID>",
            "\u{2581}<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ],
    ),
    ("fim_pad", &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"]),
    ("fim_rep", &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"]),
    ("fim_sep", &["<|file_sep|>"]),
];

/// Message markers of gpt-oss: always parsed.
const GPT_OSS_TOKENS: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// Returns the token types that llama.cpp uses to parse special tokens.
pub(super) fn types(vocabulary: &Vocabulary<'_>) -> Vec<TokenType> {
    let mut types = vocabulary.types.clone();
    let fim = FIM_TOKENS.iter().flat_map(|(_, texts)| texts.iter());
    let names = END_TOKENS.iter().chain(fim).chain(&GPT_OSS_TOKENS);
    let mut ids: HashMap<&[u8], Option<usize>> =
        names.map(|name| (name.as_bytes(), None)).collect();
    for (id, token) in vocabulary.tokens.iter().enumerate() {
        if let Some(place) = ids.get_mut(token) {
            *place = Some(id);
        }
    }
    let id = |name: &str| ids.get(name.as_bytes()).copied().flatten();
    let mut set = |id: Option<usize>, kind| {
        if let Some(place) = id.and_then(|id| types.get_mut(id)) {
            *place = kind;
        }
    };
    for (role, texts) in FIM_TOKENS {
        // A key that names a token that does not exist is ignored.
        if !vocabulary.names(role) {
            // llama.cpp takes any of several; this takes the first.
            set(texts.iter().filter_map(|text| id(text)).min(), TokenType::Control);
        }
    }
    END_TOKENS.iter().for_each(|name| set(id(name), TokenType::Control));
    GPT_OSS_TOKENS.iter().for_each(|name| set(id(name), TokenType::UserDefined));
    // If these tokens end a message, `<|end|>` only ends a part of it.
    let has = |name| id(name).is_some();
    let calls = has("<|call|>") || has("<|calls|>");
    if calls && (has("<|return|>") || has("<|flush|>")) {
        set(id("<|end|>"), TokenType::UserDefined);
    }
    // In Gemma 4, `</s>` is an HTML tag.
    if has("<|tool_response>") {
        set(id("</s>"), TokenType::Normal);
    }
    types
}
