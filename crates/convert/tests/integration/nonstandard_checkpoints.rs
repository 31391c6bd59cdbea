//! Checkpoints of unknown classes, with additional tensors, or with incomplete configurations.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf::{self, HfOptions};
use gguf_store::{Existing, Overwrite};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Copy of the demo model, which tests change.
struct Case {
    dir: tempfile::TempDir,
}

type Tensors = Vec<(String, Value, Vec<u8>)>;

impl Case {
    fn new() -> Self {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/Tiny-KJV-Llama-4M");
        let case = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(case.model()).unwrap();
        for file in std::fs::read_dir(model).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), case.model().join(file.file_name())).unwrap();
        }
        case
    }

    /// Returns the model's directory. Its name is the same in all cases because it is part of the metadata.
    fn model(&self) -> PathBuf {
        self.dir.path().join("model")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.model().join(name)
    }

    fn edit_config(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.path("config.json");
        let mut config = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut config);
        std::fs::write(path, config.to_string()).unwrap();
    }

    /// Edits the list of tensors: name, dtype and shape, data.
    fn edit_tensors(&self, edit: impl FnOnce(&mut Tensors)) {
        let path = self.path("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let (len, rest) = bytes.split_at(8);
        let len = u64::from_le_bytes(len.try_into().unwrap()) as usize;
        let header: Map<String, Value> = serde_json::from_slice(&rest[..len]).unwrap();
        let mut tensors: Tensors = header
            .into_iter()
            .filter(|(name, _)| name != "__metadata__")
            .map(|(name, info)| {
                let at = |i: usize| info["data_offsets"][i].as_u64().unwrap() as usize;
                let data = rest[len + at(0)..len + at(1)].to_vec();
                (name, info, data)
            })
            .collect();
        edit(&mut tensors);
        let (mut header, mut data) = (Map::new(), Vec::new());
        for (name, mut info, bytes) in tensors {
            info["data_offsets"] = json!([data.len(), data.len() + bytes.len()]);
            data.extend(bytes);
            header.insert(name, info);
        }
        let header = Value::from(header).to_string();
        let len = (header.len() as u64).to_le_bytes();
        std::fs::write(path, [&len[..], header.as_bytes(), &data].concat()).unwrap();
    }

    /// Converts, and returns a digest of the output and the notes.
    fn convert(&self, like: Option<&str>) -> Result<(String, Vec<String>), Error> {
        let checkpoint = Checkpoint::open(&self.model())?;
        let options = HfOptions { like: like.map(str::to_owned), ..HfOptions::default() };
        let conversion = hf::plan(&self.model(), &checkpoint, &options)?;
        let out = self.dir.path().join("out.gguf");
        let go_on = |_| ControlFlow::Continue(());
        conversion.job.write(&out, &Overwrite::new(Existing::Replace), &go_on)?;
        let digest = Sha256::digest(std::fs::read(out).unwrap());
        Ok((format!("{digest:x}"), conversion.notes))
    }

    fn failure(&self, like: Option<&str>) -> String {
        self.convert(like).unwrap_err().to_string()
    }
}

fn f32_tensor(name: &str, values: &[f32]) -> (String, Value, Vec<u8>) {
    let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    (name.to_owned(), json!({"dtype": "F32", "shape": [values.len()]}), data)
}

/// Returns the digest of the output of the unchanged model.
fn unchanged_digest() -> String {
    Case::new().convert(None).unwrap().0
}

#[test]
fn unknown_class_converts_like_a_known_one() {
    let case = Case::new();
    case.edit_config(|config| config["architectures"] = json!(["TrulyNewForCausalLM"]));
    let message = case.failure(None);
    assert!(message.contains("`TrulyNewForCausalLM`"), "{message}");
    assert!(message.contains("--like LlamaForCausalLM"), "{message}");
    for like in ["LlamaForCausalLM", "llamaforcausallm", "llama"] {
        assert_eq!(case.convert(Some(like)).unwrap().0, unchanged_digest(), "{like}");
    }
    assert!(case.failure(Some("camel")).contains("`camel` is not a known class"));
}

#[test]
fn suggested_architectures_have_the_tensors() {
    let case = Case::new();
    case.edit_config(|config| config["architectures"] = json!(["TrulyNewForCausalLM"]));
    let message = case.failure(None);
    assert!(message.contains("Qwen2ForCausalLM"), "{message}");
    case.edit_tensors(|tensors| {
        tensors.push(f32_tensor("model.layers.0.self_attn.q_norm.weight", &[1.0; 32]));
    });
    let message = case.failure(None);
    assert!(message.contains("--like Qwen3ForCausalLM"), "{message}");
    assert!(!message.contains("Qwen2ForCausalLM"), "{message}");
}

