//! Kinds of vocabularies, by the tokenizer files that a model class ships.

/// Kind of vocabulary: the tokenizer files that a converter reads, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabularyKind {
    /// `tekken.json` if there is no `tokenizer.json`; else `tokenizer.model`, a SentencePiece-style
    /// `tokenizer.json`, or a byte-level one. Handles the exceptions of CodeLlama and Granite.
    Llama,
    /// `tokenizer.model`, else a byte-level `tokenizer.json`: Qwen2 and Qwen3.
    SentencePieceElseBpe,
    /// A byte-level `tokenizer.json`, or `vocab.json` and `merges.txt`: most families.
    Bpe,
    /// As [`VocabularyKind::Bpe`], else `tokenizer.model`.
    BpeElseSentencePiece,
    /// WordPiece (BERT), byte-level BPE (RoBERTa) or Unigram (XLM-RoBERTa), whichever the files have.
    Encoder,
    /// As [`VocabularyKind::Bpe`], without BOS by default: EuroBERT.
    EuroBert,
    /// As [`VocabularyKind::Bpe`], with BOS, EOS and SEP by default: ModernBERT.
    ModernBert,
    /// Unigram: `spiece.model`, `tokenizer.model` or `tokenizer.json`.
    T5,
    /// `rwkv_vocab_v20230424.txt`, else as [`VocabularyKind::Bpe`].
    Rwkv,
    /// `tokenizer.model`: MiniCPM, Baichuan.
    SentencePiece,
    /// `tokenizer.model`, with `add_space_prefix` from `tokenizer_config.json`: Ernie 4.5.
    SentencePieceThenPrefix,
    /// `tokenizer.model`, else a SentencePiece-style or byte-level `tokenizer.json`, without
    /// `add_space_prefix`: Gemma.
    Gemma {
        /// The first generation, whose configuration lacks the EOT token.
        first: bool,
    },
    /// A SentencePiece-style `tokenizer.json` with its merges: Gemma 4.
    Gemma4,
    /// `tokenizer.model` with the added tokens of `tokenizer.json`: Phi 3. Byte-level for Phi 4.
    Phi3,
    /// As [`VocabularyKind::Phi3`], with the changed EOS token of chat models.
    InternLm2,
    /// `tokenizer.model`, with `add_space_prefix` and the EOT token: InternLM3.
    InternLm3,
    /// A byte-level `tokenizer.json`; the special tokens are known by their text: GLM 4.
    Glm4,
    /// As [`VocabularyKind::Glm4`], with the special tokens of GLM 4.5.
    Glm4Moe,
    /// A byte-level `tokenizer.json`; the EOT token is known by its text: dots 3.
    Dots3,
    /// As [`VocabularyKind::Dots3`], with the special tokens of Solar Open.
    SolarOpen,
    /// As [`VocabularyKind::Glm4`], without BOS: ChatGLM.
    ChatGlm,
    /// `tokenizer.model`, else a SentencePiece-style `tokenizer.json` without `add_space_prefix`:
    /// Jamba.
    Jamba,
    /// `tokenizer.model`, whose first two tokens are PAD and UNK: Nemotron.
    Nemotron,
    /// As [`VocabularyKind::Bpe`], with the EOS token of the configuration: Hunyuan.
    Hunyuan,
    /// A SentencePiece-style `tokenizer.json`, else a byte-level one: DeciLM.
    LlamaHf,
    /// As [`VocabularyKind::Bpe`], always with BOS: LLaDA.
    BpeWithBos,
    /// As [`VocabularyKind::Bpe`], where the end-of-turn token is also BOS and EOS: Qwen's audio models.
    QwenTurns {
        /// Whether the chat template is Qwen's, whatever the files have.
        chatml: bool,
    },
    /// `tokenizer.model`, with tokens replaced by those of `tokenizer_config.json`: Arctic.
    Arctic,
    /// A `tokenizer.json` of SentencePiece style, without scores: Xverse.
    Xverse,
    /// `tokenizer.jsonl`: PLaMo 2 and 3.
    Plamo {
        /// Whether the chat template is written.
        template: bool,
    },
    /// As [`VocabularyKind::Bpe`], where texts begin with `<|bos|>` whatever the configuration says: Hunyuan with experts.
    HunyuanMoe,
    /// As [`VocabularyKind::Bpe`], where the chat template in a file of its own counts before that in
    /// `tokenizer_config.json`: MiniMax Text 01.
    BpeWithTemplateFile,
    /// As [`VocabularyKind::Bpe`], where the configuration names the token that ends texts: Kimi K3.
    BpeWithEnd,
    /// As [`VocabularyKind::Bpe`], where the token of this text ends a turn, whatever the files say: Muse Glimmer.
    BpeWithTurnEnd(&'static str),
    /// As [`VocabularyKind::Bpe`], where the second of the tokens that end texts ends a turn: Laguna.
    Laguna,
    /// No vocabulary: the inputs are codec tokens.
    Codes,
    /// As [`VocabularyKind::Bpe`], then codec tokens, which the talker's configuration names: Qwen3-TTS.
    TextThenCodes,
    /// `tokenizer.model` (Unigram), then embedding rows without text: Pocket TTS.
    TextThenVectors {
        /// Whether a row precedes the voice prompt.
        voice: bool,
    },
}
