//! Builds legacy files field by field, for features that no file of the reference data has.

use std::path::{Path, PathBuf};

pub const GGML: u32 = 0x6767_6d6c;
pub const GGJT: u32 = 0x6767_6a74;

/// Builder of a file.
#[derive(Clone, Default)]
pub struct LegacyFile {
    pub bytes: Vec<u8>,
    aligned: bool,
}

impl LegacyFile {
    /// Writes the magic, the version if there is one, and the hyperparameters.
    pub fn new(magic: u32, version: Option<u32>, header: &[u32]) -> Self {
        let mut file = Self { bytes: Vec::new(), aligned: magic == GGJT };
        file.numbers(&[magic]);
        file.numbers(version.as_slice());
        file.numbers(header);
        file
    }

    pub fn numbers(&mut self, numbers: &[u32]) {
        numbers.iter().for_each(|number| self.bytes.extend(number.to_le_bytes()));
    }

    /// Adds a token, with a score if the format has scores.
    pub fn token(&mut self, text: &[u8], score: Option<f32>) {
        self.numbers(&[text.len() as u32]);
        self.bytes.extend(text);
        self.bytes.extend(score.map(f32::to_le_bytes).iter().flatten());
    }

    /// Adds a tensor with data in its type.
    pub fn tensor(&mut self, name: &str, ty: u32, dims: &[u32], data: &[u8]) {
        self.numbers(&[dims.len() as u32, name.len() as u32, ty]);
        self.numbers(dims);
        self.bytes.extend(name.as_bytes());
        if self.aligned {
            let aligned = self.bytes.len().next_multiple_of(32);
            self.bytes.resize(aligned, 0);
        }
        self.bytes.extend(data);
    }

    /// Adds an F32 tensor whose values depend on its name, and returns them.
    pub fn floats(&mut self, name: &str, dims: &[u32]) -> Vec<f32> {
        let salt = name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        let count: u32 = dims.iter().product();
        let value = |i: u32| (salt.wrapping_add(i.wrapping_mul(97)) % 4096) as f32 / 1024.0 - 2.0;
        let values: Vec<f32> = (0..count).map(value).collect();
        self.tensor(name, 0, dims, &bytes(&values));
        values
    }

    pub fn write(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, &self.bytes).unwrap();
        path
    }
}

pub fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

/// A llama with one layer, whose matrices `matrix` adds. The embedding length is 64, the
/// feed-forward length 256.
pub fn llama(
    magic: u32,
    version: Option<u32>,
    kv_rows: u32,
    matrix: impl Fn(&mut LegacyFile, &str, [u32; 2]),
) -> LegacyFile {
    let rotary = 16;
    let mut file = LegacyFile::new(magic, version, &[4, 64, 256, 4, 1, rotary, 2]);
    let score = |id: u32| version.map(|_| -(id as f32));
    for (id, text) in [&b" \xe2\x81\x87 "[..], b"", b"", b" a"].into_iter().enumerate() {
        file.token(text, score(id as u32));
    }
    for (name, dims) in [
        ("tok_embeddings", [64, 4]),
        ("output", [64, 4]),
        ("layers.0.attention.wq", [64, 64]),
        ("layers.0.attention.wk", [64, kv_rows]),
        ("layers.0.attention.wv", [64, kv_rows]),
        ("layers.0.attention.wo", [64, 64]),
        ("layers.0.feed_forward.w1", [64, 256]),
        ("layers.0.feed_forward.w2", [256, 64]),
        ("layers.0.feed_forward.w3", [64, 256]),
    ] {
        matrix(&mut file, &format!("{name}.weight"), dims);
    }
    for name in ["norm", "layers.0.attention_norm", "layers.0.ffn_norm"] {
        file.floats(&format!("{name}.weight"), &[64]);
    }
    file
}

pub fn plain(file: &mut LegacyFile, name: &str, dims: [u32; 2]) {
    file.floats(name, &dims);
}
