//! Special tokens of a vocabulary, as far as rules on templates need them.

use std::collections::{HashMap, HashSet};

use gguf::{Array, Metadata};
use gguf_models::token::{TokenType, id_key};

/// Tokens with which published models begin a turn.
const TURN_TOKENS: &[&str] = &[
    "<|im_start|>",
    "<|start_header_id|>",
    "<start_of_turn>",
    "<|turn>",
    "<|START_OF_TURN_TOKEN|>",
    "<|user|>",
    "<|assistant|>",
    "<|start_of_role|>",
    "<\u{ff5c}User\u{ff5c}>",
    "<|User|>",
    "<|start|>",
    "[INST]",
];

/// Markers in angle brackets without further signs.
const PLAIN_MARKERS: &[&str] =
    &["<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<s>", "</s>", "<bos>", "<eos>"];

/// Special tokens of a file: control, user-defined and unknown tokens, and those that keys name.
pub(super) struct SpecialTokens {
    ids: HashMap<String, u32>,
    roles: HashMap<&'static str, String>,
    all: HashSet<u32>,
}

impl SpecialTokens {
    /// Reads the special tokens; `None` if the file has no vocabulary.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        let tokens = metadata.array("tokenizer.ggml.tokens")?;
        let types = metadata.array("tokenizer.ggml.token_type");
        let mut types = types.into_iter().flat_map(Array::iter);
        const ROLES: [&str; 7] = ["bos", "eos", "eot", "eom", "unk", "pad", "sep"];
        let role_ids = ROLES.map(|role| (role, id_key(role).and_then(|key| metadata.u64(key))));
        let mut found = Self { ids: HashMap::new(), roles: HashMap::new(), all: HashSet::new() };
        for (id, text) in (0u32..).zip(tokens.strings()?) {
            let kind = types.next().and_then(|value| TokenType::from_id(value.to_i64()?));
            let special = matches!(
                kind,
                Some(TokenType::Control | TokenType::UserDefined | TokenType::Unknown)
            );
            let roles = role_ids.iter().filter(|(_, role)| *role == Some(u64::from(id)));
            let roles: Vec<&str> = roles.map(|(name, _)| *name).collect();
            let Ok(text) = std::str::from_utf8(text) else { continue };
            if text.trim().is_empty() || !special && roles.is_empty() {
                continue;
            }
            for role in &roles {
                found.roles.insert(role, text.to_owned());
            }
            found.ids.insert(text.to_owned(), id);
            if roles.is_empty() && kind == Some(TokenType::Control) {
                found.all.insert(id);
            }
        }
        Some(found)
    }

    /// Text of the token of a role.
    pub fn role(&self, name: &str) -> Option<&str> {
        self.roles.get(name).map(String::as_str)
    }

    /// Whether a text is a special token.
    pub fn contains(&self, text: &str) -> bool {
        self.ids.contains_key(text)
    }

    /// Id of a special token.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    /// Whether there are control tokens without a role.
    pub fn has_more_than_roles(&self) -> bool {
        !self.all.is_empty()
    }

    /// Token with which the models of this vocabulary begin a turn.
    pub fn turn_token(&self) -> Option<&'static str> {
        TURN_TOKENS.iter().copied().find(|text| self.contains(text))
    }

    /// Longest special token at the start of a text.
    pub fn at_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        /// Longer special tokens do not delimit turns.
        const MAX_LEN: usize = 64;
        let ends = text.char_indices().map(|(at, char)| at + char.len_utf8());
        let heads = ends.take(MAX_LEN).map(|end| &text[..end]);
        heads.filter(|head| self.contains(head)).last()
    }

    /// Whether a special token occurs in a text.
    pub fn occur_in(&self, text: &str) -> bool {
        text.char_indices().any(|(at, _)| self.at_start(&text[at..]).is_some())
    }
}

/// Returns the texts that have the form of a special token, each once, in order.
pub(super) fn markers(text: &str) -> Vec<&str> {
    /// Longest marker.
    const MAX_LEN: usize = 64;
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices('<') {
        let rest = &text[at..];
        let Some(end) = rest.find('>').map(|end| end + 1).filter(|end| *end <= MAX_LEN) else {
            continue;
        };
        let marker = &rest[..end];
        if is_marker(marker) && !found.contains(&marker) {
            found.push(marker);
        }
    }
    found
}

/// Marker at the start of a text.
pub(super) fn marker_at_start(text: &str) -> Option<&str> {
    text.starts_with('<')
        .then(|| markers(text))
        .and_then(|found| found.first().copied())
        .filter(|marker| text.starts_with(marker))
}

fn is_marker(text: &str) -> bool {
    let inner = &text[1..text.len() - 1];
    let within = |sign: char| {
        inner.len() > 2 * sign.len_utf8() && inner.starts_with(sign) && inner.ends_with(sign)
    };
    let plain = !inner.chars().any(|char| char.is_whitespace() || "<{}\"'".contains(char));
    PLAIN_MARKERS.contains(&text) || (plain && (within('|') || within('\u{ff5c}')))
}
