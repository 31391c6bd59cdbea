//! Which tokens of a text are predicted, and from which others.

use std::ops::Range;

use gguf::Error;

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Tokens of a window, 2 or more.
    pub len: usize,
    /// Windows at most; all that there are without a number.
    pub windows: Option<usize>,
    /// How far each window is from the one before. Without a number windows lie side by side, and the
    /// tokens of the second half of each are predicted. With one they are half of it longer, and the last `stride`
    /// tokens of each are predicted, so that no token has few before it.
    pub stride: Option<usize>,
}

impl Default for Cut {
    /// All windows of 512 tokens, side by side.
    fn default() -> Self {
        Self { len: 512, windows: None, stride: None }
    }
}

/// A text in windows, cut as `llama-perplexity` cuts it (`tools/perplexity/perplexity.cpp`). All tokens
/// of second halves are predicted, where it leaves out the first of each.
#[derive(Clone, Debug)]
pub struct Windows {
    ids: Vec<u32>,
    first: Option<u32>,
    len: usize,
    step: usize,
    /// Of each window the first place whose prediction counts: that of the token after it.
    from: usize,
    /// Those that are read.
    numbers: Range<usize>,
}

impl Windows {
    /// Cuts a text. `first` is the token that the model wants at the beginning, and replaces the first
    /// one of each window.
    ///
    /// # Errors
    /// `text-too-short` if there is not a single window, or windows are too short to predict anything.
    pub fn new(ids: Vec<u32>, first: Option<u32>, cut: Cut) -> Result<Self, Error> {
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
            let what = format!("windows of {len} tokens that begin {step} apart cannot be read");
            let help = "make them 2 tokens or longer, and the stride 1 or more and no longer";
            return Err(Error::request("text-too-short", what, help));
        }
        if count == 0 {
            let what = format!("the text has {} tokens, a window {len}", ids.len());
            let help = "take a longer text, or shorter windows";
            return Err(Error::request("text-too-short", what, help));
        }
        let count = cut.windows.map_or(count, |windows| count.min(windows));
        Ok(Self { ids, first, len, step, from, numbers: 0..count })
    }

    /// The same windows, less the first prediction of each: those that files of logits have.
    pub(crate) fn of_logits_file(self) -> Self {
        Self { from: self.len / 2, ..self }
    }

    /// Of the same windows only these, by their numbers; those that there are.
    pub fn only(self, numbers: Range<usize>) -> Self {
        let Range { start, end } = self.numbers;
        let numbers = numbers.start.clamp(start, end)..numbers.end.clamp(start, end);
        Self { numbers, ..self }
    }

    /// Number of windows that are read.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Numbers of the windows that are read, counted from 0 at the beginning of the text.
    pub fn numbers(&self) -> Range<usize> {
        self.numbers.clone()
    }

    /// Tokens of a window.
    pub fn window_len(&self) -> usize {
        self.len
    }

    /// Tokens that are predicted, in all windows together.
    pub fn predicted(&self) -> usize {
        self.count() * (self.len - 1 - self.from)
    }

    /// Whether they lie side by side, without a stride.
    pub(crate) fn are_side_by_side(&self) -> bool {
        self.step == self.len && self.from <= self.len / 2
    }

    /// The ids of a window as a model gets them.
    pub fn inputs(&self, window: usize) -> Vec<u32> {
        let mut ids = self.of(window).to_vec();
        if let (Some(id), Some(first)) = (ids.first_mut(), self.first) {
            *id = first;
        }
        ids
    }

    /// The places of a window whose predictions count.
    pub(crate) fn places(&self) -> Range<usize> {
        self.from..self.len - 1
    }

    /// The last tokens before a position of a window, as a model gets them: so many at most.
    pub(crate) fn before(&self, window: usize, position: usize, most: usize) -> Vec<u32> {
        self.inputs(window)[position.saturating_sub(most)..position].to_vec()
    }

    /// The token that comes after a place of a window.
    pub(crate) fn target(&self, window: usize, place: usize) -> u32 {
        self.of(window)[place + 1]
    }

    /// The ids of a window as they stand in the text.
    pub(crate) fn of(&self, window: usize) -> &[u32] {
        &self.ids[window * self.step..][..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(len: usize, stride: Option<usize>) -> Cut {
        Cut { len, windows: None, stride }
    }

    #[test]
    fn the_second_half_of_each_window_is_predicted() {
        let windows = Windows::new((0..21).collect(), Some(99), cut(8, None)).unwrap();
        assert_eq!((windows.count(), windows.predicted()), (2, 8));
        assert_eq!(windows.inputs(1), [99, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(windows.places(), 3..7);
        assert_eq!(windows.target(1, 6), 15);
        let few = Windows::new((0..21).collect(), None, Cut { windows: Some(1), ..cut(8, None) });
        assert_eq!(few.unwrap().count(), 1);
        let second = windows.only(1..9);
        assert_eq!((second.numbers(), second.count(), second.predicted()), (1..2, 1, 4));
    }

    #[test]
    fn windows_may_overlap() {
        // As llama.cpp has it: windows of 8 + 4 / 2 tokens, the last 4 of which are predicted.
        let windows = Windows::new((0..20).collect(), None, cut(8, Some(4))).unwrap();
        assert_eq!((windows.window_len(), windows.count()), (10, 3));
        assert_eq!(windows.places(), 5..9);
        assert_eq!(windows.inputs(2)[..2], [8, 9]);
        assert_eq!(windows.target(2, 8), 17);
    }

    #[test]
    fn texts_that_are_too_short() {
        for (len, ids, stride) in [(8, 7, None), (1, 9, None), (8, 10, Some(4)), (8, 90, Some(0))] {
            let error = Windows::new(vec![0; ids], None, cut(len, stride)).unwrap_err();
            assert_eq!(error.code(), "text-too-short", "{len} {ids} {stride:?}");
        }
        assert!(Windows::new(vec![0; 9], None, cut(3, Some(9))).is_err());
    }
}
