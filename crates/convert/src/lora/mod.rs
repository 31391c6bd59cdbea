//! Low-rank adapters (LoRA): pairs of low-rank matrices whose product is added to a matrix of the base model.
//!
//! A pair belongs to the matrix `NAME` and is stored as `NAME.lora_a` with shape `[columns, rank]`
//! and `NAME.lora_b` with shape `[rank, rows]`. The matrix becomes `NAME + s * B A` with
//! `s = scale * alpha / rank`, where the user chooses `scale` and the file has `alpha`
//! (`llama_adapter_lora_weight::get_scale` in llama.cpp). The token embedding is an exception: its
//! `lora_a` has a row per token, `[rank, tokens]`, and its `lora_b` has a row per column.

pub mod extract;
pub mod merge;
pub mod peft;

use std::collections::BTreeMap;

use gguf::{Error, Metadata};
use gguf_store::{Model, ModelTensor};
use sha2::{Digest, Sha256};

/// Name suffixes of the matrices of a pair.
pub(crate) const SUFFIXES: [&str; 2] = [".lora_a", ".lora_b"];

/// Key of alpha.
pub(crate) const ALPHA: &str = "adapter.lora.alpha";

/// Key of the base model's digest: see [`base_digest`].
pub(crate) const BASE_DIGEST: &str = "gguf_kit.adapter.base_digest";

/// Token embedding, whose pair is transposed.
pub(crate) const EMBEDDING: &str = "token_embd.weight";

/// Pair of low-rank matrices.
#[derive(Clone)]
pub struct Pair {
    /// `lora_a`.
    pub a: ModelTensor,
    /// `lora_b`.
    pub b: ModelTensor,
}

impl Pair {
    /// Returns the dimensions of the base tensor and the rank; `None` if the shapes of the matrices do not match.
    pub fn dims(&self, name: &str) -> Option<PairDims> {
        let dims = |tensor: &ModelTensor| {
            let shape = &tensor.info.shape;
            let matrices: u64 = shape.iter().skip(2).product();
            Some([*shape.first()?, *shape.get(1)?, matrices])
        };
        let ([a0, a1, a_matrices], [b0, b1, b_matrices]) = (dims(&self.a)?, dims(&self.b)?);
        let (columns, rank, rows) = if name == EMBEDDING { (b1, a0, a1) } else { (a0, a1, b1) };
        (b0 == rank && rank > 0 && a_matrices == b_matrices).then_some(PairDims {
            columns,
            rows,
            matrices: a_matrices,
            rank,
        })
    }
}

/// Dimensions of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairDims {
    /// Columns of the base matrix.
    pub columns: u64,
    /// Rows of the base matrix.
    pub rows: u64,
    /// Number of matrices in the base tensor: 1, or its number of experts.
    pub matrices: u64,
    /// Rank of the product.
    pub rank: u64,
}

/// LoRA adapter in a GGUF file.
#[derive(Clone)]
pub struct Adapter {
    /// Metadata.
    pub metadata: Metadata,
    /// Scale of the products, before the division by their rank.
    pub alpha: f32,
    /// Pairs by name of the base tensor.
    pub pairs: BTreeMap<String, Pair>,
    /// Tensors that replace tensors of the base model, such as norms in adapters that mergekit extracted.
    pub replaced: Vec<ModelTensor>,
}

