//! SentencePiece models: `tokenizer.model`.
//!
//! Field numbers are those of `sentencepiece_model.proto`, the message `ModelProto`.

use gguf::Error;
use gguf_models::token::TokenType;

use super::files::{AddedToken, Files};
use super::protobuf::{Fault, Field, Fields, Wire};
use super::token::{ADDED_SCORE, MAX_TOKENS, Token};

/// Score of ids that no file describes.
pub(crate) const UNUSED_SCORE: f32 = -10000.0;

/// Settings and pieces of a SentencePiece model.
#[derive(Debug, PartialEq)]
pub(super) struct Model {
    pub pieces: Vec<Token>,
    /// Model type: 1 unigram, 2 BPE, 3 words, 4 characters.
    pub algorithm: u64,
    pub add_dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    /// Precompiled character map of the normalizer: a trie, then strings.
    pub charsmap: Vec<u8>,
}

/// [`Model::algorithm`] of a Unigram model.
pub(super) const UNIGRAM: u64 = 1;

/// Reads the model file of this name.
///
/// # Errors
/// If it cannot be read or is not a SentencePiece model. The error has the offset of the fault.
pub(super) fn read(files: &Files, name: &str) -> Result<Model, Error> {
    parse(&files.bytes(name)?).map_err(|Fault { what, at }| {
        Error::input(
            "vocabulary-damaged",
            &files.path(name),
            format!("not a SentencePiece model: {what}, at byte {at}"),
            "download it again; if it is a tiktoken file, remove it and keep tokenizer.json",
        )
    })
}

fn parse(file: &[u8]) -> Result<Model, Fault> {
    // Defaults of missing fields.
    let mut model = Model {
        pieces: vec![],
        algorithm: UNIGRAM,
        add_dummy_prefix: true,
        remove_extra_whitespaces: true,
        charsmap: vec![],
    };
    let mut fields = Fields::of_file(file);
    while let Some(field) = fields.next().transpose()? {
        match field.number {
            1 => model.pieces.push(piece(fields.of_field(&field)?, field.at)?),
            2 => model.trainer(fields.of_field(&field)?)?,
            3 => model.normalizer(fields.of_field(&field)?)?,
            _ => {}
        }
    }
    if model.pieces.is_empty() {
        return Err(Fault { what: "no pieces", at: file.len() });
    }
    Ok(model)
}

fn piece(fields: Fields<'_>, at: usize) -> Result<Token, Fault> {
    let mut token = Token { text: String::new(), score: 0.0, kind: TokenType::Normal };
    for field in fields {
        match field? {
            Field { number: 1, value: Wire::Bytes(text, at), .. } => {
                let text = std::str::from_utf8(text);
                token.text =
                    text.map_err(|_| Fault { what: "a piece is not UTF-8", at })?.to_owned();
            }
            Field { number: 2, value: Wire::Fixed32(score), .. } => {
                token.score = f32::from_le_bytes(score);
            }
            Field { number: 3, value: Wire::Varint(id), .. } => {
                // SentencePiece and GGUF have the same numbers.
                let kind = i64::try_from(id).ok().and_then(TokenType::from_id);
                token.kind = match kind {
                    // llama.cpp's converter treats user-defined symbols as normal pieces, unless a JSON file lists
                    // them.
                    Some(TokenType::UserDefined) => TokenType::Normal,
                    Some(kind) => kind,
                    None => return Err(Fault { what: "a piece of an unknown type", at }),
                }
            }
            Field { number: 1..=3, at, .. } => {
                return Err(Fault { what: "a piece with a value of the wrong type", at });
            }
            _ => {}
        }
    }
    Ok(token)
}

impl Model {
    fn trainer(&mut self, fields: Fields<'_>) -> Result<(), Fault> {
        for field in fields {
            if let Field { number: 3, value: Wire::Varint(id), .. } = field? {
                self.algorithm = id;
            }
        }
        Ok(())
    }

