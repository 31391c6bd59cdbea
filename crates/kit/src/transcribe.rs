//! Transcription of audio files with Whisper.

pub use gguf_speech::{
    Segment, Skipped, TranscribeOptions, Transcriber, Transcript, srt, time, vtt,
};

use crate::Error;
use crate::run::LoadedModel;

/// Creates a transcriber that runs a Whisper model.
///
/// # Errors
/// As [`Transcriber::new`].
pub fn transcriber(model: &LoadedModel, options: TranscribeOptions) -> Result<Transcriber, Error> {
    Transcriber::new(model.executor.clone(), &model.metadata, options)
}
