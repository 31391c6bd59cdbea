//! `vocab.txt`: BERT, a piece in each line.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{Assembled, added_tokens, template};
use crate::Error;
use crate::vocab::files::Files;

const SPECIAL: &[&str] = &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

pub(super) fn assemble(files: &Files, path: PathBuf) -> Result<Assembled, Error> {
    let text = std::fs::read_to_string(&path).map_err(|source| Error::read(&path, source))?;
    // Line by line by the line break only: other characters that break lines are pieces.
    let lines = text.strip_suffix('\n').unwrap_or(&text).split('\n');
    let vocab: Map<String, Value> = lines
        .zip(0u64..)
        .map(|(line, id)| (line.strip_suffix('\r').unwrap_or(line).to_owned(), id.into()))
        .collect();
    let added = added_tokens(files, &vocab, SPECIAL)?;
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
    // The class has these unless told otherwise.
    let roles = vec![
        ("unk_token", "[UNK]"),
        ("sep_token", "[SEP]"),
        ("pad_token", "[PAD]"),
        ("cls_token", "[CLS]"),
        ("mask_token", "[MASK]"),
    ];
    Ok(Assembled { tokenizer, path, states_cuts: true, roles })
}
