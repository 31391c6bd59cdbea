//! EAGLE-3 draft models.

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use serde_json::{Value, json};

use crate::fixtures::Tiny;
use crate::fixtures::decoder::{
    FF, HEAD, HEADS, KV, NamedShape, TIED, WIDTH, checkpoint, config, draft_checkpoint,
    draft_target, gated_ffn, layer_weight, llama_layer, merged, norms,
};
use crate::fixtures::round_trip::assert_round_trip;

fn eagle(fields: Value) -> Tiny {
    let all = merged(
        json!({"num_hidden_layers": 1, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "draft_vocab_size": 3,
        "eagle_aux_hidden_state_layer_ids": [1, 4, 8], "target_hidden_size": WIDTH}),
        fields,
    );
    let mut layer = norms(&["input_layernorm", "hidden_norm", "post_attention_layernorm"]);
    layer.extend(gated_ffn("mlp", FF));
    for (part, heads) in [("q", HEADS), ("k", KV), ("v", KV)] {
        layer.push(layer_weight(&format!("self_attn.{part}_proj"), &[heads * HEAD, 2 * WIDTH]));
    }
    layer.push(layer_weight("self_attn.o_proj", &[WIDTH, HEADS * HEAD]));
    let names = layer.iter().map(|(name, _)| name.replace("model.layers.{}", "midlayer"));
    let layer: Vec<NamedShape> = names.zip(layer.iter().map(|(_, shape)| shape.clone())).collect();
    let config = config("LlamaForCausalLMEagle3", "llama", all);
    let others: &[(&str, &[usize])] = &[
        ("fc.weight", &[WIDTH, 3 * WIDTH]),
        ("norm.weight", &[WIDTH]),
        ("lm_head.weight", &[3, WIDTH]),
    ];
    draft_checkpoint(config, &[layer], others)
}

#[test]
pub fn eagle3_round_trip() {
    let tiny = eagle(json!({"norm_before_residual": true})).integer_vector("d2t", &[1, 1, 3]);
    let exported = assert_round_trip(&tiny);
    assert_eq!(exported.config["eagle_aux_hidden_state_layer_ids"], json!([1, 4, 8]));
    assert_eq!(exported.config["draft_vocab_size"], 3);
    assert_eq!(exported.config["norm_before_residual"], true);
    let model = gguf::Gguf::read(&exported.gguf).unwrap();
    let list = model.tensors().iter().find(|tensor| &*tensor.name == "d2t").unwrap();
    assert_eq!(list.tensor_type, gguf::TensorType::I64);
    let numbers = model.data(list).unwrap().as_chunks().0.iter().map(|x| i64::from_le_bytes(*x));
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 5]);
}

#[test]
fn invalid_draft_vocabularies_fail() {
    for (list, expected) in [
        (&[0i64, 0, 4][..], "token 6 is not one of the 6"),
        (&[0, -2, 0], "token -1 is not one"),
        (&[1, 0, 0], "token 1 is in it twice"),
    ] {
        let error = eagle(json!({})).integer_vector("d2t", list).convert().unwrap_err().to_string();
        assert!(error.contains("`d2t`") && error.contains(expected), "{error}");
    }
}

/// Returns the error of a conversion with or without the target model.
fn conversion_error(tiny: &Tiny, target: bool) -> Error {
    tiny.write_weights();
    let checkpoint = Checkpoint::open(tiny.path()).unwrap();
    let target_model_dir = target.then(|| tiny.path().join("target"));
    let options = hf::HfOptions { target_model_dir, ..hf::HfOptions::default() };
    hf::plan(tiny.path(), &checkpoint, &options).err().unwrap()
}

#[test]
fn only_draft_models_take_a_target() {
    let error = conversion_error(&eagle(json!({})), false).to_string();
    assert!(error.contains("LlamaForCausalLMEagle3") && error.contains("is a draft"), "{error}");
    let llama = checkpoint(
        config("LlamaForCausalLM", "llama", json!({"rms_norm_eps": 1e-5})),
        llama_layer(),
        TIED,
    )
    .with_target(draft_target());
    let error = conversion_error(&llama, true).to_string();
    assert!(error.contains("`LlamaForCausalLM` is no draft"), "{error}");
    let error = conversion_error(&eagle(json!({"draft_vocab_size": null})), true).to_string();
    assert!(error.contains("`draft_vocab_size`"), "{error}");
}
