//! Keys of the tokenizer.

use crate::schema::key_schema::keys;

keys! {
    /// Vocabulary and tokenizer settings.
    TOKENIZER;
    when("the file has a vocabulary") TOKENIZER_GGML_MODEL "tokenizer.ggml.model" text "Type of the tokenizer: llama, gpt2, bert, t5, rwkv, replit, plamo2, none and others."
    when("tokenizer.ggml.model is gpt2") TOKENIZER_GGML_PRE "tokenizer.ggml.pre" text "Pre-tokenizer of a BPE tokenizer."
    when("the file has a vocabulary") TOKENIZER_GGML_TOKENS "tokenizer.ggml.tokens" texts "Text of every token, in order of id."
    optional TOKENIZER_GGML_SCORES "tokenizer.ggml.scores" scores "Score of every token."
    optional TOKENIZER_GGML_TOKEN_TYPE "tokenizer.ggml.token_type" i32s "Type of every token: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte."
    optional TOKENIZER_GGML_TOKEN_TYPE_COUNT "tokenizer.ggml.token_type_count" u32 "Number of segment types (rows of token_types)."
    optional TOKENIZER_GGML_MERGES "tokenizer.ggml.merges" texts "BPE merges: two tokens separated by a space, in order of priority."
    optional TOKENIZER_GGML_ADDED_TOKENS "tokenizer.ggml.added_tokens" texts "Tokens that were added after training."
    optional TOKENIZER_GGML_ADD_BOS_TOKEN "tokenizer.ggml.add_bos_token" bool "Whether the tokenizer adds the BOS token at the start."
    optional TOKENIZER_GGML_ADD_EOS_TOKEN "tokenizer.ggml.add_eos_token" bool "Whether the tokenizer adds the EOS token at the end."
    optional TOKENIZER_GGML_ADD_SEP_TOKEN "tokenizer.ggml.add_sep_token" bool "Whether the tokenizer adds the SEP token between texts."
    optional TOKENIZER_GGML_ADD_SPACE_PREFIX "tokenizer.ggml.add_space_prefix" bool "Whether the tokenizer adds a space before the text."
    optional TOKENIZER_GGML_REMOVE_EXTRA_WHITESPACES "tokenizer.ggml.remove_extra_whitespaces" bool "Whether the tokenizer collapses runs of spaces into one."
    optional TOKENIZER_GGML_PRECOMPILED_CHARSMAP "tokenizer.ggml.precompiled_charsmap" bytes "Precompiled normalization map of SentencePiece."
    optional TOKENIZER_GGML_NORMALIZER_LOWERCASE "tokenizer.ggml.normalizer.lowercase" bool "Whether the normalizer lowercases text."
    optional TOKENIZER_GGML_NORMALIZER_STRIP_ACCENTS "tokenizer.ggml.normalizer.strip_accents" bool "Whether the normalizer strips accents."
    optional TOKENIZER_GGML_SUPPRESS_TOKENS "tokenizer.ggml.suppress_tokens" i32s "Token ids that the sampler never selects."
    optional TOKENIZER_HUGGINGFACE_JSON "tokenizer.huggingface.json" text "Contents of Hugging Face's tokenizer.json."
    optional TOKENIZER_RWKV_WORLD "tokenizer.rwkv.world" text "Contents of the vocabulary file of an RWKV World tokenizer."
}

keys! {
    /// Ids of special tokens.
    SPECIAL_TOKENS;
    optional TOKENIZER_GGML_BOS_TOKEN_ID "tokenizer.ggml.bos_token_id" u32 "BOS: beginning of a sequence."
    optional TOKENIZER_GGML_EOS_TOKEN_ID "tokenizer.ggml.eos_token_id" u32 "EOS: end of a sequence."
    optional TOKENIZER_GGML_EOT_TOKEN_ID "tokenizer.ggml.eot_token_id" u32 "EOT: end of a turn."
    optional TOKENIZER_GGML_EOM_TOKEN_ID "tokenizer.ggml.eom_token_id" u32 "EOM: end of a message that waits for a tool result."
    optional TOKENIZER_GGML_UNKNOWN_TOKEN_ID "tokenizer.ggml.unknown_token_id" u32 "UNK: text that the vocabulary cannot encode."
    optional TOKENIZER_GGML_SEPERATOR_TOKEN_ID "tokenizer.ggml.seperator_token_id" u32 "SEP: separator of two texts; the misspelling is llama.cpp's."
    deprecated("tokenizer.ggml.seperator_token_id") TOKENIZER_GGML_SEPARATOR_TOKEN_ID "tokenizer.ggml.separator_token_id" u32 "SEP: separator of two texts, as the specification spells it; loaders read the other spelling."
    optional TOKENIZER_GGML_PADDING_TOKEN_ID "tokenizer.ggml.padding_token_id" u32 "PAD: padding of a batch."
    optional TOKENIZER_GGML_CLS_TOKEN_ID "tokenizer.ggml.cls_token_id" u32 "CLS: start of a text to classify."
    optional TOKENIZER_GGML_MASK_TOKEN_ID "tokenizer.ggml.mask_token_id" u32 "MASK: placeholder of a token to predict."
    optional TOKENIZER_GGML_FIM_PRE_TOKEN_ID "tokenizer.ggml.fim_pre_token_id" u32 "Fill in the middle (FIM): before the prefix."
    optional TOKENIZER_GGML_FIM_SUF_TOKEN_ID "tokenizer.ggml.fim_suf_token_id" u32 "FIM: before the suffix."
    optional TOKENIZER_GGML_FIM_MID_TOKEN_ID "tokenizer.ggml.fim_mid_token_id" u32 "FIM: before the middle."
    optional TOKENIZER_GGML_FIM_PAD_TOKEN_ID "tokenizer.ggml.fim_pad_token_id" u32 "FIM: padding."
    optional TOKENIZER_GGML_FIM_REP_TOKEN_ID "tokenizer.ggml.fim_rep_token_id" u32 "FIM: repository name."
    optional TOKENIZER_GGML_FIM_SEP_TOKEN_ID "tokenizer.ggml.fim_sep_token_id" u32 "FIM: file separator."
    deprecated("tokenizer.ggml.fim_pre_token_id") TOKENIZER_GGML_PREFIX_TOKEN_ID "tokenizer.ggml.prefix_token_id" u32 "FIM: before the prefix."
    deprecated("tokenizer.ggml.fim_suf_token_id") TOKENIZER_GGML_SUFFIX_TOKEN_ID "tokenizer.ggml.suffix_token_id" u32 "FIM: before the suffix."
    deprecated("tokenizer.ggml.fim_mid_token_id") TOKENIZER_GGML_MIDDLE_TOKEN_ID "tokenizer.ggml.middle_token_id" u32 "FIM: before the middle."
}

keys! {
    /// Chat templates.
    CHAT;
    optional TOKENIZER_CHAT_TEMPLATE "tokenizer.chat_template" text "Jinja chat template."
    optional TOKENIZER_CHAT_TEMPLATES "tokenizer.chat_templates" texts "Names of the additional chat templates."
    optional TOKENIZER_CHAT_TEMPLATE_NAME "tokenizer.chat_template.{name}" text "Additional chat template."
}
