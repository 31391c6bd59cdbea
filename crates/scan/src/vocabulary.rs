//! Tokens of a vocabulary: special tokens that hide or imitate text, and tokens that are instructions.

use std::collections::HashMap;

use gguf::{Array, Finding, Metadata};
use gguf_models::token::TokenType;

use crate::characters::{Suspicious, code_points, skeleton};
use crate::instructions::{instruction, shortened};
use crate::payload;

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";

/// Length in bytes of the shortest token that can be an instruction.
const MIN_INSTRUCTION: usize = 16;

/// Maximum length of a token that is not an attack on loaders; published ones have up to some hundreds of bytes.
const MAX_TOKEN: usize = 4096;

/// Checks the vocabulary of a file.
pub fn check(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(tokens) = metadata.array(TOKENS).and_then(Array::strings) else { return findings };
    let mut types = metadata.array(TYPES).map(Array::iter);
    let mut specials = Specials::default();
    let mut longest = 0;
    for token in tokens {
        let kind = types.as_mut().and_then(Iterator::next).and_then(|value| value.to_i64());
        longest = longest.max(token.len());
        let is_special = match kind {
            Some(kind) => {
                kind == TokenType::Control as i64 || kind == TokenType::UserDefined as i64
            }
            None => token.first() == Some(&b'<') && token.last() == Some(&b'>'),
        };
        if is_special {
            specials.add(&String::from_utf8_lossy(token));
        }
        if let Some(sentence) = token_instruction(token)
            && findings.iter().all(|finding: &Finding| finding.code != "token-instruction")
        {
            let message = format!("a token is the instruction {sentence:?}");
            findings.push(Finding::warning("token-instruction", message));
        }
    }
    if longest > MAX_TOKEN {
        let message = format!("a token has {longest} bytes");
        findings.push(Finding::warning("token-instruction", message));
    }
    findings.extend(specials.findings);
    findings.into_iter().map(|finding| finding.key(TOKENS)).collect()
}

/// Returns the instruction that a token is. Tokens of pre-trained vocabularies have at most a few words.
fn token_instruction(token: &[u8]) -> Option<String> {
    if token.len() < MIN_INSTRUCTION {
        return None;
    }
    let text = String::from_utf8_lossy(token).replace(['▁', 'Ġ'], " ");
    if text.trim().bytes().filter(|byte| *byte == b' ').count() < 1 {
        return None;
    }
    instruction(&text)
}

/// Special tokens that were seen.
#[derive(Default)]
pub(crate) struct Specials {
    pub findings: Vec<Finding>,
    /// Texts by how they look.
    by_look: HashMap<String, String>,
}

impl Specials {
    /// Checks a special token.
    pub fn add(&mut self, token: &str) {
        let found = Suspicious::of(token);
        // A token of only such characters stands for itself in many vocabularies.
        let has_text = token.chars().any(|c| c.is_ascii_alphanumeric());
        if found.conceals() && has_text {
            let chars = [&found.invisible[..], &found.bidirectional].concat();
            let message = format!(
                "the special token {token:?} has invisible characters ({})",
                code_points(&chars)
            );
            self.findings.push(Finding::error("hidden-characters", message));
        }
        if has_text && let Some(address) = payload::address(token) {
            let message = format!("a special token has the address {:?}", shortened(address));
            self.findings.push(Finding::warning("metadata-address", message));
        }
        if !token.starts_with(['<', '[', '‹', '＜', '〈']) || token.len() > 64 {
            return;
        }
        let look = skeleton(token);
        let letters =
            |text: &str| -> String { text.chars().filter(|c| c.is_alphabetic()).collect() };
        if letters(token) != letters(&look) && letters(&look).is_ascii() {
            let message =
                format!("the special token {token:?} looks like {look:?}, but has other letters");
            self.findings.push(Finding::error("confusable-characters", message));
        }
        match self.by_look.get(&look) {
            Some(other) if other != token => {
                // DeepSeek has wide and narrow bars side by side.
                let message = format!("the special tokens {other:?} and {token:?} look alike");
                self.findings.push(Finding::note("confusable-characters", message));
            }
            Some(_) => {}
            None => drop(self.by_look.insert(look, token.to_owned())),
        }
    }
}

/// Returns a mark of a template that looks like a special token of the vocabulary, and is none.
pub fn imitated_mark(metadata: &Metadata, template: &str) -> Option<Finding> {
    if template.is_ascii() {
        return None;
    }
    let tokens = metadata.array(TOKENS).and_then(Array::strings)?;
    let mut known = HashMap::new();
    for token in tokens.filter(|token| token.first() == Some(&b'<')) {
        let token = String::from_utf8_lossy(token).into_owned();
        known.entry(skeleton(&token)).or_insert_with(Vec::new).push(token);
    }
    let marks = template.match_indices('<').filter_map(|(at, _)| {
        let mark = &template[at..];
        let end = mark.find('>')?;
        (end < 64).then(|| &mark[..=end])
    });
    let imitation = marks.filter(|mark| !mark.is_ascii()).find_map(|mark| {
        let originals = known.get(&skeleton(mark))?;
        let is_token = originals.iter().any(|original| original == mark);
        (!is_token).then(|| {
            format!(
                "the mark {mark:?} looks like the token {:?}, but is another text",
                originals[0]
            )
        })
    })?;
    Some(Finding::error("confusable-characters", imitation))
}
