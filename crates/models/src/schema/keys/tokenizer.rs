//! Keys of the tokenizer.

use crate::schema::key_schema::keys;

keys! {
    /// The vocabulary and how text is cut into it.
    TOKENIZER;
    when("the file has a vocabulary") TOKENIZER_GGML_MODEL "tokenizer.ggml.model" text "Kind of tokenizer: llama, gpt2, bert, t5, rwkv, replit, plamo2, none and others."
    when("tokenizer.ggml.model is gpt2") TOKENIZER_GGML_PRE "tokenizer.ggml.pre" text "Rules that cut text into words before merging."
    when("the file has a vocabulary") TOKENIZER_GGML_TOKENS "tokenizer.ggml.tokens" texts "Text of every token, in order of id."
    optional TOKENIZER_GGML_SCORES "tokenizer.ggml.scores" scores "Score of every token."
    optional TOKENIZER_GGML_TOKEN_TYPE "tokenizer.ggml.token_type" i32s "Kind of every token: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte."
    optional TOKENIZER_GGML_TOKEN_TYPE_COUNT "tokenizer.ggml.token_type_count" u32 "Number of segment types (rows of token_types)."
    optional TOKENIZER_GGML_MERGES "tokenizer.ggml.merges" texts "Pairs to merge, joined by a space, the most urgent first."
    optional TOKENIZER_GGML_ADDED_TOKENS "tokenizer.ggml.added_tokens" texts "Tokens that were added after training."
    optional TOKENIZER_GGML_ADD_BOS_TOKEN "tokenizer.ggml.add_bos_token" bool "Whether text begins with the begin token."
    optional TOKENIZER_GGML_ADD_EOS_TOKEN "tokenizer.ggml.add_eos_token" bool "Whether text ends with the end token."
    optional TOKENIZER_GGML_ADD_SEP_TOKEN "tokenizer.ggml.add_sep_token" bool "Whether a separator token stands between texts."
    optional TOKENIZER_GGML_ADD_SPACE_PREFIX "tokenizer.ggml.add_space_prefix" bool "Whether text begins with a space."
    optional TOKENIZER_GGML_REMOVE_EXTRA_WHITESPACES "tokenizer.ggml.remove_extra_whitespaces" bool "Whether runs of spaces are shortened to one."
    optional TOKENIZER_GGML_PRECOMPILED_CHARSMAP "tokenizer.ggml.precompiled_charsmap" bytes "Compiled text normalization of SentencePiece."
    optional TOKENIZER_GGML_NORMALIZER_LOWERCASE "tokenizer.ggml.normalizer.lowercase" bool "Whether text is put in lower case."
    optional TOKENIZER_GGML_NORMALIZER_STRIP_ACCENTS "tokenizer.ggml.normalizer.strip_accents" bool "Whether accents are removed."
    optional TOKENIZER_GGML_SUPPRESS_TOKENS "tokenizer.ggml.suppress_tokens" i32s "Tokens that must never be drawn."
    optional TOKENIZER_HUGGINGFACE_JSON "tokenizer.huggingface.json" text "The whole tokenizer.json of Hugging Face."
    optional TOKENIZER_RWKV_WORLD "tokenizer.rwkv.world" text "The whole vocabulary file of an RWKV World tokenizer."
}

keys! {
    /// Ids of tokens with a role.
    SPECIAL_TOKENS;
    optional TOKENIZER_GGML_BOS_TOKEN_ID "tokenizer.ggml.bos_token_id" u32 "Begin of a sequence."
    optional TOKENIZER_GGML_EOS_TOKEN_ID "tokenizer.ggml.eos_token_id" u32 "End of a sequence."
    optional TOKENIZER_GGML_EOT_TOKEN_ID "tokenizer.ggml.eot_token_id" u32 "End of a turn."
    optional TOKENIZER_GGML_EOM_TOKEN_ID "tokenizer.ggml.eom_token_id" u32 "End of a message that goes on after a tool has answered."
    optional TOKENIZER_GGML_UNKNOWN_TOKEN_ID "tokenizer.ggml.unknown_token_id" u32 "Stands for text that the vocabulary cannot spell."
    optional TOKENIZER_GGML_SEPERATOR_TOKEN_ID "tokenizer.ggml.seperator_token_id" u32 "Separator of two texts; llama.cpp's spelling has this slip."
    deprecated("tokenizer.ggml.seperator_token_id") TOKENIZER_GGML_SEPARATOR_TOKEN_ID "tokenizer.ggml.separator_token_id" u32 "Separator of two texts, as the specification spells it; programs read the other spelling."
    optional TOKENIZER_GGML_PADDING_TOKEN_ID "tokenizer.ggml.padding_token_id" u32 "Fills up a batch."
    optional TOKENIZER_GGML_CLS_TOKEN_ID "tokenizer.ggml.cls_token_id" u32 "Begin of a text to classify."
    optional TOKENIZER_GGML_MASK_TOKEN_ID "tokenizer.ggml.mask_token_id" u32 "Stands for a token to guess."
    optional TOKENIZER_GGML_FIM_PRE_TOKEN_ID "tokenizer.ggml.fim_pre_token_id" u32 "Fill in the middle: before the prefix."
    optional TOKENIZER_GGML_FIM_SUF_TOKEN_ID "tokenizer.ggml.fim_suf_token_id" u32 "Fill in the middle: before the suffix."
    optional TOKENIZER_GGML_FIM_MID_TOKEN_ID "tokenizer.ggml.fim_mid_token_id" u32 "Fill in the middle: before the middle."
    optional TOKENIZER_GGML_FIM_PAD_TOKEN_ID "tokenizer.ggml.fim_pad_token_id" u32 "Fill in the middle: padding."
    optional TOKENIZER_GGML_FIM_REP_TOKEN_ID "tokenizer.ggml.fim_rep_token_id" u32 "Fill in the middle: name of the repository."
    optional TOKENIZER_GGML_FIM_SEP_TOKEN_ID "tokenizer.ggml.fim_sep_token_id" u32 "Fill in the middle: separator of files."
    deprecated("tokenizer.ggml.fim_pre_token_id") TOKENIZER_GGML_PREFIX_TOKEN_ID "tokenizer.ggml.prefix_token_id" u32 "Fill in the middle: before the prefix."
    deprecated("tokenizer.ggml.fim_suf_token_id") TOKENIZER_GGML_SUFFIX_TOKEN_ID "tokenizer.ggml.suffix_token_id" u32 "Fill in the middle: before the suffix."
    deprecated("tokenizer.ggml.fim_mid_token_id") TOKENIZER_GGML_MIDDLE_TOKEN_ID "tokenizer.ggml.middle_token_id" u32 "Fill in the middle: before the middle."
}

keys! {
    /// How a conversation becomes text.
    CHAT;
    optional TOKENIZER_CHAT_TEMPLATE "tokenizer.chat_template" text "Jinja template of a conversation."
    optional TOKENIZER_CHAT_TEMPLATES "tokenizer.chat_templates" texts "Names of further templates."
    optional TOKENIZER_CHAT_TEMPLATE_NAME "tokenizer.chat_template.{name}" text "A further template."
}
