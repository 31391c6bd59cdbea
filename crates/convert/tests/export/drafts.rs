//! There and back: drafts, which have the vocabulary of another model.

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_convert::{export, hf};
use gguf_store::Model;
use serde_json::{Value, json};

use crate::decoder::*;
use crate::there_and_back::{exported_as_it_was, exported_but_for};
use crate::tiny::{Tiny, elements};

impl Tiny {
    /// Makes the checkpoint a draft for a model of this configuration, which has the tokenizer that it had.
    pub fn target(self, config: Value) -> Self {
        let target = self.path().join("target");
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("config.json"), config.to_string()).unwrap();
        let tokenizer = "tokenizer.json";
        std::fs::rename(self.path().join(tokenizer), target.join(tokenizer)).unwrap();
        self
    }

    /// Gives a tensor another name.
    pub fn renamed(mut self, from: &str, to: &str) -> Self {
        let tensor = self.tensors.iter_mut().find(|(name, _)| name == from);
        tensor.unwrap_or_else(|| panic!("{from} is not in the checkpoint")).0 = to.into();
        self
    }

    /// Adds a tensor of whole numbers.
    pub fn list(mut self, name: &str, numbers: &[i64]) -> Self {
        self.lists.push((name.into(), vec![numbers.len()], numbers.to_vec(), 64));
        self
    }

    /// Adds a matrix of whole numbers of 32 bits.
    pub fn table(mut self, name: &str, columns: usize, numbers: &[i64]) -> Self {
        let shape = vec![numbers.len() / columns, columns];
        self.lists.push((name.into(), shape, numbers.to_vec(), 32));
        self
    }
}

pub fn target() -> Value {
    config("Qwen3ForCausalLM", "qwen3", json!({"head_dim": HEAD, "num_hidden_layers": 12}))
}

/// A checkpoint of these tensors, whose layers have no `model.` in front.
fn draft(config: Value, layers: &[Vec<Listed>], others: &[(&str, &[usize])]) -> Tiny {
    let mut tiny = Tiny::new(config).byte_level(VOCAB).target(target()).tensors(others);
    for (layer, tensors) in layers.iter().enumerate() {
        for (name, shape) in tensors {
            let name = name.replace("{}", &layer.to_string());
            tiny = tiny.tensors(&[(name.strip_prefix("model.").unwrap_or(&name), shape)]);
        }
    }
    tiny
}

fn eagle(fields: Value) -> Tiny {
    let mut all = json!({"num_hidden_layers": 1, "rms_norm_eps": 1e-5, "rope_theta": 1e4, "draft_vocab_size": 3,
        "eagle_aux_hidden_state_layer_ids": [1, 4, 8], "target_hidden_size": WIDTH});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut layer = norms(&["input_layernorm", "hidden_norm", "post_attention_layernorm"]);
    layer.extend(gated("mlp", FF));
    for (part, heads) in [("q", HEADS), ("k", KV), ("v", KV)] {
        layer.push(listed(&format!("self_attn.{part}_proj"), &[heads * HEAD, 2 * WIDTH]));
    }
    layer.push(listed("self_attn.o_proj", &[WIDTH, HEADS * HEAD]));
    let names = layer.iter().map(|(name, _)| name.replace("model.layers.{}", "midlayer"));
    let layer: Vec<Listed> = names.zip(layer.iter().map(|(_, shape)| shape.clone())).collect();
    let config = config("LlamaForCausalLMEagle3", "llama", all);
    let others: &[(&str, &[usize])] = &[
        ("fc.weight", &[WIDTH, 3 * WIDTH]),
        ("norm.weight", &[WIDTH]),
        ("lm_head.weight", &[3, WIDTH]),
    ];
    draft(config, &[layer], others)
}

#[test]
fn eagle_reads_three_layers_and_guesses_among_some_tokens() {
    let tiny = eagle(json!({"norm_before_residual": true})).list("d2t", &[1, 1, 3]);
    let back = exported_as_it_was(&tiny);
    assert_eq!(back.config["eagle_aux_hidden_state_layer_ids"], json!([1, 4, 8]));
    assert_eq!(back.config["draft_vocab_size"], 3);
    assert_eq!(back.config["norm_before_residual"], true);
    let model = gguf::Gguf::read(&back.gguf).unwrap();
    let list = model.tensors().iter().find(|tensor| &*tensor.name == "d2t").unwrap();
    assert_eq!(list.tensor_type, gguf::TensorType::I64);
    let numbers = model.data(list).unwrap().as_chunks().0.iter().map(|x| i64::from_le_bytes(*x));
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 5]);
}

#[test]
fn lists_of_tokens_that_cannot_be_are_refused() {
    for (list, expected) in [
        (&[0i64, 0, 4][..], "token 6 is none of the 6"),
        (&[0, -2, 0], "token -1 is none"),
        (&[1, 0, 0], "token 1 is in it twice"),
    ] {
        let fault = eagle(json!({})).list("d2t", list).convert().unwrap_err().to_string();
        assert!(fault.contains("`d2t`") && fault.contains(expected), "{fault}");
    }
}

/// What is said of a conversion with, or without, the other model.
fn refused(tiny: &Tiny, target: bool) -> Error {
    tiny.write_weights();
    let checkpoint = Checkpoint::open(tiny.path()).unwrap();
    let target_model_dir = target.then(|| tiny.path().join("target"));
    let options = hf::Options { target_model_dir, ..hf::Options::default() };
    hf::plan(tiny.path(), &checkpoint, &options).err().unwrap()
}

