//! What a block format is, and the rows that it encodes.

use gguf::TensorType;
use pulp::Simd;

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
    fn decode<S: Simd>(simd: S, block: &[u8; BYTES], out: &mut [f32; LEN]) {
        Self::decode_row(simd, std::slice::from_ref(block), std::slice::from_mut(out));
    }

    /// The weights of many blocks.
    #[inline(always)]
    fn decode_row<S: Simd>(simd: S, blocks: &[[u8; BYTES]], out: &mut [[f32; LEN]]) {
        for (block, out) in blocks.iter().zip(out) {
            Self::decode(simd, block, out);
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
    pub fn chunks(self, blocks: usize) -> impl Iterator<Item = Row<'a, LEN>> {
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
