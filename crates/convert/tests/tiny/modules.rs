//! Gemma as an encoder, and what `sentence-transformers` puts behind it.

use std::path::Path;

use serde_json::{Value, json};

use crate::decoder::{self, HEAD, checkpoint, config, listed, llama_block};
use crate::tiny::Tiny;

/// Gemma as an encoder, with these modules behind it: folders with their configurations.
pub fn gemma(fields: Value, modules: &[(&str, &str, Value)]) -> Tiny {
    let norms = ["pre_feedforward_layernorm", "post_feedforward_layernorm"];
    let heads = vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])];
    let layer = [llama_block(), vec![decoder::norms(&norms), heads]].concat();
    let tiny = checkpoint(config("Gemma3TextModel", "gemma3_text", fields), layer, &["model.norm"]);
    let mut list = vec![json!({"path": "", "type": "sentence_transformers.models.Transformer"})];
    for (folder, class, config) in modules {
        list.push(json!({"path": folder, "type": format!("sentence_transformers.models.{class}")}));
        std::fs::create_dir(tiny.path().join(folder)).unwrap();
        tiny.file(&format!("{folder}/config.json"), config.to_string());
        if *class == "Dense" {
            let shape =
                ["out_features", "in_features"].map(|field| config[field].as_u64().unwrap());
            let of_bias = if config["bias"] == true { vec![shape[0]] } else { vec![] };
            weights(&tiny.path().join(folder), shape, &of_bias);
        }
    }
    tiny.file("modules.json", Value::from(list).to_string());
    tiny
}

/// Writes the weights of a matrix, which are numbered through, and of a bias.
pub fn weights(dir: &Path, shape: [u64; 2], of_bias: &[u64]) {
    let len = shape[0] * shape[1];
    let mut header = json!({"linear.weight":
        {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * len]}});
    let mut all = len;
    for width in of_bias {
        all += width;
        header["linear.bias"] =
            json!({"dtype": "F32", "shape": [width], "data_offsets": [4 * len, 4 * all]});
    }
    let header = header.to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend((0..all).flat_map(|i| (i as f32).to_le_bytes()));
    std::fs::write(dir.join("model.safetensors"), file).unwrap();
}

pub fn dense(from: usize, to: usize, others: Value) -> Value {
    let mut fields = json!({"in_features": from, "out_features": to, "bias": false,
        "activation_function": "torch.nn.modules.linear.Identity"});
    fields.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    fields
}

pub fn encoder_fields() -> Value {
    json!({"head_dim": HEAD, "sliding_window": 16, "rope_theta": 1e6,
        "rope_local_base_freq": 1e4, "use_bidirectional_attention": true})
}
