//! Log-mel energies of one frame of 400 samples.

use std::f64::consts::TAU;
use std::sync::Arc;

use realfft::num_complex::Complex64;
use realfft::{RealFftPlanner, RealToComplex};

use super::FFT_LEN;
use super::mel_filters::{Filter, filters};

/// Computes log-mel frames in double precision, so that rounding errors of loud frequencies do not mask quiet
/// ones.
pub(super) struct FrameTransform {
    fft: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    filters: Vec<Filter>,
    samples: Vec<f64>,
    spectrum: Vec<Complex64>,
    scratch: Vec<Complex64>,
}

impl FrameTransform {
    /// Creates a transform to `bands` mel bands.
    pub fn new(bands: usize) -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(FFT_LEN);
        // Periodic Hann window.
        let hann = |i: usize| 0.5 - 0.5 * (TAU * i as f64 / FFT_LEN as f64).cos();
        Self {
            window: (0..FFT_LEN).map(hann).collect(),
            filters: filters(bands),
            samples: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            fft,
        }
    }

    /// Appends the base-10 logarithm of the energy of each band of [`FFT_LEN`] samples, at least -10.
    pub fn frame(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.samples.fill(0.0);
        for ((to, from), window) in self.samples.iter_mut().zip(samples).zip(&self.window) {
            *to = f64::from(*from) * window;
        }
        let done =
            self.fft.process_with_scratch(&mut self.samples, &mut self.spectrum, &mut self.scratch);
        // The buffers have the lengths that the FFT requires.
        debug_assert!(done.is_ok(), "{done:?}");
        let power: Vec<f64> = self.spectrum.iter().map(Complex64::norm_sqr).collect();
        let band = |filter: &Filter| filter.apply(&power).max(1e-10).log10() as f32;
        out.extend(self.filters.iter().map(band));
    }
}
