//! Quantized weights of other programs, decoded as those programs decode them.
//!
//! Such a matrix consists of several tensors: packed values, scales, zero points. A quantization
//! method recognises them by their suffixes and combines them into one tensor: F32 computed by the
//! method's own formula, or a GGUF type with exactly the same values.

mod affine;
mod awq;
mod awq_gemv;
mod bit_stream;
mod bitsandbytes;
mod compressed_tensors;
mod config;
mod fp8;
mod gptq;
mod hqq;
mod int_quantized;
mod marlin;
mod method;
mod mlx;
mod modelopt;
mod mxfp4;
mod nvfp4;
mod pack_quantized;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use affine::Affine;
use config::Quantization;
use gguf::{Error, TensorType};
use gguf_store::Source;

use super::dtype::Dtype;
use super::raw::Raw;
use super::rows::{ComputedSource, Rows, TileCache};
use super::weight_file::WeightFile;

/// Quantization of a checkpoint's weights.
pub(super) struct Scheme {
    /// Path of the file that states it.
    path: PathBuf,
    quantization: Quantization,
}

/// A tensor after resolving quantization.
pub(super) enum Resolved {
    /// A stored tensor.
    Stored(Raw),
    /// A tensor computed from several stored ones.
    Computed(ComputedTensor),
}

/// A computed tensor.
pub(super) struct ComputedTensor {
    pub name: String,
    /// Slowest dimension first.
    pub shape: Vec<u64>,
    pub tensor_type: TensorType,
    /// Index of the file that holds its parts, for messages.
    pub file: usize,
    pub source: Arc<dyn Source>,
    /// Whether its packed part is FP8.
    pub is_fp8: bool,
}

/// A recognised quantized matrix.
struct Matrix {
    name: String,
    shape: Vec<u64>,
    content: Content,
}

/// Values of a matrix.
enum Content {
    /// Rows of this type.
    Rows(TensorType, Box<dyn Rows>),
    /// Affine quantization; the type is not selected yet.
    Affine(Arc<dyn Affine>),
}

/// Reason why a matrix cannot be read.
#[derive(Debug, thiserror::Error)]
enum MatrixError {
    /// Its parts are inconsistent; the text completes a sentence about the tensor.
    #[error("{0}")]
    Parts(String),
    /// Its parts cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
}

/// Tensors of a checkpoint by name, and the names of those that belong to a matrix.
struct TensorSet<'r> {
    by_name: HashMap<&'r str, &'r Raw>,
    used: RefCell<HashSet<&'r str>>,
}

impl<'r> TensorSet<'r> {
    fn new(raws: &'r [Raw]) -> Self {
        let by_name = raws.iter().map(|raw| (raw.name.as_str(), raw)).collect();
        Self { by_name, used: RefCell::default() }
    }

    /// Returns the tensor of this name and marks it as part of a matrix.
    fn take(&self, name: &str) -> Option<&'r Raw> {
        let raw = self.by_name.get(name).filter(|raw| raw.elements() > 0)?;
        self.used.borrow_mut().insert(&raw.name);
        Some(raw)
    }

    /// Like [`TensorSet::take`], for a required part.
    fn need(&self, name: &str) -> Result<&'r Raw, MatrixError> {
        self.take(name).ok_or_else(|| MatrixError::Parts(format!("has no `{name}` beside it")))
    }
}

impl Scheme {
    /// Finds the quantization of the checkpoint in `dir`, if it is quantized.
    ///
    /// # Errors
    /// If the method is not supported.
    pub fn find(dir: &Path) -> Result<Option<Self>, Error> {
        Ok(config::find(dir)?.map(|(path, quantization)| Self { path, quantization }))
    }

