//! Chunks of a text, and the tokens that are evaluated in each.

use std::ops::Range;

use gguf::Error;

/// Options of the chunks of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkOptions {
    /// Chunk size in tokens, at least 2.
    pub len: usize,
    /// Maximum number of chunks; `None` for all.
    pub count: Option<usize>,
    /// Distance of overlapping chunks. Without a stride, chunks are adjacent, and the second half of each is evaluated. With
    /// one, chunks are `stride / 2` longer, and the last `stride` tokens of each are evaluated.
    pub stride: Option<usize>,
}

impl Default for ChunkOptions {
    /// Returns adjacent chunks of 512 tokens, without a limit.
    fn default() -> Self {
        Self { len: 512, count: None, stride: None }
    }
}

/// A text in chunks, as in `llama-perplexity` (`tools/perplexity/perplexity.cpp`). Unlike there, the first token of each
/// second half is evaluated, too.
#[derive(Clone, Debug)]
pub struct Chunks {
    ids: Vec<u32>,
    first: Option<u32>,
    len: usize,
    step: usize,
    /// First position in a chunk whose next token is evaluated.
    from: usize,
    /// Numbers of the evaluated chunks.
    numbers: Range<usize>,
}

impl Chunks {
    /// Divides a text into chunks. `first` is the token that the model expects at the start of a text; it replaces the first
    /// token of each chunk.
    ///
    /// # Errors
    /// `text-too-short` if the text is shorter than a chunk, or the chunks are too short.
    pub fn new(ids: Vec<u32>, first: Option<u32>, cut: ChunkOptions) -> Result<Self, Error> {
        let (len, step, from, count) = match cut.stride {
            None => (
                cut.len,
                cut.len,
                (cut.len / 2).saturating_sub(1),
                ids.len().checked_div(cut.len).unwrap_or(0),
            ),
            Some(stride) => {
                let len = cut.len.saturating_add(stride / 2);
                let rest = ids.len().saturating_sub(len);
                let from = len.saturating_sub(stride).saturating_sub(1);
                (len, stride, from, rest.div_ceil(stride.max(1)))
            }
        };
        if cut.len < 2 || step == 0 || step > len {
            let what = format!("chunks of {len} tokens with a stride of {step} are not valid");
            let help = "use chunks of at least 2 tokens, and a stride from 1 to the chunk size";
            return Err(Error::request("text-too-short", what, help));
        }
        if count == 0 {
            let what = format!("the text has {} tokens; a chunk has {len}", ids.len());
            let help = "use a longer text or shorter chunks";
            return Err(Error::request("text-too-short", what, help));
        }
        let count = cut.count.map_or(count, |max| count.min(max));
        Ok(Self { ids, first, len, step, from, numbers: 0..count })
    }

    /// Omits the first evaluated token of each chunk, as in logits files.
    pub(crate) fn for_logits_file(self) -> Self {
        Self { from: self.len / 2, ..self }
    }

    /// Restricts the evaluation to the chunks with these numbers.
    pub fn only(self, numbers: Range<usize>) -> Self {
        let Range { start, end } = self.numbers;
        let numbers = numbers.start.clamp(start, end)..numbers.end.clamp(start, end);
        Self { numbers, ..self }
    }

    /// Returns the number of evaluated chunks.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the numbers of the evaluated chunks, counted from 0.
    pub fn numbers(&self) -> Range<usize> {
        self.numbers.clone()
    }

    /// Returns the chunk size in tokens.
    pub fn chunk_len(&self) -> usize {
        self.len
    }

    /// Returns the largest id of the text.
    pub(crate) fn largest_id(&self) -> Option<u32> {
        self.ids.iter().copied().max()
    }

    /// Returns the total number of evaluated tokens.
    pub fn predicted(&self) -> usize {
        self.count() * (self.len - 1 - self.from)
    }

    /// Whether chunks are adjacent, without a stride.
    pub(crate) fn are_adjacent(&self) -> bool {
        self.step == self.len && self.from <= self.len / 2
    }

    /// Returns the input ids of a chunk.
    pub fn inputs(&self, chunk: usize) -> Vec<u32> {
        let mut ids = self.of(chunk).to_vec();
        if let (Some(id), Some(first)) = (ids.first_mut(), self.first) {
            *id = first;
        }
        ids
    }

    /// Returns the positions in a chunk whose next token is evaluated.
    pub(crate) fn positions(&self) -> Range<usize> {
        self.from..self.len - 1
    }

    /// Returns up to `max` input ids before a position in a chunk.
    pub(crate) fn before(&self, chunk: usize, position: usize, max: usize) -> Vec<u32> {
        self.inputs(chunk)[position.saturating_sub(max)..position].to_vec()
    }

    /// Returns the token after a position in a chunk.
    pub(crate) fn target(&self, chunk: usize, position: usize) -> u32 {
        self.of(chunk)[position + 1]
    }

    /// Returns the ids of a chunk in the text.
    pub(crate) fn of(&self, chunk: usize) -> &[u32] {
        &self.ids[chunk * self.step..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(len: usize, stride: Option<usize>) -> ChunkOptions {
        ChunkOptions { len, count: None, stride }
    }

    #[test]
    fn second_half_of_each_chunk_is_evaluated() {
        let chunks = Chunks::new((0..21).collect(), Some(99), cut(8, None)).unwrap();
        assert_eq!((chunks.count(), chunks.predicted()), (2, 8));
        assert_eq!(chunks.inputs(1), [99, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(chunks.positions(), 3..7);
        assert_eq!(chunks.target(1, 6), 15);
        let few =
            Chunks::new((0..21).collect(), None, ChunkOptions { count: Some(1), ..cut(8, None) });
        assert_eq!(few.unwrap().count(), 1);
        let second = chunks.only(1..9);
        assert_eq!((second.numbers(), second.count(), second.predicted()), (1..2, 1, 4));
    }

    #[test]
    fn overlapping_chunks() {
        // As in llama.cpp: chunks of 8 + 4 / 2 tokens, of which the last 4 are evaluated.
        let chunks = Chunks::new((0..20).collect(), None, cut(8, Some(4))).unwrap();
        assert_eq!((chunks.chunk_len(), chunks.count()), (10, 3));
        assert_eq!(chunks.positions(), 5..9);
        assert_eq!(chunks.inputs(2)[..2], [8, 9]);
        assert_eq!(chunks.target(2, 8), 17);
    }

    #[test]
    fn short_texts_are_rejected() {
        for (len, ids, stride) in [(8, 7, None), (1, 9, None), (8, 10, Some(4)), (8, 90, Some(0))] {
            let error = Chunks::new(vec![0; ids], None, cut(len, stride)).unwrap_err();
            assert_eq!(error.code(), "text-too-short", "{len} {ids} {stride:?}");
        }
        assert!(Chunks::new(vec![0; 9], None, cut(3, Some(9))).is_err());
    }
}
