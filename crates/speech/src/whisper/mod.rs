//! Transcription with Whisper.
//!
//! Windows, temperature fallback and thresholds follow Whisper's reference implementation (`transcribe.py`).

mod beam_search;
mod decode;
mod fallback;
mod rules;
mod segments;
mod subtitles;
mod vocabulary;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use gguf::{Error, Metadata};
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Observer, Value};
use gguf_store::Progress;
use gguf_tokenizer::Tokenizer;
use serde::{Serialize, Serializer};

pub use self::subtitles::{srt, time, vtt};

use self::decode::{DecodeRequest, Decoded, decode, text};
use self::fallback::{Attempts, Choice, TEMPERATURES, is_silent};
use self::rules::LogitRules;
use self::segments::TokenSpan;
use self::vocabulary::{Languages, Vocabulary};
use crate::audio::{FRAMES_PER_SECOND, HOP, MelSpectrogram};

/// Options of a transcription.
#[derive(Clone, Debug)]
pub struct TranscribeOptions {
    /// Code of the spoken language; `None` identifies it.
    pub language: Option<String>,
    /// Whether to translate to English.
    pub translate: bool,
    /// Whether to predict timestamps. Recordings of more than one window always get them if the batch size is 1, because
    /// the next window starts at a timestamp.
    pub timestamps: bool,
    /// Number of parts of a recording that are decoded together, at least 1. With 1, each window continues the text of the
    /// one before. Otherwise a recording of more than one window is cut in pauses, and each part has a text of its own.
    pub batch_size: usize,
    /// Number of texts that beam search continues, at least 1, which is greedy. At temperatures above 0 there is one.
    pub beam_size: usize,
    /// Disables temperature fallback: decodes once, at temperature 0.
    pub no_fallback: bool,
    /// Element type of the KV cache.
    pub cache_type: CacheType,
}

impl Default for TranscribeOptions {
    fn default() -> Self {
        Self {
            language: None,
            translate: false,
            timestamps: false,
            batch_size: 1,
            beam_size: 5,
            no_fallback: false,
            cache_type: CacheType::default(),
        }
    }
}

/// Text that was sampled at a higher temperature, or fails a threshold, is not part of later prompts.
const MAX_PROMPT_TEMPERATURE: f32 = 0.5;
/// Latest start of the text in a window, in seconds.
const MAX_INITIAL_TIMESTAMP: f64 = 1.0;

/// The transcript of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Transcript {
    /// The whole text.
    pub text: String,
    /// Code of the language; `en` for English-only models.
    pub language: String,
    /// Probability of the language among all languages of the model, if it was identified.
    #[serde(serialize_with = "rounded_option")]
    pub language_probability: Option<f32>,
    /// Duration of the recording in seconds.
    pub duration: f64,
    /// Segments in the order of time.
    pub segments: Vec<Segment>,
    /// Audible parts without text, in the order of time.
    pub skipped: Vec<Skipped>,
}

/// An audible part of a recording in which no speech was recognized.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Skipped {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Least no-speech probability of its windows.
    #[serde(serialize_with = "rounded")]
    pub no_speech_prob: f64,
}

impl Transcript {
    /// Records that some frames have no text; adjacent parts are joined.
    fn skip(&mut self, first: usize, frames: usize, decoded: &Decoded) {
        let [start, end] =
            [first, first + frames].map(|frame| frame as f64 / FRAMES_PER_SECOND as f64);
        match self.skipped.last_mut().filter(|last| last.end == start) {
            Some(last) => {
                last.end = end;
                last.no_speech_prob = last.no_speech_prob.min(decoded.no_speech_prob);
            }
            None => {
                self.skipped.push(Skipped { start, end, no_speech_prob: decoded.no_speech_prob })
            }
        }
    }
}

/// A segment of a transcript.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Start in seconds; without timestamps, the start of the window.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// The text.
    pub text: String,
    /// Token ids, timestamps included.
    pub ids: Vec<u32>,
    /// Temperature at which the tokens were sampled.
    #[serde(serialize_with = "rounded")]
    pub temperature: f32,
    /// Mean log-probability of the tokens of the window.
    #[serde(serialize_with = "rounded")]
    pub avg_logprob: f64,
    /// Compression ratio of the text of the window.
    #[serde(serialize_with = "rounded")]
    pub compression_ratio: f64,
    /// Probability that the window has no speech.
    #[serde(serialize_with = "rounded")]
    pub no_speech_prob: f64,
}

