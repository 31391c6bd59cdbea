//! Sound for models.
//!
//! A [`Recording`] is a file of sound, decoded as it is read: one channel, 16,000 samples per second. A
//! [`Spectrogram`] is what Whisper's encoder hears of a recording, window by window. Neither holds
//! more than a window in memory, however long the recording is.

mod mel;
mod recording;
mod resample;
mod spectrogram;
mod transform;

pub use recording::Recording;
pub use spectrogram::Spectrogram;

/// Samples per second, of everything that leaves this crate.
pub const RATE: usize = 16_000;

/// Samples from one frame of a spectrogram to the next.
pub const HOP: usize = 160;

/// Frames per second.
pub const FRAMES_PER_SECOND: usize = RATE / HOP;
