//! Symbols in the expressions of tensor shapes, and the sources of their values.

use crate::schema::key_schema::DefaultValue;

/// Named size.
#[derive(Debug)]
pub struct Symbol {
    /// Name in shapes.
    pub name: &'static str,
    /// Source of its value.
    pub source: Source,
}

/// Source of the value of a symbol.
#[derive(Debug)]
pub enum Source {
    /// Value of a key, or the default of the key.
    Key(&'static str),
    /// Value of a key, or an expression if the key has no common default: architectures differ.
    KeyOr(&'static str, &'static str),
    /// Length of the array of a key, or an expression if the key is missing.
    Length(&'static str, &'static str),
    /// Expression of other symbols.
    Formula(&'static str),
}

impl Source {
    /// Returns the key to look up, with `{arch}` in place of the architecture.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::Key(key) | Self::KeyOr(key, _) | Self::Length(key, _) => Some(key),
            Self::Formula(_) => None,
        }
    }

    /// Returns the expression to evaluate if the key is missing.
    pub(crate) fn default_expression(&self) -> Option<&'static str> {
        match self {
            Self::Key(key) => match crate::schema::key(key)?.default {
                DefaultValue::Size(formula) => Some(formula),
                _ => None,
            },
            Self::KeyOr(_, formula) | Self::Length(_, formula) | Self::Formula(formula) => {
                Some(formula)
            }
        }
    }
}

macro_rules! symbols {
    ($($name:ident $source:ident($($detail:literal),*);)*) => {
        /// All symbols.
        pub static SYMBOLS: &[Symbol] = &[
            $(Symbol { name: stringify!($name), source: Source::$source($($detail),*) },)*
        ];
    };
}

