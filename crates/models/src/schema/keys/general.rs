//! Keys that describe any file.

use crate::schema::key_schema::keys;

keys! {
    /// Identity, authorship, license and storage.
    GENERAL;
    always GENERAL_ARCHITECTURE "general.architecture" text "Name of the architecture, and prefix of its keys."
    when("a tensor is quantized") GENERAL_QUANTIZATION_VERSION "general.quantization_version" u32 "Version of the block formats; 2 since May 2023."
    optional GENERAL_ALIGNMENT "general.alignment" u32 "Alignment of tensor data in bytes, a power of two and a multiple of 8; 32 if missing."
    optional GENERAL_TYPE "general.type" text "Type of the file: model (if missing), adapter, imatrix or mmproj."
    optional GENERAL_FILE_TYPE "general.file_type" u32 "Quantization type of the file; see the table of file types."
    optional GENERAL_NAME "general.name" text "Human-readable name of the model."
    optional GENERAL_AUTHOR "general.author" text "Author of the model."
    optional GENERAL_VERSION "general.version" text "Version of the model, such as v1.0."
    optional GENERAL_ORGANIZATION "general.organization" text "Organization that publishes the model."
    optional GENERAL_BASENAME "general.basename" text "Name of the model family without size, version and purpose."
    optional GENERAL_FINETUNE "general.finetune" text "Purpose of the finetuning, such as instruct."
    optional GENERAL_DESCRIPTION "general.description" text "Free-form description of the model."
    optional GENERAL_QUANTIZED_BY "general.quantized_by" text "Person or organization that quantized the model."
    optional GENERAL_SIZE_LABEL "general.size_label" text "Size class, such as 7B or 8x7B."
    optional GENERAL_LICENSE "general.license" text "License as an SPDX expression."
    optional GENERAL_LICENSE_NAME "general.license.name" text "Human-readable name of the license."
    optional GENERAL_LICENSE_LINK "general.license.link" text "URL of the license text."
    optional GENERAL_URL "general.url" text "URL of the model's page."
    optional GENERAL_DOI "general.doi" text "Digital object identifier (DOI)."
    optional GENERAL_UUID "general.uuid" text "Universally unique identifier (UUID)."
    optional GENERAL_REPO_URL "general.repo_url" text "URL of the repository that holds the model."
    optional GENERAL_TAGS "general.tags" texts "Tags for search engines."
    optional GENERAL_LANGUAGES "general.languages" texts "Languages of the model, as two-letter ISO 639 codes."
    optional GENERAL_DATASETS "general.datasets" texts "Names or URLs of the training data sets."
    optional GENERAL_TENSOR_EXTRA_NAME "general.tensor_extra.name" texts "Names of the tensors that the other tensor_extra keys describe."
    optional GENERAL_TENSOR_EXTRA_PREC_A4 "general.tensor_extra.prec_a4" bools "Per named tensor, whether its activations may be rounded to 4 bits."
}

