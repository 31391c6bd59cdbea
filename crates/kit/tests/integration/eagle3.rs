//! EAGLE 3 models with random weights.

use std::fs;

use gguf::{Header, RawHeader, TensorInfo, TensorType, write_header};

/// Writes an EAGLE 3 model with random weights for a target model, whose draft vocabulary is every other token.
/// `target_width` is the number of hidden states per layer that it reads.
pub fn eagle3(target: &str, path: &str, target_width: u64, changes: &[(&str, gguf::Value)]) {
    let target = gguf_store::Model::open(target.as_ref()).unwrap();
    let of_target = |key: &str| target.metadata().u64(&format!("llama.{key}")).unwrap();
    let (n, ff) = (of_target("embedding_length"), 64);
    let [heads, heads_kv] = ["attention.head_count", "attention.head_count_kv"].map(of_target);
    let tokens = target.index()["token_embd.weight"].info.shape[1];
    let mut raw = RawHeader::default();
    raw.metadata.set("general.architecture", "eagle3");
    for (key, value) in target.metadata().iter().filter(|(key, _)| key.starts_with("tokenizer.")) {
        raw.metadata.set(key, value.clone());
    }
    let kv = n / heads * heads_kv;
    for (key, number) in [
        ("context_length", 64),
        ("block_count", 1),
        ("embedding_length", n),
        ("feed_forward_length", ff),
        ("attention.head_count", heads),
        ("attention.head_count_kv", heads_kv),
        ("target_hidden_size", target_width),
        ("vocab_size", tokens),
    ] {
        raw.metadata.set(format!("eagle3.{key}"), number as u32);
    }
    raw.metadata.set("eagle3.attention.layer_norm_rms_epsilon", 1e-5f32);
    raw.metadata.set("eagle3.target_layers", gguf::Array::from(&[0u32, 1, 2][..]));
    for (key, value) in changes {
        raw.metadata.set(format!("eagle3.{key}"), value.clone());
    }
    let mut add = |name: &str, shape: &[u64], tensor_type| {
        let shape = gguf::Shape::new(shape).unwrap();
        let name = name.to_owned();
        raw.tensors.push(TensorInfo { name, shape, tensor_type, offset: 0, opaque_len: None });
    };
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
        ("blk.0.ffn_gate.weight", &[n, ff]),
        ("blk.0.ffn_up.weight", &[n, ff]),
        ("blk.0.ffn_down.weight", &[ff, n]),
    ] {
        add(name, shape, TensorType::F32);
    }
    add("d2t", &[tokens / 2], TensorType::I64);
    raw.lay_out().unwrap();
    let header = Header::new(raw).unwrap();
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
                    let scale = if tensor.name == "output.weight" { 4.0 } else { 0.1 };
                    bytes.extend((scale * random).to_le_bytes());
                }
            }
        }
    }
    bytes.resize(header.file_len(start).unwrap() as usize, 0);
    fs::write(path, bytes).unwrap();
}