    fn normalizer(&mut self, fields: Fields<'_>) -> Result<(), Fault> {
        for field in fields {
            match field? {
                Field { number: 2, value: Wire::Bytes(map, _), .. } => self.charsmap = map.to_vec(),
                Field { number: 3, value: Wire::Varint(v), .. } => self.add_dummy_prefix = v != 0,
                Field { number: 4, value: Wire::Varint(v), .. } => {
                    self.remove_extra_whitespaces = v != 0;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether the model adds a space in front of a text.
    pub fn adds_dummy_prefix(&self) -> bool {
        self.add_dummy_prefix
    }

    /// Returns the pieces, mutable.
    pub fn pieces_mut(&mut self) -> &mut [Token] {
        &mut self.pieces
    }

    /// Returns notes about settings that runtimes ignore.
    ///
    /// `add_space_prefix` is the value of that key. By default, runtimes add a space in front of a text.
    pub fn notes(&self, add_space_prefix: Option<bool>) -> Vec<String> {
        let mut notes = vec![];
        let algorithm = match self.algorithm {
            3 => Some("words"),
            4 => Some("characters"),
            _ => None,
        };
        if let Some(algorithm) = algorithm {
            notes.push(format!(
                "tokenizer.model splits text into {algorithm}, but runtimes use BPE for this kind of \
                 vocabulary"
            ));
        }
        if self.add_dummy_prefix != add_space_prefix.unwrap_or(true) {
            let (model, gguf) = match self.add_dummy_prefix {
                true => ("adds a space in front of every text", "do not"),
                false => ("does not add a space in front of a text", "do"),
            };
            notes.push(format!(
                "tokenizer.model {model}, but runtimes of this GGUF {gguf}: \
                 see tokenizer.ggml.add_space_prefix"
            ));
        }
        if self.remove_extra_whitespaces {
            notes.push(
                "tokenizer.model removes extra spaces, but runtimes keep them for this kind of \
                 vocabulary"
                    .to_owned(),
            );
        }
        notes
    }
}

/// Returns the tokens of `model` with those that `added_tokens_decoder` adds or replaces, padded to `vocab_size`.
pub(super) fn tokens(
    model: Model,
    files: &Files,
    vocab_size: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Vec<Token>, Error> {
    let mut tokens = pieces(model, files, vocab_size, notes)?;
    for (id, AddedToken { content, special, .. }) in files.added_tokens_decoder()? {
        replace(&mut tokens, id, Token::added(content, special), notes);
    }
    Ok(tokens)
}

/// Returns the tokens of `model` with those of `added_tokens_decoder` and `tokenizer.json`, padded to `vocab_size`. The
/// flag of an added token determines its type, and its text stays unchanged.
pub(super) fn tokens_as_flagged(
    model: Model,
    files: &Files,
    vocab_size: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Vec<Token>, Error> {
    let mut tokens = pieces(model, files, vocab_size, notes)?;
    let listed = files.added_tokens().filter_map(|entry| {
        let id = entry.get("id").and_then(serde_json::Value::as_u64)?;
        Some((id, AddedToken::parse(entry)?))
    });
    for (id, AddedToken { content, special, .. }) in
        files.added_tokens_decoder()?.into_iter().chain(listed)
    {
        let kind = if special { TokenType::Control } else { TokenType::UserDefined };
        replace(&mut tokens, id, Token { text: content, score: ADDED_SCORE, kind }, notes);
    }
    Ok(tokens)
}

/// Returns the tokens of `model` with those of `added_tokens.json`, padded to `vocab_size`.
pub(super) fn pieces(
    model: Model,
    files: &Files,
    vocab_size: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<Vec<Token>, Error> {
    let mut tokens = model.pieces;
    let pieces = tokens.len();
    let rows = vocab_size.filter(|&rows| rows > 0).unwrap_or(pieces as u64);
    if rows > MAX_TOKENS {
        return Err(Error::input(
            "config-field",
            &files.path("config.json"),
            format!("vocab_size is {rows}"),
            "correct it to the number of rows of the embedding",
        ));
    }
    let rows = rows as usize; // at most `MAX_TOKENS`
    if pieces > rows {
        notes.push(format!(
            "tokenizer.model has {pieces} tokens, but the embedding has {rows} rows: skipped the ids \
             beyond"
        ));
    }
    tokens.truncate(rows);
    tokens.extend((tokens.len()..rows).map(|id| Token::padding(id, UNUSED_SCORE)));

    for (text, value) in files.object("added_tokens.json")?.iter().flatten() {
        let id = value.as_u64().ok_or_else(|| {
            Error::input(
                "vocabulary-damaged",
                &files.path("added_tokens.json"),
                format!("the id of {text:?} is {value}"),
                "correct the entry",
            )
        })?;
        let token = Token { text: text.clone(), score: ADDED_SCORE, kind: TokenType::UserDefined };
        place(&mut tokens, id, token, notes);
    }
    Ok(tokens)
}

/// Replaces the token with an id, with a note if its text differs.
pub(super) fn replace(tokens: &mut [Token], id: u64, token: Token, notes: &mut Vec<String>) {
    if let Some(old) = usize::try_from(id).ok().and_then(|id| tokens.get(id))
        && old.kind != TokenType::Unused
        && old.text != token.text
    {
        notes.push(format!("token {id} is {:?} instead of {:?}", token.text, old.text));
    }
    place(tokens, id, token, notes);
}

fn place(tokens: &mut [Token], id: u64, token: Token, notes: &mut Vec<String>) {
    let rows = tokens.len();
    match usize::try_from(id).ok().and_then(|id| tokens.get_mut(id)) {
        Some(slot) => *slot = token,
        None => notes.push(format!(
            "skipped the added token {:?}: its id {id} is beyond the {rows} rows of the embedding",
            token.text
        )),
    }
}
