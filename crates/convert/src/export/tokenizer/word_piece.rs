//! `tokenizer.json` and `vocab.txt` of WordPiece vocabularies.

use std::collections::HashSet;

use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::json::{added, bert, file};
use super::{File, Tokenizer, Vocabulary, json_file, post_processor};

/// Prefix of pieces that start a word in GGUF.
const START: char = '\u{2581}';

pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    let pieces = pieces(vocabulary);
    // BERT's roles of the tokens that start and end a text.
    if let Some(first) = config.remove("bos_token") {
        config.insert("cls_token".into(), first);
    }
    if config.contains_key("sep_token") && config.get("eos_token") == config.get("sep_token") {
        config.remove("eos_token");
    }
    let flag = |name: &str| vocabulary.metadata.bool(&format!("tokenizer.ggml.normalizer.{name}"));
    let (lowercase, strip_accents) = (flag("lowercase").unwrap_or(true), flag("strip_accents"));
    let unknown = config.get("unk_token").cloned().unwrap_or_else(|| "[UNK]".into());
    let listed = pieces.iter().enumerate().filter_map(|(id, piece)| Some((id, piece.as_ref()?)));
    let vocab: Map<String, Value> =
        listed.clone().map(|(id, piece)| (piece.clone(), id.into())).collect();
    let mut tokenizer = file(json!({
        "type": "WordPiece",
        "unk_token": unknown,
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocab,
    }));
    tokenizer["added_tokens"] = listed
        .filter_map(|(id, piece)| {
            let kind = vocabulary.tokens.get(id)?.kind;
            matches!(kind, TokenType::Control | TokenType::UserDefined)
                .then(|| added(vocabulary, id, piece, kind, false))
        })
        .collect();
    tokenizer["normalizer"] = bert(lowercase, strip_accents, true);
    tokenizer["pre_tokenizer"] = json!({ "type": "BertPreTokenizer" });
    tokenizer["decoder"] = json!({ "type": "WordPiece", "prefix": "##", "cleanup": true });
    post_processor::fill(vocabulary, &mut tokenizer, config);
    config.insert("do_lower_case".into(), lowercase.into());
    config.insert("strip_accents".into(), strip_accents.into());
    config.insert("tokenizer_class".into(), "BertTokenizer".into());
    out.files.push(json_file("tokenizer.json", &tokenizer));

    // The line number is the id.
    let lines = pieces.iter().enumerate().map(|(id, piece)| match piece {
        Some(piece) => format!("{piece}\n"),
        None => format!("[unused{id}]\n"),
    });
    out.files.push(File { name: "vocab.txt", bytes: lines.collect::<String>().into_bytes() });
}

/// Returns the pieces with the mark on those that continue a word; `None` for padding.
fn pieces(vocabulary: &Vocabulary) -> Vec<Option<String>> {
    let is_padding = |id: usize, text: &str| text == format!("{START}[PAD{id}]");
    let starts = |text: &str| text.strip_prefix(START).map(str::to_owned);
    let mut taken: HashSet<String> = vocabulary
        .tokens
        .iter()
        .filter(|token| token.kind == TokenType::Control)
        .map(|t| t.text.into())
        .collect();
    let mut pieces: Vec<Option<String>> = (vocabulary.tokens.iter().enumerate())
        .map(|(id, token)| match token.kind {
            TokenType::Unused if is_padding(id, token.text) => None,
            TokenType::Control => Some(token.text.to_owned()),
            // Other converters mark added tokens too.
            TokenType::UserDefined => {
                let text = starts(token.text).unwrap_or_else(|| token.text.to_owned());
                Some(if taken.insert(text.clone()) { text } else { format!("##{}", token.text) })
            }
            _ => {
                // A continuation piece can be the mark itself.
                let start = starts(token.text).filter(|text| !text.is_empty());
                let free = start.filter(|text| taken.insert(text.clone()));
                Some(free.unwrap_or_else(|| format!("##{}", token.text)))
            }
        })
        .collect();
    let last = pieces.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    pieces.truncate(last);
    pieces
}
