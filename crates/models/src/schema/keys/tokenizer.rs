//! Keys of the tokenizer.

use crate::schema::key::keys;

keys! {
    /// The vocabulary and how text is cut into it.
    TOKENIZER;
    when("the file has a vocabulary") "tokenizer.ggml.model" text "Kind of tokenizer: llama, gpt2, bert, t5, rwkv, replit, plamo2, none and others."
    when("tokenizer.ggml.model is gpt2") "tokenizer.ggml.pre" text "Rules that cut text into words before merging."
    when("the file has a vocabulary") "tokenizer.ggml.tokens" texts "Text of every token, in order of id."
    optional "tokenizer.ggml.scores" scores "Score of every token."
    optional "tokenizer.ggml.token_type" i32s "Kind of every token: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte."
    optional "tokenizer.ggml.token_type_count" u32 "Number of segment types (rows of token_types)."
    optional "tokenizer.ggml.merges" texts "Pairs to merge, joined by a space, the most urgent first."
    optional "tokenizer.ggml.added_tokens" texts "Tokens that were added after training."
    optional "tokenizer.ggml.add_bos_token" bool "Whether text begins with the begin token."
    optional "tokenizer.ggml.add_eos_token" bool "Whether text ends with the end token."
    optional "tokenizer.ggml.add_sep_token" bool "Whether a separator token stands between texts."
    optional "tokenizer.ggml.add_space_prefix" bool "Whether text begins with a space."
    optional "tokenizer.ggml.remove_extra_whitespaces" bool "Whether runs of spaces are shortened to one."
    optional "tokenizer.ggml.precompiled_charsmap" bytes "Compiled text normalization of SentencePiece."
    optional "tokenizer.ggml.normalizer.lowercase" bool "Whether text is put in lower case."
    optional "tokenizer.ggml.normalizer.strip_accents" bool "Whether accents are removed."
    optional "tokenizer.ggml.suppress_tokens" i32s "Tokens that must never be drawn."
    optional "tokenizer.huggingface.json" text "The whole tokenizer.json of Hugging Face."
    optional "tokenizer.rwkv.world" text "The whole vocabulary file of an RWKV World tokenizer."
}

keys! {
    /// Ids of tokens with a role.
    SPECIAL_TOKENS;
    optional "tokenizer.ggml.bos_token_id" u32 "Begin of a sequence."
    optional "tokenizer.ggml.eos_token_id" u32 "End of a sequence."
    optional "tokenizer.ggml.eot_token_id" u32 "End of a turn."
    optional "tokenizer.ggml.eom_token_id" u32 "End of a message that goes on after a tool has answered."
    optional "tokenizer.ggml.unknown_token_id" u32 "Stands for text that the vocabulary cannot spell."
    optional "tokenizer.ggml.seperator_token_id" u32 "Separator of two texts; llama.cpp's spelling has this slip."
    deprecated("tokenizer.ggml.seperator_token_id") "tokenizer.ggml.separator_token_id" u32 "Separator of two texts, as the specification spells it; programs read the other spelling."
    optional "tokenizer.ggml.padding_token_id" u32 "Fills up a batch."
    optional "tokenizer.ggml.cls_token_id" u32 "Begin of a text to classify."
    optional "tokenizer.ggml.mask_token_id" u32 "Stands for a token to guess."
    optional "tokenizer.ggml.fim_pre_token_id" u32 "Fill in the middle: before the prefix."
    optional "tokenizer.ggml.fim_suf_token_id" u32 "Fill in the middle: before the suffix."
    optional "tokenizer.ggml.fim_mid_token_id" u32 "Fill in the middle: before the middle."
    optional "tokenizer.ggml.fim_pad_token_id" u32 "Fill in the middle: padding."
    optional "tokenizer.ggml.fim_rep_token_id" u32 "Fill in the middle: name of the repository."
    optional "tokenizer.ggml.fim_sep_token_id" u32 "Fill in the middle: separator of files."
    deprecated("tokenizer.ggml.fim_pre_token_id") "tokenizer.ggml.prefix_token_id" u32 "Fill in the middle: before the prefix."
    deprecated("tokenizer.ggml.fim_suf_token_id") "tokenizer.ggml.suffix_token_id" u32 "Fill in the middle: before the suffix."
    deprecated("tokenizer.ggml.fim_mid_token_id") "tokenizer.ggml.middle_token_id" u32 "Fill in the middle: before the middle."
}

keys! {
    /// How a conversation becomes text.
    CHAT;
    optional "tokenizer.chat_template" text "Jinja template of a conversation."
    optional "tokenizer.chat_templates" texts "Names of further templates."
    optional "tokenizer.chat_template.{name}" text "A further template."
}
