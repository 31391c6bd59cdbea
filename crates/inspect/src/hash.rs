//! Digests of tensor data: what stays the same when only keys change.
//!
//! Algorithms, order and line format are those of `llama-gguf-hash`
//! (`examples/gguf-hash` of llama.cpp). Data are hashed as they are stored, without padding and in
//! directory order, so that a split model has the digests of the whole one.

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use gguf::{Error, Finding};
use gguf_store::digest::hex;
use gguf_store::{Model, ModelTensor, Progress};
use rayon::prelude::*;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use twox_hash::XxHash64;

/// A hash algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// XXH64 with seed 0: fast, against accidents only.
    Xxh64,
    /// SHA-1.
    Sha1,
    /// SHA-256: safe against deliberate changes.
    Sha256,
    /// UUID version 5 of all tensor data; for whole models only.
    Uuid,
}

/// Namespace of the UUIDs: `en.wikipedia.org/wiki/Llama.cpp` in the URL namespace.
const NAMESPACE: [u8; 16] = [
    0xef, 0x00, 0x12, 0x06, 0xda, 0xdc, 0x5f, 0x6d, 0xa1, 0x5f, 0x33, 0x59, 0xe5, 0x77, 0xd4, 0xe5,
];

impl Algorithm {
    /// All algorithms, in the order of their lines.
    pub const ALL: [Self; 4] = [Self::Xxh64, Self::Sha1, Self::Sha256, Self::Uuid];

    /// Returns the name in lines and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xxh64 => "xxh64",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Uuid => "uuid",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of an algorithm that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm(pub String);

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a hash: xxh64, sha1, sha256 and uuid are", self.0)
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        found.ok_or_else(|| UnknownAlgorithm(text.into()))
    }
}

/// Algorithms and scope of [`hash`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashOptions {
    /// Algorithms, in any order.
    pub algorithms: Vec<Algorithm>,
    /// Hashes each tensor too, not only the whole model.
    pub per_tensor: bool,
}

impl Default for HashOptions {
    /// XXH64 of the tensors and the model, as `llama-gguf-hash`.
    fn default() -> Self {
        Self { algorithms: vec![Algorithm::Xxh64], per_tensor: true }
    }
}

/// One digest. Displayed as a line of a manifest: `xxh64     f66e9cd66a4396a0  m.gguf:output.weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Lower-case hexadecimal; of a UUID, in its usual form with dashes.
    pub digest: String,
    /// `LABEL:TENSOR`, or only the label for the whole model.
    pub name: String,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}  {}  {}", self.algorithm, self.digest, self.name)
    }
}

/// Bytes read at a time.
const CHUNK: u64 = 4 << 20;

/// Hashes a model and hands out the digests as they are ready: of each tensor, then of the model,
/// until `sink` breaks. `label` is the model's name in them, usually the path that was given.
///
/// `progress` is called with the number of bytes just hashed.
///
/// # Errors
/// [`Error::Interrupted`] if `progress` ended the work, [`Error::Environment`] if data cannot be
/// read, [`Error::File`] if the size of a tensor is not known.
pub fn hash(
    model: &Model,
    label: &str,
    options: &HashOptions,
    progress: &dyn Progress,
    sink: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<(), Error> {
    progress.begin("hashing", model.byte_len());
    let wanted = |algorithm: &Algorithm| options.algorithms.contains(algorithm);
    let algorithms = || Algorithm::ALL.into_iter().filter(wanted);
    let per_tensor = |algorithm: &Algorithm| options.per_tensor && *algorithm != Algorithm::Uuid;
    let mut whole: Vec<State> = algorithms().map(State::new).collect();
    let mut buffer = Vec::new();
    for tensor in model.tensors() {
        let mut states: Vec<State> = algorithms().filter(per_tensor).map(State::new).collect();
        hash_tensor(tensor, &mut buffer, &mut states, &mut whole, progress)?;
        for state in states {
            if sink(state.finish(format!("{label}:{}", tensor.info.name))).is_break() {
                return Ok(());
            }
        }
    }
    for state in whole {
        if sink(state.finish(label.to_owned())).is_break() {
            break;
        }
    }
    Ok(())
}

fn hash_tensor(
    tensor: &ModelTensor,
    buffer: &mut Vec<u8>,
    states: &mut [State],
    whole: &mut [State],
    progress: &dyn Progress,
) -> Result<(), Error> {
    let len = tensor.info.byte_len().ok_or_else(|| size_unknown(tensor))?;
    let mut first = 0;
    while first < len {
        let n = (len - first).min(CHUNK);
        buffer.resize(n as usize, 0);
        tensor.read_stored_at(buffer, first)?;
        states.par_iter_mut().chain(whole.par_iter_mut()).for_each(|state| state.update(buffer));
        progress.step(n)?;
        first += n;
    }
    Ok(())
}

pub(crate) fn size_unknown(tensor: &ModelTensor) -> Error {
    let message = format!("the size of {} data is unknown", tensor.info.tensor_type);
    Finding::error("tensor-size-unknown", message).tensor(&*tensor.info.name).into()
}

/// A digest being computed.
enum State {
    Xxh64(XxHash64),
    Sha1(Sha1),
    Sha256(Sha256),
    Uuid(Sha1),
}

impl State {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Xxh64 => Self::Xxh64(XxHash64::with_seed(0)),
            Algorithm::Sha1 => Self::Sha1(Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Uuid => Self::Uuid(Sha1::new_with_prefix(NAMESPACE)),
        }
    }

    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Xxh64(_) => Algorithm::Xxh64,
            Self::Sha1(_) => Algorithm::Sha1,
            Self::Sha256(_) => Algorithm::Sha256,
            Self::Uuid(_) => Algorithm::Uuid,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Xxh64(state) => std::hash::Hasher::write(state, bytes),
            Self::Sha1(state) | Self::Uuid(state) => state.update(bytes),
            Self::Sha256(state) => state.update(bytes),
        }
    }

    fn finish(self, name: String) -> Entry {
        let algorithm = self.algorithm();
        let digest = match self {
            Self::Xxh64(state) => format!("{:016x}", std::hash::Hasher::finish(&state)),
            Self::Sha1(state) => hex(&state.finalize()),
            Self::Sha256(state) => hex(&state.finalize()),
            Self::Uuid(state) => uuid(&state.finalize().into()),
        };
        Entry { algorithm, digest, name }
    }
}

/// The first 16 bytes with version and variant put in (RFC 9562, section 5.5).
fn uuid(digest: &[u8; 20]) -> String {
    let mut id = *digest;
    id[6] = id[6] & 0x0f | 0x50;
    id[8] = id[8] & 0x3f | 0x80;
    [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..16]].map(hex).join("-")
}
