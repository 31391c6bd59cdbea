//! Keys of files that are not models, and of what was done to a model.

use crate::schema::key::keys;

keys! {
    /// A model in several files.
    SPLIT;
    when("the model is split") "split.no" u16 "Number of this shard, counted from 0."
    when("the model is split") "split.count" u16 "Number of shards."
    when("the model is split") "split.tensors.count" i32 "Number of tensors of all shards together."
}

keys! {
    /// Low-rank adapters.
    ADAPTER;
    when("general.type is adapter") "adapter.type" text "Kind of adapter: lora."
    when("adapter.type is lora") "adapter.lora.alpha" f32 "Strength: the product of both matrices is scaled by it, divided by the rank."
    optional "adapter.lora.task_name" text "What the adapter is for."
    optional "adapter.lora.prompt_prefix" text "Text to put before every prompt."
    optional "adapter.alora.invocation_tokens" u32s "Tokens after which an activated adapter takes effect."
}

keys! {
    /// Statistics for quantization, and what of them was used.
    IMATRIX;
    when("general.type is imatrix") "imatrix.datasets" texts "Files of text that were read."
    when("general.type is imatrix") "imatrix.chunk_count" u32 "Number of chunks that were read."
    when("general.type is imatrix") "imatrix.chunk_size" u32 "Tokens in a chunk."
    optional "quantize.imatrix.file" text "File with the importance matrix that quantization used."
    optional "quantize.imatrix.dataset" text "Text that the importance matrix was made from."
    optional "quantize.imatrix.entries_count" i32 "Number of tensors in the importance matrix."
    optional "quantize.imatrix.chunks_count" i32 "Number of chunks that the importance matrix was made from."
}

keys! {
    /// State of a training run, as ggml kept it in 2023.
    TRAINING;
    optional "training.type" text "What is trained: train_model or finetune_lora."
    optional "training.file_version" u32 "Version of the training keys."
    optional "training.iteration_count" u64 "Steps done."
    optional "training.sample_count" u64 "Samples seen."
    optional "training.token_count" u64 "Tokens seen."
    optional "training.epoch_count" u64 "Passes over the data."
    optional "training.shuffle.samples_hash" u64 "Hash of the list of samples."
    optional "training.shuffle.rng_state" text "State of the random numbers."
    optional "training.shuffle.sample_count" u64 "Number of samples."
    optional "training.shuffle.next_sample" u64 "The sample to go on with."
    optional "optimizer.type" text "Optimizer: adam or lbfgs."
    optional "optimizer.file_version" u32 "Version of the optimizer keys."
    optional "optimizer.parameter_count" u64 "Number of trained weights."
    optional "optimizer.iteration_count" u32 "Steps of the optimizer."
    optional "optimizer.just_initialized" bool "Whether no step was done yet."
}
