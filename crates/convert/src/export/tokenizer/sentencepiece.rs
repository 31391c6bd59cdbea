//! `tokenizer.model`: the message `ModelProto` of SentencePiece, and what was added to it.
//!
//! Field numbers are those of `sentencepiece_model.proto`.

use gguf_models::convert::VocabularyKind;
use std::collections::HashSet;

use gguf_models::token::TokenType;
use serde_json::{Map, Value};

use super::json::{added, spelled};
use super::{File, Token, Tokenizer, Vocabulary, is_added, json_file, pairs, protobuf};
use crate::vocab::{Added, INTERNLM2_ZERO, PADDING_SCORE, SENTENCEPIECE};

/// What a model file says.
pub(super) struct Model<'t> {
    pub pieces: Vec<(String, f32, TokenType)>,
    /// 1 for the most probable pieces, 2 for merging pairs.
    pub algorithm: i64,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub charsmap: &'t [u8],
}

pub(super) const UNIGRAM: i64 = 1;
const PAIRS: i64 = 2;

/// The model, and the same in a `tokenizer.json`: some loaders read only the one or the other.
pub(super) fn write_with_json(
    vocabulary: &Vocabulary,
    out: &mut Tokenizer,
    config: &mut Map<String, Value>,
) {
    files(vocabulary, true, out, config);
}

/// The model alone.
pub(super) fn write(vocabulary: &Vocabulary, out: &mut Tokenizer, config: &mut Map<String, Value>) {
    files(vocabulary, false, out, config);
}

/// `tokenizer.json` alone, of tokens without scores.
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
        // A reader decides by their looks whether these are control tokens, and undoes visible
        // spaces; what it would change stands in the other file.
        match crate::vocab::added(vocabulary.kind, token.text, token.kind == TokenType::Control) {
            Added { text, is_control }
                if text == token.text && is_control == (token.kind == TokenType::Control) =>
            {
                let text = spelled(vocabulary, token);
                let mut entry = added(vocabulary, id, &text, token.kind, false);
                // Here the key is the id; loaders complain of another one.
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
        // Programs keep spaces as they are.
        remove_extra_whitespaces: false,
        charsmap: &[],
    };
    if !model.pieces.iter().any(|(_, _, kind)| *kind == TokenType::Unknown) {
        out.notes.push(
            "no token is the unknown one: SentencePiece itself refuses such a model".to_owned(),
        );
    }
    out.files.push(File { name: SENTENCEPIECE, bytes: model.bytes(vocabulary) });
    if !beside.is_empty() {
        out.files.push(json_file("added_tokens.json", &beside.into()));
    }
    config.insert("added_tokens_decoder".into(), decoder.into());
    if with_json {
        // Loads what the file says; the classes of these models build something of their own.
        config.insert("tokenizer_class".into(), "PreTrainedTokenizerFast".into());
        pairs::write(vocabulary, tokens, model.add_dummy_prefix, out, config);
    } else {
        let class = match vocabulary.kind {
            VocabularyKind::Gemma { .. } => "GemmaTokenizer",
            _ => "LlamaTokenizer",
        };
        config.insert("tokenizer_class".into(), class.into());
        // Programs put the space behind special tokens too.
        config.insert("legacy".into(), true.into());
    }
    vocabulary.set_flags(config);
}

/// The tokens but for the last ones that were added after training. What fills up the embedding
/// between added tokens must be a piece, so that these keep their ids.
fn inner<'t, 'm>(tokens: &'t [Token<'m>]) -> &'t [Token<'m>] {
    let last = tokens.iter().rposition(|token| !is_added(token));
    &tokens[..last.map_or(0, |last| last + 1)]
}

fn pieces(vocabulary: &Vocabulary, tokens: &[Token]) -> Vec<(String, f32, TokenType)> {
    let texts: HashSet<&str> = tokens.iter().map(|token| token.text).collect();
    let unknown = unknown(vocabulary, tokens);
    let zero = match vocabulary.kind {
        // The first one stands for it, if there is a real one too.
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
            // Gemma's models match the marks of turns in a text.
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

/// What tells pieces that were defined, and so have no score, from trained ones: these have
/// negative scores, for pairs down from a negative zero. Readers make no difference.
pub(super) fn symbols(tokens: &[Token]) -> impl Fn(&Token) -> bool + use<> {
    let is_trained =
        tokens.iter().any(|token| token.kind == TokenType::Normal && token.score < 0.0);
    move |token| is_trained && token.kind == TokenType::Normal && token.score.to_bits() == 0
}

/// The token that a model must have. Where it is among those that were added, and so is a control
/// token in the GGUF, its role tells it or its text.
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

    /// The algorithm, and which pieces have which role.
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
        // Spaces are made visible.
        protobuf::number(&mut out, 5, 1);
        out
    }
}
