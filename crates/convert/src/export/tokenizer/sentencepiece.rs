//! `tokenizer.model` (the message `ModelProto` of SentencePiece), and the files of its added tokens.
//!
//! Field numbers are those of `sentencepiece_model.proto`.

use std::collections::HashSet;

use gguf_models::convert::VocabularyKind;
use gguf_models::token::TokenType;
use serde_json::{Map, Value};

use super::json::{added, spelled};
use super::{File, Token, Tokenizer, Vocabulary, is_added, json_file, pairs, protobuf};
use crate::vocab::{Added, INTERNLM2_ZERO, PADDING_SCORE, SENTENCEPIECE};

/// Content of a model file.
pub(super) struct Model<'t> {
    pub pieces: Vec<(String, f32, TokenType)>,
    /// Model type: 1 for Unigram, 2 for BPE.
    pub algorithm: i64,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub charsmap: &'t [u8],
}

pub(super) const UNIGRAM: i64 = 1;
const PAIRS: i64 = 2;

/// Writes the model and a `tokenizer.json`, because some loaders read only one of them.
pub(super) fn write_with_json(
    vocabulary: &Vocabulary,
    out: &mut Tokenizer,
    config: &mut Map<String, Value>,
) {
    files(vocabulary, true, out, config);
}

/// Writes only the model.
pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    files(vocabulary, false, out, config);
}

/// Writes only a `tokenizer.json`, for tokens without scores.
pub(super) fn write_json(
    vocabulary: &Vocabulary,
    out: &mut Tokenizer,
    config: &mut Map<String, Value>,
) {
    config.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
    pairs::write(vocabulary, vocabulary.without_padding(0.0), true, out, config);
    vocabulary.set_flags(config);
}

fn files(
    vocabulary: &Vocabulary,
    with_json: bool,
    out: &mut Tokenizer,
    config: &mut Map<String, Value>,
) {
    let prefix = vocabulary.metadata.bool("tokenizer.ggml.add_space_prefix");
    if let Some(prefix) = prefix {
        config.insert("add_prefix_space".into(), prefix.into());
    }
    let tokens = vocabulary.without_padding(PADDING_SCORE);
    let mut decoder = Map::new();
    let mut beside = Map::new();
    for (id, token) in tokens.iter().enumerate().filter(|(_, token)| is_added(token)) {
        // The reader recognizes control tokens by their text, and replaces visible spaces. Tokens that it would change
        // go to the other file.
        match crate::vocab::added(vocabulary.kind, token.text, token.kind == TokenType::Control) {
            Added { text, is_control }
                if text == token.text && is_control == (token.kind == TokenType::Control) =>
            {
                let text = spelled(vocabulary, token);
                let mut entry = added(vocabulary, id, &text, token.kind, false);
                // The key is the id. Loaders reject an additional id.
                entry.as_object_mut().map(|fields| fields.remove("id"));
                decoder.insert(id.to_string(), entry);
            }
            _ => {
                beside.insert(token.text.to_owned(), id.into());
            }
        }
    }
    let model = Model {
        pieces: pieces(vocabulary, inner(tokens)),
        algorithm: PAIRS,
        add_dummy_prefix: prefix.unwrap_or(true),
        // Runtimes keep spaces.
        remove_extra_whitespaces: false,
        charsmap: &[],
    };
    if !model.pieces.iter().any(|(_, _, kind)| *kind == TokenType::Unknown) {
        out.notes.push(
            "the vocabulary has no unknown token: SentencePiece does not load such a model"
                .to_owned(),
        );
    }
    out.files.push(File { name: SENTENCEPIECE, bytes: model.bytes(vocabulary) });
    if !beside.is_empty() {
        out.files.push(json_file("added_tokens.json", &beside.into()));
    }
    config.insert("added_tokens_decoder".into(), decoder.into());
    if with_json {
        // This class loads the file unchanged; the models' own classes build their own tokenizer.
        config.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
        pairs::write(vocabulary, tokens, model.add_dummy_prefix, out, config);
    } else {
        let class = match vocabulary.kind {
            VocabularyKind::Gemma { .. } => "GemmaTokenizer",
            _ => "LlamaTokenizer",
        };
        config.insert("tokenizer_class".into(), class.into());
        // Runtimes add the space behind special tokens too.
        config.insert("legacy".into(), true.into());
    }
    vocabulary.set_flags(config);
}

/// Returns the tokens without the last ones that were added after training. Padding between added tokens must be a
/// piece, so that added tokens keep their ids.
fn inner<'t, 'm>(tokens: &'t [Token<'m>]) -> &'t [Token<'m>] {
    let last = tokens.iter().rposition(|token| !is_added(token));
    &tokens[..last.map_or(0, |last| last + 1)]
}

