//! Tiny checkpoints of any family, whose numbers are known.

use std::path::{Path, PathBuf};

use gguf::{Bytes, Error, Gguf};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf::{self, Options};
use gguf_store::{Existing, Overwrite};
use serde_json::{Map, Value, json};

/// A checkpoint directory in the making.
pub struct Tiny {
    dir: tempfile::TempDir,
    /// Names and shapes.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// Tensors of whole numbers.
    pub lists: Vec<List>,
}

/// A tensor of whole numbers: name, shape, numbers, bits that each is stored in.
pub type List = (String, Vec<usize>, Vec<i64>, usize);

/// The model that the checkpoint in `dir` is a draft for, if there is one.
pub fn target_of(dir: &Path) -> Option<PathBuf> {
    Some(dir.join("target")).filter(|target| target.is_dir())
}

impl Tiny {
    /// A directory with this `config.json`.
    pub fn new(config: Value) -> Self {
        let tiny =
            Self { dir: tempfile::tempdir().unwrap(), tensors: Vec::new(), lists: Vec::new() };
        tiny.file("config.json", config.to_string());
        tiny
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Adds or replaces a file.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.dir.path().join(name), content).unwrap();
    }

    /// Adds a byte-level `tokenizer.json` of this many tokens.
    pub fn byte_level(self, tokens: usize) -> Self {
        let vocab: Map<String, Value> =
            ('a'..='z').take(tokens).zip(0..).map(|(c, id)| (c.into(), json!(id))).collect();
        let tokenizer = json!({
            "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false },
            "decoder": { "type": "ByteLevel" },
            "model": { "type": "BPE", "vocab": vocab, "merges": [] },
        });
        self.file("tokenizer.json", tokenizer.to_string());
        self
    }

    /// Adds tensors; shapes as in a checkpoint, slowest dimension first.
    pub fn tensors(mut self, tensors: &[(&str, &[usize])]) -> Self {
        self.tensors.extend(tensors.iter().map(|(name, shape)| ((*name).into(), shape.to_vec())));
        self
    }

    /// Adds tensors of a layer: `{}` in their names stands for its number.
    pub fn layers(mut self, count: usize, tensors: &[(&str, &[usize])]) -> Self {
        for layer in 0..count {
            for (name, shape) in tensors {
                self.tensors.push((name.replace("{}", &layer.to_string()), shape.to_vec()));
            }
        }
        self
    }

    /// The elements of a tensor: numbers that no other element of the checkpoint has.
    pub fn values(&self, name: &str) -> Vec<f32> {
        let at = self.tensors.iter().position(|(n, _)| n == name);
        let at = at.unwrap_or_else(|| panic!("{name} is not in the checkpoint"));
        let len: usize = self.tensors[at].1.iter().product();
        (0..len).map(|i| (at * 4096 + i) as f32 / 65536.0).collect()
    }

    /// Converts to F32.
    pub fn convert(&self) -> Result<Bytes, Error> {
        self.write_weights();
        let checkpoint = Checkpoint::open(self.path())?;
        let target_model_dir = target_of(self.path());
        let outtype = Some("f32".parse().unwrap());
        let options = Options { outtype, target_model_dir, ..Options::default() };
        let job = hf::plan(self.path(), &checkpoint, &options)?.job;
        let out: PathBuf = self.path().join("out.gguf");
        job.write(&out, &Overwrite::new(Existing::Replace), &())?;
        Ok(std::fs::read(out).unwrap().into())
    }

    /// Writes the weights, for a conversion in another way than [`Tiny::convert`].
    pub fn write_weights(&self) {
        let mut header = Map::new();
        let mut data = Vec::new();
        for (name, shape) in &self.tensors {
            let start = data.len();
            data.extend(self.values(name).iter().flat_map(|value| value.to_le_bytes()));
            let entry =
                json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
            header.insert(name.clone(), entry);
        }
        for (name, shape, numbers, bits) in &self.lists {
            let start = data.len();
            let stored = |number: &i64| number.to_le_bytes()[..bits / 8].to_vec();
            data.extend(numbers.iter().flat_map(stored));
            let (dtype, offsets) = (format!("I{bits}"), [start, data.len()]);
            let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets });
            header.insert(name.clone(), entry);
        }
        let header = Value::from(header).to_string();
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.bytes());
        file.extend(data);
        self.file("model.safetensors", file);
    }
}

/// The elements of a tensor of a file that is all F32.
pub fn elements(bytes: &Bytes, name: &str) -> Vec<f32> {
    let model = Gguf::read(bytes).unwrap();
    let tensor = model.tensors().iter().find(|tensor| &*tensor.name == name);
    let tensor = tensor.unwrap_or_else(|| panic!("{name} is not in the file"));
    assert_eq!(tensor.tensor_type, gguf::TensorType::F32, "{name}");
    let data = model.data(tensor).unwrap();
    data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Nothing but information: no error and no warning.
pub fn assert_sound(bytes: &Bytes) {
    let (findings, _) = gguf_check::check(bytes);
    let bad = findings.iter().find(|finding| finding.severity != gguf::Severity::Info);
    assert!(bad.is_none(), "{}", bad.unwrap());
    assert_listed(&Gguf::read(bytes).unwrap());
}

/// The architecture lists every key under its name. Of others a check thinks that programs may
/// ignore them.
fn assert_listed(model: &Gguf) {
    let name = model.metadata().architecture().unwrap();
    let architecture = gguf_models::schema::architecture(name).unwrap();
    let listed = [architecture.required.concat(), architecture.optional.concat()].concat();
    let own = |key| str::strip_prefix(key, name)?.strip_prefix('.');
    let keys = model.metadata().iter().filter_map(|(key, _)| own(key));
    let unlisted: Vec<_> = keys.filter(|key| !listed.contains(key)).collect();
    assert_eq!(unlisted, [""; 0], "{name}");
}
