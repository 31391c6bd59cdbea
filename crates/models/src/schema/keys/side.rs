//! Keys of shards, adapters, importance matrices and training checkpoints.

use crate::schema::key_schema::keys;

keys! {
    /// Shards of a split model.
    SPLIT;
    when("the model is split") SPLIT_NO "split.no" u16 "Index of this shard, counted from 0."
    when("the model is split") SPLIT_COUNT "split.count" u16 "Number of shards."
    when("the model is split") SPLIT_TENSORS_COUNT "split.tensors.count" i32 "Total number of tensors in all shards."
}

keys! {
    /// LoRA adapters.
    ADAPTER;
    when("general.type is adapter") ADAPTER_TYPE "adapter.type" text "Type of the adapter: lora."
    when("adapter.type is lora") ADAPTER_LORA_ALPHA "adapter.lora.alpha" f32 "LoRA alpha: the product of both matrices is scaled by alpha / rank."
    optional ADAPTER_LORA_TASK_NAME "adapter.lora.task_name" text "Name of the adapter's task."
    optional ADAPTER_LORA_PROMPT_PREFIX "adapter.lora.prompt_prefix" text "Prefix of every prompt."
    optional ADAPTER_ALORA_INVOCATION_TOKENS "adapter.alora.invocation_tokens" u32s "Invocation tokens after which an activated LoRA (aLoRA) takes effect."
}

keys! {
    /// Importance matrices, and their use by a quantizer.
    IMATRIX;
    when("general.type is imatrix") IMATRIX_DATASETS "imatrix.datasets" texts "Names of the calibration text files."
    when("general.type is imatrix") IMATRIX_CHUNK_COUNT "imatrix.chunk_count" u32 "Number of evaluated chunks."
    when("general.type is imatrix") IMATRIX_CHUNK_SIZE "imatrix.chunk_size" u32 "Tokens per chunk."
    optional QUANTIZE_IMATRIX_FILE "quantize.imatrix.file" text "Importance matrix file that the quantizer used."
    optional QUANTIZE_IMATRIX_DATASET "quantize.imatrix.dataset" text "Calibration text of the importance matrix."
    optional QUANTIZE_IMATRIX_ENTRIES_COUNT "quantize.imatrix.entries_count" i32 "Number of tensors in the importance matrix."
    optional QUANTIZE_IMATRIX_CHUNKS_COUNT "quantize.imatrix.chunks_count" i32 "Number of chunks that the importance matrix was computed from."
}

keys! {
    /// Training state that ggml wrote in 2023.
    TRAINING;
    optional TRAINING_TYPE "training.type" text "Type of training: train_model or finetune_lora."
    optional TRAINING_FILE_VERSION "training.file_version" u32 "Version of the training keys."
    optional TRAINING_ITERATION_COUNT "training.iteration_count" u64 "Number of completed iterations."
    optional TRAINING_SAMPLE_COUNT "training.sample_count" u64 "Number of processed samples."
    optional TRAINING_TOKEN_COUNT "training.token_count" u64 "Number of processed tokens."
    optional TRAINING_EPOCH_COUNT "training.epoch_count" u64 "Number of completed epochs."
    optional TRAINING_SHUFFLE_SAMPLES_HASH "training.shuffle.samples_hash" u64 "Hash of the list of samples."
    optional TRAINING_SHUFFLE_RNG_STATE "training.shuffle.rng_state" text "State of the random number generator."
    optional TRAINING_SHUFFLE_SAMPLE_COUNT "training.shuffle.sample_count" u64 "Number of samples."
    optional TRAINING_SHUFFLE_NEXT_SAMPLE "training.shuffle.next_sample" u64 "Index of the next sample."
    optional OPTIMIZER_TYPE "optimizer.type" text "Optimizer: adam or lbfgs."
    optional OPTIMIZER_FILE_VERSION "optimizer.file_version" u32 "Version of the optimizer keys."
    optional OPTIMIZER_PARAMETER_COUNT "optimizer.parameter_count" u64 "Number of trained parameters."
    optional OPTIMIZER_ITERATION_COUNT "optimizer.iteration_count" u32 "Number of optimizer steps."
    optional OPTIMIZER_JUST_INITIALIZED "optimizer.just_initialized" bool "Whether the optimizer has not taken a step yet."
}