    /// Combines the parts of quantized matrices; returns all tensors, and notes for the user.
    ///
    /// # Errors
    /// If the parts of a matrix are inconsistent.
    pub fn resolve(
        &self,
        raws: Vec<Raw>,
        files: &[WeightFile],
        cache: &Arc<TileCache>,
    ) -> Result<(Vec<Resolved>, Vec<String>), Error> {
        let set = TensorSet::new(&raws);
        let mut matrices = Vec::new();
        // Dimensions of a tensor without elements may have any size, so their products may
        // overflow.
        for (position, raw) in raws.iter().enumerate().filter(|(_, raw)| raw.elements() > 0) {
            let matrix = (self.quantization.read)(&set, raw).map_err(|error| match error {
                MatrixError::Read(error) => error,
                MatrixError::Parts(what) => {
                    let what = format!("tensor `{}` {what}", raw.name);
                    let help = format!(
                        "check that the weights are complete and quantized as stated in `{}`",
                        self.path.file_name().unwrap_or_default().to_string_lossy()
                    );
                    Error::input("quantization-tensors", &files[raw.file].path, what, help)
                }
            })?;
            matrices.extend(matrix.map(|matrix| (position, matrix)));
        }
        let used = set.used.take();
        let names: HashSet<String> = used.into_iter().map(str::to_owned).collect();
        let (mut computed, notes) = self.compute(matrices, &raws, cache)?;
        let mut found = Vec::new();
        for (position, raw) in raws.into_iter().enumerate() {
            // A tensor that is decoded under its own name keeps its position, as in llama.cpp's
            // converter; one with a new name comes after all others.
            match computed.get(&position).is_some_and(|tensor| tensor.name == raw.name) {
                true => found.extend(computed.remove(&position).map(Resolved::Computed)),
                false if names.contains(&raw.name) || self.quantization.ignores(&raw.name) => {}
                false => found.push(Resolved::Stored(raw)),
            }
        }
        found.extend(computed.into_values().map(Resolved::Computed));
        Ok((found, notes))
    }

    /// Selects types and creates the sources, by the position of the matrix among the tensors.
    fn compute(
        &self,
        matrices: Vec<(usize, Matrix)>,
        raws: &[Raw],
        cache: &Arc<TileCache>,
    ) -> Result<(BTreeMap<usize, ComputedTensor>, Vec<String>), Error> {
        let types = affine::lossless_types(matrices.iter().filter_map(|(_, matrix)| {
            let Content::Affine(affine) = &matrix.content else { return None };
            Some((matrix.name.as_str(), &**affine))
        }))?;
        let mut counts: BTreeMap<TensorType, usize> = BTreeMap::new();
        let mut computed = BTreeMap::new();
        for (position, Matrix { name, shape, content }) in matrices {
            let (tensor_type, rows) = match content {
                Content::Rows(tensor_type, rows) => (tensor_type, rows),
                Content::Affine(affine) => {
                    let tensor_type = types.get(&name).copied().unwrap_or(TensorType::F32);
                    (tensor_type, affine::rows(affine, tensor_type))
                }
            };
            *counts.entry(tensor_type).or_default() += 1;
            let source = ComputedSource::source(rows, cache);
            let Raw { file, dtype, .. } = raws[position];
            let is_fp8 = matches!(dtype, Dtype::F8E4M3 | Dtype::F8E5M2);
            computed.insert(
                position,
                ComputedTensor { name, shape, tensor_type, file, source, is_fp8 },
            );
        }
        let scheme = self.quantization.name;
        let note = |(tensor_type, count): (TensorType, usize)| match tensor_type {
            TensorType::F32 => {
                format!("{count} tensors are quantized ({scheme}); they are dequantized")
            }
            other => format!(
                "{count} tensors are quantized ({scheme}); {other} holds exactly the same values"
            ),
        };
        Ok((computed, counts.into_iter().map(note).collect()))
    }
}

/// Returns rows and columns of a matrix; all dimensions except the last are rows.
fn rows_and_columns(shape: &[u64]) -> Result<(u64, u64), MatrixError> {
    match shape {
        [rows @ .., columns] if *columns > 0 => Ok((rows.iter().product(), *columns)),
        _ => Err(MatrixError::Parts(format!("has the shape {shape:?}, which is not a matrix"))),
    }
}

/// Writes floats as bytes.
fn put_floats(out: &mut [u8], values: impl Iterator<Item = f32>) {
    for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
        *out = f32::to_le_bytes(value);
    }
}
