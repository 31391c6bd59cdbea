//! Calibration by a text: the model reads most chunks, and is evaluated on the held-out ones.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{Error, Metadata, Value};
use gguf_eval::{
    ChunkOptions, Chunks, Grouping, Perplexity, RunOptions, SensitivityOptions, Subject,
    measure_sensitivity, perplexity,
};
use gguf_graph::OutputKind;
use gguf_models::{GraphSource, model_graph};
use gguf_pipeline::Item;
use gguf_quantize::sensitivity::Sensitivity;
use gguf_runtime::{Executor, Precision};
use gguf_store::{Model, Progress, digest, read_text};
use gguf_tokenizer::template::Renderer;
use gguf_tokenizer::{EncodeOptions, Tokenizer};

use super::KEY_PREFIX;
use super::held_out::Metric;
use crate::bundled_text::{BundledText, PreparedText, bundled_digest, deflated_bits_per_byte};
use crate::{FindEncoded, METHOD, OnTensor, calibrate, matmul_weights};

/// Where a calibration text is from.
#[derive(Clone, Debug)]
pub enum TextSource {
    /// A text file; an audio file for a Whisper model.
    File(PathBuf),
    /// [`crate::bundled_text()`] without languages that the model does not know, with this renderer for the model's chat template.
    Bundled(Renderer),
}

impl TextSource {
    /// Returns the path of a file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Bundled(_) => None,
        }
    }

    /// Returns the SHA-256 of the text; of the bundled one before its chats are in a chat template.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn digest(&self) -> Result<String, Error> {
        match self {
            Self::File(path) => Ok(self.digest_of(&read_text(path)?)),
            Self::Bundled(_) => Ok(bundled_digest()),
        }
    }

    /// Returns [`Self::digest`] if this is the content of the file.
    fn digest_of(&self, content: &str) -> String {
        match self {
            Self::File(_) => digest::sha256(content.as_bytes()),
            Self::Bundled(_) => bundled_digest(),
        }
    }

    /// Returns the text for a model: the bundled one without languages that the model does not know.
    fn read(
        &self,
        executor: &Arc<Executor>,
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        progress: &dyn Progress,
    ) -> Result<PreparedText, Error> {
        let renderer = match self {
            Self::File(path) => {
                return Ok(PreparedText { text: read_text(path)?, notes: Vec::new() });
            }
            Self::Bundled(renderer) => renderer,
        };
        let text = BundledText::new(metadata, renderer);
        let unknown = unknown_languages(executor, tokenizer, &text, progress)?;
        let mut text = text.without(&unknown);
        if !unknown.is_empty() {
            text.notes.push(format!(
                "left out of the calibration text, since the model finds them improbable: {}",
                unknown.join(", ")
            ));
        }
        Ok(text)
    }
}

/// A calibration text.
#[derive(Clone, Debug)]
pub struct CalibrationText {
    /// The texts, which have equal shares of the tokens: what one has too few of, the others get.
    pub sources: Vec<TextSource>,
    /// Chunk size in tokens. Chunks are independent.
    pub chunk: usize,
    /// Maximum number of tokens, those of held-out chunks included. Chunks of a longer text are taken at equal distances.
    pub tokens: usize,
}

impl CalibrationText {
    /// Returns a calibration by chunks of 256 tokens, up to 100,000 tokens.
    pub fn new(sources: Vec<TextSource>) -> Self {
        Self { sources, chunk: 256, tokens: 100_000 }
    }

    /// Returns the digest of the text; of several the SHA-256 of their digests, in order.
    ///
    /// # Errors
    /// As [`TextSource::digest`].
    pub fn digest(&self) -> Result<String, Error> {
        let digests = self.sources.iter().map(TextSource::digest);
        Ok(digest_of_all(&digests.collect::<Result<Vec<_>, _>>()?))
    }
}

fn digest_of_all(digests: &[String]) -> String {
    match digests {
        [one] => one.clone(),
        several => digest::sha256(several.concat().as_bytes()),
    }
}

