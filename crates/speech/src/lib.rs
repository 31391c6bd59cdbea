//! Speech recognition with Whisper.
//!
//! A [`Recording`] decodes an audio file to mono samples at 16 kHz. A [`MelSpectrogram`] computes the
//! log-mel features of a recording for Whisper's encoder, window by window, so that memory does not grow
//! with the length of the recording. A [`Transcriber`] runs a Whisper model over the windows and returns
//! a [`Transcript`] with segments and timestamps; [`srt`] and [`vtt`] write subtitles.

mod audio;
mod whisper;

pub use audio::{FRAMES_PER_SECOND, HOP, MelSpectrogram, RATE, Recording};
pub use whisper::{Segment, Skipped, TranscribeOptions, Transcriber, Transcript, srt, time, vtt};