/// Serializes a number with six decimal places.
fn rounded<T: Copy + Into<f64>, S: Serializer>(
    number: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let number: f64 = (*number).into();
    serializer.serialize_f64((number * 1e6).round() / 1e6)
}

fn rounded_option<S: Serializer>(number: &Option<f32>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => rounded(number, serializer),
        None => serializer.serialize_none(),
    }
}

/// A Whisper model with its decoding state.
pub struct Transcriber {
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    options: TranscribeOptions,
    context: Context,
    /// Context size of the decoder.
    max_tokens: usize,
    /// Frames of a window.
    frames: usize,
    /// Mel bands of a frame.
    bands: usize,
}

/// Frames of the spectrogram per encoder position, which is also the step of timestamps.
const STRIDE: usize = 2;

/// Tells how to need less memory, if sequences need too much.
fn fewer_sequences(error: Error) -> Error {
    match error {
        Error::Caller(mut finding) if finding.code == "memory-budget" => {
            finding.help =
                "lower --batch-size or --beam-size, or allow more memory with `--memory-limit SIZE`"
                    .into();
            Error::Caller(finding)
        }
        other => other,
    }
}

/// Returns the token ids of segments.
fn ids(segments: &[Segment]) -> Vec<u32> {
    segments.iter().flat_map(|segment| &segment.ids).copied().collect()
}

/// Returns the bytes of 16-bit samples, in which progress counts frames.
fn bytes(frames: usize) -> u64 {
    (2 * HOP * frames) as u64
}

impl Transcriber {
    /// Creates a transcriber that runs the model of `executor`, which has the keys `metadata`.
    ///
    /// # Errors
    /// `not-a-transcriber` if the model has no audio encoder or its vocabulary is not Whisper's;
    /// `language-unknown` if the model does not know the language; as [`Tokenizer::from_metadata`] and
    /// [`Context::new`].
    pub fn new(
        executor: Arc<Executor>,
        metadata: &Metadata,
        options: TranscribeOptions,
    ) -> Result<Self, Error> {
        let encoder = executor.graph().encoder();
        let Some(bands) = encoder.and_then(|(program, _)| program.features_width()) else {
            let help = "use a Whisper model";
            return Err(Error::request("not-a-transcriber", "not a speech model", help));
        };
        let size = |key: &str, default: u64| {
            let architecture = metadata.architecture().unwrap_or_default();
            let found = metadata.u64(&format!("{architecture}.{key}.context_length"));
            usize::try_from(found.unwrap_or(default)).unwrap_or(usize::MAX)
        };
        // A file with a stored graph may lack the keys; all Whisper models have these sizes.
        let (max_tokens, positions) = (size("decoder", 448), size("encoder", 1500));
        let tokenizer =
            Tokenizer::from_metadata(metadata, gguf_tokenizer::TokenizerOptions::default())?;
        let vocabulary = Vocabulary::read(&tokenizer)?;
        let context = ContextOptions {
            sequences: options.batch_size.max(1).saturating_mul(options.beam_size.max(1)),
            tokens: max_tokens,
            cache_type: options.cache_type,
            ..Default::default()
        };
        let context = Context::new(executor, context).map_err(fewer_sequences)?;
        let frames = positions.saturating_mul(STRIDE);
        context.check_frames(frames)?;
        let transcriber =
            Self { tokenizer, vocabulary, options, context, max_tokens, frames, bands };
        transcriber.task_tokens("en")?;
        Ok(transcriber)
    }

