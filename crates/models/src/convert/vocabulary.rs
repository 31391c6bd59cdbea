//! Kinds of vocabularies, by the tokenizer files that a model class ships.

/// Kind of vocabulary: the tokenizer files that a converter reads, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VocabularyKind {
    /// `tekken.json` where there is no `tokenizer.json`; else `tokenizer.model`, a
    /// `tokenizer.json` of SentencePiece style, or a byte-level one; with the exceptions that the Llama family has collected (CodeLlama, Granite).
    Llama,
    /// `tokenizer.model`, else a byte-level `tokenizer.json`: Qwen2 and Qwen3.
    SentencePieceElseBpe,
    /// A byte-level `tokenizer.json`, or the files of before it: most families.
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
    /// The same, with whether texts get a space in front as `tokenizer_config.json` says: Ernie 4.5.
    SentencePieceThenPrefix,
    /// `tokenizer.model`, else a `tokenizer.json` of SentencePiece style or a byte-level one, and
    /// no space in front of texts: Gemma.
    Gemma {
        /// The first generation, whose end of a turn the configuration does not tell.
        first: bool,
    },
    /// A `tokenizer.json` of SentencePiece style with its merges: Gemma 4.
    Gemma4,
    /// `tokenizer.model` with what `tokenizer.json` adds, as it is flagged there: Phi 3. Byte-level
    /// for Phi 4.
    Phi3,
    /// As Phi 3, with the changes that chat models make.
    InternLm2,
    /// `tokenizer.model`, with whether texts get a space in front, and the token that ends turns: InternLM3.
    InternLm3,
    /// A byte-level `tokenizer.json` with special tokens that no file names by their role: GLM 4.
    Glm4,
    /// The same, with the tokens of GLM 4.5.
    Glm4Moe,
    /// A byte-level `tokenizer.json` with the token that ends a turn, which no file names by its role: dots 3.
    Dots3,
    /// The same, with those of Solar Open.
    SolarOpen,
    /// The same, without a token that begins texts.
    ChatGlm,
    /// `tokenizer.model`, else a `tokenizer.json` of SentencePiece style without a space in front of texts:
    /// Jamba.
    Jamba,
    /// `tokenizer.model`, where the first two tokens are for padding and for what cannot be spelled.
    Nemotron,
    /// As [`VocabularyKind::Bpe`], where the configuration names the token that ends texts: Hunyuan.
    Hunyuan,
    /// A `tokenizer.json` of SentencePiece style, else a byte-level one: DeciLM.
    LlamaHf,
    /// As [`VocabularyKind::Bpe`], always with BOS: LLaDA.
    BpeWithBos,
    /// As [`VocabularyKind::Bpe`], where the end-of-turn token is also BOS and EOS: Qwen's audio models.
    QwenTurns {
        /// Whether the chat template is Qwen's, whatever the files have.
        chatml: bool,
    },
    /// `tokenizer.model`, with tokens that `tokenizer_config.json` puts in the place of others: Arctic.
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
