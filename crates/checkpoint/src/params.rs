//! `params.json`: the configuration of Mistral's and Meta's original checkpoints.

use serde_json::{Map, Value};

/// Name of the file.
pub(crate) const FILE: &str = "params.json";

/// Model class of these checkpoints.
const CLASS: &str = "MistralForCausalLM";

/// Its fields, and the fields of `config.json` with the same meaning.
const FIELDS: [(&str, &str); 8] = [
    ("dim", "hidden_size"),
    ("n_layers", "num_hidden_layers"),
    ("n_heads", "num_attention_heads"),
    ("n_kv_heads", "num_key_value_heads"),
    ("hidden_dim", "intermediate_size"),
    ("norm_eps", "rms_norm_eps"),
    ("max_seq_len", "max_position_embeddings"),
    ("tied_embeddings", "tie_word_embeddings"),
];

/// Computes the FFN width by Meta's rule, if the file does not state it: two thirds of four times
/// the model width, times a factor, rounded up.
fn feed_forward(params: &Map<String, Value>) -> Option<u64> {
    let multiple = params.get("multiple_of")?.as_u64().filter(|multiple| *multiple > 0)?;
    let width = params.get("hidden_size")?.as_u64()?.checked_mul(8)? / 3;
    let factor = params.get("ffn_dim_multiplier").and_then(Value::as_f64);
    let width = factor.map_or(width, |factor| (factor * width as f64) as u64);
    width.checked_next_multiple_of(multiple)
}

/// Returns the context length of a Meta model, which its file does not state: that of CodeLlama,
/// Llama 3, Llama 2, else the first Llama, as in `convert_legacy_llama.py` of llama.cpp.
fn context(params: &Map<String, Value>) -> Option<u64> {
    params.get("multiple_of")?;
    let is = |field, value| params.get(field).and_then(Value::as_f64) == Some(value);
    Some(match () {
        () if is("rope_theta", 1e6) => 16384,
        () if is("rope_theta", 5e5) => 8192,
        () if is("rms_norm_eps", 1e-5) => 4096,
        () => 2048,
    })
}

/// Renames the fields to those of `config.json`; other fields stay.
pub(crate) fn as_config(mut params: Map<String, Value>) -> Map<String, Value> {
    for (original, renamed) in FIELDS {
        if let Some(value) = params.remove(original) {
            params.entry(renamed).or_insert(value);
        }
    }
    if !params.contains_key("intermediate_size")
        && let Some(width) = feed_forward(&params)
    {
        params.insert("intermediate_size".to_owned(), width.into());
    }
    if !params.contains_key("max_position_embeddings")
        && let Some(len) = context(&params)
    {
        params.insert("max_position_embeddings".to_owned(), len.into());
    }
    // Meta stores -1; the tokenizer has the vocabulary size.
    if params.get("vocab_size").is_some_and(|size| size == -1) {
        params.remove("vocab_size");
    }
    params.insert("architectures".to_owned(), vec![CLASS].into());
    params
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Values of Llama 2 7B, Llama 2 70B and Llama 3 8B.
    #[test]
    fn missing_fields_are_derived() {
        for (dim, multiple, factor, theta, width, context) in [
            (4096, 256, None, None, 11008, 4096),
            (8192, 4096, Some(1.3), None, 28672, 4096),
            (4096, 1024, Some(1.3), Some(5e5), 14336, 8192),
        ] {
            let params = json!({ "dim": dim, "multiple_of": multiple, "ffn_dim_multiplier": factor,
                "rope_theta": theta, "norm_eps": 1e-5, "vocab_size": -1 });
            let config = as_config(params.as_object().unwrap().clone());
            assert_eq!(config["intermediate_size"], width);
            assert_eq!(config["max_position_embeddings"], context);
            assert!(!config.contains_key("vocab_size"));
        }
    }
}