    /// Transcribes a recording.
    ///
    /// # Errors
    /// As [`MelSpectrogram::open`] and [`Context::run`]; `weights-unusable` if all logits are NaN.
    pub fn transcribe(
        &mut self,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<Transcript, Error> {
        progress.begin("reading audio", 0);
        let mut on_samples = |samples: usize| progress.step(2 * samples as u64);
        let mut spectrogram = MelSpectrogram::open(path, self.bands, &mut on_samples)?;
        let frames = spectrogram.frames();
        progress.begin("transcribing", bytes(frames));
        let quiet = |_: u64| progress.advance(0);
        let parts = match self.options.batch_size > 1 && frames > self.frames {
            true => spectrogram.parts(self.frames),
            false => Vec::new(),
        };
        let first = parts.first().map_or(self.frames, |first| first.len());
        let audible = self.encode(&mut spectrogram, 0, 0..first, &quiet)?;
        let (language, probability) = self.language(&quiet)?;
        let mut transcript = Transcript {
            text: String::new(),
            language,
            language_probability: probability,
            duration: frames as f64 / FRAMES_PER_SECOND as f64,
            segments: Vec::new(),
            skipped: Vec::new(),
        };
        match parts.is_empty() {
            true => self.windows(&mut spectrogram, audible, &mut transcript, progress)?,
            false => self.parts(&mut spectrogram, &parts, audible, &mut transcript, progress)?,
        }
        let text = text(&self.tokenizer, &ids(&transcript.segments), self.vocabulary.end);
        transcript.text = text.trim().to_owned();
        Ok(transcript)
    }

    /// Transcribes window by window, each of which starts where the text of the one before ends. The first window is
    /// encoded.
    fn windows(
        &mut self,
        spectrogram: &mut MelSpectrogram,
        mut audible: bool,
        transcript: &mut Transcript,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let frames = spectrogram.frames();
        let timestamps = self.options.timestamps || frames > self.frames;
        let task = self.task_tokens(&transcript.language)?;
        let quiet = |_: u64| progress.advance(0);
        // Index of the first segment that is part of the next prompt.
        let mut prompt_from = 0;
        let mut at = 0;
        while at < frames {
            if at > 0 {
                audible = self.encode(spectrogram, 0, at..at + self.frames, &quiet)?;
            }
            let size = self.frames.min(frames - at);
            let previous = ids(transcript.segments.get(prompt_from..).unwrap_or_default());
            let prompt = self.prompt(&task, &previous, timestamps);
            let choices = self.decode_with_fallback(&prompt, timestamps, &[at as u64], &quiet)?;
            let Some(Choice { decoded, passes }) = choices.into_iter().next() else { break };
            let window_steps = size.div_ceil(STRIDE);
            let segments = transcript.segments.len();
            let steps = if is_silent(&decoded) {
                window_steps
            } else {
                let first_timestamp = self.vocabulary.first_timestamp;
                let (spans, steps) = segments::split(&decoded.ids, first_timestamp, window_steps);
                self.add_segments(spans, at, &decoded, transcript);
                if !passes || decoded.temperature > MAX_PROMPT_TEMPERATURE {
                    prompt_from = transcript.segments.len();
                }
                steps
            };
            let passed = (steps * STRIDE).clamp(1, frames - at);
            if audible && transcript.segments.len() == segments {
                transcript.skip(at, passed, &decoded);
            }
            at += passed;
            progress.step(bytes(passed))?;
        }
        Ok(())
    }

    /// Transcribes parts, as many at a time as there are sequences. The first part is encoded.
    fn parts(
        &mut self,
        spectrogram: &mut MelSpectrogram,
        parts: &[Range<usize>],
        first_is_audible: bool,
        transcript: &mut Transcript,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let timestamps = self.options.timestamps;
        let task = self.task_tokens(&transcript.language)?;
        let prompt = self.prompt(&task, &[], timestamps);
        let quiet = |_: u64| progress.advance(0);
        for together in parts.chunks(self.options.batch_size.max(1)) {
            let mut audible = Vec::new();
            for (window, part) in together.iter().enumerate() {
                audible.push(match part.start {
                    0 => first_is_audible,
                    _ => self.encode(spectrogram, window, part.clone(), &quiet)?,
                });
                progress.step(bytes(part.len() / 2))?;
            }
            let seeds: Vec<u64> = together.iter().map(|part| part.start as u64).collect();
            let choices = self.decode_with_fallback(&prompt, timestamps, &seeds, &quiet)?;
            for ((part, Choice { decoded, .. }), audible) in
                together.iter().zip(choices).zip(audible)
            {
                let segments = transcript.segments.len();
                if !is_silent(&decoded) {
                    let first_timestamp = self.vocabulary.first_timestamp;
                    let steps = part.len().div_ceil(STRIDE);
                    let spans = segments::split_part(&decoded.ids, first_timestamp, steps);
                    self.add_segments(spans, part.start, &decoded, transcript);
                }
                if audible && transcript.segments.len() == segments {
                    transcript.skip(part.start, part.len(), &decoded);
                }
                progress.step(bytes(part.len().div_ceil(2)))?;
            }
        }
        Ok(())
    }

    /// Adds the spans of a window that have text.
    fn add_segments(
        &self,
        spans: Vec<TokenSpan>,
        at: usize,
        decoded: &Decoded,
        transcript: &mut Transcript,
    ) {
        let segments = spans.into_iter().map(|span| self.segment(span, at, decoded));
        let has_text =
            |segment: &Segment| segment.start < segment.end && !segment.text.trim().is_empty();
        transcript.segments.extend(segments.filter(has_text));
    }

    /// Transcribes a recording window by window and runs the decoder over each text again as a batch. `observer` sees
    /// the encoder and this batch, but not the decoding. Returns the number of tokens in the batches.
    ///
    /// # Errors
    /// As [`Transcriber::transcribe`].
    pub fn observe(
        &mut self,
        path: &Path,
        observer: &dyn Observer,
        progress: &dyn Progress,
    ) -> Result<u64, Error> {
        progress.begin("reading audio", 0);
        let mut on_samples = |samples: usize| progress.step(2 * samples as u64);
        let mut spectrogram = MelSpectrogram::open(path, self.bands, &mut on_samples)?;
        let frames = spectrogram.frames();
        progress.begin("collecting", bytes(frames));
        let quiet = |_: u64| progress.advance(0);
        let (mut task, mut tokens) = (Vec::new(), 0);
        for at in (0..frames).step_by(self.frames.max(1)) {
            let data = spectrogram.window(at, self.frames)?;
            let features = Value { rows: self.frames, width: self.bands, data };
            self.context.observe_encoder(0, &features, observer, &quiet)?;
            if task.is_empty() {
                let (language, _) = self.language(&quiet)?;
                task = self.task_tokens(&language)?;
            }
            let mut ids = self.prompt(&task, &[], false);
            let choices = self.decode_with_fallback(&ids, false, &[at as u64], &quiet)?;
            ids.extend(choices.iter().flat_map(|choice| &choice.decoded.ids));
            self.context.truncate(0, 0);
            self.context.observe(
                &Batch::all_outputs(&ids),
                OutputKind::Logits,
                observer,
                &quiet,
            )?;
            tokens += ids.len() as u64;
            progress.step(bytes(self.frames.min(frames - at)))?;
        }
        Ok(tokens)
    }

    /// Runs the encoder on the frames of a window, and silence up to its length. Returns whether they are audible.
    fn encode(
        &mut self,
        spectrogram: &mut MelSpectrogram,
        window: usize,
        frames: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        let mut data = spectrogram.window(frames.start, frames.len())?;
        let audible = spectrogram.is_audible(frames.len());
        data.resize(self.frames * self.bands, spectrogram.silence());
        let features = Value { rows: self.frames, width: self.bands, data };
        self.context.encode(self.first_sequence(window), &features, progress)?;
        Ok(audible)
    }

    /// Returns the language of the options, or else the language identified in the window, with its probability.
    fn language(&mut self, progress: &dyn Progress) -> Result<(String, Option<f32>), Error> {
        let Some(Languages { codes, .. }) = &self.vocabulary.languages else {
            return Ok(("en".to_owned(), None));
        };
        if let Some(language) = &self.options.language {
            return Ok((language.clone(), None));
        }
        let batch = Batch::last_output(&[self.vocabulary.start], 0);
        let output = self.context.run_finite(&batch, OutputKind::Logits, progress)?;
        let logit = |id: u32| output.data.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let logits: Vec<f32> = codes.iter().map(|(_, id)| logit(*id)).collect();
        let sum = rules::log_sum_exp(&logits);
        let best = codes.iter().zip(&logits).max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some(((code, _), logit)) = best.filter(|(_, logit)| !logit.is_nan()) else {
            return Err(Error::weights("output", "all logits are NaN"));
        };
        Ok((code.clone(), Some((f64::from(*logit) - sum).exp() as f32)))
    }

    /// Returns the ids of the start of the transcript, the language and the task. The language is that of the
    /// options, or else `identified`.
    fn task_tokens(&self, identified: &str) -> Result<Vec<u32>, Error> {
        let mut tokens = vec![self.vocabulary.start];
        let requested = self.options.language.as_deref();
        let unknown =
            |what: String, help: String| Err(Error::request("language-unknown", what, help));
        let Some(Languages { codes, transcribe, translate }) = &self.vocabulary.languages else {
            let what = match requested.filter(|language| *language != "en") {
                Some(language) => format!("the model does not know the language `{language}`"),
                None if self.options.translate => "the model does not translate".to_owned(),
                None => return Ok(tokens),
            };
            return unknown(what, "the model is English-only: use a multilingual model".to_owned());
        };
        let id = |language: &str| codes.iter().find(|(code, _)| code == language);
        let language = match (requested, id(requested.unwrap_or(identified))) {
            (_, Some((_, id))) => *id,
            // The language is not identified yet.
            (None, None) => return Ok(tokens),
            (Some(requested), None) => {
                let codes: Vec<&str> = codes.iter().map(|(code, _)| &**code).collect();
                let what = format!("the model does not know the language `{requested}`");
                return unknown(what, format!("it knows {}", codes.join(", ")));
            }
        };
        tokens.extend([language, if self.options.translate { *translate } else { *transcribe }]);
        Ok(tokens)
    }

    /// Returns the tokens before those of a window: the end of the text before it, and the task.
    fn prompt(&self, task: &[u32], previous: &[u32], timestamps: bool) -> Vec<u32> {
        let mut prompt = Vec::new();
        if let Some(start) = self.vocabulary.previous.filter(|_| !previous.is_empty()) {
            prompt.push(start);
            let count = previous.len().min((self.max_tokens / 2).saturating_sub(1));
            prompt.extend_from_slice(previous.get(previous.len() - count..).unwrap_or_default());
        }
        prompt.extend_from_slice(task);
        if !timestamps {
            prompt.push(self.vocabulary.no_timestamps);
        }
        prompt
    }

    /// Decodes encoded windows, each of which has a seed, at rising temperatures until their texts pass the thresholds.
    fn decode_with_fallback(
        &mut self,
        prompt: &[u32],
        timestamps: bool,
        seeds: &[u64],
        progress: &dyn Progress,
    ) -> Result<Vec<Choice>, Error> {
        let steps_per_second = FRAMES_PER_SECOND as f64 / STRIDE as f64;
        let max_initial_timestamp = (MAX_INITIAL_TIMESTAMP * steps_per_second).round() as u32;
        let rules = LogitRules { vocabulary: &self.vocabulary, timestamps, max_initial_timestamp };
        let max_tokens = self.max_tokens / 2;
        let mut attempts: Vec<Attempts> = seeds.iter().map(|_| Attempts::default()).collect();
        let mut windows: Vec<usize> = (0..seeds.len()).collect();
        for temperature in TEMPERATURES {
            let beams = if temperature > 0.0 { 1 } else { self.options.beam_size.max(1) };
            let request = |&window: &usize| {
                let seed = seeds.get(window).copied().unwrap_or_default();
                let first = self.first_sequence(window);
                let sequences = first..first + beams;
                DecodeRequest { rules: &rules, sequences, prompt, temperature, max_tokens, seed }
            };
            let requests: Vec<DecodeRequest<'_>> = windows.iter().map(request).collect();
            let decoded = decode(&mut self.context, &self.tokenizer, &requests, progress)?;
            let mut again = Vec::new();
            for (window, decoded) in windows.into_iter().zip(decoded) {
                if attempts.get_mut(window).is_some_and(|attempts| attempts.add(decoded)) {
                    again.push(window);
                }
            }
            windows = again;
            if windows.is_empty() || self.options.no_fallback {
                break;
            }
        }
        Ok(attempts.into_iter().map(Attempts::choose).collect())
    }

    /// Returns the first of the sequences of a window, which has the output of the encoder.
    fn first_sequence(&self, window: usize) -> usize {
        window * self.options.beam_size.max(1)
    }

    fn segment(&self, span: TokenSpan, at: usize, decoded: &Decoded) -> Segment {
        let seconds = |step: usize| (at + step * STRIDE) as f64 / FRAMES_PER_SECOND as f64;
        Segment {
            start: seconds(span.start),
            end: seconds(span.end),
            text: text(&self.tokenizer, &span.ids, self.vocabulary.end),
            ids: span.ids,
            temperature: decoded.temperature,
            avg_logprob: decoded.avg_logprob,
            compression_ratio: decoded.compression_ratio,
            no_speech_prob: decoded.no_speech_prob,
        }
    }
}
