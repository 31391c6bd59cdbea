//! Time to open a mapped file with a large vocabulary, beside the least that it can take.
//!
//! `cargo bench -p gguf --bench open [-- DIRECTORY]` writes two models, measures, and leaves
//! the models in DIRECTORY if one is given.
//!
//! Measured in turns, from the file's name until everything is dropped:
//!
//! - `hop` maps the file and goes through its arrays of strings from length to length: load it,
//!   see that the string lies within the file, skip it. Where the arrays begin is known
//!   beforehand and nothing else is looked at, so no reader that sees to every length does less.
//! - `read` maps the file and reads it strictly: [`Gguf::read`].
//! - `open` does what the commands do: [`Model::open`], then its model.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::{
    Array, Gguf, Header, RawHeader, Shape, TensorInfo, TensorType, ValueType, write_header,
};
use gguf_store::{LocalFile, Model};

const ROUNDS: usize = 300;

fn main() {
    // cargo passes `--bench`, which is no directory.
    let kept = std::env::args().skip(1).find(|a| !a.starts_with('-')).map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let directory = kept.as_deref().unwrap_or(temporary.path());

    println!("{:<32} {:>8} {:>10} {:>12}", "", "min ms", "median ms", "over hop");
    for (name, draft) in [("128k", like_llama_3()), ("262k", like_gemma_3())] {
        let path = directory.join(format!("vocabulary-{name}.gguf"));
        let header_len = write(&path, draft);
        println!("{name} tokens, header of {:.1} MB", header_len as f64 / 1e6);
        let arrays = string_arrays(&path);
        let times = in_turns([
            &|| hop(&path, &arrays),
            &|| drop(black_box(Gguf::read(LocalFile::open(&path).unwrap().mapped()).unwrap())),
            &|| drop(black_box(Model::open(&path).unwrap())),
        ]);
        for (work, [min, median]) in ["hop", "read", "open"].iter().zip(times) {
            let over_hop = min / times[0][0];
            println!("  {work:<30} {min:>8.3} {median:>10.3} {over_hop:>12.2}");
        }
    }
}

/// Least and median time of each work, in milliseconds.
fn in_turns<const N: usize>(works: [&dyn Fn(); N]) -> [[f64; 2]; N] {
    let mut times = [(); N].map(|()| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for (work, times) in works.iter().zip(&mut times) {
            let start = Instant::now();
            work();
            times.push(start.elapsed());
        }
    }
    times.map(|mut times: Vec<Duration>| {
        times.sort();
        [times[0], times[ROUNDS / 2]].map(|time| time.as_secs_f64() * 1e3)
    })
}

/// The bare hop through arrays that begin at these positions and have so many strings.
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

/// Where the first element of each array of strings stands, and how many there are.
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

/// Writes a model of which only the header matters, and returns that one's length.
fn write(path: &Path, mut draft: RawHeader) -> usize {
    let data_len = draft.lay_out().unwrap();
    let mut bytes = write_header(&Header::new(draft).unwrap()).unwrap();
    let header_len = bytes.len();
    bytes.resize(header_len + data_len as usize, 0);
    std::fs::write(path, bytes).unwrap();
    header_len
}

/// Sizes of Llama 3: 128,256 tokens with types, 280,147 merges, 32 blocks.
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

/// Sizes of Gemma 3: 262,144 tokens with scores and types, 514,906 merges, 48 blocks.
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

/// The other keys, and the tensors' names, of such a model.
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
        });
    };
    for name in ["token_embd", "output", "output_norm"] {
        tensor(format!("{name}.weight"));
    }
    const OF_BLOCK: &str =
        "attn_norm attn_q attn_k attn_v attn_output ffn_norm ffn_gate ffn_up ffn_down";
    for block in 0..n_blocks {
        for name in OF_BLOCK.split(' ') {
            tensor(format!("blk.{block}.{name}.weight"));
        }
    }
    draft
}

/// Makes up words, the same ones each time.
struct Words(u64);

impl Words {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    /// 1 to `longest` letters, all lengths alike.
    fn word(&mut self, longest: u64) -> String {
        let len = 1 + self.below(longest);
        (0..len).map(|_| (b'a' + self.below(26) as u8) as char).collect()
    }

    /// Every third after a space, as the vocabularies of byte pairs spell it.
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
