//! `tokenizer.json` of a SentencePiece BPE vocabulary, for loaders that do not read model files.

use std::collections::HashMap;

use gguf_models::convert::VocabularyKind;
use gguf_models::token::TokenType;
use serde_json::{Map, Value, json};

use super::json::{added, case, file, sequence, spelled, vocab};
use super::merges::Merges;
use super::{Token, Tokenizer, Vocabulary, is_added, json_file, post_processor};

/// Maximum length of tokens with merges. Finding the merges takes quadratic time.
const MAX_LEN: usize = 1024;

pub(super) fn write(
    vocabulary: &Vocabulary,
    tokens: &[Token],
    space_prefix: bool,
    out: &mut Tokenizer,
    config: &mut Map<String, Value>,
) {
    let texts: Vec<String> = tokens.iter().map(|token| spelled(vocabulary, token)).collect();
    let tokens: Vec<Token> =
        tokens.iter().zip(&texts).map(|(token, text)| Token { text, ..*token }).collect();
    let unknown = tokens.iter().position(|token| token.kind == TokenType::Unknown);
    let unknown = unknown.or_else(|| usize::try_from(vocabulary.role("unk")?.0).ok());
    let unknown = unknown.and_then(|id| Some((id, tokens.get(id)?.text)));
    let merges = merges(&tokens);
    let reach = merges.reach.max(unknown.map_or(0, |(id, _)| id + 1));
    let mut tokenizer = file(json!({
        "type": "BPE",
        "dropout": null,
        "unk_token": unknown.map(|(_, text)| text),
        "continuing_subword_prefix": null,
        "end_of_word_suffix": null,
        "fuse_unk": true,
        "byte_fallback": true,
        "ignore_merges": false,
        "vocab": vocab(&tokens, reach),
        "merges": merges.list(),
    }));
    // Loaders of these kinds prefer this list to the model.
    let is_believed = matches!(vocabulary.kind, VocabularyKind::Phi3 | VocabularyKind::InternLm2);
    let is_listed = |(_, token): &(usize, &Token)| {
        is_added(token)
            || !is_believed && matches!(token.kind, TokenType::Control | TokenType::Unknown)
    };
    tokenizer["added_tokens"] = (tokens.iter().enumerate().filter(is_listed))
        .map(|(id, token)| {
            let kind =
                if token.kind == TokenType::Unknown { TokenType::Control } else { token.kind };
            added(vocabulary, id, token.text, kind, false)
        })
        .collect();
    let prepend = json!({ "type": "Prepend", "prepend": "\u{2581}" });
    let show = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" });
    let prefix = Some(prepend).filter(|_| space_prefix);
    let normalizers = case(vocabulary).into_iter().chain(prefix).chain([show]);
    tokenizer["normalizer"] = sequence("normalizers", normalizers.collect());
    let strip = json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 });
    let decoders = [
        json!({ "type": "Replace", "pattern": { "String": "\u{2581}" }, "content": " " }),
        json!({ "type": "ByteFallback" }),
        json!({ "type": "Fuse" }),
    ];
    let decoders = decoders.into_iter().chain(Some(strip).filter(|_| space_prefix));
    tokenizer["decoder"] = sequence("decoders", decoders.collect());
    post_processor::fill(vocabulary, &mut tokenizer, config);
    out.files.push(json_file("tokenizer.json", &tokenizer));
}

/// Returns all pairs of tokens that form a token, highest score first.
fn merges<'t>(tokens: &[Token<'t>]) -> Merges<'t> {
    let is_piece = |token: &&Token| {
        matches!(token.kind, TokenType::Normal | TokenType::UserDefined)
            && token.text.len() <= MAX_LEN
            && !token.text.contains(' ')
    };
    let pieces = || tokens.iter().enumerate().filter(|(_, token)| is_piece(token));
    let ids: HashMap<&str, usize> = pieces().map(|(id, token)| (token.text, id)).collect();
    let mut merges = Vec::new();
    for (_, token) in pieces() {
        // User-defined symbols come before trained tokens.
        let score = if token.kind == TokenType::UserDefined { 0.0 } else { token.score };
        let cuts = token.text.char_indices().skip(1).map(|(at, _)| token.text.split_at(at));
        let mut pairs: Vec<_> = cuts
            .filter_map(|(left, right)| Some((ids.get(left)?, ids.get(right)?, left, right)))
            .collect();
        pairs.sort_unstable();
        merges.extend(pairs.into_iter().map(|(_, _, left, right)| (score, (left, right))));
    }
    merges.sort_by(|(a, _), (b, _)| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal));
    Merges::new(tokens, merges.into_iter().map(|(_, merge)| merge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_come_in_the_order_of_scores() {
        let token = |(text, score, kind)| Token { text, score, kind };
        let tokens = [
            ("a", -3.0, TokenType::Normal),
            ("b", -4.0, TokenType::Normal),
            ("ab", -1.0, TokenType::Normal),
            ("ba", -0.0, TokenType::Normal),
            ("aba", -2.0, TokenType::Normal),
            ("bb", -1000.0, TokenType::UserDefined),
            ("aa", 0.0, TokenType::Control),
        ]
        .map(token);
        let merges = merges(&tokens);
        assert_eq!(merges.list(), json!(["b a", "b b", "a b", "a ba", "ab a"]));
        assert_eq!(merges.reach, 6);
    }
}
