//! What is spoken in recordings, by Whisper.
//!
//! Windows, fallbacks and thresholds are those of Whisper's authors (`transcribe.py`).

mod parts;
mod rules;
mod subtitles;
mod vocabulary;
mod window;

use std::path::Path;

use gguf_audio::{FRAMES_PER_SECOND, HOP, Spectrogram};
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Observer, Value};
use gguf_store::Progress;
use gguf_tokenizer::Tokenizer;

pub use subtitles::{srt, time, vtt};

use self::parts::parts;
use self::rules::Rules;
use self::vocabulary::{Tongues, Vocabulary};
use self::window::{Attempt, Written, text, write};
use super::Running;
use crate::Error;

/// What is wanted of a recording.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The language that is spoken, by its code; without one the model finds out.
    pub language: Option<String>,
    /// Whether to write English, whatever is spoken.
    pub translate: bool,
    /// Whether to say when something is spoken. Of recordings of more than a window, times are found in
    /// any case, to know where the next window begins.
    pub timestamps: bool,
    /// Whether to take the best tokens even if the text then looks like none.
    pub no_fallback: bool,
    /// How caches store numbers.
    pub cache_type: CacheType,
}

/// Temperatures that are tried one after the other, until the text looks like one.
const TEMPERATURES: [f32; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
/// A text that becomes shorter than this by compression repeats itself.
const MOST_COMPRESSION: f64 = 2.4;
/// Below this mean of logarithms of probabilities the model was guessing.
const LEAST_MEAN_LOG: f64 = -1.0;
/// Above this probability that nobody speaks, nobody does, unless the model was sure of its text.
const MOST_NO_SPEECH: f64 = 0.6;
/// Text of a higher temperature is not told to the model as what was written before.
const MOST_TO_GO_ON: f32 = 0.5;
/// A text begins within a second.
const LATEST_BEGIN: f64 = 1.0;

/// What was spoken in a recording.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// The whole text.
    pub text: String,
    /// The code of the language; `en` of models that know English alone.
    pub language: String,
    /// How probable that language is among all that the model knows, where it found out.
    pub language_probability: Option<f32>,
    /// Seconds of the recording.
    pub duration: f64,
    /// The parts of the text, in the order of time.
    pub segments: Vec<Segment>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// When it begins, in seconds; without timestamps, when the window does.
    pub start: f64,
    /// When it ends.
    pub end: f64,
    /// Its text.
    pub text: String,
    /// Its ids, with those of times.
    pub ids: Vec<u32>,
    /// At which temperature it was written.
    pub temperature: f32,
    /// The mean of the logarithms of the probabilities of the tokens of its window.
    pub mean_log: f64,
    /// How much shorter the text of its window becomes by compression.
    pub compression: f64,
    /// How probable it is that nobody speaks in its window.
    pub no_speech: f64,
}

/// A Whisper that is ready to listen.
pub struct Transcriber {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    options: Options,
    context: Context,
    /// Tokens of the decoder at most.
    tokens: usize,
    /// Frames of a window, and bands of a frame.
    frames: usize,
    bands: usize,
}

/// Frames of a spectrogram for one step of the encoder, and of time.
const STRIDE: usize = 2;

impl Transcriber {
    /// Of a model.
    ///
    /// # Errors
    /// `not-a-transcriber` if the model hears nothing, or its vocabulary is not that of a Whisper;
    /// `language-unknown` if it does not know the language; as [`Tokenizer::from_metadata`] and
    /// [`Context::new`].
    pub fn new(running: &Running, options: Options) -> Result<Self, Error> {
        let graph = running.executor.graph();
        let Some(bands) = graph.encoder().and_then(|(program, _)| program.features_width()) else {
            let help = "give it a Whisper";
            return Err(Error::request("not-a-transcriber", "the model hears nothing", help));
        };
        let metadata = &running.metadata;
        let size = |key: &str, usual: u64| {
            let architecture = metadata.architecture().unwrap_or_default();
            let found = metadata.u64(&format!("{architecture}.{key}.context_length"));
            usize::try_from(found.unwrap_or(usual)).unwrap_or(usize::MAX)
        };
        // A file that is run by its stored graph need not have keys: then it is as large as all are.
        let (tokens, steps) = (size("decoder", 448), size("encoder", 1500));
        let tokenizer = Tokenizer::from_metadata(metadata, gguf_tokenizer::Options::default())?;
        let vocabulary = Vocabulary::read(&tokenizer)?;
        let context =
            ContextOptions { tokens, cache_type: options.cache_type, ..Default::default() };
        let context = Context::new(running.executor.clone(), context)?;
        let frames = steps.saturating_mul(STRIDE);
        let made = Self { tokenizer, vocabulary, options, context, tokens, frames, bands };
        made.told("en")?;
        Ok(made)
    }

