//! What Whisper hears of a recording: the logarithms of the energies of mel bands, 100 times per second.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use gguf::Error;

use crate::transform::{LEN, Transform};
use crate::{HOP, RATE, Recording};

/// Samples that a model is trained to hear at once: 30 seconds.
const WINDOW: usize = 30 * RATE;

/// A spectrogram of a recording, computed window by window, as `WhisperFeatureExtractor` of
/// `transformers` does it for the whole: what is quieter than the loudest part by a factor of 10⁸ counts
/// as that, and numbers are brought to about -1 to 1.
///
/// It reads the recording twice: the first time to know how loud and how long it is.
pub struct Spectrogram {
    path: PathBuf,
    bands: usize,
    frames: usize,
    loudest: f32,
    source: Source,
    /// Frames from number `first` on, one after the other.
    kept: VecDeque<f32>,
    first: usize,
    /// The number of the frame after them.
    next: usize,
}

impl Spectrogram {
    /// Of the recording at `path`, in so many bands; `heard` is told how many samples more it has read, and
    /// may end the work with an error.
    ///
    /// # Errors
    /// As [`Recording::open`] and [`Recording::read`]; what `heard` says.
    pub fn open(
        path: &Path,
        bands: usize,
        heard: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut source = Source::open(path, bands)?;
        let mut loudest = f32::NEG_INFINITY;
        let mut frame = Vec::new();
        let mut told = 0;
        while source.next(&mut frame)? {
            loudest = frame.iter().copied().fold(loudest, f32::max);
            frame.clear();
            if source.read - told > WINDOW {
                heard(source.read - told)?;
                told = source.read;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            bands,
            frames: (source.read / HOP).max(1),
            loudest,
            source: Source::open(path, bands)?,
            kept: VecDeque::new(),
            first: 0,
            next: 0,
        })
    }

    /// Frames of the recording, each of 10 ms, without the silence behind it.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Numbers of a frame.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// `len` frames from frame `first` on, one after the other. A recording of at most 30 seconds is
    /// followed by silence up to there; what else is behind the end is 0. Windows before the last one
    /// cannot be had any more.
    ///
    /// # Errors
    /// As [`Recording::read`]; `audio-invalid` for a window that has gone by.
    pub fn window(&mut self, first: usize, len: usize) -> Result<Vec<f32>, Error> {
        let Some(passed) = first.checked_sub(self.first) else {
            let what = format!("frame {first} has gone by");
            return Err(Error::input("audio-invalid", &self.path, what, "open it anew"));
        };
        self.kept.drain(..(passed * self.bands).min(self.kept.len()));
        self.first = first;
        let mut frame = Vec::new();
        while self.next < first + len && self.source.next(&mut frame)? {
            if self.next >= first {
                self.kept.extend(&frame);
            }
            frame.clear();
            self.next += 1;
        }
        let floor = self.loudest - 8.0;
        let mut window: Vec<f32> = self.kept.iter().take(len * self.bands).copied().collect();
        window.iter_mut().for_each(|number| *number = (number.max(floor) + 4.0) / 4.0);
        window.resize(len * self.bands, 0.0);
        Ok(window)
    }
}

/// The frames of a recording, one by one, before they are brought to scale.
struct Source {
    recording: Recording,
    transform: Transform,
    /// Samples from number `start` on, as seen from the middle of the frame to come.
    samples: Vec<f32>,
    /// Where in `samples` the next frame begins.
    at: usize,
    /// Samples of the recording that were read.
    read: usize,
    /// Frames that were made, and, from the end on, that there are.
    made: usize,
    frames: Option<usize>,
}

/// Frames begin half their length before their time.
const HALF: usize = LEN / 2;

impl Source {
    fn open(path: &Path, bands: usize) -> Result<Self, Error> {
        let recording = Recording::open(path)?;
        let transform = Transform::new(bands);
        Ok(Self {
            recording,
            transform,
            samples: Vec::new(),
            at: 0,
            read: 0,
            made: 0,
            frames: None,
        })
    }

    /// Appends the next frame; `false` if there is none.
    fn next(&mut self, out: &mut Vec<f32>) -> Result<bool, Error> {
        while self.frames.is_none() && self.samples.len() < self.at + LEN + HOP {
            self.fill()?;
        }
        // One more would fit, in the middle of which is the end: it is left out.
        let samples = match self.frames {
            Some(frames) if self.made >= frames => None,
            _ => self.samples.get(self.at..self.at + LEN),
        };
        let Some(samples) = samples else { return Ok(false) };
        self.transform.frame(samples, out);
        self.made += 1;
        self.at += HOP;
        if self.at > WINDOW {
            self.samples.drain(..self.at);
            self.at = 0;
        }
        Ok(true)
    }

    /// Reads on; at the beginning and at the end the sound is mirrored.
    fn fill(&mut self) -> Result<(), Error> {
        let before = self.samples.len();
        let begins = self.read == 0;
        let mut more = true;
        // The mirror needs so many samples.
        while more && self.samples.len() - before <= HALF {
            more = self.recording.read(&mut self.samples)?;
        }
        self.read += self.samples.len() - before;
        if !more {
            self.frames = Some(self.read.max(WINDOW) / HOP);
            let short = WINDOW.saturating_sub(self.read);
            self.samples.resize(self.samples.len() + short, 0.0);
        }
        if begins {
            let mirrored: Vec<f32> =
                self.samples.iter().skip(1).take(HALF).rev().copied().collect();
            self.samples.splice(..0, mirrored);
        }
        if !more {
            let last = self.samples.len().saturating_sub(1);
            let mirrored = self.samples.get(last.saturating_sub(HALF)..last).unwrap_or_default();
            let mirrored: Vec<f32> = mirrored.iter().rev().copied().collect();
            self.samples.extend(mirrored);
        }
        Ok(())
    }
}
