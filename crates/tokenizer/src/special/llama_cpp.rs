//! Tokens that llama.cpp recognises by their texts: corrected types, and end-of-generation tokens
//! (`llama_vocab::impl::load` of `llama-vocab.cpp`).

use gguf_models::token::TokenType;
use hashbrown::HashMap;

use crate::vocabulary::Vocabulary;

/// End-of-text and end-of-turn tokens: control tokens, regardless of their type in the file.
const END_TOKENS: [&str; 22] = [
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

/// Fill-in-the-middle (FIM) tokens: their roles, and the texts by which a token is recognised if no
/// key names it.
const FIM_TOKENS: [(&str, &[&str]); 6] = [
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

/// Message markers of gpt-oss: always parsed.
const GPT_OSS_TOKENS: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// EOS of PLaMo 2, whose vocabulary has `</s>` as an HTML tag.
const PLAMO_EOS: &str = "<|plamo:eos|>";

/// Ids of the tokens with the texts above.
struct ByText<'t>(HashMap<&'t [u8], Option<usize>>);

impl<'t> ByText<'t> {
    /// Looks up the texts of a vocabulary, in order of its ids.
    fn new(tokens: impl Iterator<Item = &'t [u8]>) -> Self {
        let fim = FIM_TOKENS.iter().flat_map(|(_, texts)| texts.iter());
        let names = END_TOKENS.iter().chain(fim).chain(&GPT_OSS_TOKENS).chain([&PLAMO_EOS]);
        let mut ids: HashMap<_, _> = names.map(|name| (name.as_bytes(), None)).collect();
        for (id, token) in tokens.enumerate() {
            if let Some(place) = ids.get_mut(token) {
                *place = Some(id);
            }
        }
        Self(ids)
    }

    fn id(&self, text: &str) -> Option<usize> {
        self.0.get(text.as_bytes()).copied().flatten()
    }

    /// Returns the token with one of these texts. llama.cpp takes any of several; this takes the first.
    fn first(&self, texts: &[&str]) -> Option<usize> {
        texts.iter().filter_map(|text| self.id(text)).min()
    }

    /// Returns `<|end|>` of vocabularies where it ends a part of a message only: other tokens end the message.
    fn end_of_part(&self) -> Option<usize> {
        let has = |text| self.id(text).is_some();
        let calls = has("<|call|>") || has("<|calls|>");
        self.id("<|end|>").filter(|_| calls && (has("<|return|>") || has("<|flush|>")))
    }

    /// Returns `</s>` of vocabularies where it is an HTML tag: Gemma 4, and PLaMo 2 by its EOS.
    fn html_tag(&self, eos: Option<u32>) -> Option<usize> {
        let plamo = self.id(PLAMO_EOS).filter(|id| eos.is_some_and(|eos| eos as usize == *id));
        let is_tag = self.id("<|tool_response>").or(plamo).is_some();
        self.id("</s>").filter(|_| is_tag)
    }
}

/// Returns the token types that llama.cpp uses to parse special tokens.
pub(super) fn types(vocabulary: &Vocabulary<'_>) -> Vec<TokenType> {
    let mut types = vocabulary.types.clone();
    let by_text = ByText::new(vocabulary.tokens.iter().copied());
    let mut set = |id: Option<usize>, kind| {
        if let Some(place) = id.and_then(|id| types.get_mut(id)) {
            *place = kind;
        }
    };
    for (role, texts) in FIM_TOKENS {
        // A key that names a token that does not exist is ignored.
        if !vocabulary.names(role) {
            set(by_text.first(texts), TokenType::Control);
        }
    }
    END_TOKENS.iter().for_each(|text| set(by_text.id(text), TokenType::Control));
    GPT_OSS_TOKENS.iter().for_each(|text| set(by_text.id(text), TokenType::UserDefined));
    set(by_text.end_of_part(), TokenType::UserDefined);
    set(by_text.html_tag(eos(vocabulary)), TokenType::Normal);
    types
}

/// Keys of the tokens that end a generation.
pub(crate) struct EndKeys {
    eos: Option<u32>,
    eot: Option<u32>,
    eom: Option<u32>,
    /// FIM tokens that separate files and repositories, each with the texts by which it is recognised without a key.
    separators: [(Option<u32>, &'static [&'static str]); 3],
}

impl EndKeys {
    pub fn read(vocabulary: &Vocabulary<'_>) -> Self {
        let of_key = |role| vocabulary.special_id(role, None).ok().flatten();
        Self {
            eos: eos(vocabulary),
            eot: of_key("eot"),
            eom: of_key("eom"),
            separators: ["fim_pad", "fim_rep", "fim_sep"].map(|role| {
                let texts = FIM_TOKENS.iter().find(|(name, _)| *name == role);
                (of_key(role), texts.map_or(&[][..], |(_, texts)| texts))
            }),
        }
    }

    /// Returns the end-of-generation tokens of a vocabulary, in order of their ids: EOS, EOT and EOM of the keys,
    /// tokens with well-known texts, and the FIM tokens that separate files and repositories.
    pub fn tokens<'t>(&self, texts: impl Iterator<Item = &'t [u8]>) -> Vec<u32> {
        let by_text = ByText::new(texts);
        let separators = self
            .separators
            .iter()
            .filter_map(|(key, texts)| key.map(|id| id as usize).or_else(|| by_text.first(texts)));
        let by_key = [self.eos, self.eot, self.eom].into_iter().flatten().map(|id| id as usize);
        let by_texts = END_TOKENS.iter().filter_map(|text| by_text.id(text));
        let excluded = [by_text.end_of_part(), by_text.html_tag(self.eos)];
        let mut ids: Vec<u32> = (separators.chain(by_key).chain(by_texts))
            .filter(|id| !excluded.contains(&Some(*id)))
            .filter_map(|id| u32::try_from(id).ok())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Returns EOS, with the default for the tokenizer model.
fn eos(vocabulary: &Vocabulary<'_>) -> Option<u32> {
    let default = super::default_eos(vocabulary.model().ok()?);
    vocabulary.special_id("eos", default).ok().flatten()
}
