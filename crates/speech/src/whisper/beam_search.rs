//! Beam search: the most probable text among those that begin with the most probable ones, as in Whisper's reference
//! implementation (`BeamSearchDecoder` of `decoding.py`) with a patience of 1.

use std::ops::Range;

/// A text, in the sequence that has its tokens but the last one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Beam {
    pub sequence: usize,
    /// Tokens of the text.
    pub ids: Vec<u32>,
    /// Sum of the log-probabilities of the tokens, including the end of a finished text.
    pub sum: f64,
}

/// Texts of a window, which all have the same length but for those that are finished.
pub(super) struct BeamSearch {
    /// Sequences of the texts: as many texts are continued, and have to be finished.
    sequences: Range<usize>,
    /// The end-of-text token.
    end: u32,
    active: Vec<Beam>,
    finished: Vec<Beam>,
}

impl BeamSearch {
    /// Starts with an empty text in the first sequence.
    pub fn new(sequences: Range<usize>, end: u32) -> Self {
        let empty = Beam { sequence: sequences.start, ids: Vec::new(), sum: 0.0 };
        Self { sequences, end, active: vec![empty], finished: Vec::new() }
    }

    /// Returns the maximum number of texts.
    pub fn width(&self) -> usize {
        self.sequences.len()
    }

    /// Returns the texts to be continued.
    pub fn active(&self) -> &[Beam] {
        &self.active
    }

    /// Whether enough texts are finished.
    pub fn is_complete(&self) -> bool {
        self.finished.len() >= self.width()
    }

    /// Continues the texts, given the most probable next tokens of each with their log-probabilities, at least one more than
    /// the width. Returns the sequences that must be copied, and to which sequence, in this order.
    pub fn advance(&mut self, candidates: &[Vec<(u32, f64)>]) -> Vec<(usize, usize)> {
        let mut all: Vec<(usize, u32, f64)> = Vec::new();
        for (number, (beam, next)) in self.active.iter().zip(candidates).enumerate() {
            all.extend(next.iter().map(|(id, log)| (number, *id, beam.sum + log)));
        }
        all.sort_by(|(_, _, a), (_, _, b)| b.total_cmp(a));
        let mut chosen = Vec::new();
        for (number, id, sum) in all {
            let Some(beam) = self.active.get(number) else { continue };
            if id != self.end {
                chosen.push((beam, id, sum));
            } else if !self.is_complete() {
                self.finished.push(Beam { sum, ..beam.clone() });
            }
            if chosen.len() == self.sequences.len() {
                break;
            }
        }
        let is_kept = |sequence: &usize| chosen.iter().any(|(beam, ..)| beam.sequence == *sequence);
        let mut free = self.sequences.clone().filter(|sequence| !is_kept(sequence));
        let (mut next, mut copies): (Vec<Beam>, Vec<_>) = Default::default();
        for &(beam, id, sum) in &chosen {
            let mut sequence = beam.sequence;
            // The first continuation of a text stays in its sequence.
            if next.iter().any(|other| other.sequence == sequence) {
                let Some(copy) = free.next() else { break };
                copies.push((sequence, copy));
                sequence = copy;
            }
            let ids = beam.ids.iter().copied().chain([id]).collect();
            next.push(Beam { sequence, ids, sum });
        }
        self.active = next;
        copies
    }

