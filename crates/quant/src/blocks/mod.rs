//! One file per tensor type, and the registry of their codecs.
//!
//! Drawings show bytes from left to right, `d[2]` being two bytes named d; floats and integers
//! are little-endian. `x[i]` is weight i of the block, `q` its integer level.

use gguf::TensorType;
pub(crate) use iq4::VALUES as IQ4_VALUES;
use pulp::Simd;

use crate::codec::Codec;

mod bf16;
mod e2m1;
mod f16;
mod f32;
mod f64;
mod free_scale;
mod importance;
mod integers;
mod iq1_m;
mod iq1_s;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4;
mod iq4_nl;
mod iq4_xs;
mod k_affine;
mod magnitudes;
mod mxfp4;
mod nvfp4;
mod q1_0;
mod q2_0;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod q8_1;
mod q8_k;
mod ternary;
mod tq1_0;
mod tq2_0;

/// Every codec there is.
pub(crate) static CODECS: &[Codec] = &[
    f32::CODEC,
    f16::CODEC,
    bf16::CODEC,
    Codec::blocks::<q4_0::Q4_0, _, _>(),
    Codec::blocks::<q4_1::Q4_1, _, _>(),
    Codec::blocks::<q5_0::Q5_0, _, _>(),
    Codec::blocks::<q5_1::Q5_1, _, _>(),
    Codec::blocks::<q8_0::Q8_0, _, _>(),
    Codec::blocks::<q2_k::Q2K, _, _>(),
    Codec::blocks::<q3_k::Q3K, _, _>(),
    Codec::blocks::<q4_k::Q4K, _, _>(),
    Codec::blocks::<q5_k::Q5K, _, _>(),
    Codec::blocks::<q6_k::Q6K, _, _>(),
    Codec::blocks::<iq1_s::IQ1S, _, _>(),
    Codec::blocks::<iq1_m::IQ1M, _, _>(),
    Codec::blocks::<iq2_xxs::IQ2XXS, _, _>(),
    Codec::blocks::<iq2_xs::IQ2XS, _, _>(),
    Codec::blocks::<iq2_s::IQ2S, _, _>(),
    Codec::blocks::<iq3_xxs::IQ3XXS, _, _>(),
    Codec::blocks::<iq3_s::IQ3S, _, _>(),
    Codec::blocks::<iq4_nl::IQ4NL, _, _>(),
    Codec::blocks::<iq4_xs::IQ4XS, _, _>(),
    Codec::blocks::<tq1_0::TQ1_0, _, _>(),
    Codec::blocks::<tq2_0::TQ2_0, _, _>(),
    Codec::blocks::<mxfp4::MXFP4, _, _>(),
    Codec::blocks::<nvfp4::NVFP4, _, _>(),
    Codec::blocks::<q1_0::Q1_0, _, _>(),
    Codec::blocks::<q2_0::Q2_0, _, _>(),
    Codec::blocks::<q8_1::Q8_1, _, _>(),
    Codec::blocks::<q8_k::Q8K, _, _>(),
    f64::CODEC,
    integers::I8,
    integers::I16,
    integers::I32,
    integers::I64,
];

/// A block format: `LEN` weights in `BYTES` bytes.
pub(crate) trait Block<const LEN: usize, const BYTES: usize> {
    /// The tensor type that consists of these blocks.
    const TYPE: TensorType;

    /// The encoder with importance looks at [`Row::mean_squares`].
    const USES_ROW_MEAN_SQUARE: bool = false;

    /// The encoder is never called without importance; the codec refuses that.
    const REQUIRES_IMPORTANCE: bool = false;

    /// The weights of a block.
    ///
    /// A format writes this or [`decode_row`](Self::decode_row).
    #[inline(always)]
    fn decode(block: &[u8; BYTES], out: &mut [f32; LEN]) {
        Self::decode_row(pulp::Scalar, std::slice::from_ref(block), std::slice::from_mut(out));
    }