impl Adapter {
    /// Reads an adapter.
    ///
    /// # Errors
    /// If `model` is not an adapter, or a matrix of a pair is missing or does not match the other.
    pub fn read(model: &Model) -> Result<Self, Error> {
        let metadata = model.metadata().clone();
        let path = model.parts().first().map_or_else(Default::default, |part| part.path.to_owned());
        let fault = |what: String| {
            Error::input("adapter-damaged", &path, what, "convert the adapter again")
        };
        if (metadata.str("general.type"), metadata.str("adapter.type"))
            != (Some("adapter"), Some("lora"))
        {
            let (what, help) = ("is not a LoRA adapter", "specify the file of the adapter");
            return Err(Error::input("adapter-none", &path, what, help));
        }
        let alpha =
            metadata.f64(ALPHA).ok_or_else(|| fault(format!("has no key `{ALPHA}`")))? as f32;
        let index = model.index();
        let (mut pairs, mut replaced) = (BTreeMap::new(), Vec::new());
        for tensor in model.tensors() {
            let name = &tensor.info.name;
            let Some(base) = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)) else {
                replaced.push(tensor.clone());
                continue;
            };
            let [a, b] = SUFFIXES.map(|suffix| index.get(format!("{base}{suffix}").as_str()));
            let (Some(&a), Some(&b)) = (a, b) else {
                let what = format!("has only one matrix of the pair for `{base}`");
                let help = "convert the adapter again";
                return Err(Error::input("adapter-incomplete", &path, what, help));
            };
            let pair = Pair { a: a.clone(), b: b.clone() };
            if pair.dims(base).is_none() {
                let what = format!(
                    "has matrices of incompatible shapes for `{base}`: {} and {}",
                    a.info.shape, b.info.shape
                );
                return Err(fault(what));
            }
            pairs.insert(base.to_owned(), pair);
        }
        if pairs.is_empty() {
            return Err(fault("has no pairs of matrices".into()));
        }
        Ok(Self { metadata, alpha, pairs, replaced })
    }

    /// Returns the reasons why the adapter does not match `base`, one sentence each.
    pub fn misfits(&self, base: &Model) -> Vec<String> {
        let mut misfits = Vec::new();
        let [ours, theirs] = [&self.metadata, base.metadata()]
            .map(|metadata| metadata.architecture().unwrap_or_default());
        if ours != theirs {
            misfits.push(format!("the adapter is for the architecture {ours}, not {theirs}"));
        }
        let index = base.index();
        let mut is_another = false;
        for (name, pair) in &self.pairs {
            let (Some(tensor), Some(dims)) = (index.get(name.as_str()), pair.dims(name)) else {
                misfits.push(format!("the base model has no tensor `{name}`"));
                continue;
            };
            let shape = &tensor.info.shape;
            let rows = shape.get(1).copied().unwrap_or(1);
            let matrices: u64 = shape.iter().skip(2).product();
            if (shape.row_len(), rows, matrices) != (dims.columns, dims.rows, dims.matrices) {
                is_another = true;
                misfits.push(format!(
                    "`{name}` is {shape} in the base model, {} x {} in the adapter",
                    dims.columns, dims.rows
                ));
            }
        }
        for tensor in &self.replaced {
            let base = index.get(&*tensor.info.name);
            if base.is_none_or(|base| base.info.shape != tensor.info.shape) {
                misfits.push(format!(
                    "the base model has no tensor `{}` of the same shape",
                    tensor.info.name
                ));
            }
        }
        if let Some(digest) = self.metadata.str(BASE_DIGEST)
            && !is_another
            && digest != base_digest(base.tensors().iter().map(|t| (&*t.info.name, &*t.info.shape)))
        {
            misfits.push("the adapter is for a base model with other matrices".into());
        }
        misfits
    }
}

/// Returns a digest of the names and shapes of the matrices in a model's layers, as 64 hexadecimal digits. It does not
/// depend on tensor types and values.
///
/// It is the SHA-256 of a line `NAME SHAPE` per matrix, sorted by name, with shapes such as `[4096, 14336]`.
pub(crate) fn base_digest<'t>(tensors: impl Iterator<Item = (&'t str, &'t [u64])>) -> String {
    let mut lines: Vec<_> = tensors
        .filter(|(name, shape)| name.starts_with("blk.") && shape.len() > 1)
        .map(|(name, shape)| format!("{name} {shape:?}\n"))
        .collect();
    lines.sort_unstable();
    let digest = Sha256::digest(lines.concat());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