    /// Returns the text with the highest mean log-probability per token: among the finished ones, and, if they are too
    /// few, the most probable of the others.
    pub fn best(self) -> Option<Beam> {
        let width = self.width();
        let texts = self.finished.into_iter().chain(self.active).take(width);
        let mean = |beam: &Beam| beam.sum / beam.ids.len().max(1) as f64;
        texts.reduce(|best, next| if mean(&next) > mean(&best) { next } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u32 = 9;

    /// Returns the texts with their sequences.
    fn texts(search: &BeamSearch) -> Vec<(usize, &[u32])> {
        search.active.iter().map(|beam| (beam.sequence, beam.ids.as_slice())).collect()
    }

    #[test]
    fn one_beam_is_greedy() {
        let mut search = BeamSearch::new(4..5, END);
        assert_eq!(search.advance(&[vec![(1, -0.1), (2, -3.0)]]), []);
        assert_eq!(search.advance(&[vec![(END, -0.2), (3, -2.0)]]), []);
        assert!(search.is_complete());
        let best = search.best().unwrap();
        assert_eq!((best.ids, best.sum), (vec![1], -0.1 + -0.2));
    }

    #[test]
    fn the_most_probable_texts_are_continued() {
        let mut search = BeamSearch::new(2..4, END);
        // Both begin in the first sequence, so the second one is copied.
        assert_eq!(search.advance(&[vec![(1, -0.5), (2, -1.0), (3, -4.0)]]), [(2, 3)]);
        assert_eq!(texts(&search), [(2, &[1][..]), (3, &[2])]);
        // Both continuations of the second text are more probable than that of the first.
        let candidates =
            [vec![(4, -3.0), (5, -3.5), (6, -4.0)], vec![(7, -0.1), (8, -0.2), (6, -4.0)]];
        assert_eq!(search.advance(&candidates), [(3, 2)]);
        assert_eq!(texts(&search), [(3, &[2, 7][..]), (2, &[2, 8])]);
        assert!((search.active()[1].sum + 1.2).abs() < 1e-9);
    }

    #[test]
    fn a_longer_text_wins_by_its_mean() {
        let mut search = BeamSearch::new(0..2, END);
        search.advance(&[vec![(1, -0.5), (2, -1.0), (3, -4.0)]]);
        // The first text ends, and is the most probable one so far; an improbable end does not count.
        let ends =
            [vec![(END, -0.6), (4, -0.9), (5, -5.0)], vec![(6, -0.1), (END, -7.0), (5, -8.0)]];
        search.advance(&ends);
        assert!(!search.is_complete());
        assert_eq!(texts(&search), [(1, &[2, 6][..]), (0, &[1, 4])]);
        search.advance(&[
            vec![(END, -0.1), (4, -9.0), (5, -9.0)],
            vec![(4, -9.0), (5, -9.0), (6, -9.0)],
        ]);
        assert!(search.is_complete());
        // -1.1 of one token, -1.2 of two.
        assert_eq!(search.best().unwrap().ids, [2, 6]);
    }

    /// Log-probabilities of the tokens 0 to 2 and the end after a text of a small language.
    fn next(ids: &[u32]) -> Vec<(u32, f64)> {
        let seed = ids.iter().fold(13, |sum, id| (sum * 31 + u64::from(*id) + 1) % 1009);
        let weights: Vec<f64> = (1..5).map(|i| 1.0 + (seed * i * i % 17) as f64).collect();
        let total: f64 = weights.iter().sum();
        let logs = weights.iter().map(|weight| (weight / total).ln());
        [0, 1, 2, END].into_iter().zip(logs).collect()
    }

    /// Returns all texts of up to a number of tokens.
    fn texts_of_up_to(tokens: usize) -> Vec<Beam> {
        let mut texts = vec![Beam { sequence: 0, ids: Vec::new(), sum: 0.0 }];
        let mut ended = Vec::new();
        for _ in 0..=tokens {
            let mut longer = Vec::new();
            for text in texts {
                for (id, log) in next(&text.ids) {
                    let sum = text.sum + log;
                    if id == END {
                        ended.push(Beam { sum, ..text.clone() });
                    } else {
                        let ids = [&text.ids[..], &[id]].concat();
                        longer.push(Beam { ids, sum, ..text });
                    }
                }
            }
            texts = longer;
        }
        ended
    }

    #[test]
    fn enough_beams_find_the_best_of_all_texts() {
        let mut search = BeamSearch::new(0..100, END);
        for _ in 0..=3 {
            let candidates: Vec<_> = search.active().iter().map(|text| next(&text.ids)).collect();
            search.advance(&candidates);
        }
        assert_eq!((search.finished.len(), search.active.len()), (1 + 3 + 9 + 27, 81));
        search.active.clear();
        let mean = |text: &Beam| text.sum / text.ids.len().max(1) as f64;
        let short = texts_of_up_to(3).into_iter();
        let expected = short.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
        let best = search.best().unwrap();
        assert_eq!(best.ids, expected.ids);
        assert!((best.sum - expected.sum).abs() < 1e-12);
        // The most probable next token each time leads to another text.
        let mut greedy = BeamSearch::new(0..1, END);
        while !greedy.is_complete() && greedy.active()[0].ids.len() < 4 {
            let mut candidates = next(&greedy.active()[0].ids);
            candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
            greedy.advance(&[candidates]);
        }
        assert_ne!(greedy.best().unwrap().ids, expected.ids);
    }

    #[test]
    fn texts_that_do_not_end_are_compared_with_those_that_do() {
        let mut search = BeamSearch::new(0..2, END);
        search.advance(&[vec![(1, -0.5), (2, -0.6), (3, -4.0)]]);
        search.advance(&[
            vec![(END, -3.0), (4, -0.1), (5, -5.0)],
            vec![(6, -0.3), (7, -8.0), (5, -8.0)],
        ]);
        // One text is not finished in time, and no text ended among the two most probable.
        assert_eq!(search.best().unwrap().ids, [1, 4]);
    }
}
