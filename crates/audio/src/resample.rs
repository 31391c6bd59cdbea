//! Other sample rates.

use gguf::Finding;
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Indexing, Resampler as _, WindowFunction};

use crate::RATE;

/// Samples per second that recordings have: below is no speech, above are no recorders.
const RATES: std::ops::RangeInclusive<u32> = 1000..=768_000;

/// Brings samples of one channel to [`RATE`], piece by piece.
pub(crate) struct Resampler {
    inner: Fft<f32>,
    rate: u32,
    /// What waits until there is enough for a step.
    waiting: Vec<f32>,
    made: Vec<f32>,
    /// Samples that came in, and that went out.
    taken: u64,
    given: u64,
    /// Samples that are still to be thrown away: a filter begins before the sound does.
    delay: usize,
}

impl Resampler {
    /// From `rate`; `None` if there is nothing to do.
    ///
    /// # Errors
    /// `audio-unsupported` if no recording has this rate.
    pub fn new(rate: u32) -> Result<Option<Self>, Finding> {
        if rate as usize == RATE {
            return Ok(None);
        }
        let unsupported = |_| {
            let what = format!("{rate} samples per second");
            Finding::error("audio-unsupported", what).help("resample it with another program")
        };
        if !RATES.contains(&rate) {
            return Err(unsupported(()));
        }
        // An even number of the shortest blocks that are whole on both sides: then the delay is whole too.
        let shortest = rate as usize / greatest_divisor(rate as usize, RATE);
        let block = 2 * shortest * (2048 / shortest).max(1);
        let (window, fixed) = (WindowFunction::BlackmanHarris2, FixedSync::Both);
        let inner = Fft::new_custom(rate as usize, RATE, block, 1, 1, window, fixed)
            .map_err(|_| unsupported(()))?;
        Ok(Some(Self {
            made: vec![0.0; inner.output_frames_max()],
            delay: inner.output_delay(),
            inner,
            rate,
            waiting: Vec::new(),
            taken: 0,
            given: 0,
        }))
    }

    /// Takes samples, and appends to `out` what can be made of them.
    pub fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.taken += samples.len() as u64;
        self.waiting.extend_from_slice(samples);
        let step = self.inner.input_frames_next().max(1);
        let mut used = 0;
        while self.waiting.len() - used >= step {
            self.step(used, step, out);
            used += step;
        }
        self.waiting.drain(..used);
    }

    /// Appends the rest: with it, as many samples as the sound is long.
    pub fn finish(&mut self, out: &mut Vec<f32>) {
        let wanted = (self.taken * RATE as u64).div_ceil(u64::from(self.rate));
        let step = self.inner.input_frames_next().max(1);
        while self.given < wanted {
            let len = self.waiting.len();
            debug_assert!(len <= step);
            if self.step(0, len, out) == 0 {
                break;
            }
            self.waiting.clear();
            let surplus = self.given.saturating_sub(wanted);
            out.truncate(out.len().saturating_sub(surplus as usize));
            self.given -= surplus;
        }
    }

    /// Makes a step of `len` samples that wait, and of silence behind them; how many came out, with those
    /// that are thrown away.
    fn step(&mut self, first: usize, len: usize, out: &mut Vec<f32>) -> usize {
        let from = self.waiting.get(first..first + len).unwrap_or_default();
        let room = self.made.len();
        let indexing = Indexing::new().partial_len(len);
        let made = match (
            InterleavedSlice::new(from, 1, len),
            InterleavedSlice::new_mut(&mut self.made, 1, room),
        ) {
            (Ok(from), Ok(mut to)) => {
                self.inner.process_into_buffer(&from, &mut to, Some(&indexing))
            }
            _ => return 0,
        };
        // The lengths are those that it asked for.
        debug_assert!(made.is_ok(), "{made:?}");
        let made = made.map_or(0, |(_, made)| made);
        let late = self.delay.min(made);
        self.delay -= late;
        let part = self.made.get(late..made).unwrap_or_default();
        out.extend_from_slice(part);
        self.given += part.len() as u64;
        made
    }
}

fn greatest_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    /// Half a second of 440 Hz.
    fn tone(rate: u32) -> Vec<f32> {
        let at = |i: u32| (TAU * 440.0 * f64::from(i) / f64::from(rate)).sin() as f32;
        (0..rate / 2).map(at).collect()
    }

    #[test]
    fn a_tone_stays_where_it_is() {
        for rate in [8000, 11025, 22050, 44100, 48000, 96000, 44101] {
            let samples = tone(rate);
            let mut resampler = Resampler::new(rate).unwrap().unwrap();
            let mut out = Vec::new();
            samples.chunks(997).for_each(|part| resampler.push(part, &mut out));
            resampler.finish(&mut out);
            assert_eq!(out.len(), (samples.len() * RATE).div_ceil(rate as usize), "{rate}");
            // Its ends ring, as those of every filter.
            let same = tone(RATE as u32);
            let middle = 1000..7000;
            let far = middle.map(|i| (out[i] - same[i]).abs()).fold(0.0, f32::max);
            assert!(far < 2e-3, "{rate}: {far}");
        }
    }

    #[test]
    fn pieces_make_no_difference() {
        let samples = tone(44100);
        let of_pieces = |len: usize| {
            let mut resampler = Resampler::new(44100).unwrap().unwrap();
            let mut out = Vec::new();
            samples.chunks(len).for_each(|part| resampler.push(part, &mut out));
            resampler.finish(&mut out);
            out
        };
        assert_eq!(of_pieces(22050), of_pieces(101));
    }

    #[test]
    fn no_recording_has_such_a_rate() {
        for rate in [0, 999, 768_001, u32::MAX] {
            let fault = Resampler::new(rate).err().unwrap();
            assert_eq!(fault.code, "audio-unsupported");
        }
    }
}
