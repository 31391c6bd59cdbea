//! Log-mel spectrogram of a recording: the input features of Whisper's encoder, 100 frames per second.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf::Error;

use super::frame::FrameTransform;
use super::pauses::{self, BLOCK};
use super::recording::open_file;
use super::{FFT_LEN, HOP, RATE, Recording};

/// Samples of a full window of Whisper's encoder: 30 seconds.
const WINDOW: usize = 30 * RATE;

/// Logarithm of the power in a mel band below which a recording is silent. Noise of one bit of 16 has about -7.
const QUIETEST: f32 = -5.0;

/// Maximum number of values that are kept: 17 minutes of 80 bands.
const KEPT: usize = 1 << 23;

/// Difference of the logarithms of the greatest and the least value.
const DEPTH: f32 = 8.0;

/// Scales a logarithm to about -1 to 1.
fn scaled(value: f32) -> f32 {
    (value + 4.0) / 4.0
}

/// A log-mel spectrogram that is computed window by window, equal to the result of `WhisperFeatureExtractor` of
/// `transformers` for the whole recording: values are clamped to 8 (a factor of 10⁸) below the maximum of the
/// recording and scaled to about -1 to 1.
///
/// A first pass finds the length and the maximum of the recording. It keeps the frames of short recordings; longer ones
/// are read twice.
pub struct MelSpectrogram {
    path: PathBuf,
    bands: usize,
    frames: usize,
    maximum: f32,
    /// Logarithm of the greatest power in a band of each block of frames.
    loudness: Vec<f32>,
    /// Source of the frames after the buffer, unless it has all of them.
    source: Option<FrameSource>,
    /// Values of the frames from number `first` on.
    buffer: VecDeque<f32>,
    first: usize,
    /// Number of the frame after the buffer.
    next: usize,
}

impl MelSpectrogram {
    /// Opens the recording at `path` for a spectrogram of `bands` mel bands. Calls `on_samples` with the number of
    /// samples read since its last call; an error of `on_samples` stops the work.
    ///
    /// # Errors
    /// As [`Recording::open`] and [`Recording::read`]; errors of `on_samples`.
    pub fn open(
        path: &Path,
        bands: usize,
        on_samples: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        Self::open_keeping(path, bands, KEPT, on_samples)
    }

    /// Opens a recording, and keeps its frames if they have at most `most` values.
    fn open_keeping(
        path: &Path,
        bands: usize,
        most: usize,
        on_samples: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        // Both passes read one file: a pipe can be read only once.
        let file = open_file(path)?;
        let again = file.try_clone().map_err(|fault| Error::read(path, fault))?;
        let mut source = FrameSource::open(path, file, bands)?;
        let mut loudness = vec![f32::NEG_INFINITY];
        let mut buffer = VecDeque::new();
        let mut frame = Vec::new();
        let mut reported = 0;
        while source.next(&mut frame)? {
            let block = (source.computed - 1) / BLOCK;
            loudness.resize(block + 1, f32::NEG_INFINITY);
            if let Some(loudest) = loudness.last_mut() {
                *loudest = frame.iter().copied().fold(*loudest, f32::max);
            }
            match source.computed * bands <= most {
                true => buffer.extend(&frame),
                false => buffer = VecDeque::new(),
            }
            frame.clear();
            if source.read - reported > WINDOW {
                on_samples(source.read - reported)?;
                reported = source.read;
            }
        }
        let has_all = source.computed * bands <= most;
        let next = if has_all { source.computed } else { 0 };
        Ok(Self {
            path: path.to_owned(),
            bands,
            frames: (source.read / HOP).max(1),
            maximum: loudness.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            loudness,
            source: match has_all {
                true => None,
                false => Some(FrameSource::open(path, again, bands)?),
            },
            buffer,
            first: 0,
            next,
        })
    }

    /// Number of frames of 10 ms in the recording, without padding.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Number of mel bands of a frame.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Cuts the recording into parts of at most `max` frames, in pauses where there are any.
    pub fn parts(&self, max: usize) -> Vec<Range<usize>> {
        let blocks = self.frames.div_ceil(BLOCK);
        let loudness = self.loudness.get(..blocks).unwrap_or(&self.loudness);
        let frame = |block: usize| (block * BLOCK).min(self.frames);
        let parts = pauses::parts(loudness, max / BLOCK).into_iter();
        parts.map(|part| frame(part.start)..frame(part.end)).collect()
    }

