//! Measures the time to open a mapped file with a large vocabulary, and a lower bound for it.
//!
//! `cargo bench -p gguf-store --bench open [-- DIRECTORY]` writes two models, measures, and leaves
//! the models in DIRECTORY if one is given.
//!
//! The three variants run in turn, each from the path until everything is dropped:
//!
//! - `hop` maps the file and walks its string arrays from length to length: load the length, check
//!   that the string lies within the file, skip it. The positions of the arrays are known
//!   beforehand, so no reader that checks every length does less.
//! - `read` maps the file and reads it strictly with [`Gguf::read`].
//! - `open` calls [`Model::open`], as the commands do.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::{
    Array, Gguf, Header, RawHeader, Shape, TensorInfo, TensorType, ValueType, write_header,
};
use gguf_store::{LocalFile, Model};

const ROUNDS: usize = 300;

fn main() {
    // cargo passes `--bench`, which is not a directory.
    let target = std::env::args().skip(1).find(|a| !a.starts_with('-')).map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let directory = target.as_deref().unwrap_or(temporary.path());

    println!("{:<32} {:>8} {:>10} {:>12}", "", "min ms", "median ms", "over hop");
    for (name, draft) in [("128k", like_llama_3()), ("262k", like_gemma_3())] {
        let path = directory.join(format!("vocabulary-{name}.gguf"));
        let header_len = write(&path, draft);
        println!("{name} tokens, header of {:.1} MB", header_len as f64 / 1e6);
        let arrays = string_arrays(&path);
        let times = time_in_turn([
            &|| hop(&path, &arrays),
            &|| drop(black_box(Gguf::read(LocalFile::open(&path).unwrap().mapped()).unwrap())),
            &|| drop(black_box(Model::open(&path).unwrap())),
        ]);
        for (function, [min, median]) in ["hop", "read", "open"].iter().zip(times) {
            let over_hop = min / times[0][0];
            println!("  {function:<30} {min:>8.3} {median:>10.3} {over_hop:>12.2}");
        }
    }
}

/// Returns the minimum and the median time of each function, in milliseconds.
fn time_in_turn<const N: usize>(functions: [&dyn Fn(); N]) -> [[f64; 2]; N] {
    let mut times = [(); N].map(|()| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for (function, times) in functions.iter().zip(&mut times) {
            let start = Instant::now();
            function();
            times.push(start.elapsed());
        }
    }
    times.map(|mut times: Vec<Duration>| {
        times.sort();
        [times[0], times[ROUNDS / 2]].map(|time| time.as_secs_f64() * 1e3)
    })
}

/// Walks the string arrays that begin at the given positions and have the given lengths.
fn hop(path: &Path, arrays: &[(usize, u64)]) {
    let file = LocalFile::open(path).unwrap();
    let bytes = file.mapped();
    for &(mut pos, len) in arrays {
        for _ in 0..len {
            let (len, left) = bytes[pos..].split_first_chunk().expect("a length");
            let len = u64::from_le_bytes(*len);
            assert!(len <= left.len() as u64);
            pos += 8 + len as usize;
        }
        black_box(pos);
    }
}

/// Returns the position of the first element and the length of each string array.
fn string_arrays(path: &Path) -> Vec<(usize, u64)> {
    let map = LocalFile::open(path).unwrap();
    let gguf = Gguf::read(map.mapped()).unwrap();
    let values = gguf.metadata().iter().zip(&gguf.spans().entries);
    values
        .filter_map(|((_, value), span)| {
            let array = value.as_array().filter(|a| a.element_type() == ValueType::String)?;
            // After the type of the elements and their number.
            Some((span.value as usize + 12, array.len()))
        })
        .collect()
}

/// Writes a model with zero tensor data and returns the length of its header.
fn write(path: &Path, mut draft: RawHeader) -> usize {
    let data_len = draft.lay_out().unwrap();
    let mut bytes = write_header(&Header::new(draft).unwrap()).unwrap();
    let header_len = bytes.len();
    bytes.resize(header_len + data_len as usize, 0);
    std::fs::write(path, bytes).unwrap();
    header_len
}

/// Returns a header with the sizes of Llama 3: 128,256 tokens with types, 280,147 merges, 32
/// blocks.
fn like_llama_3() -> RawHeader {
    let mut words = Words(1);
    let mut draft = model("llama", 32);
    let metadata = &mut draft.metadata;
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.pre", "llama-bpe");
    metadata.set("tokenizer.ggml.tokens", words.tokens(128_256));
    metadata.set("tokenizer.ggml.token_type", Array::from(&[1i32; 128_256][..]));
    metadata.set("tokenizer.ggml.merges", words.merges(280_147));
    draft
}

/// Returns a header with the sizes of Gemma 3: 262,144 tokens with scores and types, 514,906
/// merges, 48 blocks.
fn like_gemma_3() -> RawHeader {
    let mut words = Words(2);
    let mut draft = model("gemma3", 48);
    let metadata = &mut draft.metadata;
    metadata.set("tokenizer.ggml.model", "llama");
    metadata.set("tokenizer.ggml.tokens", words.tokens(262_144));
    metadata.set("tokenizer.ggml.scores", Array::from(&vec![-1f32; 262_144][..]));
    metadata.set("tokenizer.ggml.token_type", Array::from(&vec![1i32; 262_144][..]));
    metadata.set("tokenizer.ggml.merges", words.merges(514_906));
    draft
}

/// Returns a header with hyperparameters and tensor names, without a vocabulary.
fn model(architecture: &'static str, n_blocks: u32) -> RawHeader {
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", architecture);
    draft.metadata.set("general.name", "A model with a large vocabulary");
    let numbers = [
        ("block_count", n_blocks),
        ("context_length", 131_072),
        ("embedding_length", 4096),
        ("feed_forward_length", 14_336),
        ("attention.head_count", 32),
        ("attention.head_count_kv", 8),
        ("rope.dimension_count", 128),
    ];
    for (key, value) in numbers {
        draft.metadata.set(format!("{architecture}.{key}"), value);
    }
    let mut tensor = |name: String| {
        draft.tensors.push(TensorInfo {
            name,
            shape: Shape::new(&[32, 2]).unwrap(),
            tensor_type: TensorType::F32,
            offset: 0,
            opaque_len: None,
        });
    };
    for name in ["token_embd", "output", "output_norm"] {
        tensor(format!("{name}.weight"));
    }
    const BLOCK_TENSORS: &str =
        "attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_up ffn_down";
    for block in 0..n_blocks {
        for name in BLOCK_TENSORS.split(' ') {
            tensor(format!("blk.{block}.{name}.weight"));
        }
    }
    draft
}

/// Deterministic generator of random words.
struct Words(u64);

impl Words {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    /// Returns a word of 1 to `longest` letters; every length is equally likely.
    fn word(&mut self, longest: u64) -> String {
        let len = 1 + self.below(longest);
        (0..len).map(|_| (b'a' + self.below(26) as u8) as char).collect()
    }

    /// Returns `n` tokens, every third with the BPE space marker.
    fn tokens(&mut self, n: usize) -> Array {
        Array::from_strings((0..n).map(|i| match i % 3 {
            0 => format!("Ġ{}", self.word(11)),
            _ => self.word(11),
        }))
    }

    fn merges(&mut self, n: usize) -> Array {
        Array::from_strings((0..n).map(|_| format!("{} {}", self.word(9), self.word(9))))
    }
}
