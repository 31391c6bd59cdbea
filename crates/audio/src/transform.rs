//! From 400 samples to the energies of mel bands.

use std::f64::consts::TAU;
use std::sync::Arc;

use realfft::num_complex::Complex64;
use realfft::{RealFftPlanner, RealToComplex};

use crate::mel::{Filter, filters};

/// Samples that a frame looks at.
pub(crate) const LEN: usize = 400;

/// Frequencies of a frame.
pub(crate) const BINS: usize = LEN / 2 + 1;

/// Computes frames, in double precision: what is quiet is not to drown in rounding beside what is
/// loud.
pub(crate) struct Transform {
    fft: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    filters: Vec<Filter>,
    samples: Vec<f64>,
    spectrum: Vec<Complex64>,
    scratch: Vec<Complex64>,
}

impl Transform {
    /// For so many bands.
    pub fn new(bands: usize) -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(LEN);
        // Hann's window, one period of it: the sample after the last one would be the first again.
        let hann = |i: usize| 0.5 - 0.5 * (TAU * i as f64 / LEN as f64).cos();
        Self {
            window: (0..LEN).map(hann).collect(),
            filters: filters(bands),
            samples: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            fft,
        }
    }

    /// Appends the common logarithm of the energy of each band in `LEN` samples, at least -10.
    pub fn frame(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.samples.fill(0.0);
        for ((to, from), window) in self.samples.iter_mut().zip(samples).zip(&self.window) {
            *to = f64::from(*from) * window;
        }
        let done =
            self.fft.process_with_scratch(&mut self.samples, &mut self.spectrum, &mut self.scratch);
        // The lengths are those that it asked for.
        debug_assert!(done.is_ok(), "{done:?}");
        let power: Vec<f64> = self.spectrum.iter().map(Complex64::norm_sqr).collect();
        let band = |filter: &Filter| filter.apply(&power).max(1e-10).log10() as f32;
        out.extend(self.filters.iter().map(band));
    }
}
