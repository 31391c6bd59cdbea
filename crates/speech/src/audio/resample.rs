//! Conversion of sample rates.

use gguf::Finding;
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, WindowFunction,
};

use super::RATE;

/// Accepted sample rates: lower rates carry no speech, and no recorder uses higher ones.
const SUPPORTED_RATES: std::ops::RangeInclusive<u32> = 1000..=768_000;

/// Length of the filter in samples of the lower rate.
const FILTER_LEN: usize = 128;

/// Input samples that are processed together.
const BLOCK: usize = 1024;

/// Converts the samples of one channel to [`RATE`], chunk by chunk.
pub(super) struct Resampler {
    inner: Async<f32>,
    rate: u32,
    /// Input samples that do not fill a block yet.
    pending: Vec<f32>,
    output: Vec<f32>,
    input_samples: u64,
    output_samples: u64,
    /// Output samples that remain to be dropped: the delay of the filter.
    delay: usize,
}

impl Resampler {
    /// Creates a resampler from `rate`; `None` if `rate` is [`RATE`].
    ///
    /// # Errors
    /// `audio-unsupported` if the rate is out of range.
    pub fn new(rate: u32) -> Result<Option<Self>, Finding> {
        if rate as usize == RATE {
            return Ok(None);
        }
        let unsupported = |_| {
            let what = format!("the sample rate of {rate} Hz is not supported");
            Finding::error("audio-unsupported", what).help("resample it with another program")
        };
        if !SUPPORTED_RATES.contains(&rate) {
            return Err(unsupported(()));
        }
        // The filter keeps its length in output samples where it removes frequencies.
        let length = (FILTER_LEN * (rate as usize).div_ceil(RATE)).max(FILTER_LEN);
        let filter = SincInterpolationParameters::new(length, WindowFunction::BlackmanHarris2)
            .oversampling_factor(256);
        let ratio = RATE as f64 / f64::from(rate);
        let inner = Async::new_sinc(ratio, 1.0, &filter, BLOCK, 1, FixedAsync::Input)
            .map_err(|_| unsupported(()))?;
        // Output sample n is the input at (n + 1) / ratio - length / 2. Silence at the start makes this a whole
        // output sample for some n, the first that is kept.
        let divisor = greatest_common_divisor(rate as usize, RATE);
        let lag = (length / 2).next_multiple_of(rate as usize / divisor);
        let silence = lag - length / 2;
        Ok(Some(Self {
            output: vec![0.0; inner.output_frames_max()],
            delay: lag * RATE / rate as usize - 1,
            inner,
            rate,
            pending: vec![0.0; silence],
            input_samples: 0,
            output_samples: 0,
        }))
    }

    /// Adds input samples and appends the output samples of all full blocks to `out`.
    pub fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.input_samples += samples.len() as u64;
        self.pending.extend_from_slice(samples);
        let step = self.inner.input_frames_next().max(1);
        let mut used = 0;
        while self.pending.len() - used >= step {
            self.process(used, step, out);
            used += step;
        }
        self.pending.drain(..used);
    }

    /// Appends the remaining samples, so that the output has the duration of the input.
    pub fn finish(&mut self, out: &mut Vec<f32>) {
        self.push(&[], out);
        let total = (self.input_samples * RATE as u64).div_ceil(u64::from(self.rate));
        let step = self.inner.input_frames_next().max(1);
        while self.output_samples < total {
            let len = self.pending.len();
            debug_assert!(len <= step);
            if self.process(0, len, out) == 0 {
                break;
            }
            self.pending.clear();
            let surplus = self.output_samples.saturating_sub(total);
            out.truncate(out.len().saturating_sub(surplus as usize));
            self.output_samples -= surplus;
        }
    }

    /// Processes a block of `len` pending samples, padded with silence. Returns the number of output samples,
    /// including dropped ones.
    fn process(&mut self, first: usize, len: usize, out: &mut Vec<f32>) -> usize {
        let from = self.pending.get(first..first + len).unwrap_or_default();
        let capacity = self.output.len();
        let indexing = Indexing::new().partial_len(len);
        let processed = match (
            InterleavedSlice::new(from, 1, len),
            InterleavedSlice::new_mut(&mut self.output, 1, capacity),
        ) {
            (Ok(from), Ok(mut to)) => {
                self.inner.process_into_buffer(&from, &mut to, Some(&indexing))
            }
            _ => return 0,
        };
        // The buffers have the lengths that the resampler requires.
        debug_assert!(processed.is_ok(), "{processed:?}");
        let count = processed.map_or(0, |(_, count)| count);
        let dropped = self.delay.min(count);
        self.delay -= dropped;
        let samples = self.output.get(dropped..count).unwrap_or_default();
        out.extend_from_slice(samples);
        self.output_samples += samples.len() as u64;
        count
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    /// Returns half a second of a 440 Hz tone.
    fn tone(rate: u32) -> Vec<f32> {
        let at = |i: u32| (TAU * 440.0 * f64::from(i) / f64::from(rate)).sin() as f32;
        (0..rate / 2).map(at).collect()
    }

    #[test]
    fn tone_keeps_its_frequency_and_phase() {
        for rate in [8000, 11025, 22050, 44100, 48000, 96000, 44101] {
            let samples = tone(rate);
            let mut resampler = Resampler::new(rate).unwrap().unwrap();
            let mut out = Vec::new();
            samples.chunks(997).for_each(|chunk| resampler.push(chunk, &mut out));
            resampler.finish(&mut out);
            assert_eq!(out.len(), (samples.len() * RATE).div_ceil(rate as usize), "{rate}");
            // The filter rings at both ends.
            let expected = tone(RATE as u32);
            let middle = 1000..7000;
            let error = middle.map(|i| (out[i] - expected[i]).abs()).fold(0.0, f32::max);
            assert!(error < 2e-3, "{rate}: {error}");
        }
    }

    #[test]
    fn output_does_not_depend_on_chunking() {
        let samples = tone(44100);
        let resample = |len: usize| {
            let mut resampler = Resampler::new(44100).unwrap().unwrap();
            let mut out = Vec::new();
            samples.chunks(len).for_each(|chunk| resampler.push(chunk, &mut out));
            resampler.finish(&mut out);
            out
        };
        assert_eq!(resample(22050), resample(101));
    }

    #[test]
    fn unsupported_rates_are_rejected() {
        for rate in [0, 999, 768_001, u32::MAX] {
            let fault = Resampler::new(rate).err().unwrap();
            assert_eq!(fault.code, "audio-unsupported");
        }
    }
}