/// One of this number of chunks is held out.
const HELD_OUT_RATIO: usize = 8;

/// Maximum number of held-out chunks, and of calibration chunks, in the evaluation.
const MAX_EVALUATED: usize = 16;

/// Number of chunks of a sensitivity measurement.
const SENSITIVITY_CHUNKS: usize = 4;

/// Number of runs of a sensitivity measurement, if there are more tensors: estimates have a rank correlation above 0.9 with
/// a run per tensor.
const SENSITIVITY_RUNS: usize = 64;

/// Ratio of the held-out distance to that on calibration chunks from which overfitting is reported.
const OVERFITTING_RATIO: f64 = 1.5;

/// Length of the sequences of tokens that are looked for in the text before them.
const REPEATED_TOKENS: usize = 8;

/// Share of sequences that stand in the text before, above which the text is reported: three quarters. Source code has
/// up to a third.
const MAX_REPEATED: f64 = 0.75;

/// Number of chunks whose perplexity is computed.
const JUDGED_CHUNKS: usize = 2;

/// Bits per byte above which the text is reported. Languages that a model of 100 million weights or more knows have 0.6 to 1.9,
/// others, words in random order, and hexadecimal or base64 data 2.0 to 6.
const MAX_BITS_PER_BYTE: f64 = 2.0;

/// Number of tokens of a language that the model reads.
const JUDGED_TOKENS: usize = 256;

/// Size of a language by the model, relative to its size by Deflate, above which the model does not know it: bits per byte
/// depend on the script. SmolLM2 135M has 0.37 in English and 0.50 to 0.71 in others; Qwen2.5 Coder 0.5B has 0.32 to 0.48,
/// but 0.52 to 0.62 in Dutch, Hindi, Korean, Polish and Turkish.
const UNKNOWN_RATIO: f64 = 0.5;

/// Returns the languages of the text that the model predicts too badly; none if it does not predict tokens.
fn unknown_languages(
    executor: &Arc<Executor>,
    tokenizer: &Tokenizer,
    text: &BundledText,
    progress: &dyn Progress,
) -> Result<Vec<String>, Error> {
    if executor.width(OutputKind::Logits).is_none() {
        return Ok(Vec::new());
    }
    let fast = Arc::new(executor.with_precision(Precision::Fast));
    let samples = text.samples();
    progress.begin("checking languages", samples.len() as u64);
    let mut unknown = Vec::new();
    for (language, sample) in samples {
        let encode = EncodeOptions { add_special: true, parse_special: true };
        let mut ids = tokenizer.encode(&sample, encode);
        let bytes_per_token = sample.len() as f64 / ids.len().max(1) as f64;
        ids.truncate(JUDGED_TOKENS);
        let cut = ChunkOptions { len: ids.len(), count: None, stride: None };
        let chunks = Chunks::new(ids, tokenizer.first_token(), cut)?;
        let found = total_perplexity(&fast, &chunks, &())?;
        let ratio = found.value().log2() / bytes_per_token / deflated_bits_per_byte(&sample);
        if ratio > UNKNOWN_RATIO {
            unknown.push(language);
        }
        progress.step(1)?;
    }
    Ok(unknown)
}

/// Returns the perplexity of all chunks together.
fn total_perplexity(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    progress: &dyn Progress,
) -> Result<Perplexity, Error> {
    let mut all = Perplexity::default();
    let mut each = |chunk: Perplexity| {
        all.append(&chunk);
        Ok(())
    };
    perplexity(executor, chunks, RunOptions::default(), None, &mut each, progress)?;
    Ok(all)
}

/// Returns `tokens` tokens, but at least one chunk, of a longer text in chunks of `chunk`, at equal distances over the whole
/// text: its beginning alone is less varied.
fn spread_chunks(ids: &[u32], chunk: usize, tokens: usize) -> Vec<u32> {
    let chunk = chunk.min(ids.len());
    let (all, wanted) = (ids.len() / chunk.max(1), (tokens / chunk.max(1)).max(1));
    let starts = (0..wanted).map(|number| number * all / wanted * chunk);
    starts.flat_map(|start| &ids[start..start + chunk]).copied().collect()
}

