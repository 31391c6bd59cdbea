//! A matrix encoded so that its products stay what they were.

use gguf::TensorType;
use gguf_quant::{Codec, CodecError, Form, codec, form};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::factor::Factor;
use crate::lanes::ROWS;
use crate::moments::Moments;
use crate::points::Points;
use crate::rounding::{Levels, Tile};

/// How often all columns are looked at again, after each was rounded once. More change little.
const PASSES: usize = 3;

/// How many tokens for each column make a text worth half of what it shows: of what the quantized model is off by
/// before a matrix, a matrix makes up for the more, the more tokens say so. All of it would fit a short text, and
/// others less.
const HALF: f32 = 16.0;

/// What products with a matrix are to be.
pub struct Target {
    /// Moments of what is multiplied, with more on the diagonal than was summed: `n` rows of `n`.
    pub(crate) squares: Vec<f32>,
    pub(crate) factor: Factor,
    /// As in [`Moments::drift`].
    pub(crate) drift: Vec<f32>,
    /// Sums of `r[i] y[j]`: what is missing from the values that the product is added to, and what is multiplied. As
    /// many rows as the matrix has, or none.
    pub(crate) missing: Vec<f32>,
    /// How much of both is made up for, for all tokens.
    pub(crate) share: f32,
}

impl Target {
    /// Of complete moments; `damping` is added to their diagonal, in terms of its mean: as much for many tokens, and
    /// twice that for as many as there are columns. A column that is always 0 counts as the mean does.
    pub fn new(moments: Moments, damping: f32) -> Self {
        let Moments { n, tokens, compared, mut squares, drift } = moments;
        let mean = (0..n).map(|i| f64::from(squares[i * n + i])).sum::<f64>() / n.max(1) as f64;
        let mean = if mean > 0.0 { mean as f32 } else { 1.0 };
        let damping = damping * (1.0 + n as f32 / (tokens as f32).max(1.0));
        for i in 0..n {
            let diagonal = &mut squares[i * n + i];
            *diagonal = if *diagonal > 0.0 { *diagonal + damping * mean } else { mean };
        }
        let factor = Factor::new(&squares, n);
        // Times what the sums over all tokens would be.
        let share = tokens as f32 / (compared as f32 + HALF * n as f32);
        Self { squares, factor, drift, missing: Vec::new(), share }
    }

    /// With what is missing from the values that the product is added to.
    pub fn with_missing(mut self, missing: Vec<f32>) -> Self {
        self.missing = missing;
        self
    }

    pub(crate) fn n(&self) -> usize {
        self.factor.n
    }
}

/// What encodes blocks of a type.
pub struct Encoder {
    ty: TensorType,
    codec: &'static Codec,
    form: Form,
    levels: Levels,
    points: Option<Points>,
}

impl Encoder {
    /// For a type.
    ///
    /// # Errors
    /// If the type has no blocks of values.
    pub fn new(ty: TensorType) -> Result<Self, CodecError> {
        let (Some(codec), Some(form)) = (codec(ty), form(ty)) else {
            return Err(CodecError::NoCodec(ty));
        };
        let (levels, points) = (Levels::new(&form), Points::new(&form));
        Ok(Self { ty, codec, form, levels, points })
    }

    /// Weights and bytes of a block.
    pub(crate) fn block(&self) -> (usize, usize) {
        (self.form.len, self.form.bytes)
    }

    /// Encodes rows of one matrix, all of them, as blocks; the bytes do not depend on the number of threads.
    ///
    /// # Errors
    /// If the rows are no whole number of blocks, or a weight is no number.
    pub fn encode(&self, rows: &[f32], target: &Target, out: &mut [u8]) -> Result<(), CodecError> {
        let (n, form, ty) = (target.n(), &self.form, self.ty);
        if n == 0 || !n.is_multiple_of(form.len) {
            let block_len = form.len as u64;
            return Err(CodecError::NotWholeBlocks { ty, elements: n, block_len });
        }
        let row_bytes = n / form.len * form.bytes;
        let (expected, found) = ((rows.len() / n * row_bytes) as u64, out.len());
        if expected != found as u64 {
            return Err(CodecError::WrongByteLength { ty, elements: rows.len(), expected, found });
        }
        if let Some(position) = rows.iter().position(|x| !x.is_finite()) {
            return Err(CodecError::NotFinite { ty, position, value: rows[position] });
        }
        let tiles = rows.par_chunks(n * ROWS).zip(out.par_chunks_mut(row_bytes * ROWS)).enumerate();
        tiles.try_for_each(|(number, (rows, out))| {
            let first = number * ROWS;
            Arch::new().dispatch(Work { encoder: self, target, first, rows, out })
        })
    }
}

/// Some rows.
struct Work<'w> {
    encoder: &'w Encoder,
    target: &'w Target,
    first: usize,
    rows: &'w [f32],
    out: &'w mut [u8],
}

impl WithSimd for Work<'_> {
    type Output = Result<(), CodecError>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let Self { encoder, target, first, rows, out } = self;
        let Encoder { codec, form, levels, points, .. } = encoder;
        let mut tile = Tile::new(form, levels, points.as_ref(), target, rows);
        tile.shift(first);
        let blocks = target.n() / form.len;
        for block in 0..blocks {
            tile.begin(codec, block)?;
        }
        for _ in 0..PASSES {
            for block in 0..blocks {
                tile.improve(block);
            }
        }
        tile.write(out);
        Ok(())
    }
}
