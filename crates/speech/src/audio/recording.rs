//! Audio files, decoded while they are read.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use gguf::{Error, Finding};
use symphonia::core::codecs::audio::AudioDecoder;
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::default::{get_codecs, get_probe};

use super::RATE;
use super::resample::Resampler;
use super::wav_header;

/// An audio file (WAV, FLAC, MP3 or Ogg Vorbis) as mono samples at 16 kHz. Channels are averaged.
pub struct Recording {
    path: PathBuf,
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    /// Number of samples per channel that the file declares.
    declared: Option<u64>,
    /// Number of samples per channel decoded so far.
    decoded: u64,
    /// Sample rate of the file in Hz, known after the first packet.
    rate: Option<u32>,
    resampler: Option<Resampler>,
    interleaved: Vec<f32>,
    mono: Vec<f32>,
    ended: bool,
}

impl Recording {
    /// Opens an audio file or a pipe, `-` for standard input, and detects its format.
    ///
    /// # Errors
    /// If the file cannot be read; `audio-unsupported` if its format is not supported; `audio-empty` if it is
    /// empty.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::from_file(path, open_file(path)?)
    }

    /// Reads a regular file from its start. `path` names it in errors.
    pub(super) fn from_file(path: &Path, mut file: File) -> Result<Self, Error> {
        let failed = |fault| Error::read(path, fault);
        file.rewind().map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        if len == 0 {
            return Err(empty(path));
        }
        let header = wav_header::read(&mut file, len).map_err(failed)?;
        if !header.starts_with(b"RIFF") {
            file.rewind().map_err(failed)?;
            return Self::from_source(path, Box::new(file));
        }
        let stream = Cursor::new(header).chain(file);
        Self::from_source(path, Box::new(ReadOnlySource::new(stream)))
    }

    fn from_source(path: &Path, source: Box<dyn MediaSource>) -> Result<Self, Error> {
        let mut hint = Hint::new();
        if let Some(extension) = path.extension().and_then(|extension| extension.to_str()) {
            hint.with_extension(extension);
        }
        let stream = MediaSourceStream::new(source, Default::default());
        let format =
            caught(|| get_probe().probe(&hint, stream, Default::default(), Default::default()))
                .map_err(|fault| unsupported(path, fault))?;
        let track = format.default_track(TrackType::Audio);
        let track = track.or_else(|| format.first_track(TrackType::Audio));
        let parameters = track.and_then(|track| {
            let codec = track.codec_params.as_ref()?.audio()?;
            Some((track.id, track.num_frames, codec.clone()))
        });
        let Some((track, declared, codec)) = parameters else {
            return Err(unsupported(path, SymphoniaError::Unsupported(NO_TRACK)));
        };
        let decoder = caught(|| get_codecs().make_audio_decoder(&codec, &Default::default()))
            .map_err(|fault| unsupported(path, fault))?;
        Ok(Self {
            path: path.to_owned(),
            format,
            decoder,
            track,
            declared: declared.filter(|declared| *declared > 0),
            decoded: 0,
            rate: None,
            resampler: None,
            interleaved: Vec::new(),
            mono: Vec::new(),
            ended: false,
        })
    }

    /// Appends the samples of the next packet, from -1 to 1 unless the recording clips. Returns `false` at
    /// the end.
    ///
    /// # Errors
    /// `audio-invalid` if the audio data is damaged, `audio-truncated` if it ends before its declared length,
    /// `audio-empty` if the file has no samples.
    pub fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, Error> {
        while !self.ended {
            let packet = match caught(|| self.format.next_packet()) {
                Ok(Some(packet)) => packet,
                Ok(None) => return self.finish(out).map(|()| true),
                Err(fault) => return Err(self.fault(fault)),
            };
            if packet.track_id != self.track {
                continue;
            }
            let decoded = caught(|| {
                let decoded = self.decoder.decode(&packet)?;
                decoded.copy_to_vec_interleaved(&mut self.interleaved);
                Ok((decoded.spec().rate(), decoded.num_planes()))
            });
            let (rate, channels) = decoded.map_err(|fault| self.fault(fault))?;
            self.resample(rate, channels, out)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Averages the channels of the decoded packet and converts the sample rate.
    fn resample(&mut self, rate: u32, channels: usize, out: &mut Vec<f32>) -> Result<(), Error> {
        match self.rate {
            None => {
                let in_file = |fault: Finding| Error::from(fault).in_file(&self.path);
                self.resampler = Resampler::new(rate).map_err(in_file)?;
                self.rate = Some(rate);
            }
            Some(before) if before != rate => {
                let what = format!("the sample rate changes from {before} to {rate} Hz");
                return Err(self.invalid(&what));
            }
            Some(_) => {}
        }
        let channels = channels.max(1);
        self.decoded += (self.interleaved.len() / channels) as u64;
        self.mono.clear();
        let average = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
        self.mono.extend(self.interleaved.chunks_exact(channels).map(average));
        // NaN and infinity would spread to all features of the window.
        if let Some(sample) = self.mono.iter().find(|sample| !sample.is_finite()) {
            return Err(self.invalid(&format!("a sample is {sample}")));
        }
        match &mut self.resampler {
            Some(resampler) => resampler.push(&self.mono, out),
            None => out.extend_from_slice(&self.mono),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<f32>) -> Result<(), Error> {
        self.ended = true;
        if self.decoded == 0 {
            return Err(empty(&self.path));
        }
        if let Some(declared) = self.declared.filter(|declared| *declared > self.decoded) {
            return Err(self.truncated(Some(declared)));
        }
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(out);
        }
        Ok(())
    }

    fn fault(&self, fault: SymphoniaError) -> Error {
        match fault {
            SymphoniaError::IoError(fault) if fault.kind() == ErrorKind::UnexpectedEof => {
                self.truncated(self.declared)
            }
            // Decoders also report missing data in a packet as an I/O error, without an OS error code.
            SymphoniaError::IoError(fault) if fault.raw_os_error().is_some() => {
                Error::read(&self.path, fault)
            }
            fault => self.invalid(&fault.to_string()),
        }
    }

    fn invalid(&self, what: &str) -> Error {
        let at = self.seconds(self.decoded);
        let what = format!("the audio data is damaged after {at:.1} s: {what}");
        Error::input("audio-invalid", &self.path, what, "repair or convert it with another program")
    }

    fn truncated(&self, declared: Option<u64>) -> Error {
        let at = self.seconds(self.decoded);
        let what = match declared {
            Some(declared) => {
                format!("the audio data ends after {at:.1} of {:.1} s", self.seconds(declared))
            }
            None => format!("the audio data is truncated after {at:.1} s"),
        };
        let help = "get the whole file, or convert the available part with another program";
        Error::input("audio-truncated", &self.path, what, help)
    }

    fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.rate.unwrap_or(RATE as u32))
    }
}