/// Returns how many tokens of texts of these lengths are read: equal shares, and of longer texts what shorter ones leave.
fn shares(lens: &[usize], tokens: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lens.len()).collect();
    order.sort_by_key(|number| lens[*number]);
    let (mut left, mut shares) = (tokens, vec![0; lens.len()]);
    for (place, number) in order.into_iter().enumerate() {
        shares[number] = lens[number].min(left / (lens.len() - place));
        left -= shares[number];
    }
    shares
}

/// Returns the chunks of several texts in turns, so that each has its share of every part of the result, the held-out chunks
/// included. Tokens after the last whole chunk of a text come last.
fn in_turns(texts: &[Vec<u32>], chunk: usize) -> Vec<u32> {
    let chunk = chunk.max(1);
    let mut chunks: Vec<(f64, &[u32])> = Vec::new();
    for text in texts {
        let count = (text.len() / chunk) as f64;
        let places = (0..).map(|number| (f64::from(number) + 0.5) / count);
        chunks.extend(places.zip(text.chunks_exact(chunk)));
    }
    chunks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let rests = texts.iter().map(|text| text.chunks_exact(chunk).remainder());
    chunks.iter().map(|(_, ids)| *ids).chain(rests).collect::<Vec<_>>().concat()
}

/// A model and the chunks of its calibration text.
pub(super) struct TextCalibration {
    executor: Arc<Executor>,
    /// All chunks, the held-out ones last.
    chunks: Chunks,
    /// Token ids of the calibration chunks.
    pub ids: Vec<Vec<u32>>,
    keys: Vec<(String, Value)>,
    notes: Vec<String>,
    bytes_per_token: f64,
    /// Whether the text has more tokens.
    is_cut: bool,
}

impl TextCalibration {
    /// Reads the text with the tokenizer of `model`, which the user named `source`.
    pub fn open(
        model: &Model,
        source: &str,
        text: &CalibrationText,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let in_file = |error: Error| error.in_file(source.as_ref());
        let graph = model_graph(model.metadata(), Executor::tensors(model), GraphSource::Auto);
        let graph = graph.map_err(in_file)?;
        let executor = Executor::new(model, graph, Precision::default()).map_err(in_file)?;
        let tokenizer = Tokenizer::from_metadata(model.metadata(), Default::default());
        let tokenizer = tokenizer.map_err(in_file)?;
        Self::new(Arc::new(executor), model.metadata(), &tokenizer, text, progress)
    }

    /// Reads the text for the model that `executor` runs, which has this metadata.
    pub fn new(
        executor: Arc<Executor>,
        metadata: &Metadata,
        tokenizer: &Tokenizer,
        text: &CalibrationText,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        if let Some((encoder, _)) = executor.graph().encoder() {
            let what = "a model with an encoder cannot be calibrated by a text";
            let help = match encoder.features_width() {
                Some(_) => {
                    "save Hessians with `gguf imatrix MODEL -f AUDIO --hessian`, and use them with \
                     --calibration-data"
                }
                None => "omit --calibrate",
            };
            return Err(Error::request("calibration-impossible", what, help));
        }
        let (mut notes, mut digests, mut parts, mut bytes) =
            (Vec::new(), Vec::new(), Vec::new(), 0);
        for source in &text.sources {
            let read = source.read(&executor, metadata, tokenizer, progress)?;
            notes.extend(read.notes);
            digests.push(source.digest_of(&read.text));
            let parse_special = matches!(source, TextSource::Bundled(_));
            let encode = EncodeOptions { add_special: true, parse_special };
            parts.push(tokenizer.encode(&read.text, encode));
            bytes += read.text.len();
        }
        let lens: Vec<usize> = parts.iter().map(Vec::len).collect();
        let bytes_per_token = bytes as f64 / lens.iter().sum::<usize>().max(1) as f64;
        let shares = shares(&lens, text.tokens);
        let is_cut = shares != lens;
        for (ids, share) in parts.iter_mut().zip(shares) {
            if share < ids.len() {
                *ids = spread_chunks(ids, text.chunk, share);
            }
        }
        let ids = in_turns(&parts, text.chunk);
        let cut = ChunkOptions { len: text.chunk, count: None, stride: None };
        let chunks = Chunks::new(ids, tokenizer.first_token(), cut)?;
        let held_out = chunks.count() / HELD_OUT_RATIO;
        let calibrated = chunks.count() - held_out;
        let ids: Vec<_> =
            chunks.numbers().take(calibrated).map(|number| chunks.inputs(number)).collect();
        let key = |name: &str| format!("{KEY_PREFIX}{name}");
        let keys = vec![
            (key("method"), Value::from(METHOD)),
            (key("text_sha256"), Value::from(digest_of_all(&digests))),
            (key("tokens"), Value::U32((calibrated * text.chunk) as u32)),
            (key("tokens_most"), Value::U32(text.tokens as u32)),
            (key("window"), Value::U32(text.chunk as u32)),
        ];
        Ok(Self { executor, chunks, ids, keys, notes, bytes_per_token, is_cut })
    }