    /// Returns `len` frames from frame `first` on. A recording shorter than 30 seconds is padded with silence up to
    /// there; later frames are 0. `first` must not be less than in the call before.
    ///
    /// # Errors
    /// As [`Recording::read`]; `audio-invalid` if `first` is less than in the call before.
    pub fn window(&mut self, first: usize, len: usize) -> Result<Vec<f32>, Error> {
        let Some(passed) = first.checked_sub(self.first) else {
            let what = format!("frame {first} is before the current window");
            return Err(Error::input(
                "audio-invalid",
                &self.path,
                what,
                "open the recording again",
            ));
        };
        self.buffer.drain(..(passed * self.bands).min(self.buffer.len()));
        self.first = first;
        let mut frame = Vec::new();
        while let Some(source) = &mut self.source
            && self.next < first + len
            && source.next(&mut frame)?
        {
            if self.next >= first {
                self.buffer.extend(&frame);
            }
            frame.clear();
            self.next += 1;
        }
        let floor = self.maximum - DEPTH;
        let mut window: Vec<f32> = self.buffer.iter().take(len * self.bands).copied().collect();
        window.iter_mut().for_each(|value| *value = scaled(value.max(floor)));
        window.resize(len * self.bands, 0.0);
        Ok(window)
    }

    /// Returns the value of silence.
    pub fn silence(&self) -> f32 {
        scaled(self.maximum - DEPTH)
    }

    /// Whether the last window of `len` frames has sound: at most 40 dB below the maximum of the recording, which
    /// itself is more than the noise of one bit of 16.
    pub fn is_audible(&self, len: usize) -> bool {
        let loudest = self.buffer.iter().take(len * self.bands).copied();
        let loudest = loudest.fold(f32::NEG_INFINITY, f32::max);
        self.maximum > QUIETEST && loudest >= self.maximum - 4.0
    }
}

/// Frames of a recording before clamping and scaling.
struct FrameSource {
    recording: Recording,
    transform: FrameTransform,
    /// Buffered samples, with the mirrored padding at both ends of the recording.
    samples: Vec<f32>,
    /// Index in `samples` of the start of the next frame.
    at: usize,
    /// Number of samples read from the recording.
    read: usize,
    /// Number of frames computed.
    computed: usize,
    /// Total number of frames, known at the end of the recording.
    frames: Option<usize>,
}

/// Samples of padding before the recording: frames are centered at their time.
const HALF: usize = FFT_LEN / 2;

impl FrameSource {
    fn open(path: &Path, file: File, bands: usize) -> Result<Self, Error> {
        Ok(Self {
            recording: Recording::from_file(path, file)?,
            transform: FrameTransform::new(bands),
            samples: Vec::new(),
            at: 0,
            read: 0,
            computed: 0,
            frames: None,
        })
    }

    /// Appends the next frame; returns `false` at the end.
    fn next(&mut self, out: &mut Vec<f32>) -> Result<bool, Error> {
        while self.frames.is_none() && self.samples.len() < self.at + FFT_LEN + HOP {
            self.fill()?;
        }
        // The frame centered at the end of the recording is dropped, as in the reference implementation.
        let samples = match self.frames {
            Some(frames) if self.computed >= frames => None,
            _ => self.samples.get(self.at..self.at + FFT_LEN),
        };
        let Some(samples) = samples else { return Ok(false) };
        self.transform.frame(samples, out);
        self.computed += 1;
        self.at += HOP;
        if self.at > WINDOW {
            self.samples.drain(..self.at);
            self.at = 0;
        }
        Ok(true)
    }

    /// Reads more samples, and adds mirrored padding at the start and at the end.
    fn fill(&mut self) -> Result<(), Error> {
        let before = self.samples.len();
        let at_start = self.read == 0;
        let mut more = true;
        // The mirrored padding needs this number of samples.
        while more && self.samples.len() - before <= HALF {
            more = self.recording.read(&mut self.samples)?;
        }
        self.read += self.samples.len() - before;
        if !more {
            self.frames = Some(self.read.max(WINDOW) / HOP);
            let silence = WINDOW.saturating_sub(self.read);
            self.samples.resize(self.samples.len() + silence, 0.0);
        }
        if at_start {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_frames_are_those_that_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tone.wav");
        let samples = (0..33 * RATE).map(|i| ((i * i / 7) % 20_011) as i16 - 10_000);
        let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        file.extend((RATE as u32).to_le_bytes());
        file.extend((2 * RATE as u32).to_le_bytes());
        file.extend(b"\x02\0\x10\0data");
        file.extend((data.len() as u32).to_le_bytes());
        file.extend(data);
        let len = file.len() as u32 - 8;
        file[4..8].copy_from_slice(&len.to_le_bytes());
        std::fs::write(&path, file).unwrap();
        let open = |most| MelSpectrogram::open_keeping(&path, 80, most, &mut |_| Ok(())).unwrap();
        let all = 3300 * 80;
        let (mut kept, mut read) = (open(all), open(all - 1));
        assert!(kept.source.is_none() && read.source.is_some());
        for (first, len) in [(0, 3000), (1, 5), (2000, 1000), (2500, 3000), (3300, 10)] {
            let windows = [kept.window(first, len).unwrap(), read.window(first, len).unwrap()];
            assert!(windows[0] == windows[1], "{first} {len}");
            assert_eq!(kept.is_audible(len), read.is_audible(len));
        }
        assert_eq!(kept.parts(1000), read.parts(1000));
    }
}