/// Runs the decoder, which panics on some damaged files.
fn caught<T>(run: impl FnOnce() -> Result<T, SymphoniaError>) -> Result<T, SymphoniaError> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or(Err(SymphoniaError::DecodeError("the decoder cannot read it")))
}

/// Opens a file, or a temporary file with the bytes of a pipe or, for `-`, of standard input.
pub(super) fn open_file(path: &Path) -> Result<File, Error> {
    if path.as_os_str() == "-" {
        return stored(&mut std::io::stdin().lock(), path);
    }
    let mut file = File::open(path).map_err(|fault| Error::environment("open", path, fault))?;
    let metadata = file.metadata().map_err(|fault| Error::read(path, fault))?;
    if metadata.is_dir() {
        return Err(Error::read(path, ErrorKind::IsADirectory.into()));
    }
    if metadata.is_file() { Ok(file) } else { stored(&mut file, path) }
}

/// Returns a temporary file with the bytes of a pipe, whose end is not known before.
fn stored(input: &mut impl Read, path: &Path) -> Result<File, Error> {
    let failed = |fault| Error::read(path, fault);
    let mut file = tempfile::tempfile().map_err(failed)?;
    std::io::copy(input, &mut file).map_err(failed)?;
    Ok(file)
}

const NO_TRACK: &str = "the file has no audio track";

fn unsupported(path: &Path, fault: SymphoniaError) -> Error {
    let what = match fault {
        SymphoniaError::IoError(fault) if fault.raw_os_error().is_some() => {
            return Error::read(path, fault);
        }
        // Probing an unknown format fails at the end of the file.
        SymphoniaError::Unsupported(NO_TRACK) => NO_TRACK.to_owned(),
        _ => "not an audio file of a known format".to_owned(),
    };
    Error::input("audio-unsupported", path, what, "use WAV, FLAC, MP3 or Ogg Vorbis")
}

fn empty(path: &Path) -> Error {
    Error::input("audio-empty", path, "the file has no audio samples", "check that it plays")
}
