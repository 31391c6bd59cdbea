//! Tiny checkpoints of the decoders that followed llama, in parts.

use serde_json::{Value, json};

use crate::tiny::Tiny;

pub const WIDTH: usize = 64;
pub const HEADS: usize = 4;
pub const KV: usize = 2;
pub const HEAD: usize = 16;
pub const FF: usize = 96;
pub const VOCAB: usize = 6;
pub const LAYERS: usize = 4;

/// A tensor's name, with `{}` for the number of the layer, and its shape.
pub type Listed = (String, Vec<usize>);

pub fn listed(name: &str, shape: &[usize]) -> Listed {
    (format!("model.layers.{{}}.{name}.weight"), shape.to_vec())
}

pub fn norms(names: &[&str]) -> Vec<Listed> {
    names.iter().map(|name| listed(name, &[WIDTH])).collect()
}

pub fn attention() -> Vec<Listed> {
    vec![
        listed("self_attn.q_proj", &[HEADS * HEAD, WIDTH]),
        listed("self_attn.k_proj", &[KV * HEAD, WIDTH]),
        listed("self_attn.v_proj", &[KV * HEAD, WIDTH]),
        listed("self_attn.o_proj", &[WIDTH, HEADS * HEAD]),
    ]
}

pub fn gated(stem: &str, width: usize) -> Vec<Listed> {
    vec![
        listed(&format!("{stem}.gate_proj"), &[width, WIDTH]),
        listed(&format!("{stem}.up_proj"), &[width, WIDTH]),
        listed(&format!("{stem}.down_proj"), &[WIDTH, width]),
    ]
}

pub fn llama_block() -> Vec<Vec<Listed>> {
    vec![norms(&["input_layernorm", "post_attention_layernorm"]), attention(), gated("mlp", FF)]
}

/// A configuration with these fields, which take the place of those that all have.
pub fn config(class: &str, model_type: &str, fields: Value) -> Value {
    let mut config = json!({
        "architectures": [class], "model_type": model_type, "hidden_size": WIDTH,
        "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV, "max_position_embeddings": 256, "vocab_size": VOCAB,
    });
    config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    config
}

/// A checkpoint of these layers and, beside the embedding, these tensors at the top.
pub fn checkpoint(config: Value, layer: Vec<Vec<Listed>>, top: &[&str]) -> Tiny {
    let mut tiny = Tiny::new(config).byte_level(VOCAB);
    tiny = tiny.tensors(&[("model.embed_tokens.weight", &[VOCAB, WIDTH])]);
    for name in top {
        let shape: &[usize] = if *name == "lm_head" { &[VOCAB, WIDTH] } else { &[WIDTH] };
        tiny = tiny.tensors(&[(&format!("{name}.weight"), shape)]);
    }
    let layer: Vec<Listed> = layer.into_iter().flatten().collect();
    let layer: Vec<(&str, &[usize])> = layer.iter().map(|(n, shape)| (&**n, &**shape)).collect();
    tiny.layers(LAYERS, &layer)
}
