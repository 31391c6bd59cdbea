//! Keys that describe any file.

use crate::schema::key::keys;

keys! {
    /// Identity, authorship, licence, storage.
    GENERAL;
    always "general.architecture" text "Name of the architecture, which is also the prefix of its own keys."
    when("a tensor is quantized") "general.quantization_version" u32 "Version of the block formats; 2 since May 2023."
    optional "general.alignment" u32 "Alignment of tensor data in bytes, a power of two and a multiple of 8; 32 if missing."
    optional "general.type" text "What the file is: model (if missing), adapter, imatrix or mmproj."
    optional "general.file_type" u32 "Number of the mix of tensor types; see the table of file types."
    optional "general.name" text "Name of the model for people."
    optional "general.author" text "Who made the model."
    optional "general.version" text "Version of the model, such as v1.0."
    optional "general.organization" text "Organization that the model comes from."
    optional "general.basename" text "Name of the model family without size, version and purpose."
    optional "general.finetune" text "What the model was tuned for, such as instruct."
    optional "general.description" text "Anything worth saying that no other key holds."
    optional "general.quantized_by" text "Who quantized the model."
    optional "general.size_label" text "Size class, such as 7B or 8x7B."
    optional "general.license" text "Licence as an SPDX expression."
    optional "general.license.name" text "Licence as people call it."
    optional "general.license.link" text "Address of the licence text."
    optional "general.url" text "Address of the model's page."
    optional "general.doi" text "Digital object identifier."
    optional "general.uuid" text "Universally unique identifier."
    optional "general.repo_url" text "Address of the repository that holds this model."
    optional "general.tags" texts "Words to find the model by."
    optional "general.languages" texts "Languages of the model, as two-letter ISO 639 codes."
    optional "general.datasets" texts "Names or addresses of the data the model was trained on."
    optional "general.tensor_extra.name" texts "Names of the tensors that the other tensor_extra keys speak of."
    optional "general.tensor_extra.prec_a4" bools "Per named tensor, whether its activations may be rounded to 4 bits."
}

keys! {
    /// What the model was made from.
    ORIGIN;
    optional "general.source.url" text "Page of what this file was converted from."
    optional "general.source.doi" text "Digital object identifier of the source."
    optional "general.source.uuid" text "Universally unique identifier of the source."
    optional "general.source.repo_url" text "Repository of the source."
    deprecated("general.source.repo_url") "general.source.huggingface.repository" text "Repository of the source on Hugging Face."
    optional "general.base_model.count" u32 "Number of parent models."
    optional "general.base_model.{id}.name" text "Name of a parent model."
    optional "general.base_model.{id}.author" text "Who made the parent model."
    optional "general.base_model.{id}.version" text "Version of the parent model."
    optional "general.base_model.{id}.organization" text "Organization of the parent model."
    optional "general.base_model.{id}.description" text "What the parent model is."
    optional "general.base_model.{id}.url" text "Page of the parent model."
    optional "general.base_model.{id}.doi" text "Digital object identifier of the parent model."
    optional "general.base_model.{id}.uuid" text "Universally unique identifier of the parent model."
    optional "general.base_model.{id}.repo_url" text "Repository of the parent model."
    optional "general.dataset.count" u32 "Number of data sets described."
    optional "general.dataset.{id}.name" text "Name of a data set."
    optional "general.dataset.{id}.author" text "Who made the data set."
    optional "general.dataset.{id}.version" text "Version of the data set."
    optional "general.dataset.{id}.organization" text "Organization of the data set."
    optional "general.dataset.{id}.description" text "What the data set is."
    optional "general.dataset.{id}.url" text "Page of the data set."
    optional "general.dataset.{id}.doi" text "Digital object identifier of the data set."
    optional "general.dataset.{id}.uuid" text "Universally unique identifier of the data set."
    optional "general.dataset.{id}.repo_url" text "Repository of the data set."
}

keys! {
    /// How the authors advise to draw tokens.
    SAMPLING;
    optional "general.sampling.sequence" text "Order of the samplers."
    optional "general.sampling.top_k" i32 "Tokens kept: the most likely ones."
    optional "general.sampling.top_p" f32 "Share of probability kept."
    optional "general.sampling.min_p" f32 "Least probability kept, relative to the most likely token."
    optional "general.sampling.xtc_probability" f32 "Chance that the most likely tokens are dropped."
    optional "general.sampling.xtc_threshold" f32 "Probability from which tokens may be dropped."
    optional "general.sampling.temp" f32 "Temperature."
    optional "general.sampling.penalty_last_n" i32 "Number of last tokens that repetition is judged by."
    optional "general.sampling.penalty_repeat" f32 "Factor against repetition."
    optional "general.sampling.mirostat" i32 "Version of mirostat; 0 for none."
    optional "general.sampling.mirostat_tau" f32 "Surprise that mirostat aims at."
    optional "general.sampling.mirostat_eta" f32 "Rate at which mirostat learns."
}
