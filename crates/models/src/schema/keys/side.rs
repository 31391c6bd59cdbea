//! Keys of files that are not models, and of what was done to a model.

use crate::schema::key_schema::keys;

keys! {
    /// A model in several files.
    SPLIT;
    when("the model is split") SPLIT_NO "split.no" u16 "Number of this shard, counted from 0."
    when("the model is split") SPLIT_COUNT "split.count" u16 "Number of shards."
    when("the model is split") SPLIT_TENSORS_COUNT "split.tensors.count" i32 "Number of tensors of all shards together."
}

keys! {
    /// Low-rank adapters.
    ADAPTER;
    when("general.type is adapter") ADAPTER_TYPE "adapter.type" text "Kind of adapter: lora."
    when("adapter.type is lora") ADAPTER_LORA_ALPHA "adapter.lora.alpha" f32 "Strength: the product of both matrices is scaled by it, divided by the rank."
    optional ADAPTER_LORA_TASK_NAME "adapter.lora.task_name" text "What the adapter is for."
    optional ADAPTER_LORA_PROMPT_PREFIX "adapter.lora.prompt_prefix" text "Text to put before every prompt."
    optional ADAPTER_ALORA_INVOCATION_TOKENS "adapter.alora.invocation_tokens" u32s "Tokens after which an activated adapter takes effect."
}

keys! {
    /// Statistics for quantization, and what of them was used.
    IMATRIX;
    when("general.type is imatrix") IMATRIX_DATASETS "imatrix.datasets" texts "Files of text that were read."
    when("general.type is imatrix") IMATRIX_CHUNK_COUNT "imatrix.chunk_count" u32 "Number of chunks that were read."
    when("general.type is imatrix") IMATRIX_CHUNK_SIZE "imatrix.chunk_size" u32 "Tokens in a chunk."
    optional QUANTIZE_IMATRIX_FILE "quantize.imatrix.file" text "File with the importance matrix that quantization used."
    optional QUANTIZE_IMATRIX_DATASET "quantize.imatrix.dataset" text "Text that the importance matrix was made from."
    optional QUANTIZE_IMATRIX_ENTRIES_COUNT "quantize.imatrix.entries_count" i32 "Number of tensors in the importance matrix."
    optional QUANTIZE_IMATRIX_CHUNKS_COUNT "quantize.imatrix.chunks_count" i32 "Number of chunks that the importance matrix was made from."
}

keys! {
    /// State of a training run, as ggml kept it in 2023.
    TRAINING;
    optional TRAINING_TYPE "training.type" text "What is trained: train_model or finetune_lora."
    optional TRAINING_FILE_VERSION "training.file_version" u32 "Version of the training keys."
    optional TRAINING_ITERATION_COUNT "training.iteration_count" u64 "Steps done."
    optional TRAINING_SAMPLE_COUNT "training.sample_count" u64 "Samples seen."
    optional TRAINING_TOKEN_COUNT "training.token_count" u64 "Tokens seen."
    optional TRAINING_EPOCH_COUNT "training.epoch_count" u64 "Passes over the data."
    optional TRAINING_SHUFFLE_SAMPLES_HASH "training.shuffle.samples_hash" u64 "Hash of the list of samples."
    optional TRAINING_SHUFFLE_RNG_STATE "training.shuffle.rng_state" text "State of the random numbers."
    optional TRAINING_SHUFFLE_SAMPLE_COUNT "training.shuffle.sample_count" u64 "Number of samples."
    optional TRAINING_SHUFFLE_NEXT_SAMPLE "training.shuffle.next_sample" u64 "The sample to go on with."
    optional OPTIMIZER_TYPE "optimizer.type" text "Optimizer: adam or lbfgs."
    optional OPTIMIZER_FILE_VERSION "optimizer.file_version" u32 "Version of the optimizer keys."
    optional OPTIMIZER_PARAMETER_COUNT "optimizer.parameter_count" u64 "Number of trained weights."
    optional OPTIMIZER_ITERATION_COUNT "optimizer.iteration_count" u32 "Steps of the optimizer."
    optional OPTIMIZER_JUST_INITIALIZED "optimizer.just_initialized" bool "Whether no step was done yet."
}
