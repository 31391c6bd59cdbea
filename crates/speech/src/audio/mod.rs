//! Audio files, resampling and mel spectrograms.

mod frame;
mod mel_filters;
mod mel_spectrogram;
mod pauses;
mod recording;
mod resample;
mod wav_header;

pub use mel_spectrogram::MelSpectrogram;
pub use recording::Recording;

/// Sample rate of decoded recordings, in Hz.
pub const RATE: usize = 16_000;

/// Samples from one frame of a spectrogram to the next.
pub const HOP: usize = 160;

/// Frames of a spectrogram per second.
pub const FRAMES_PER_SECOND: usize = RATE / HOP;

/// Samples of a frame: the length of the Fourier transform.
const FFT_LEN: usize = 400;

/// Frequency bins of a frame.
const BINS: usize = FFT_LEN / 2 + 1;
