//! The types of tokens as llama.cpp corrects them: it knows some by their texts.

use gguf_models::token::TokenType;
use hashbrown::HashMap;

use crate::vocabulary::Vocabulary;

/// Ends of texts and turns: control tokens, whatever the file says.
const ENDS: [&str; 22] = [
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

/// The parts of a text with a hole: their roles, and the texts by which a token is
/// found that no key names.
const HOLES: [(&str, &[&str]); 6] = [
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

/// The parts of a message of gpt-oss: always cut out.
const PARTS: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// The types by which llama.cpp cuts tokens out of a text.
pub(super) fn types(vocabulary: &Vocabulary<'_>) -> Vec<TokenType> {
    let mut types = vocabulary.types.clone();
    let holes = HOLES.iter().flat_map(|(_, texts)| texts.iter());
    let names = ENDS.iter().chain(holes).chain(&PARTS);
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
    for (role, texts) in HOLES {
        // A key with a token that does not exist is passed over.
        if !vocabulary.names(role) {
            // Of several it takes any; here it is the first.
            set(texts.iter().filter_map(|text| id(text)).min(), TokenType::Control);
        }
    }
    ENDS.iter().for_each(|name| set(id(name), TokenType::Control));
    PARTS.iter().for_each(|name| set(id(name), TokenType::UserDefined));
    // Where these end a message, `<|end|>` only ends a part of it.
    let has = |name| id(name).is_some();
    let calls = has("<|call|>") || has("<|calls|>");
    if calls && (has("<|return|>") || has("<|flush|>")) {
        set(id("<|end|>"), TokenType::UserDefined);
    }
    // Gemma 4 has it as a tag of HTML.
    if has("<|tool_response>") {
        set(id("</s>"), TokenType::Normal);
    }
    types
}