fn pieces(vocabulary: &Vocabulary, tokens: &[Token]) -> Vec<(String, f32, TokenType)> {
    let texts: HashSet<&str> = tokens.iter().map(|token| token.text).collect();
    let unknown = unknown(vocabulary, tokens);
    let zero = match vocabulary.kind {
        // The first token replaces it if there is also a real one.
        VocabularyKind::InternLm2 => tokens.iter().position(|token| token.text == INTERNLM2_ZERO),
        _ => None,
    };
    let is_symbol = symbols(tokens);
    let is_gemma = matches!(vocabulary.kind, VocabularyKind::Gemma { .. });
    let roles = ["bos", "eos", "pad"].map(|role| vocabulary.role(role));
    let has_role = |id: usize| roles.iter().flatten().any(|(role, _)| *role == id as u64);
    let piece = |(id, token): (usize, &Token)| {
        let kind = match token.kind {
            _ if Some(id) == unknown => TokenType::Unknown,
            _ if is_symbol(token) => TokenType::UserDefined,
            // Gemma matches turn tokens in texts.
            TokenType::Control if is_gemma && is_added(token) && !has_role(id) => {
                TokenType::UserDefined
            }
            kind => kind,
        };
        let text = match token.text {
            _ if Some(id) == zero => "\0".to_owned(),
            text if kind == TokenType::UserDefined => {
                let visible = text.replace(' ', "\u{2581}");
                if texts.contains(&*visible) { text.to_owned() } else { visible }
            }
            text => text.to_owned(),
        };
        (text, token.score, kind)
    };
    tokens.iter().enumerate().map(piece).collect()
}

/// Returns a function that tells user-defined pieces from trained ones. Trained pieces have negative scores, for BPE
/// from negative zero down.
pub(super) fn symbols(tokens: &[Token]) -> impl Fn(&Token) -> bool + use<> {
    let is_trained =
        tokens.iter().any(|token| token.kind == TokenType::Normal && token.score < 0.0);
    move |token| is_trained && token.kind == TokenType::Normal && token.score.to_bits() == 0
}

/// Returns the unknown token, which a model must have. If it was added, and is a control token in the GGUF, its role or
/// text determines it.
fn unknown(vocabulary: &Vocabulary, tokens: &[Token]) -> Option<usize> {
    let stands_for = |id: &usize| {
        tokens.get(*id).is_some_and(|token| token.kind == TokenType::Unknown || is_added(token))
    };
    let marked = tokens.iter().position(|token| token.kind == TokenType::Unknown);
    let by_role = || usize::try_from(vocabulary.role("unk")?.0).ok().filter(stands_for);
    let by_text = || tokens.iter().position(|token| token.text == "<unk>").filter(stands_for);
    marked.or_else(by_role).or_else(by_text)
}

impl Model<'_> {
    /// The file.
    pub fn bytes(&self, vocabulary: &Vocabulary) -> Vec<u8> {
        let mut out = Vec::new();
        for (text, score, kind) in &self.pieces {
            let mut piece = Vec::new();
            protobuf::bytes(&mut piece, 1, text.as_bytes());
            protobuf::float(&mut piece, 2, *score);
            if *kind != TokenType::Normal {
                protobuf::number(&mut piece, 3, kind.id().into());
            }
            protobuf::bytes(&mut out, 1, &piece);
        }
        protobuf::bytes(&mut out, 2, &self.trainer(vocabulary));
        protobuf::bytes(&mut out, 3, &self.normalizer());
        out
    }

    /// Encodes the model type and the ids of special pieces.
    fn trainer(&self, vocabulary: &Vocabulary) -> Vec<u8> {
        let mut out = Vec::new();
        protobuf::number(&mut out, 3, self.algorithm);
        protobuf::number(&mut out, 4, self.pieces.len() as i64);
        let has_bytes = self.pieces.iter().any(|(_, _, kind)| *kind == TokenType::Byte);
        protobuf::number(&mut out, 35, has_bytes.into());
        let unknown = self.pieces.iter().position(|(_, _, kind)| *kind == TokenType::Unknown);
        let unknown = unknown.and_then(|id| Some((id as u64, &*self.pieces.get(id)?.0)));
        let roles = [(40, 45, unknown)].into_iter().chain(
            [(41, 46, "bos"), (42, 47, "eos"), (43, 48, "pad")]
                .map(|(id, text, role)| (id, text, vocabulary.role(role))),
        );
        for (id_field, text_field, token) in roles {
            let id = token.and_then(|(id, _)| i64::try_from(id).ok()).unwrap_or(-1);
            protobuf::number(&mut out, id_field, id);
            if let Some((_, text)) = token {
                protobuf::bytes(&mut out, text_field, text.as_bytes());
            }
        }
        out
    }

    fn normalizer(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let name = if self.charsmap.is_empty() { "identity" } else { "user_defined" };
        protobuf::bytes(&mut out, 1, name.as_bytes());
        if !self.charsmap.is_empty() {
            protobuf::bytes(&mut out, 2, self.charsmap);
        }
        protobuf::number(&mut out, 3, self.add_dummy_prefix.into());
        protobuf::number(&mut out, 4, self.remove_extra_whitespaces.into());
        // Spaces become visible.
        protobuf::number(&mut out, 5, 1);
        out
    }
}
