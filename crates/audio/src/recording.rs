//! A file of sound, decoded as it is read.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gguf::{Error, Finding};
use symphonia::core::codecs::audio::AudioDecoder;
use symphonia::core::errors::Error as Fault;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::default::{get_codecs, get_probe};

use crate::RATE;
use crate::resample::Resampler;

/// A recording: WAV, FLAC, MP3 or Ogg Vorbis. Channels are averaged, and other rates brought to
/// 16,000 samples per second.
pub struct Recording {
    path: PathBuf,
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    /// Samples of each channel that the file says it has.
    promised: Option<u64>,
    /// Samples of each channel that were decoded.
    decoded: u64,
    /// Samples per second of the file, once known.
    rate: Option<u32>,
    resampler: Option<Resampler>,
    interleaved: Vec<f32>,
    mono: Vec<f32>,
    ended: bool,
}

impl Recording {
    /// Opens a file, and finds out what it is.
    ///
    /// # Errors
    /// If it cannot be read; `audio-unsupported` if it is no sound, or of a kind that is not decoded
    /// here; `audio-empty` if there is nothing in it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|fault| Error::environment("open", path, fault))?;
        let metadata = file.metadata().map_err(|fault| Error::read(path, fault))?;
        if metadata.is_dir() {
            return Err(Error::read(path, ErrorKind::IsADirectory.into()));
        }
        if metadata.is_file() && metadata.len() == 0 {
            return Err(empty(path));
        }
        let mut hint = Hint::new();
        if let Some(extension) = path.extension().and_then(|extension| extension.to_str()) {
            hint.with_extension(extension);
        }
        let stream = MediaSourceStream::new(Box::new(file), Default::default());
        let format = get_probe()
            .probe(&hint, stream, Default::default(), Default::default())
            .map_err(|fault| unknown(path, fault))?;
        let track = format.default_track(TrackType::Audio);
        let track = track.or_else(|| format.first_track(TrackType::Audio));
        let found = track.and_then(|track| {
            let of_track = track.codec_params.as_ref()?.audio()?;
            Some((track.id, track.num_frames, of_track.clone()))
        });
        let Some((track, promised, of_track)) = found else {
            return Err(unknown(path, Fault::Unsupported("there is no sound in it")));
        };
        let decoder = get_codecs()
            .make_audio_decoder(&of_track, &Default::default())
            .map_err(|fault| unknown(path, fault))?;
        Ok(Self {
            path: path.to_owned(),
            format,
            decoder,
            track,
            promised: promised.filter(|promised| *promised > 0),
            decoded: 0,
            rate: None,
            resampler: None,
            interleaved: Vec::new(),
            mono: Vec::new(),
            ended: false,
        })
    }

    /// Appends the next samples, from -1 to 1 where nothing was overdriven; `false` at the end.
    ///
    /// # Errors
    /// `audio-invalid` if the sound is damaged, `audio-truncated` if it ends before the file says it
    /// does, `audio-empty` if there is none.
    pub fn read(&mut self, out: &mut Vec<f32>) -> Result<bool, Error> {
        while !self.ended {
            let packet = match self.format.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return self.end(out).map(|()| true),
                Err(fault) => return Err(self.fault(fault)),
            };
            if packet.track_id != self.track {
                continue;
            }
            match self.decoder.decode(&packet) {
                Ok(decoded) => {
                    let (rate, channels) = (decoded.spec().rate(), decoded.num_planes());
                    decoded.copy_to_vec_interleaved(&mut self.interleaved);
                    self.take(rate, channels, out)?;
                }
                Err(fault) => return Err(self.fault(fault)),
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Takes what was decoded.
    fn take(&mut self, rate: u32, channels: usize, out: &mut Vec<f32>) -> Result<(), Error> {
        match self.rate {
            None => {
                let in_file = |fault: Finding| Error::from(fault).in_file(&self.path);
                self.resampler = Resampler::new(rate).map_err(in_file)?;
                self.rate = Some(rate);
            }
            Some(before) if before != rate => {
                let what = format!("its rate changes from {before} to {rate} samples per second");
                return Err(self.invalid(&what));
            }
            Some(_) => {}
        }
        let channels = channels.max(1);
        self.decoded += (self.interleaved.len() / channels) as u64;
        self.mono.clear();
        let average = |frame: &[f32]| {
            let sum: f32 = frame.iter().sum();
            // What is no number would silence everything that is computed with it.
            if sum.is_finite() { sum / channels as f32 } else { 0.0 }
        };
        self.mono.extend(self.interleaved.chunks_exact(channels).map(average));
        match &mut self.resampler {
            Some(resampler) => resampler.push(&self.mono, out),
            None => out.extend_from_slice(&self.mono),
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<f32>) -> Result<(), Error> {
        self.ended = true;
        if self.decoded == 0 {
            return Err(empty(&self.path));
        }
        if let Some(promised) = self.promised.filter(|promised| *promised > self.decoded) {
            return Err(self.truncated(Some(promised)));
        }
        if let Some(resampler) = &mut self.resampler {
            resampler.finish(out);
        }
        Ok(())
    }

    fn fault(&self, fault: Fault) -> Error {
        match fault {
            Fault::IoError(fault) if fault.kind() == ErrorKind::UnexpectedEof => {
                self.truncated(self.promised)
            }
            // Decoders use this kind of error for what they miss in a packet too.
            Fault::IoError(fault) if fault.raw_os_error().is_some() => {
                Error::read(&self.path, fault)
            }
            fault => self.invalid(&fault.to_string()),
        }
    }

    fn invalid(&self, what: &str) -> Error {
        let what =
            format!("the sound is damaged after {:.1} s: {what}", self.seconds(self.decoded));
        Error::input("audio-invalid", &self.path, what, "repair or convert it with another program")
    }

    fn truncated(&self, promised: Option<u64>) -> Error {
        let here = self.seconds(self.decoded);
        let what = match promised {
            Some(promised) => {
                format!("the sound ends after {here:.1} of {:.1} s", self.seconds(promised))
            }
            None => format!("the sound breaks off after {here:.1} s"),
        };
        let help = "get the whole file, or convert what is there with another program";
        Error::input("audio-truncated", &self.path, what, help)
    }

    fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.rate.unwrap_or(RATE as u32))
    }
}

fn unknown(path: &Path, fault: Fault) -> Error {
    let what = match fault {
        Fault::IoError(fault) if fault.raw_os_error().is_some() => {
            return Error::read(path, fault);
        }
        // Whoever looks for a format looks until the file ends.
        Fault::IoError(_) => "it is no sound that this program knows".to_owned(),
        fault => fault.to_string(),
    };
    Error::input("audio-unsupported", path, what, "give it WAV, FLAC, MP3 or Ogg Vorbis")
}

fn empty(path: &Path) -> Error {
    Error::input("audio-empty", path, "there is no sound in it", "look whether it plays")
}