    /// The weights of many blocks.
    #[inline(always)]
    fn decode_row<S: Simd>(_: S, blocks: &[[u8; BYTES]], out: &mut [[f32; LEN]]) {
        for (block, out) in blocks.iter().zip(out) {
            Self::decode(block, out);
        }
    }

    /// The block for finite weights `x`, the one that llama.cpp's encoder finds.
    ///
    /// A format writes this or [`encode_row`](Self::encode_row).
    #[inline(always)]
    fn encode<S: Simd>(
        simd: S,
        x: &[f32; LEN],
        importance: Option<Importance<LEN>>,
    ) -> [u8; BYTES] {
        let columns = importance.map(|w| std::slice::from_ref(w.columns));
        let mut block = [[0; BYTES]];
        let row = Row { x: std::slice::from_ref(x), columns, mean_squares: &[0.0] };
        Self::encode_row(simd, row, &mut block);
        block[0]
    }

    /// The blocks of one or more rows, all at once where their searches fill the lanes of vectors.
    #[inline(always)]
    fn encode_row<S: Simd>(simd: S, row: Row<LEN>, out: &mut [[u8; BYTES]]) {
        let blocks = row.x.iter().zip(out);
        let Some(columns) = row.columns else {
            for (x, out) in blocks {
                *out = Self::encode(simd, x, None);
            }
            return;
        };
        for ((x, out), columns) in blocks.zip(columns) {
            *out = Self::encode(simd, x, Some(Importance { columns }));
        }
    }

    /// The first scale of the block that is NaN or infinite, with its name.
    fn bad_scale(block: &[u8; BYTES]) -> Option<(&'static str, f32)>;
}

/// Finite weights to encode, in blocks: a row, or several.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, const LEN: usize> {
    /// The blocks.
    pub x: &'a [[f32; LEN]],
    /// As many blocks of importance.
    pub columns: Option<&'a [[f32; LEN]]>,
    /// For each block the mean square of its whole row; empty unless the format asks for it.
    pub mean_squares: &'a [f32],
}

impl<'a, const LEN: usize> Row<'a, LEN> {
    /// Pieces of at most `blocks` blocks.
    #[inline(always)]
    fn chunks(self, blocks: usize) -> impl Iterator<Item = Row<'a, LEN>> {
        self.x.chunks(blocks).enumerate().map(move |(i, x)| {
            let columns = self.columns.map(|columns| &columns[i * blocks..][..x.len()]);
            let end = (i * blocks + x.len()).min(self.mean_squares.len());
            let mean_squares = &self.mean_squares[(i * blocks).min(end)..end];
            Row { x, columns, mean_squares }
        })
    }
}

/// Importance as the encoder of one block sees it.
#[derive(Clone, Copy)]
pub(crate) struct Importance<'a, const LEN: usize> {
    /// Importance of each column of the block.
    pub columns: &'a [f32; LEN],
}

/// The `N` bytes at `AT`. A field that reaches beyond its block does not compile.
#[inline(always)]
fn part<const AT: usize, const N: usize, const BYTES: usize>(block: &[u8; BYTES]) -> &[u8; N] {
    const { assert!(AT + N <= BYTES) }
    block[AT..].first_chunk().expect("the field was checked to fit when this was compiled")
}

/// Writes the `N` bytes at `AT`.
#[inline(always)]
fn put<const AT: usize, const N: usize, const BYTES: usize>(
    block: &mut [u8; BYTES],
    part: [u8; N],
) {
    const { assert!(AT + N <= BYTES) }
    block[AT..AT + N].copy_from_slice(&part);
}

/// The half-precision float at `AT`.
#[inline(always)]
fn half_at<const AT: usize, const BYTES: usize>(block: &[u8; BYTES]) -> half::f16 {
    half::f16::from_le_bytes(*part::<AT, 2, _>(block))
}

/// The first of these scales that is NaN or infinite.
fn first_bad<const N: usize>(
    scales: [(&'static str, half::f16); N],
) -> Option<(&'static str, f32)> {
    scales.into_iter().find(|(_, d)| !d.is_finite()).map(|(name, d)| (name, d.to_f32()))
}
