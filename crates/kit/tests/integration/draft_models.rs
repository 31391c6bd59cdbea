//! Draft models that read hidden states of a target model, with random weights.

use std::fs;

use gguf::{Header, RawHeader, TensorInfo, TensorType, write_header};

/// Sizes of a target model.
struct Target {
    model: gguf_store::Model,
    width: u64,
    heads: u64,
    kv_width: u64,
    tokens: u64,
}

impl Target {
    fn open(path: &str) -> Self {
        let model = gguf_store::Model::open(path.as_ref()).unwrap();
        let number = |key: &str| model.metadata().u64(&format!("llama.{key}")).unwrap();
        let (width, heads) = (number("embedding_length"), number("attention.head_count"));
        let kv_width = width / heads * number("attention.head_count_kv");
        let tokens = model.index()["token_embd.weight"].info.shape[1];
        Self { model, width, heads, kv_width, tokens }
    }
}

/// A draft model with random weights.
struct RandomModel {
    architecture: &'static str,
    raw: RawHeader,
    /// Maximum of the weights of layers.
    scale: f32,
}

impl RandomModel {
    /// Returns a model without tensors, with the vocabulary of a target model and the keys that all draft models have.
    fn new(architecture: &'static str, target: &Target, layers: u64) -> Self {
        let mut raw = RawHeader::default();
        raw.metadata.set("general.architecture", architecture);
        let all = target.model.metadata().iter();
        for (key, value) in all.filter(|(key, _)| key.starts_with("tokenizer.")) {
            raw.metadata.set(key, value.clone());
        }
        let mut model = Self { architecture, raw, scale: 0.1 };
        for (key, number) in [
            ("context_length", 64),
            ("block_count", layers),
            ("embedding_length", target.width),
            ("feed_forward_length", FEED_FORWARD),
            ("attention.head_count", target.heads),
            ("attention.head_count_kv", target.kv_width / (target.width / target.heads)),
            ("vocab_size", target.tokens),
        ] {
            model.set(key, (number as u32).into());
        }
        model.set("attention.layer_norm_rms_epsilon", 1e-5f32.into());
        model
    }

    fn set(&mut self, key: &str, value: gguf::Value) {
        self.raw.metadata.set(format!("{}.{key}", self.architecture), value);
    }

    fn add(&mut self, name: impl Into<String>, shape: &[u64]) {
        let (name, shape) = (name.into(), gguf::Shape::new(shape).unwrap());
        let tensor_type = if name == "d2t" { TensorType::I64 } else { TensorType::F32 };
        self.raw.tensors.push(TensorInfo { name, shape, tensor_type, offset: 0, opaque_len: None });
    }

    /// Writes the model. Norms have the weight 1; the draft vocabulary is every other token.
    fn write(mut self, path: &str) {
        self.raw.lay_out().unwrap();
        let header = Header::new(self.raw).unwrap();
        let mut bytes = write_header(&header).unwrap();
        let start = bytes.len();
        let mut state = 88_172_645_463_325_252u64;
        for tensor in header.tensors() {
            bytes.resize(start + tensor.offset as usize, 0);
            for i in 0..tensor.shape.elements().unwrap() {
                match tensor.tensor_type {
                    TensorType::I64 => bytes.extend((2 * i as i64).to_le_bytes()),
                    _ if tensor.name.ends_with("norm.weight") => bytes.extend(1f32.to_le_bytes()),
                    _ => {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        let random = (state >> 40) as f32 / (1 << 23) as f32 - 1.0;
                        // Drafts of high confidence, which are tried although they are wrong.
                        let scale = if tensor.name == "output.weight" { 4.0 } else { self.scale };
                        bytes.extend((scale * random).to_le_bytes());
                    }
                }
            }
        }
        bytes.resize(header.file_len(start).unwrap() as usize, 0);
        fs::write(path, bytes).unwrap();
    }
}

const FEED_FORWARD: u64 = 64;

/// Writes an EAGLE 3 model with random weights for a target model, whose draft vocabulary is every other token.
/// `target_width` is the number of hidden states per layer that it reads.
pub fn eagle3(target: &str, path: &str, target_width: u64, changes: &[(&str, gguf::Value)]) {
    let target = Target::open(target);
    let (n, kv, tokens) = (target.width, target.kv_width, target.tokens);
    let mut model = RandomModel::new("eagle3", &target, 1);
    model.set("target_hidden_size", (target_width as u32).into());
    model.set("target_layers", gguf::Array::from(&[0u32, 1, 2][..]).into());
    changes.iter().for_each(|(key, value)| model.set(key, value.clone()));
    for (name, shape) in [
        ("fc.weight", &[3 * target_width, n][..]),
        ("output_norm.weight", &[n]),
        ("output.weight", &[n, tokens / 2]),
        ("blk.0.attn_norm.weight", &[n]),
        ("blk.0.attn_norm_2.weight", &[n]),
        ("blk.0.ffn_norm.weight", &[n]),
        ("blk.0.attn_q.weight", &[2 * n, n]),
        ("blk.0.attn_k.weight", &[2 * n, kv]),
        ("blk.0.attn_v.weight", &[2 * n, kv]),
        ("blk.0.attn_output.weight", &[n, n]),
        ("blk.0.ffn_gate.weight", &[n, FEED_FORWARD]),
        ("blk.0.ffn_up.weight", &[n, FEED_FORWARD]),
        ("blk.0.ffn_down.weight", &[FEED_FORWARD, n]),
        ("d2t", &[tokens / 2]),
    ] {
        model.add(name, shape);
    }
    model.write(path);
}

/// Writes a DFlash model with random weights for a target model, whose embedding and output matrix it shares; or, with a rank
/// of its Markov head, a DSpark model with an output matrix of its own for every other token.
pub fn dflash(target: &str, path: &str, rank: Option<u64>, changes: &[(&str, gguf::Value)]) {
    let target = Target::open(target);
    let (n, kv, tokens) = (target.width, target.kv_width, target.tokens);
    let mut model = RandomModel::new("dflash", &target, 2);
    // All mask tokens have the same embedding: their rows differ by attention only.
    model.scale = 0.5;
    model.raw.metadata.set("tokenizer.ggml.mask_token_id", 5u32);
    model.set("block_size", 6u32.into());
    model.set("target_layers", gguf::Array::from(&[1u32, 3][..]).into());
    changes.iter().for_each(|(key, value)| model.set(key, value.clone()));
    for (name, shape) in [
        ("fc.weight", &[2 * n, n][..]),
        ("enc.output_norm.weight", &[n]),
        ("output_norm.weight", &[n]),
    ] {
        model.add(name, shape);
    }
    for layer in 0..2 {
        for (name, shape) in [
            ("attn_norm", &[n][..]),
            ("attn_q", &[n, n]),
            ("attn_k", &[n, kv]),
            ("attn_v", &[n, kv]),
            ("attn_q_norm", &[n / target.heads]),
            ("attn_k_norm", &[n / target.heads]),
            ("attn_output", &[n, n]),
            ("ffn_norm", &[n]),
            ("ffn_gate", &[n, FEED_FORWARD]),
            ("ffn_up", &[n, FEED_FORWARD]),
            ("ffn_down", &[FEED_FORWARD, n]),
        ] {
            model.add(format!("blk.{layer}.{name}.weight"), shape);
        }
    }
    if let Some(rank) = rank {
        model.add("markov_w1.weight", &[rank, tokens]);
        model.add("markov_w2.weight", &[rank, tokens / 2]);
        model.add("output.weight", &[n, tokens / 2]);
        model.add("d2t", &[tokens / 2]);
    }
    model.write(path);
}
