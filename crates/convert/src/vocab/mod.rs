//! Conversion of the tokenizer files of a checkpoint directory to the `tokenizer.*` keys.
//!
//! The keys, their order and their values are those of llama.cpp's converter. llama.cpp's converter recognizes the
//! pre-tokenizer by a hash of one tokenized text; this module compares its structure with known pre-tokenizers.

mod assembled;
pub(crate) mod bpe;
mod chat_template;
mod files;
mod folder;
mod llama_hf;
mod merges;
mod plamo;
mod post_processor;
mod pre;
mod pre_table;
mod protobuf;
mod roles;
mod rwkv_world;
mod sentencepiece;
mod special;
mod speech;
mod step;
mod structure;
mod tekken;
mod tiktoken_line;
pub(crate) mod token;
mod unigram;
mod variants;
mod word_piece;
mod xverse;

use std::path::Path;

use gguf_models::convert::VocabularyKind;

pub(crate) use bpe::decode_bytes;
pub use bpe::spell;
use files::Files;
pub(crate) use files::SENTENCEPIECE;
pub(crate) use folder::Folder;
use gguf::{Array, Error, Metadata};
use gguf_models::token::TokenType;
pub(crate) use plamo::{FILE as PLAMO, MODEL as PLAMO_MODEL};
pub(crate) use post_processor::read_alone as read_post_processor;
pub use pre::other_pre_tokenizer;
pub(crate) use roles::FLAGS;
use roles::ROLES;
pub(crate) use rwkv_world::{CHAT_TEMPLATE as RWKV_CHAT_TEMPLATE, FILE as RWKV_WORLD, unescape};
pub(crate) use sentencepiece::UNUSED_SCORE as PADDING_SCORE;
use special::SpecialTokens;
pub(crate) use structure::pre_tokenizer;
pub(crate) use token::ADDED_SCORE;
pub use token::Token;
pub(crate) use unigram::{T5_MODEL, XLM_ROBERTA_MODEL};
pub(crate) use variants::INTERNLM2_ZERO;
pub(crate) use xverse::ZERO as XVERSE_ZERO;

/// `tokenizer.ggml.model` of a model without a text vocabulary.
pub(crate) const NO_VOCABULARY: &str = "none";

/// Added token of a vocabulary with scores, as a reader interprets it.
pub(crate) struct Added {
    pub text: String,
    pub is_control: bool,
}

/// Interprets an entry of `added_tokens_decoder`.
pub(crate) fn added(kind: VocabularyKind, text: &str, special: bool) -> Added {
    match kind {
        VocabularyKind::Phi3 | VocabularyKind::InternLm2 => {
            Added { text: text.to_owned(), is_control: special }
        }
        _ => {
            let token = Token::added(text.to_owned(), special);
            Added { text: token.text, is_control: token.kind == TokenType::Control }
        }
    }
}

/// Options of the conversion of a vocabulary.
#[derive(Clone, Copy, Debug, Default)]
pub struct VocabularyOptions<'a> {
    /// `tokenizer.ggml.pre`, instead of recognizing it.
    pub pre: Option<&'a str>,
    /// Preferred names of `tokenizer.ggml.pre` among those with the same structure, best first.
    pub hints: &'a [&'a str],
    /// Number of rows of the embedding, from `config.json`. Unused ids below it become padding tokens.
    pub vocab_size: Option<u64>,
    /// Architecture whose `vocab_size` key a tekken vocabulary writes.
    pub architecture: Option<&'a str>,
}

/// A converted vocabulary.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// The `tokenizer.*` keys, in the order of llama.cpp's writer.
    pub metadata: Metadata,
    /// Number of tokens, including padding.
    pub len: usize,
    /// Notes for the user, such as choices and skipped entries.
    pub notes: Vec<String>,
}

/// Reads the tokenizer files in `dir`.
///
/// # Errors
/// If the files of `kind` are missing or damaged, if an id is not below `options.vocab_size`, or if the
/// pre-tokenizer is unknown. The error then names the nearest known pre-tokenizer.
pub fn load(
    dir: &Path,
    kind: VocabularyKind,
    options: &VocabularyOptions,
) -> Result<Vocabulary, Error> {
    load_from(Folder::Disk(dir), kind, options)
}

