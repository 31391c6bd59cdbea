//! Keys that describe any file.

use crate::schema::key_schema::keys;

keys! {
    /// Identity, authorship, licence, storage.
    GENERAL;
    always GENERAL_ARCHITECTURE "general.architecture" text "Name of the architecture, which is also the prefix of its own keys."
    when("a tensor is quantized") GENERAL_QUANTIZATION_VERSION "general.quantization_version" u32 "Version of the block formats; 2 since May 2023."
    optional GENERAL_ALIGNMENT "general.alignment" u32 "Alignment of tensor data in bytes, a power of two and a multiple of 8; 32 if missing."
    optional GENERAL_TYPE "general.type" text "What the file is: model (if missing), adapter, imatrix or mmproj."
    optional GENERAL_FILE_TYPE "general.file_type" u32 "Number of the mix of tensor types; see the table of file types."
    optional GENERAL_NAME "general.name" text "Name of the model for people."
    optional GENERAL_AUTHOR "general.author" text "Who made the model."
    optional GENERAL_VERSION "general.version" text "Version of the model, such as v1.0."
    optional GENERAL_ORGANIZATION "general.organization" text "Organization that the model comes from."
    optional GENERAL_BASENAME "general.basename" text "Name of the model family without size, version and purpose."
    optional GENERAL_FINETUNE "general.finetune" text "What the model was tuned for, such as instruct."
    optional GENERAL_DESCRIPTION "general.description" text "Anything worth saying that no other key holds."
    optional GENERAL_QUANTIZED_BY "general.quantized_by" text "Who quantized the model."
    optional GENERAL_SIZE_LABEL "general.size_label" text "Size class, such as 7B or 8x7B."
    optional GENERAL_LICENSE "general.license" text "Licence as an SPDX expression."
    optional GENERAL_LICENSE_NAME "general.license.name" text "Licence as people call it."
    optional GENERAL_LICENSE_LINK "general.license.link" text "Address of the licence text."
    optional GENERAL_URL "general.url" text "Address of the model's page."
    optional GENERAL_DOI "general.doi" text "Digital object identifier."
    optional GENERAL_UUID "general.uuid" text "Universally unique identifier."
    optional GENERAL_REPO_URL "general.repo_url" text "Address of the repository that holds this model."
    optional GENERAL_TAGS "general.tags" texts "Words to find the model by."
    optional GENERAL_LANGUAGES "general.languages" texts "Languages of the model, as two-letter ISO 639 codes."
    optional GENERAL_DATASETS "general.datasets" texts "Names or addresses of the data the model was trained on."
    optional GENERAL_TENSOR_EXTRA_NAME "general.tensor_extra.name" texts "Names of the tensors that the other tensor_extra keys speak of."
    optional GENERAL_TENSOR_EXTRA_PREC_A4 "general.tensor_extra.prec_a4" bools "Per named tensor, whether its activations may be rounded to 4 bits."
}

keys! {
    /// What the model was made from.
    ORIGIN;
    optional GENERAL_SOURCE_URL "general.source.url" text "Page of what this file was converted from."
    optional GENERAL_SOURCE_DOI "general.source.doi" text "Digital object identifier of the source."
    optional GENERAL_SOURCE_UUID "general.source.uuid" text "Universally unique identifier of the source."
    optional GENERAL_SOURCE_REPO_URL "general.source.repo_url" text "Repository of the source."
    deprecated("general.source.repo_url") GENERAL_SOURCE_HUGGINGFACE_REPOSITORY "general.source.huggingface.repository" text "Repository of the source on Hugging Face."
    optional GENERAL_BASE_MODEL_COUNT "general.base_model.count" u32 "Number of parent models."
    optional GENERAL_BASE_MODEL_ID_NAME "general.base_model.{id}.name" text "Name of a parent model."
    optional GENERAL_BASE_MODEL_ID_AUTHOR "general.base_model.{id}.author" text "Who made the parent model."
    optional GENERAL_BASE_MODEL_ID_VERSION "general.base_model.{id}.version" text "Version of the parent model."
    optional GENERAL_BASE_MODEL_ID_ORGANIZATION "general.base_model.{id}.organization" text "Organization of the parent model."
    optional GENERAL_BASE_MODEL_ID_DESCRIPTION "general.base_model.{id}.description" text "What the parent model is."
    optional GENERAL_BASE_MODEL_ID_URL "general.base_model.{id}.url" text "Page of the parent model."
    optional GENERAL_BASE_MODEL_ID_DOI "general.base_model.{id}.doi" text "Digital object identifier of the parent model."
    optional GENERAL_BASE_MODEL_ID_UUID "general.base_model.{id}.uuid" text "Universally unique identifier of the parent model."
    optional GENERAL_BASE_MODEL_ID_REPO_URL "general.base_model.{id}.repo_url" text "Repository of the parent model."
    optional GENERAL_DATASET_COUNT "general.dataset.count" u32 "Number of data sets described."
    optional GENERAL_DATASET_ID_NAME "general.dataset.{id}.name" text "Name of a data set."
    optional GENERAL_DATASET_ID_AUTHOR "general.dataset.{id}.author" text "Who made the data set."
    optional GENERAL_DATASET_ID_VERSION "general.dataset.{id}.version" text "Version of the data set."
    optional GENERAL_DATASET_ID_ORGANIZATION "general.dataset.{id}.organization" text "Organization of the data set."
    optional GENERAL_DATASET_ID_DESCRIPTION "general.dataset.{id}.description" text "What the data set is."
    optional GENERAL_DATASET_ID_URL "general.dataset.{id}.url" text "Page of the data set."
    optional GENERAL_DATASET_ID_DOI "general.dataset.{id}.doi" text "Digital object identifier of the data set."
    optional GENERAL_DATASET_ID_UUID "general.dataset.{id}.uuid" text "Universally unique identifier of the data set."
    optional GENERAL_DATASET_ID_REPO_URL "general.dataset.{id}.repo_url" text "Repository of the data set."
}

keys! {
    /// How the authors advise to draw tokens.
    SAMPLING;
    optional GENERAL_SAMPLING_SEQUENCE "general.sampling.sequence" text "Order of the samplers."
    optional GENERAL_SAMPLING_TOP_K "general.sampling.top_k" i32 "Tokens kept: the most likely ones."
    optional GENERAL_SAMPLING_TOP_P "general.sampling.top_p" f32 "Share of probability kept."
    optional GENERAL_SAMPLING_MIN_P "general.sampling.min_p" f32 "Least probability kept, relative to the most likely token."
    optional GENERAL_SAMPLING_XTC_PROBABILITY "general.sampling.xtc_probability" f32 "Chance that the most likely tokens are dropped."
    optional GENERAL_SAMPLING_XTC_THRESHOLD "general.sampling.xtc_threshold" f32 "Probability from which tokens may be dropped."
    optional GENERAL_SAMPLING_TEMP "general.sampling.temp" f32 "Temperature."
    optional GENERAL_SAMPLING_PENALTY_LAST_N "general.sampling.penalty_last_n" i32 "Number of last tokens that repetition is judged by."
    optional GENERAL_SAMPLING_PENALTY_REPEAT "general.sampling.penalty_repeat" f32 "Factor against repetition."
    optional GENERAL_SAMPLING_MIROSTAT "general.sampling.mirostat" i32 "Version of mirostat; 0 for none."
    optional GENERAL_SAMPLING_MIROSTAT_TAU "general.sampling.mirostat_tau" f32 "Surprise that mirostat aims at."
    optional GENERAL_SAMPLING_MIROSTAT_ETA "general.sampling.mirostat_eta" f32 "Rate at which mirostat learns."
}