#[test]
fn error_names_all_unexpected_tensors() {
    let case = Case::new();
    case.edit_tensors(|tensors| {
        tensors.push(f32_tensor("model.layers.0.mystery.weight", &[1.0; 8]));
        tensors.push(f32_tensor("model.layers.1.mystery.weight", &[1.0; 8]));
    });
    let message = case.failure(Some("llama"));
    for part in ["model.layers.0.mystery.weight", "and 1 more", "model.layers.1.mystery.weight"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn unused_buffers_are_skipped() {
    let case = Case::new();
    case.edit_tensors(|tensors| {
        for name in ["rotary_emb.inv_freq", "attention.masked_bias", "attention.bias"] {
            tensors.push(f32_tensor(&format!("model.layers.0.self_attn.{name}"), &[1.0; 8]));
        }
    });

    assert_eq!(case.convert(None).unwrap().0, unchanged_digest());
}

#[test]
fn text_model_of_a_multimodal_checkpoint_converts() {
    let case = Case::new();
    case.edit_config(|config| {
        let class = config["architectures"].take();
        let text = config.take();
        *config = json!({"architectures": class, "text_config": text, "vision_config": {}});
    });
    case.edit_tensors(|tensors| {
        for (name, ..) in tensors.iter_mut() {
            *name = format!("language_model.{name}");
        }
        tensors.push(f32_tensor("vision_tower.encoder.layers.0.norm.weight", &[1.0; 8]));
        tensors.push(f32_tensor("multi_modal_projector.linear.weight", &[1.0; 8]));
    });
    let (digest, notes) = case.convert(None).unwrap();
    assert_eq!(digest, unchanged_digest());
    assert!(
        notes.iter().any(|note| note.contains("skipped 2 vision and audio tensors")),
        "{notes:?}"
    );
}

#[test]
fn embedding_rows_determine_the_vocabulary_size() {
    let case = Case::new();
    case.edit_config(|config| {
        config["vocab_size"] = json!(config["vocab_size"].as_u64().unwrap() - 7);
    });
    let (digest, notes) = case.convert(None).unwrap();
    assert_eq!(digest, unchanged_digest());
    assert!(notes.iter().any(|note| note.contains("rows: wrote")), "{notes:?}");
}

#[test]
fn unsupported_biases_must_be_zero() {
    let case = Case::new();
    case.edit_config(|config| {
        config["architectures"] = json!(["Cohere2ForCausalLM"]);
        config["tie_word_embeddings"] = true.into();
    });
    let bias = "model.layers.0.self_attn.q_proj.bias";
    case.edit_tensors(|tensors| tensors.push(f32_tensor(bias, &[0.0, -0.0, 0.0])));
    assert!(!case.failure(None).contains(bias));
    case.edit_tensors(|tensors| {
        tensors.retain(|(name, ..)| name != bias);
        tensors.push(f32_tensor(bias, &[0.0, 0.0, 1e-3]));
    });
    let message = case.failure(None);
    assert!(message.contains(bias) && message.contains("is not zero"), "{message}");
}

#[test]
fn contradictions_between_configuration_and_tensors_are_noted() {
    let noted = |edit: &dyn Fn(&Case), part: &str| {
        let case = Case::new();
        edit(&case);
        let (_, notes) = case.convert(None).unwrap();
        assert!(notes.iter().any(|note| note.contains(part)), "{part}: {notes:?}");
    };
    let without_output =
        |tensors: &mut Tensors| tensors.retain(|(name, ..)| name != "lm_head.weight");
    noted(
        &|case| {
            case.edit_config(|config| config["tie_word_embeddings"] = false.into());
            case.edit_tensors(without_output);
        },
        "no output matrix",
    );
    noted(
        &|case| case.edit_config(|config| config["tie_word_embeddings"] = true.into()),
        "another output matrix",
    );
    noted(
        &|case| case.edit_config(|config| config["attention_bias"] = true.into()),
        "`attention_bias` is true",
    );
    noted(
        &|case| case.edit_config(|config| config["architectures"] = json!(["Qwen2ForCausalLM"])),
        "no biases of queries, keys and values",
    );
    // A tied checkpoint may store the embedding twice.
    let case = Case::new();
    case.edit_config(|config| config["tie_word_embeddings"] = true.into());
    case.edit_tensors(|tensors| {
        let embedding = tensors.iter().find(|(name, ..)| name == "model.embed_tokens.weight");
        let (_, info, data) = embedding.unwrap().clone();
        without_output(tensors);
        tensors.push(("lm_head.weight".to_owned(), info, data));
    });
    assert_eq!(case.convert(None).unwrap().1, [""; 0]);
    for factor in [0.0, -4.0] {
        let case = Case::new();
        let scaling = json!({"type": "linear", "factor": factor});
        case.edit_config(|config| config["rope_parameters"] = scaling);
        let message = case.failure(None);
        assert!(message.contains("`factor` of RoPE is"), "{message}");
    }
}