    /// Returns the metadata keys that describe the text.
    pub fn keys(&self) -> Vec<(String, Value)> {
        self.keys.clone()
    }

    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Returns the row length times the number of matrices of each tensor of a matmul.
    pub fn matrices(&self) -> HashMap<String, usize> {
        let raw = self.executor.graph().raw();
        let shape = |name: &str| {
            let weight = raw.weights.iter().find(|weight| weight.name == name);
            weight.map_or(&[][..], |weight| &weight.shape)
        };
        let len = |shape: &[u64]| {
            let matrices: u64 = shape.iter().skip(2).product();
            shape.first().map_or(0, |n| (n * matrices) as usize)
        };
        let names = matmul_weights(raw).into_iter();
        names.map(|name| (name.to_owned(), len(shape(name)))).collect()
    }

    /// Returns notes about a text that hardly resembles what the model processes.
    pub fn notes(&self, progress: &dyn Progress) -> Result<Vec<String>, Error> {
        let mut notes = self.notes.clone();
        let mut seen = HashSet::new();
        let runs = self.ids.iter().flat_map(|ids| ids.windows(REPEATED_TOKENS));
        let repeated = runs.clone().filter(|run| !seen.insert(*run)).count();
        let share = repeated as f64 / runs.count().max(1) as f64;
        if share > MAX_REPEATED {
            notes.push(format!(
                "the calibration text repeats itself: {:.0} % of its sequences of {REPEATED_TOKENS} tokens stand in it \
                 before. Use a text with more variety",
                100.0 * share
            ));
        }
        if self.executor.width(OutputKind::Logits).is_some() {
            let chunks = self.chunks.clone().only(0..JUDGED_CHUNKS.min(self.ids.len()));
            let tokens = chunks.count() * (chunks.chunk_len() - 1);
            progress.begin_tokens("checking the calibration text", tokens as u64);
            let found = total_perplexity(&self.executor, &chunks, progress)?;
            let bits_per_byte = found.value().log2() / self.bytes_per_token;
            if bits_per_byte > MAX_BITS_PER_BYTE {
                notes.push(format!(
                    "the model finds the calibration text improbable ({bits_per_byte:.1} bits per byte; text that it knows has \
                     about 1). Use text of a kind and language that it knows"
                ));
            }
        }
        Ok(notes)
    }

    /// Encodes items as [`calibrate`] does, and returns the quantized model.
    pub fn calibrate(
        &self,
        items: &[&Item],
        directory: &Path,
        find_encoded: &FindEncoded<'_>,
        on_tensor: &mut OnTensor<'_>,
        progress: &dyn Progress,
    ) -> Result<Arc<Executor>, Error> {
        let fast = Arc::new(self.executor.with_precision(Precision::Fast));
        let quantized = calibrate(
            &fast,
            items,
            &self.ids,
            Default::default(),
            directory,
            find_encoded,
            on_tensor,
            progress,
        )?;
        Ok(Arc::new(quantized.with_precision(Precision::Exact)))
    }

