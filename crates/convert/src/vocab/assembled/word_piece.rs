//! `vocab.txt` of BERT: one piece per line.

use gguf::Error;
use serde_json::{Map, Value, json};

use super::{Assembled, added_tokens, template};
use crate::vocab::files::Files;

/// File name.
pub(super) const FILE: &str = "vocab.txt";

const SPECIAL: &[&str] = &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

pub(super) fn assemble(files: &Files) -> Result<Assembled, Error> {
    let text = files.text(FILE)?;
    // Only `\n` ends a line: other line break characters are pieces.
    let lines = text.strip_suffix('\n').unwrap_or(&text).split('\n');
    let vocab: Map<String, Value> = lines
        .zip(0u64..)
        .map(|(line, id)| (line.strip_suffix('\r').unwrap_or(line).to_owned(), id.into()))
        .collect();
    let added = added_tokens(files, &vocab, SPECIAL)?;
    let known: Vec<_> = SPECIAL.iter().copied().filter(|text| vocab.contains_key(*text)).collect();
    let flag = |key, default| files.tokenizer_config_bool(key).unwrap_or(default);
    let strip_accents = files.tokenizer_config_bool("strip_accents");
    let tokenizer = json!({
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer",
            "handle_chinese_chars": flag("tokenize_chinese_chars", true),
            "lowercase": flag("do_lower_case", true),
            "strip_accents": strip_accents,
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": template(&["[CLS]"], "[SEP]"),
        "decoder": { "type": "WordPiece" },
        "model": { "type": "WordPiece", "vocab": vocab },
    });
    // Defaults of the class.
    let roles = ["unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
    let texts = ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"];
    let roles = roles.into_iter().zip(texts).filter(|(_, text)| known.contains(text)).collect();
    Ok(Assembled { tokenizer, path: files.path(FILE), has_pre_tokenizer: true, roles })
}
