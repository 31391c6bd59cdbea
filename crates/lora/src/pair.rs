//! Pairs of low-rank matrices.

use gguf_store::ModelTensor;

/// Name suffixes of the matrices of a pair.
pub const SUFFIXES: [&str; 2] = [".lora_a", ".lora_b"];

/// Token embedding, whose pair is stored transposed.
pub const EMBEDDING: &str = "token_embd.weight";

/// Pair of low-rank matrices.
#[derive(Clone)]
pub struct Pair {
    /// `lora_a`.
    pub a: ModelTensor,
    /// `lora_b`.
    pub b: ModelTensor,
}

impl Pair {
    /// Returns the dimensions of the base tensor `name` and the rank; `None` if the shapes of the matrices do not match.
    pub fn dims(&self, name: &str) -> Option<PairDims> {
        PairDims::new(name, &self.a.info.shape, &self.b.info.shape)
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

impl PairDims {
    /// Returns the dimensions of a pair for the base tensor `name` with matrices of shapes `a` and `b`; `None` if they do
    /// not match each other.
    pub fn new(name: &str, a: &[u64], b: &[u64]) -> Option<Self> {
        let dims =
            |shape: &[u64]| Some([*shape.first()?, *shape.get(1)?, matrices(shape.get(2..)?)?]);
        let ([a0, a1, a_matrices], [b0, b1, b_matrices]) = (dims(a)?, dims(b)?);
        let (columns, rank, rows) = if name == EMBEDDING { (b1, a0, a1) } else { (a0, a1, b1) };
        (b0 == rank && rank > 0 && a_matrices == b_matrices).then_some(Self {
            columns,
            rows,
            matrices: a_matrices,
            rank,
        })
    }

    /// Whether the product has the shape of a base tensor.
    pub fn fit(&self, shape: &[u64]) -> bool {
        let extent = |axis: usize| shape.get(axis).copied().unwrap_or(1);
        let found = matrices(shape.get(2..).unwrap_or_default());
        (extent(0), extent(1), found) == (self.columns, self.rows, Some(self.matrices))
    }
}

/// Returns the number of matrices in a tensor with the given outer extents.
fn matrices(outer: &[u64]) -> Option<u64> {
    outer.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))
}