    /// Measures the per-tensor sensitivity on the first chunks.
    pub fn sensitivity(
        &self,
        model: &Model,
        quantization: &gguf_quantize::QuantizeOptions,
        progress: &dyn Progress,
    ) -> Result<Sensitivity, Error> {
        let chunks = self.chunks.clone().only(0..SENSITIVITY_CHUNKS.min(self.ids.len()));
        let options = SensitivityOptions {
            types: &[],
            grouping: Grouping::Tensor,
            exact: false,
            runs: Some(SENSITIVITY_RUNS),
            together: 8,
            run: RunOptions::default(),
        };
        let subject = Subject { name: "the model".to_owned(), executor: self.executor.clone() };
        measure_sensitivity(model, quantization, &subject, &chunks, &options, progress)
    }

    /// Compares the quantized model with the original on held-out and on calibration chunks. Returns notes for the
    /// user.
    pub fn evaluate(
        &self,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, Error> {
        let (all, calibrated) = (self.chunks.count(), self.ids.len());
        let count = (all - calibrated).min(MAX_EVALUATED);
        let Some(metric) = Metric::for_model(&self.executor) else { return Ok(Vec::new()) };
        if count == 0 {
            return Ok(vec![format!(
                "the text has {all} chunks; at least {HELD_OUT_RATIO} are needed for a held-out chunk"
            )]);
        }
        progress.begin_tokens("evaluating", 2 * metric.tokens(&self.chunks, count));
        let measure =
            |numbers| metric.measure(&self.executor, quantized, &self.chunks, numbers, progress);
        let held_out = measure(calibrated..calibrated + count)?;
        let on_calibration = measure(0..count)?;
        let mut notes = vec![format!(
            "{}: {held_out:.6} on {count} held-out chunks, {on_calibration:.6} on as many calibration chunks",
            metric.name()
        )];
        if held_out > OVERFITTING_RATIO * on_calibration {
            let help = match self.is_cut {
                true => "read more of it (raise --calibrate-tokens)",
                false => "use a longer one",
            };
            notes.push(format!("the weights overfit the calibration text: {help}"));
        }
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::{in_turns, shares, spread_chunks};

    #[test]
    fn texts_share_the_tokens() {
        assert_eq!(shares(&[50], 30), [30]);
        assert_eq!(shares(&[50, 90], 30), [15, 15]);
        assert_eq!(shares(&[50, 10], 30), [20, 10]);
        assert_eq!(shares(&[7, 90, 3], 30), [7, 20, 3]);
        assert_eq!(shares(&[7, 9], 30), [7, 9]);
    }

    #[test]
    fn chunks_of_several_texts_come_in_turns() {
        let long: Vec<u32> = (0..9).collect();
        assert_eq!(in_turns(std::slice::from_ref(&long), 2), long);
        // Four chunks at 1/8, 3/8, 5/8, 7/8, and two at 1/4 and 3/4.
        let short = vec![20, 21, 22, 23, 24];
        assert_eq!(in_turns(&[long, short], 2), [0, 1, 20, 21, 2, 3, 4, 5, 22, 23, 6, 7, 8, 24]);
        assert_eq!(in_turns(&[vec![1], vec![2, 3]], 2), [2, 3, 1]);
    }

    /// Three of eleven chunks, their distances rounded down; a text shorter than a chunk stays whole.
    #[test]
    fn chunks_of_a_long_text_are_taken_at_equal_distances() {
        let ids: Vec<u32> = (0..45).collect();
        assert_eq!(spread_chunks(&ids, 4, 15), [0, 1, 2, 3, 12, 13, 14, 15, 28, 29, 30, 31]);
        assert_eq!(spread_chunks(&ids, 4, 44), ids[..44]);
        assert_eq!(spread_chunks(&ids, 4, 1), ids[..4]);
        assert_eq!(spread_chunks(&ids[..3], 4, 2), ids[..3]);
    }
}