/// Reads the tokenizer files in a directory or in memory.
pub(crate) fn load_from(
    folder: Folder,
    kind: VocabularyKind,
    options: &VocabularyOptions,
) -> Result<Vocabulary, Error> {
    let mut out = Builder {
        files: Files::read(folder)?,
        options,
        metadata: Metadata::new(),
        notes: vec![],
        len: 0,
    };
    match kind {
        VocabularyKind::Bpe => out.bpe()?,
        VocabularyKind::SentencePieceElseBpe if out.files.has_sentencepiece() => {
            out.sentencepiece()?
        }
        VocabularyKind::SentencePieceElseBpe => out.bpe()?,
        VocabularyKind::BpeElseSentencePiece if out.files.tokenizer().is_some() => out.bpe()?,
        VocabularyKind::BpeElseSentencePiece if out.files.has_sentencepiece() => {
            out.sentencepiece()?
        }
        VocabularyKind::BpeElseSentencePiece => out.bpe()?,
        VocabularyKind::Llama => out.llama()?,
        VocabularyKind::Encoder => out.encoder()?,
        VocabularyKind::EuroBert => {
            out.metadata.set("tokenizer.ggml.add_bos_token", false);
            out.bpe()?;
        }
        VocabularyKind::ModernBert => {
            for role in ["bos", "eos", "sep"] {
                out.metadata.set(format!("tokenizer.ggml.add_{role}_token"), true);
            }
            out.bpe()?;
        }
        VocabularyKind::T5 => out.t5()?,
        VocabularyKind::Rwkv if out.files.has(rwkv_world::FILE) => out.rwkv_world()?,
        VocabularyKind::Rwkv => out.bpe()?,
        VocabularyKind::SentencePiece => out.sentencepiece()?,
        VocabularyKind::SentencePieceThenPrefix => out.sentencepiece_then_prefix()?,
        VocabularyKind::Gemma { first } => out.gemma(first)?,
        VocabularyKind::Gemma4 => out.gemma4()?,
        VocabularyKind::Phi3 => out.phi3()?,
        VocabularyKind::InternLm3 => out.internlm3()?,
        VocabularyKind::InternLm2 => out.internlm2()?,
        VocabularyKind::Glm4 => out.glm(&variants::GLM4)?,
        VocabularyKind::Glm4Moe => out.glm(&variants::GLM4_MOE)?,
        VocabularyKind::Dots3 => out.glm(&[("eot", "<|endofassistant|>")])?,
        VocabularyKind::SolarOpen => out.glm(&variants::SOLAR_OPEN)?,
        VocabularyKind::ChatGlm => out.glm(&variants::CHATGLM)?,
        VocabularyKind::Jamba => out.jamba()?,
        VocabularyKind::Nemotron => out.nemotron()?,
        VocabularyKind::Hunyuan => out.hunyuan()?,
        VocabularyKind::LlamaHf
            if out.files.tokenizer().is_some_and(llama_hf::is_sentencepiece_style) =>
        {
            out.llama_hf()?.write(&mut out.metadata);
        }
        VocabularyKind::LlamaHf => out.bpe()?,
        VocabularyKind::BpeWithBos => {
            out.bpe()?;
            out.metadata.set("tokenizer.ggml.add_bos_token", true);
        }
        VocabularyKind::QwenTurns { chatml } => out.qwen_turns(chatml)?,
        VocabularyKind::BpeWithTemplateFile => {
            out.bpe()?;
            if let Some(template) = chat_template::template_file(&out.files)? {
                out.metadata.set("tokenizer.chat_template", template);
            }
        }
        VocabularyKind::BpeWithEnd => {
            out.bpe()?;
            let end = out.files.config_integer("eos_token_id");
            if let Some(end) = end.and_then(|end| u32::try_from(end).ok()) {
                out.metadata.set("tokenizer.ggml.eos_token_id", end);
            }
        }
        VocabularyKind::BpeWithTurnEnd(text) => {
            out.bpe()?;
            if let Some(id) = out.files.added_id(text) {
                out.metadata.set("tokenizer.ggml.eot_token_id", id);
            }
        }
        VocabularyKind::Laguna => out.laguna()?,
        VocabularyKind::Arctic => out.arctic()?,
        VocabularyKind::Xverse => out.xverse()?,
        VocabularyKind::Plamo { template } => out.plamo(template)?,
        VocabularyKind::HunyuanMoe => out.hunyuan_moe()?,
        VocabularyKind::TextThenCodes => out.text_then_codes()?,
        VocabularyKind::TextThenVectors { voice } => out.text_then_vectors(voice)?,
        VocabularyKind::Codes => out.metadata.set("tokenizer.ggml.model", NO_VOCABULARY),
    }
    let Builder { metadata, notes, len, .. } = out;
    Ok(Vocabulary { metadata, len, notes })
}

