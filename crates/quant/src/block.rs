//! The trait of block formats and the rows that they encode.

use gguf::TensorType;
use pulp::Simd;

/// A block format: `LEN` weights in `BYTES` bytes.
pub(crate) trait Block<const LEN: usize, const BYTES: usize> {
    /// Tensor type of the format.
    const TYPE: TensorType;

    /// Whether the encoder with importance weights reads [`Row::mean_squares`].
    const USES_ROW_MEAN_SQUARE: bool = false;

    /// Whether the codec rejects rows without importance weights.
    const REQUIRES_IMPORTANCE: bool = false;

    /// Decodes one block.
    ///
    /// A format implements this method or [`decode_row`](Self::decode_row).
    #[inline(always)]
    fn decode<S: Simd>(simd: S, block: &[u8; BYTES], out: &mut [f32; LEN]) {
        Self::decode_row(simd, std::slice::from_ref(block), std::slice::from_mut(out));
    }

    /// Decodes consecutive blocks.
    #[inline(always)]
    fn decode_row<S: Simd>(simd: S, blocks: &[[u8; BYTES]], out: &mut [[f32; LEN]]) {
        for (block, out) in blocks.iter().zip(out) {
            Self::decode(simd, block, out);
        }
    }

    /// Encodes the finite weights `x` into the block that llama.cpp's encoder writes.
    ///
    /// A format implements this method or [`encode_row`](Self::encode_row).
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

    /// Encodes the blocks of one or more rows, together if the scale search fills vector lanes that
    /// way.
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

    /// Returns the first scale of the block that is NaN or infinite, with its name.
    fn bad_scale(block: &[u8; BYTES]) -> Option<(&'static str, f32)>;
}

/// Finite weights to encode: the blocks of one or more rows.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a, const LEN: usize> {
    /// Weights, one array per block.
    pub x: &'a [[f32; LEN]],
    /// Importance weights, one array per block.
    pub columns: Option<&'a [[f32; LEN]]>,
    /// Mean square of the row of each block; empty unless the format sets `USES_ROW_MEAN_SQUARE`.
    pub mean_squares: &'a [f32],
}

impl<'a, const LEN: usize> Row<'a, LEN> {
    /// Splits the row into chunks of at most `blocks` blocks.
    #[inline(always)]
    pub fn chunks(self, blocks: usize) -> impl Iterator<Item = Row<'a, LEN>> {
        self.x.chunks(blocks).enumerate().map(move |(i, x)| {
            let columns = self.columns.map(|columns| &columns[i * blocks..][..x.len()]);
            let end = (i * blocks + x.len()).min(self.mean_squares.len());
            let mean_squares = &self.mean_squares[(i * blocks).min(end)..end];
            Row { x, columns, mean_squares }
        })
    }
}

/// Importance weights of one block.
#[derive(Clone, Copy)]
pub(crate) struct Importance<'a, const LEN: usize> {
    /// Importance weight of each column.
    pub columns: &'a [f32; LEN],
}
