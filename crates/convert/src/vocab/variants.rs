//! Vocabularies of single model families.

use gguf::{Array, Error};
use gguf_models::token::TokenType;

use super::files::{AddedToken, SENTENCEPIECE, special_token_text};
use super::token::Token;
use super::{Builder, assembled, bpe, llama_hf, merges, sentencepiece};

const TEMPLATE: &str = "tokenizer.chat_template";
/// Chat template of Qwen's first chat models.
const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";

impl Builder<'_> {
    pub(super) fn sentencepiece_then_prefix(&mut self) -> Result<(), Error> {
        self.sentencepiece()?;
        if let Some(prefix) = self.files.tokenizer_config_bool("add_prefix_space") {
            self.metadata.set(ADD_SPACE_PREFIX, prefix);
        }
        Ok(())
    }

    pub(super) fn gemma(&mut self, first: bool) -> Result<(), Error> {
        if self.files.has_sentencepiece() {
            self.sentencepiece()?;
        } else if self.files.tokenizer().is_some_and(llama_hf::is_sentencepiece_style) {
            self.llama_hf()?.write(&mut self.metadata);
        } else {
            return self.bpe();
        }
        if first && self.len > GEMMA_END_OF_TURN as usize {
            self.metadata.set("tokenizer.ggml.eot_token_id", GEMMA_END_OF_TURN);
        }
        self.metadata.set(ADD_SPACE_PREFIX, false);
        Ok(())
    }

    /// Converts Gemma 4's vocabulary, which has merges. The tokens around thoughts and tool calls are ordinary text for
    /// runtimes.
    pub(super) fn gemma4(&mut self) -> Result<(), Error> {
        const SHOWN: [&str; 7] = [
            "<|channel>",
            "<channel|>",
            "<|tool_call>",
            "<tool_call|>",
            "<|tool_response>",
            "<tool_response|>",
            "<|\"|>",
        ];
        let mut tokens = llama_hf::tokens(&self.files)?;
        for token in tokens.iter_mut().filter(|token| SHOWN.contains(&&*token.text)) {
            token.kind = TokenType::UserDefined;
        }
        self.tokens("gemma4", String::new(), &tokens, true);
        self.metadata.remove("tokenizer.ggml.pre");
        let merges = merges::read(&self.files, &mut self.notes)?;
        self.metadata.set("tokenizer.ggml.merges", Array::from_strings(&merges));
        self.special_tokens(tokens.len())?.write(&mut self.metadata);
        self.metadata.set(ADD_SPACE_PREFIX, false);
        self.metadata.set("tokenizer.ggml.add_bos_token", true);
        Ok(())
    }

    pub(super) fn phi3(&mut self) -> Result<(), Error> {
        let class = self.files.tokenizer_config().and_then(|config| config.get("tokenizer_class"));
        if class.is_some_and(|class| class == "GPT2Tokenizer") || !self.files.has_sentencepiece() {
            return self.bpe();
        }
        let model = sentencepiece::read(&self.files, SENTENCEPIECE)?;
        self.notes.extend(model.notes(None));
        let (files, rows) = (&self.files, self.options.vocab_size);
        let tokens = sentencepiece::tokens_as_flagged(model, files, rows, &mut self.notes)?;
        self.scored_tokens(&tokens)?.write(&mut self.metadata);
        Ok(())
    }

    pub(super) fn internlm2(&mut self) -> Result<(), Error> {
        if self.is_sentencepiece_json() {
            let mut special = self.llama_hf()?;
            if let Some(end) = self.files.added_id(TURN_END) {
                special.replace_id("eos", end);
            }
            special.write(&mut self.metadata);
            return Ok(());
        }
        let mut model = sentencepiece::read(&self.files, SENTENCEPIECE)?;
        let prefix = model.adds_dummy_prefix();
        self.notes.extend(model.notes(Some(prefix)));
        for token in model.pieces_mut() {
            if token.text == "\0" {
                token.text = INTERNLM2_ZERO.to_owned();
            }
            if token.text.starts_with("[UNUSED") {
                token.kind = TokenType::Unused;
            }
        }
        let (files, rows) = (&self.files, self.options.vocab_size);
        let tokens = sentencepiece::tokens_as_flagged(model, files, rows, &mut self.notes)?;
        let mut special = self.scored_tokens(&tokens)?;
        self.metadata.set(ADD_SPACE_PREFIX, prefix);
        // Ends the turns of chat models.
        let end = tokens.iter().position(|token| {
            token.text == TURN_END
                && matches!(token.kind, TokenType::Control | TokenType::UserDefined)
        });
        if let Some(end) = end.and_then(|end| u32::try_from(end).ok()) {
            special.replace_id("eos", end);
        }
        special.write(&mut self.metadata);
        Ok(())
    }

    pub(super) fn jamba(&mut self) -> Result<(), Error> {
        if self.files.has_sentencepiece() {
            return self.sentencepiece();
        }
        self.llama_hf()?.write(&mut self.metadata);
        self.metadata.set(ADD_SPACE_PREFIX, false);
        Ok(())
    }

    pub(super) fn nemotron(&mut self) -> Result<(), Error> {
        let has_model = self.files.has_sentencepiece();
        self.sentencepiece()?;
        if has_model {
            self.metadata.set("tokenizer.ggml.padding_token_id", 0u32);
            self.metadata.set("tokenizer.ggml.unknown_token_id", 1u32);
        }
        Ok(())
    }

    pub(super) fn internlm3(&mut self) -> Result<(), Error> {
        let mut special = if self.is_sentencepiece_json() {
            self.llama_hf()?
        } else {
            let prefix = self.files.tokenizer_config_bool("add_prefix_space");
            let model = sentencepiece::read(&self.files, SENTENCEPIECE)?;
            self.notes.extend(model.notes(prefix));
            let (files, rows) = (&self.files, self.options.vocab_size);
            let tokens = sentencepiece::tokens(model, files, rows, &mut self.notes)?;
            let special = self.scored_tokens(&tokens)?;
            if let Some(prefix) = prefix {
                self.metadata.set(ADD_SPACE_PREFIX, prefix);
            }
            special
        };
        let mut added = self.files.added_tokens();
        let end = added.find(|token| token["content"] == TURN_END && token["special"] == true);
        let id = end.and_then(|token| token["id"].as_u64());
        if let Some(id) = id.and_then(|id| u32::try_from(id).ok()) {
            special.replace_id("eos", id);
        }
        special.write(&mut self.metadata);
        Ok(())
    }

    pub(super) fn hunyuan(&mut self) -> Result<(), Error> {
        self.bpe()?;
        let id = |id: i64| u32::try_from(id).ok();
        if let Some(end) = self.files.config_integer("eod_token_id").and_then(id) {
            self.metadata.set("tokenizer.ggml.eos_token_id", end);
        }
        // The first of several end-of-generation tokens ends a turn.
        let generation = self.files.object("generation_config.json")?.unwrap_or_default();
        let ends = generation.get("eos_token_id").and_then(|ends| ends.as_array());
        let turn = ends.filter(|ends| ends.len() > 1).and_then(|ends| ends[0].as_i64());
        if let Some(turn) = turn.and_then(id) {
            self.metadata.set("tokenizer.ggml.eot_token_id", turn);
        }
        Ok(())
    }

    pub(super) fn hunyuan_moe(&mut self) -> Result<(), Error> {
        self.bpe()?;
        if let Some(id) = self.files.added_id("<|bos|>") {
            self.metadata.set("tokenizer.ggml.bos_token_id", id);
        }
        Ok(())
    }

    pub(super) fn arctic(&mut self) -> Result<(), Error> {
        if self.is_sentencepiece_json() {
            return self.sentencepiece();
        }
        let model = sentencepiece::read(&self.files, SENTENCEPIECE)?;
        self.notes.extend(model.notes(None));
        let (files, rows) = (&self.files, self.options.vocab_size);
        let mut tokens = sentencepiece::pieces(model, files, rows, &mut self.notes)?;
        let unknown = files.tokenizer_config().and_then(|config| config.get("unk_token"));
        let unknown = unknown.and_then(special_token_text);
        for (id, AddedToken { content, special, .. }) in files.added_tokens_decoder()? {
            let (kind, score) = match special {
                true if Some(&*content) == unknown => (TokenType::Unknown, 0.0),
                true => (TokenType::Control, 0.0),
                false => (TokenType::UserDefined, sentencepiece::UNUSED_SCORE),
            };
            let token = Token { text: content, score, kind };
            sentencepiece::replace(&mut tokens, id, token, &mut self.notes);
        }
        self.scored_tokens(&tokens)?.write(&mut self.metadata);
        Ok(())
    }

    pub(super) fn qwen_turns(&mut self, chatml: bool) -> Result<(), Error> {
        self.bpe()?;
        if chatml {
            self.metadata.set(TEMPLATE, CHATML);
        }
        if let Some(id) = self.files.added_id("<|im_end|>") {
            self.metadata.set("tokenizer.ggml.bos_token_id", id);
            self.metadata.set("tokenizer.ggml.eos_token_id", id);
        }
        Ok(())
    }

    pub(super) fn laguna(&mut self) -> Result<(), Error> {
        const TURN: &str = "</assistant>";
        assembled::assemble(&mut self.files, &mut self.notes)?;
        let pre = self.pre()?;
        let rows = self.options.vocab_size;
        let mut tokens = bpe::tokens(&self.files, "BPE", rows, &mut self.notes)?;
        // Runtimes would otherwise print the token.
        for token in tokens.iter_mut().filter(|token| token.text == TURN) {
            token.kind = TokenType::Control;
        }
        self.byte_level(pre, &tokens)?.write(&mut self.metadata);
        let ends = self.files.config_list("eos_token_id");
        let begins = self.files.config_integer("bos_token_id");
        let turn = ends.into_iter().find(|&end| Some(end) != begins);
        if let Some(turn) = turn.and_then(|turn| u32::try_from(turn).ok()) {
            self.metadata.set("tokenizer.ggml.eot_token_id", turn);
        }
        Ok(())
    }

    /// Converts a GLM vocabulary. `roles` are the default tokens of roles.
    pub(super) fn glm(&mut self, roles: &[(&'static str, &str)]) -> Result<(), Error> {
        let mut special = self.byte_level_tokens()?;
        for &(role, text) in roles {
            let mut added = self.files.added_tokens();
            let id = added.find(|token| token["content"] == text).and_then(|t| t["id"].as_u64());
            if let Some(id) = id.and_then(|id| u32::try_from(id).ok()) {
                special.default_id(role, id);
            }
        }
        special.write(&mut self.metadata);
        Ok(())
    }
}

/// Replacement for the token of a zero byte, which some runtimes read as an empty string, as in llama.cpp's converter.
pub(crate) const INTERNLM2_ZERO: &str = "\u{1F409}";

/// Token that ends the turns of InternLM's chat models.
const TURN_END: &str = "<|im_end|>";

/// Id of `<end_of_turn>` in Gemma 1.
const GEMMA_END_OF_TURN: u32 = 107;

const END_OF_TEXT: &str = "<|endoftext|>";
const USER: &str = "<|user|>";

pub(super) const CHATGLM: [(&str, &str); 3] =
    [("eos", END_OF_TEXT), ("eot", USER), ("unk", END_OF_TEXT)];

pub(super) const GLM4: [(&str, &str); 4] =
    [("eos", END_OF_TEXT), ("eot", USER), ("unk", END_OF_TEXT), ("bos", END_OF_TEXT)];

pub(super) const GLM4_MOE: [(&str, &str); 4] =
    [("bos", "[gMASK]"), ("eot", USER), ("unk", END_OF_TEXT), ("eom", "<|observation|>")];

pub(super) const SOLAR_OPEN: [(&str, &str); 4] =
    [("eos", END_OF_TEXT), ("eot", END_OF_TEXT), ("unk", "<unk>"), ("bos", "<|startoftext|>")];