/// Fails if the user chose a pre-tokenizer but the kind of vocabulary has none.
pub fn require_pre(pre: Option<&str>, metadata: &Metadata) -> Result<(), Error> {
    let written = metadata.str("tokenizer.ggml.pre");
    let Some(pre) = pre.filter(|pre| written != Some(pre)) else { return Ok(()) };
    let model = metadata.str("tokenizer.ggml.model").unwrap_or("none");
    let what = format!("--pre {pre}: a vocabulary of the kind `{model}` has no pre-tokenizer");
    Err(Error::request("option-contradicts", what, "leave it out"))
}

struct Builder<'a> {
    files: Files<'a>,
    options: &'a VocabularyOptions<'a>,
    metadata: Metadata,
    notes: Vec<String>,
    len: usize,
}

impl Builder<'_> {
    fn llama(&mut self) -> Result<(), Error> {
        if self.files.tokenizer().is_none() && self.files.has(tekken::FILE) {
            return self.tekken();
        }
        if let Some(prefix) = self.files.tokenizer_config_bool("add_prefix_space") {
            self.metadata.set("tokenizer.ggml.add_space_prefix", prefix);
        }
        if self.files.has_sentencepiece() {
            self.sentencepiece()?;
        } else if self.is_sentencepiece_json() {
            self.llama_hf()?.write(&mut self.metadata);
        } else {
            self.bpe()?;
        }
        match self.options.vocab_size {
            Some(CODE_LLAMA_VOCAB) => self.code_llama(),
            // Granite's small models have Llama's class, but do not add BOS.
            Some(GRANITE_VOCAB) => self.metadata.set("tokenizer.ggml.add_bos_token", false),
            _ => {}
        }
        Ok(())
    }

    /// Returns whether the vocabulary is a SentencePiece-style `tokenizer.json` without `tokenizer.model`.
    fn is_sentencepiece_json(&self) -> bool {
        !self.files.has_sentencepiece()
            && self.files.tokenizer().is_some_and(llama_hf::is_sentencepiece_style)
    }

    /// Converts `tokenizer.model`, or a SentencePiece-style `tokenizer.json` without it.
    fn sentencepiece(&mut self) -> Result<(), Error> {
        if self.is_sentencepiece_json() {
            self.llama_hf()?.write(&mut self.metadata);
            return Ok(());
        }
        self.sentencepiece_model(SENTENCEPIECE)
    }

    /// Converts a SentencePiece model for BPE.
    fn sentencepiece_model(&mut self, name: &str) -> Result<(), Error> {
        let model = sentencepiece::read(&self.files, name)?;
        self.notes.extend(model.notes(self.metadata.bool("tokenizer.ggml.add_space_prefix")));
        let tokens =
            sentencepiece::tokens(model, &self.files, self.options.vocab_size, &mut self.notes)?;
        self.scored_tokens(&tokens)?.write(&mut self.metadata);
        Ok(())
    }

    /// Converts a SentencePiece-style `tokenizer.json`. Returns the special tokens, which the caller writes.
    fn llama_hf(&mut self) -> Result<SpecialTokens, Error> {
        let tokenizer = self.files.require_tokenizer()?;
        // Without the key, runtimes add the space.
        if !llama_hf::adds_space_prefix(tokenizer) {
            self.metadata.set("tokenizer.ggml.add_space_prefix", false);
        } else if self.metadata.get("tokenizer.ggml.add_space_prefix").is_some() {
            self.metadata.set("tokenizer.ggml.add_space_prefix", true);
        }
        // Without a configuration, the post-processor alone adds BOS, but runtimes add it by default.
        let adds_nothing =
            self.files.tokenizer_config().is_none() && tokenizer["post_processor"].is_null();
        let rows = self.options.vocab_size;
        let tokens = llama_hf::scored_tokens(&self.files, rows, &mut self.notes)?;
        let mut special = self.scored_tokens(&tokens)?;
        if adds_nothing {
            special.default_add("bos", false);
        }
        if let Some(unknown) = bpe::unknown_id(&self.files) {
            special.default_id("unk", unknown);
        }
        Ok(special)
    }

    fn scored_tokens(&mut self, tokens: &[Token]) -> Result<SpecialTokens, Error> {
        self.tokens("llama", "default".to_owned(), tokens, true);
        self.special_tokens(tokens.len())
    }

    /// Reads the special tokens of a vocabulary with this many tokens.
    fn special_tokens(&mut self, len: usize) -> Result<SpecialTokens, Error> {
        SpecialTokens::read(&self.files, &ROLES, Some(len as u64), &mut self.notes)
    }

    fn bpe(&mut self) -> Result<(), Error> {
        if self.is_sentencepiece_json() && !self.names_pre_tokenizer() {
            self.llama_hf()?.write(&mut self.metadata);
            return Ok(());
        }
        self.byte_level_tokens()?.write(&mut self.metadata);
        Ok(())
    }

    /// Converts the vocabulary of an encoder, whose kind the files determine.
    fn encoder(&mut self) -> Result<(), Error> {
        if self.files.has(XLM_ROBERTA_MODEL) {
            return self.xlm_roberta();
        }
        assembled::assemble(&mut self.files, &mut self.notes)?;
        match self.files.require_tokenizer()?["model"]["type"].as_str() {
            Some("Unigram") => self.xlm_roberta(),
            Some("WordPiece") => self.word_piece(),
            _ => {
                self.bpe()?;
                self.token_type_count();
                Ok(())
            }
        }
    }

    /// Writes the number of token types (segments) of an encoder.
    fn token_type_count(&mut self) {
        let count = self.files.config_integer("type_vocab_size");
        let count = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
        self.metadata.set("tokenizer.ggml.token_type_count", count);
    }

    fn pre(&mut self) -> Result<String, Error> {
        let tokenizer = self.files.require_tokenizer()?;
        let path = self.files.tokenizer_path();
        match (self.options.pre, self.options.hints.first()) {
            (Some(name), _) => Ok(pre::requested(name, &mut self.notes)),
            (None, hint) if !self.files.has_pre_tokenizer() => {
                let name = hint.ok_or_else(|| {
                    let what = "does not determine the pre-tokenizer";
                    Error::input(
                        "pre-tokenizer-unknown",
                        path,
                        what,
                        "set the pre-tokenizer with --pre",
                    )
                })?;
                self.notes.push(format!(
                    "the tokenizer files do not determine the pre-tokenizer: \
                     tokenizer.ggml.pre is {name:?}, the default for this model"
                ));
                Ok((*name).to_owned())
            }
            _ => pre::recognize(tokenizer, self.options.hints, path, &mut self.notes),
        }
    }

    /// Returns whether the user or the structure of `tokenizer.json` names a pre-tokenizer.
    fn names_pre_tokenizer(&self) -> bool {
        self.options.pre.is_some() || self.files.tokenizer().is_some_and(pre::is_known)
    }

    fn byte_level_tokens(&mut self) -> Result<SpecialTokens, Error> {
        assembled::assemble(&mut self.files, &mut self.notes)?;
        let pre = self.pre()?;
        let tokens = bpe::tokens(&self.files, "BPE", self.options.vocab_size, &mut self.notes)?;
        self.byte_level(pre, &tokens)
    }

    fn byte_level(&mut self, pre: String, tokens: &[Token]) -> Result<SpecialTokens, Error> {
        let merges = merges::read(&self.files, &mut self.notes)?;
        self.tokens("gpt2", pre, tokens, false);
        // llama.cpp requires the key even if there are no merges.
        self.metadata.set("tokenizer.ggml.merges", Array::from_strings(&merges));
        SpecialTokens::read(&self.files, &ROLES, None, &mut self.notes)
    }

    fn tokens(&mut self, model: &'static str, pre: String, tokens: &[Token], scored: bool) {
        let texts = Array::from_strings(tokens.iter().map(|token| &token.text));
        let scores: Vec<f32> = tokens.iter().map(|token| token.score).collect();
        let types: Vec<i32> = tokens.iter().map(|token| token.kind.id()).collect();
        self.len = tokens.len();
        self.metadata.set("tokenizer.ggml.model", model);
        self.metadata.set("tokenizer.ggml.pre", pre);
        self.metadata.set("tokenizer.ggml.tokens", texts);
        if scored {
            self.metadata.set("tokenizer.ggml.scores", Array::from(&scores[..]));
        }
        self.metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    }

    /// Writes CodeLlama's end-of-infill token. Runtimes find the prefix, suffix and middle tokens by their text.
    fn code_llama(&mut self) {
        self.metadata.set("tokenizer.ggml.eot_token_id", CODE_LLAMA_EOT);
    }
}

const CODE_LLAMA_VOCAB: u64 = 32016;
const CODE_LLAMA_EOT: u32 = 32010;
const GRANITE_VOCAB: u64 = 49152;