symbols! {
    vocab_size        Key("{arch}.vocab_size");
    n_vocab           Length("tokenizer.ggml.tokens", "vocab_size");
    n_token_types     Key("tokenizer.ggml.token_type_count");
    n_classes         Length("{arch}.classifier.output_labels", "1");
    n_ctx             Key("{arch}.context_length");
    n_embd            Key("{arch}.embedding_length");
    n_layer           Key("{arch}.block_count");
    n_mtp             Key("{arch}.nextn_predict_layers");
    n_trunk           Formula("n_layer - n_mtp");
    n_dec_layer       Key("{arch}.decoder_block_count");
    n_ff              Key("{arch}.feed_forward_length");
    n_head            Key("{arch}.attention.head_count");
    n_head_kv         Key("{arch}.attention.head_count_kv");
    head_k            Key("{arch}.attention.key_length");
    head_v            Key("{arch}.attention.value_length");
    head_k_swa        Key("{arch}.attention.key_length_swa");
    swa               KeyOr("{arch}.attention.sliding_window_pattern", "0");
    n_embd_out        Key("{arch}.embedding_length_out");
    n_embd_layer      KeyOr("{arch}.embedding_length_per_layer_input", "0");
    n_q               Formula("n_head*head_k");
    n_k               Formula("n_head_kv*head_k");
    n_v               Formula("n_head_kv*head_v");
    n_rot             Key("{arch}.rope.dimension_count");
    n_buckets         Key("{arch}.attention.relative_buckets_count");
    n_expert          Key("{arch}.expert_count");
    n_expert_used     Key("{arch}.expert_used_count");
    n_expert_shared   Key("{arch}.expert_shared_count");
    n_dense           Key("{arch}.leading_dense_block_count");
    n_ff_exp          KeyOr("{arch}.expert_feed_forward_length", "n_ff/n_expert_used");
    n_ff_shared       KeyOr("{arch}.expert_shared_feed_forward_length", "n_ff");
    n_ff_shared_or_0  KeyOr("{arch}.expert_shared_feed_forward_length", "0");
    n_ff_grok         KeyOr("{arch}.expert_feed_forward_length", "n_ff");
    n_latent          KeyOr("{arch}.moe_latent_size", "n_embd");
    n_latent_exp      KeyOr("{arch}.expert_latent_length", "n_embd");
    n_ff_chunk        Key("{arch}.expert_chunk_feed_forward_length");
    n_grove           Key("{arch}.experts_per_group");
    n_stream          Key("{arch}.altup.num_inputs");
    // Size that no key of the architectures using it determines.
    undetermined      Key("{arch}.attention.gate_lora_rank");
    n_target          Length("{arch}.target_layers", "0");
    target_embd       KeyOr("{arch}.target_hidden_size", "n_embd");
    conv_kernel       Key("{arch}.conv_kernel_size");
    selector_rank     Key("{arch}.selector_rank");
    n_hyper           Key("{arch}.hyper_connection.count");
    hyper_rank        Key("{arch}.hyper_connection.low_rank");
    ple_kernel        Key("{arch}.ple.conv_kernel");
    n_hash            KeyOr("{arch}.hash_layer_count", "0");
    compress_ratio    KeyOr("{arch}.attention.compress_ratios", "0");
    n_out_group       Key("{arch}.attention.output_group_count");
    out_rank          Key("{arch}.attention.output_lora_rank");
    n_kpool           Key("{arch}.attention.indexer.kpool");
    n_adapter         Key("{arch}.adapters.count");
    adapter_rank      Key("{arch}.adapters.lora_rank");
    n_stack           Key("{arch}.hrm.layers_per_stack");
    q_rank            Key("{arch}.attention.q_lora_rank");
    kv_rank           Key("{arch}.attention.kv_lora_rank");
    mla               KeyOr("{arch}.attention.key_length_mla", "0");
    mla_k             KeyOr("{arch}.attention.key_length_mla", "head_k");
    mla_v             KeyOr("{arch}.attention.value_length_mla", "head_v");
    kv_rank_swa       Key("{arch}.attention.kv_lora_rank_swa");
    mla_k_swa         Key("{arch}.attention.key_length_mla_swa");
    mla_v_swa         Key("{arch}.attention.value_length_mla_swa");
    index_heads       Key("{arch}.attention.indexer.head_count");
    index_dim         Key("{arch}.attention.indexer.key_length");
    kda_head          Key("{arch}.kda.head_dim");
    d_conv            Key("{arch}.ssm.conv_kernel");
    d_inner           Key("{arch}.ssm.inner_size");
    d_state           Key("{arch}.ssm.state_size");
    dt_rank           Key("{arch}.ssm.time_step_rank");
    n_group           Key("{arch}.ssm.group_count");
    l_cache           Key("{arch}.shortconv.l_cache");
    wkv_head          Key("{arch}.wkv.head_size");
    mix_rank          Key("{arch}.time_mix_extra_dim");
    decay_dim         Key("{arch}.time_decay_extra_dim");
    decay_rank        Key("{arch}.attention.decay_lora_rank");
    iclr_rank         Key("{arch}.attention.iclr_lora_rank");
    value_rank        Key("{arch}.attention.value_residual_mix_lora_rank");
    gate_rank         Key("{arch}.attention.gate_lora_rank");
    dense_2_out       Key("{arch}.dense_2_feat_out");
    dense_3_in        Key("{arch}.dense_3_feat_in");
    n_mels            Key("{arch}.encoder.mels_count");
    enc_ctx           Key("{arch}.encoder.context_length");
    enc_embd          Key("{arch}.encoder.embedding_length");
    enc_ff            Key("{arch}.encoder.feed_forward_length");
    enc_layer         Key("{arch}.encoder.block_count");
    dec_ctx           Key("{arch}.decoder.context_length");
    dec_embd          Key("{arch}.decoder.embedding_length");
    dec_ff            Key("{arch}.decoder.feed_forward_length");
    dec_layer         Key("{arch}.decoder.block_count");
    n_frame           KeyOr("{arch}.embedding_length_out", "0");
    n_features        Key("{arch}.features_length");
    pos_embd          Key("{arch}.posnet.embedding_length");
    convnext_embd     Key("{arch}.convnext.embedding_length");
    convnext_layer    Key("{arch}.convnext.block_count");
    v_embd            Key("clip.vision.embedding_length");
    v_ff              Key("clip.vision.feed_forward_length");
    v_layer           KeyOr("clip.vision.block_count", "0");
    v_patch           Key("clip.vision.patch_size");
}