    /// Writes down a recording.
    ///
    /// # Errors
    /// As [`Spectrogram::open`] and [`Context::run`]; `weights-unusable` if every logit is NaN.
    pub fn transcribe(
        &mut self,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<Transcript, Error> {
        progress.begin("listening", 0);
        let mut heard = |samples: usize| progress.step(2 * samples as u64);
        let mut sound = Spectrogram::open(path, self.bands, &mut heard)?;
        let frames = sound.frames();
        // Shown as bytes of sound of 16 bits.
        let bytes = |frames: usize| (2 * HOP * frames) as u64;
        progress.begin("transcribing", bytes(frames));
        let quiet = |_: u64| progress.advance(0);
        let times = self.options.timestamps || frames > self.frames;

        self.hear(&mut sound, 0, &quiet)?;
        let (language, probability) = self.language(&quiet)?;
        let told = self.told(&language)?;
        let mut transcript = Transcript {
            text: String::new(),
            language,
            language_probability: probability,
            duration: frames as f64 / FRAMES_PER_SECOND as f64,
            segments: Vec::new(),
        };
        // Ids of texts and times, and from where on they are told to the model.
        let (mut ids, mut told_from) = (Vec::new(), 0);
        let mut at = 0;
        while at < frames {
            if at > 0 {
                self.hear(&mut sound, at, &quiet)?;
            }
            let size = self.frames.min(frames - at);
            let before = ids.get(told_from..).unwrap_or_default();
            let written = self.write(&told, before, times, at as u64, &quiet)?;
            let steps = if is_silent(&written) {
                size.div_ceil(STRIDE)
            } else {
                let (parts, steps) =
                    parts(&written.ids, self.vocabulary.first_time, size.div_ceil(STRIDE));
                for part in parts {
                    let segment = self.segment(part, at, &written);
                    if segment.start < segment.end && !segment.text.trim().is_empty() {
                        ids.extend(&segment.ids);
                        transcript.segments.push(segment);
                    }
                }
                if written.temperature > MOST_TO_GO_ON {
                    told_from = ids.len();
                }
                steps
            };
            let passed = (steps * STRIDE).clamp(1, frames - at);
            at += passed;
            progress.step(bytes(passed))?;
        }
        let text = text(&self.tokenizer, &ids, self.vocabulary.end);
        transcript.text = text.trim().to_owned();
        Ok(transcript)
    }

    /// Hears a recording window by window, and reads at once what it writes down of each, while `observer` looks on
    /// at both, and not at the writing. Returns how many tokens the decoder read.
    ///
    /// # Errors
    /// As [`Transcriber::transcribe`].
    pub fn observe(
        &mut self,
        path: &Path,
        observer: &dyn Observer,
        progress: &dyn Progress,
    ) -> Result<u64, Error> {
        progress.begin("listening", 0);
        let mut heard = |samples: usize| progress.step(2 * samples as u64);
        let mut sound = Spectrogram::open(path, self.bands, &mut heard)?;
        let frames = sound.frames();
        progress.begin("collecting", (2 * HOP * frames) as u64);
        let quiet = |_: u64| progress.advance(0);
        let (mut told, mut tokens) = (Vec::new(), 0);
        for at in (0..frames).step_by(self.frames.max(1)) {
            let data = sound.window(at, self.frames)?;
            let features = Value { rows: self.frames, width: self.bands, data };
            self.context.observe_encoder(0, &features, observer, &quiet)?;
            if told.is_empty() {
                let (language, _) = self.language(&quiet)?;
                told = self.told(&language)?;
            }
            let written = self.write(&told, &[], false, at as u64, &quiet)?;
            let no_times = [self.vocabulary.no_timestamps];
            let ids = [&told[..], &no_times, &written.ids].concat();
            self.context.truncate(0, 0);
            self.context.observe(&Batch::of_all(&ids), OutputKind::Logits, observer, &quiet)?;
            tokens += ids.len() as u64;
            progress.step((2 * HOP * self.frames.min(frames - at)) as u64)?;
        }
        Ok(tokens)
    }

    /// Lets the encoder hear the window from a frame on.
    fn hear(
        &mut self,
        sound: &mut Spectrogram,
        first: usize,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let data = sound.window(first, self.frames)?;
        let features = Value { rows: self.frames, width: self.bands, data };
        self.context.encode(0, &features, progress).map(drop)
    }

    /// The language that is asked for, or, with its probability, the one that the window is in.
    fn language(&mut self, progress: &dyn Progress) -> Result<(String, Option<f32>), Error> {
        let Some(tongues) = &self.vocabulary.tongues else { return Ok(("en".to_owned(), None)) };
        if let Some(language) = &self.options.language {
            return Ok((language.clone(), None));
        }
        let batch = Batch::of_last(&[self.vocabulary.start], 0);
        let made = self.context.run(&batch, OutputKind::Logits, progress)?;
        let logit = |id: u32| made.data.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let logits: Vec<f32> = tongues.languages.iter().map(|(_, id)| logit(*id)).collect();
        let sum = rules::log_sum(&logits);
        let best = tongues.languages.iter().zip(&logits).max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some(((code, _), logit)) = best.filter(|(_, logit)| !logit.is_nan()) else {
            return Err(Error::weights("output", "the model says nothing but NaN"));
        };
        Ok((code.clone(), Some((f64::from(*logit) - sum).exp() as f32)))
    }

    /// The ids that tell the model what to do, but for times: those wanted of it, or of `found`.
    fn told(&self, found: &str) -> Result<Vec<u32>, Error> {
        let mut told = vec![self.vocabulary.start];
        let wanted = self.options.language.as_deref();
        let unknown =
            |what: String, help: String| Err(Error::request("language-unknown", what, help));
        let Some(Tongues { languages, transcribe, translate }) = &self.vocabulary.tongues else {
            let what = match wanted.filter(|language| *language != "en") {
                Some(language) => format!("the model does not know the language `{language}`"),
                None if self.options.translate => "the model does not translate".to_owned(),
                None => return Ok(told),
            };
            return unknown(
                what,
                "it knows English alone: choose one of many languages".to_owned(),
            );
        };
        let id = |language: &str| languages.iter().find(|(code, _)| code == language);
        let language = match (wanted, id(wanted.unwrap_or(found))) {
            (_, Some((_, id))) => *id,
            // Which it is will be found out.
            (None, None) => return Ok(told),
            (Some(wanted), None) => {
                let codes: Vec<&str> = languages.iter().map(|(code, _)| &**code).collect();
                let what = format!("the model does not know the language `{wanted}`");
                return unknown(what, format!("it knows {}", codes.join(", ")));
            }
        };
        told.extend([language, if self.options.translate { *translate } else { *transcribe }]);
        Ok(told)
    }

    /// What the model writes for the window that it has heard, at the first temperature whose text looks like
    /// one, or at the last.
    fn write(
        &mut self,
        told: &[u32],
        before: &[u32],
        times: bool,
        seed: u64,
        progress: &dyn Progress,
    ) -> Result<Written, Error> {
        let half = self.tokens / 2;
        let mut all = Vec::new();
        if let Some(previous) = self.vocabulary.previous.filter(|_| !before.is_empty()) {
            all.push(previous);
            let kept = before.len().min(half.saturating_sub(1));
            all.extend_from_slice(before.get(before.len() - kept..).unwrap_or_default());
        }
        all.extend_from_slice(told);
        if !times {
            all.push(self.vocabulary.no_timestamps);
        }
        let steps_per_second = FRAMES_PER_SECOND as f64 / STRIDE as f64;
        let latest_begin = (LATEST_BEGIN * steps_per_second).round() as u32;
        let rules = Rules { vocabulary: &self.vocabulary, times, latest_begin };
        let mut written = Written::default();
        for temperature in TEMPERATURES {
            let attempt = Attempt { rules: &rules, told: &all, temperature, most: half, seed };
            written = write(&mut self.context, &self.tokenizer, &attempt, progress)?;
            let fails = written.compression > MOST_COMPRESSION || is_guess(&written);
            let is_silent = is_guess(&written) && written.no_speech > MOST_NO_SPEECH;
            if !fails || is_silent || self.options.no_fallback {
                break;
            }
        }
        Ok(written)
    }

    fn segment(&self, part: parts::Part, at: usize, written: &Written) -> Segment {
        let seconds = |step: usize| (at + step * STRIDE) as f64 / FRAMES_PER_SECOND as f64;
        Segment {
            start: seconds(part.start),
            end: seconds(part.end),
            text: text(&self.tokenizer, &part.ids, self.vocabulary.end),
            ids: part.ids,
            temperature: written.temperature,
            mean_log: written.mean_log,
            compression: written.compression,
            no_speech: written.no_speech,
        }
    }
}

fn is_guess(written: &Written) -> bool {
    written.mean_log < LEAST_MEAN_LOG
}

fn is_silent(written: &Written) -> bool {
    written.no_speech > MOST_NO_SPEECH && written.mean_log <= LEAST_MEAN_LOG
}