keys! {
    /// Source, parent models and data sets.
    ORIGIN;
    optional GENERAL_SOURCE_URL "general.source.url" text "URL of the model that this file was converted from."
    optional GENERAL_SOURCE_DOI "general.source.doi" text "DOI of the source model."
    optional GENERAL_SOURCE_UUID "general.source.uuid" text "UUID of the source model."
    optional GENERAL_SOURCE_REPO_URL "general.source.repo_url" text "URL of the source repository."
    deprecated("general.source.repo_url") GENERAL_SOURCE_HUGGINGFACE_REPOSITORY "general.source.huggingface.repository" text "Source repository on Hugging Face."
    optional GENERAL_BASE_MODEL_COUNT "general.base_model.count" u32 "Number of parent models."
    optional GENERAL_BASE_MODEL_ID_NAME "general.base_model.{id}.name" text "Name of a parent model."
    optional GENERAL_BASE_MODEL_ID_AUTHOR "general.base_model.{id}.author" text "Author of the parent model."
    optional GENERAL_BASE_MODEL_ID_VERSION "general.base_model.{id}.version" text "Version of the parent model."
    optional GENERAL_BASE_MODEL_ID_ORGANIZATION "general.base_model.{id}.organization" text "Organization of the parent model."
    optional GENERAL_BASE_MODEL_ID_DESCRIPTION "general.base_model.{id}.description" text "Description of the parent model."
    optional GENERAL_BASE_MODEL_ID_URL "general.base_model.{id}.url" text "URL of the parent model."
    optional GENERAL_BASE_MODEL_ID_DOI "general.base_model.{id}.doi" text "DOI of the parent model."
    optional GENERAL_BASE_MODEL_ID_UUID "general.base_model.{id}.uuid" text "UUID of the parent model."
    optional GENERAL_BASE_MODEL_ID_REPO_URL "general.base_model.{id}.repo_url" text "URL of the repository of the parent model."
    optional GENERAL_DATASET_COUNT "general.dataset.count" u32 "Number of described data sets."
    optional GENERAL_DATASET_ID_NAME "general.dataset.{id}.name" text "Name of a data set."
    optional GENERAL_DATASET_ID_AUTHOR "general.dataset.{id}.author" text "Author of the data set."
    optional GENERAL_DATASET_ID_VERSION "general.dataset.{id}.version" text "Version of the data set."
    optional GENERAL_DATASET_ID_ORGANIZATION "general.dataset.{id}.organization" text "Organization of the data set."
    optional GENERAL_DATASET_ID_DESCRIPTION "general.dataset.{id}.description" text "Description of the data set."
    optional GENERAL_DATASET_ID_URL "general.dataset.{id}.url" text "URL of the data set."
    optional GENERAL_DATASET_ID_DOI "general.dataset.{id}.doi" text "DOI of the data set."
    optional GENERAL_DATASET_ID_UUID "general.dataset.{id}.uuid" text "UUID of the data set."
    optional GENERAL_DATASET_ID_REPO_URL "general.dataset.{id}.repo_url" text "URL of the repository of the data set."
}

keys! {
    /// Sampling parameters that the authors recommend.
    SAMPLING;
    optional GENERAL_SAMPLING_SEQUENCE "general.sampling.sequence" text "Order of the samplers."
    optional GENERAL_SAMPLING_TOP_K "general.sampling.top_k" i32 "Top-k: number of most likely tokens to sample from."
    optional GENERAL_SAMPLING_TOP_P "general.sampling.top_p" f32 "Top-p (nucleus): cumulative probability of the tokens to sample from."
    optional GENERAL_SAMPLING_MIN_P "general.sampling.min_p" f32 "Min-p: minimum probability, relative to the most likely token."
    optional GENERAL_SAMPLING_XTC_PROBABILITY "general.sampling.xtc_probability" f32 "XTC: probability of removing the most likely tokens."
    optional GENERAL_SAMPLING_XTC_THRESHOLD "general.sampling.xtc_threshold" f32 "XTC: minimum probability of a token to be removed."
    optional GENERAL_SAMPLING_TEMP "general.sampling.temp" f32 "Temperature."
    optional GENERAL_SAMPLING_PENALTY_LAST_N "general.sampling.penalty_last_n" i32 "Number of last tokens that the repetition penalty covers."
    optional GENERAL_SAMPLING_PENALTY_REPEAT "general.sampling.penalty_repeat" f32 "Repetition penalty."
    optional GENERAL_SAMPLING_MIROSTAT "general.sampling.mirostat" i32 "Version of Mirostat; 0 disables it."
    optional GENERAL_SAMPLING_MIROSTAT_TAU "general.sampling.mirostat_tau" f32 "Mirostat: target entropy (tau)."
    optional GENERAL_SAMPLING_MIROSTAT_ETA "general.sampling.mirostat_eta" f32 "Mirostat: learning rate (eta)."
}
