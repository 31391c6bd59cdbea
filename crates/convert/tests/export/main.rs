//! There and back: a checkpoint converted, exported and converted again.

#[path = "../tiny/decoder.rs"]
mod decoder;
mod drafts;
mod early;
mod encoders;
mod experts;
mod first;
mod fused;
mod hybrids;
mod kinds;
mod later;
mod llama_like;
mod models;
#[path = "../tiny/modules.rs"]
mod modules;
mod newer;
mod newest;
mod quantized;
mod recurrent;
mod seeing;
mod small;
mod speaking;
mod states;
mod streams;
mod there_and_back;
#[path = "../tiny/mod.rs"]
mod tiny;
#[path = "../tokenizer_files/mod.rs"]
mod tokenizer_files;
mod valued;
mod vocab;
mod zoo;

use serde_json::{Value, json};
use tiny::Tiny;

/// Names and shapes, slowest dimension first.
type Tensors<'a> = &'a [(&'a str, &'a [usize])];

/// A checkpoint with two layers and six tokens.
fn tiny(class: &str, fields: Value, tensors: Tensors, of_layer: Tensors) -> Tiny {
    let mut config = json!({ "architectures": [class], "vocab_size": 6 });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Tiny::new(config).byte_level(6).tensors(tensors).layers(2, of_layer)
}