#[test]
fn drafts_want_their_target_and_others_none() {
    let fault = refused(&eagle(json!({})), false).to_string();
    assert!(fault.contains("LlamaForCausalLMEagle3") && fault.contains("is a draft"), "{fault}");
    let llama = checkpoint(
        config("LlamaForCausalLM", "llama", json!({"rms_norm_eps": 1e-5})),
        llama_block(),
        &["model.norm"],
    )
    .target(target());
    let fault = refused(&llama, true).to_string();
    assert!(fault.contains("`LlamaForCausalLM` is no draft"), "{fault}");
    let fault = refused(&eagle(json!({"draft_vocab_size": null})), true).to_string();
    assert!(fault.contains("`draft_vocab_size`"), "{fault}");
}

fn flash(class: &str, fields: Value) -> (Value, Vec<Vec<Listed>>) {
    let mut all = json!({"head_dim": HEAD, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
        "dflash_config": {"block_size": 4, "mask_token_id": 5, "target_layer_ids": [1, 3]}});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let heads = vec![listed("self_attn.q_norm", &[HEAD]), listed("self_attn.k_norm", &[HEAD])];
    let layer = [llama_block().concat(), heads].concat();
    (config(class, "qwen3", all), vec![layer; LAYERS])
}

const AROUND: [(&str, &[usize]); 3] = [
    ("fc.weight", &[WIDTH, 2 * WIDTH]),
    ("hidden_norm.weight", &[WIDTH]),
    ("norm.weight", &[WIDTH]),
];

#[test]
fn dflash_guesses_a_block_at_once() {
    let (config, layers) = flash("DFlashDraftModel", json!({"is_causal": false}));
    let back = exported_but_for(&draft(config, &layers, &AROUND), |_| false).config;
    assert_eq!(back["dflash_config"]["target_layer_ids"], json!([1, 3]));
    assert_eq!(back["dflash_config"]["mask_token_id"], 5);
    assert_eq!(back["is_causal"], false);
}

#[test]
fn dspark_guesses_each_token_from_the_one_before_too() {
    let (config, layers) =
        flash("Qwen3DSparkModel", json!({"draft_vocab_size": 3, "sample_from_anchor": false}));
    let further: [(&str, &[usize]); 5] = [
        ("markov_head.markov_w1.weight", &[VOCAB, 8]),
        ("markov_head.markov_w2.weight", &[3, 8]),
        ("confidence_head.proj.weight", &[1, WIDTH + 8]),
        ("confidence_head.proj.bias", &[1]),
        ("lm_head.weight", &[3, WIDTH]),
    ];
    let others = [&AROUND[..], &further].concat();
    let tiny = draft(config.clone(), &layers, &others).list("d2t", &[0, 1, 2]);
    let back = exported_but_for(&tiny, |_| false).config;
    assert_eq!(back["sample_from_anchor"], false);
    assert_eq!(back["draft_vocab_size"], 3);
    let fault = draft(config, &layers, &others).convert().unwrap_err().to_string();
    assert!(fault.contains("`d2t`") && fault.contains("it is missing"), "{fault}");
}

/// Converts, and says why there is no way back to its class.
fn one_way(tiny: &Tiny) -> String {
    let path = tiny.path().join("first.gguf");
    std::fs::write(&path, tiny.convert().unwrap()).unwrap();
    let model = Model::open(&path).unwrap();
    export::plan(&model, export::Options::default()).err().unwrap().to_string()
}

#[test]
fn dspark_of_gemma_does_not_come_back() {
    let kinds = vec!["full_attention"; LAYERS];
    let (mut config, mut layers) = flash(
        "Gemma4DSparkModel",
        json!({"layer_types": kinds, "attention_k_eq_v": true,
        "global_head_dim": HEAD, "num_global_key_value_heads": KV}),
    );
    config["model_type"] = "gemma4_text".into();
    for layer in &mut layers {
        layer.retain(|(name, _)| !name.contains("v_proj"));
        layer.extend(norms(&["pre_feedforward_layernorm", "post_feedforward_layernorm"]));
        layer.push(("model.layers.{}.layer_scalar".into(), vec![1]));
    }
    let markov: [(&str, &[usize]); 2] = [
        ("markov_head.markov_w1.weight", &[VOCAB, 8]),
        ("markov_head.markov_w2.weight", &[VOCAB, 8]),
    ];
    let tiny = draft(config, &layers, &[&AROUND[..], &markov].concat());
    let factors = elements(&tiny.convert().unwrap(), "rope_freqs.weight");
    assert_eq!(factors, [[1.0; 2], [1e30; 2], [1e30; 2], [1e30; 2]].concat());
    let why = one_way(&tiny);
    assert!(why.contains("which kind of dflash model"), "{why}");
}

#[test]
fn the_assistant_of_muse_glimmer_comes_back_as_a_draft_like_it() {
    let kinds = vec!["sliding_attention"; LAYERS];
    let (mut config, layers) = flash(
        "MuseGlimmerAssistantModel",
        json!({"block_size": 4, "mask_token_id": 5,
        "target_layer_ids": [1, 3], "sliding_window": 16, "layer_types": kinds}),
    );
    config["dflash_config"] = Value::Null;
    let back = exported_but_for(&draft(config, &layers, &AROUND), |_| false).config;
    assert_eq!(back["architectures"], json!(["DFlashDraftModel"]));
    assert_eq!(back["dflash_config"]["target_layer_ids"], json!([1, 3]));
}
