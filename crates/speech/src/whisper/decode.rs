//! Decodes the tokens of windows at one temperature.

use std::io::Write;
use std::ops::Range;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, Sampler, SamplingOptions, Token};
use gguf_store::Progress;
use gguf_tokenizer::{DecodeOptions, Tokenizer};
use rayon::prelude::*;

use super::beam_search::{Beam, BeamSearch};
use super::rules::{LogitRules, log_sum_exp};

/// The decoded tokens of a window and their quality measures.
#[derive(Clone, Debug, Default)]
pub(super) struct Decoded {
    /// Sampled ids, without the prompt and the end-of-text token.
    pub ids: Vec<u32>,
    pub temperature: f32,
    /// Mean log-probability of the tokens.
    pub avg_logprob: f64,
    /// Probability that the window has no speech.
    pub no_speech_prob: f64,
    /// Ratio of the text's length to its compressed length; large for repetitive text.
    pub compression_ratio: f64,
}

/// Parameters of one attempt at a window.
pub(super) struct DecodeRequest<'a> {
    pub rules: &'a LogitRules<'a>,
    /// Sequences of the window, one for each beam. The first one has the output of the encoder.
    pub sequences: Range<usize>,
    /// Tokens before the sampled ones.
    pub prompt: &'a [u32],
    /// Sampling temperature. At 0 the text is the most probable one that beam search finds.
    pub temperature: f32,
    /// Maximum number of sampled tokens.
    pub max_tokens: usize,
    /// Seed of the sampler.
    pub seed: u64,
}

impl DecodeRequest<'_> {
    /// Returns the logits of the tokens that may follow a text, and negative infinity for the others.
    fn allowed(&self, beam: &Beam, logits: &[f32]) -> Vec<f32> {
        let mut logits = logits.to_vec();
        self.rules.apply(&beam.ids, &mut logits);
        logits
    }
}

/// Decodes windows whose encoder outputs are in `context`, one for each request, with one run for a token of each beam.
pub(super) fn decode(
    context: &mut Context,
    tokenizer: &Tokenizer,
    requests: &[DecodeRequest<'_>],
    progress: &dyn Progress,
) -> Result<Vec<Decoded>, Error> {
    for request in requests {
        context.truncate(request.sequences.start, 0);
    }
    let mut attempts: Vec<Attempt<'_>> = requests.iter().map(Attempt::new).collect();
    loop {
        let mut batch = Batch::default();
        for attempt in &mut attempts {
            if !attempt.fits(context) {
                attempt.next.clear();
            }
            batch.tokens.extend(&attempt.next);
        }
        if batch.tokens.is_empty() {
            break;
        }
        let output = context.run_finite(&batch, OutputKind::Logits, progress)?;
        let mut rows = (0..output.rows).map(|row| output.row(row));
        let mut with_rows = Vec::new();
        for attempt in attempts.iter_mut().filter(|attempt| !attempt.next.is_empty()) {
            let outputs = attempt.next.iter().filter(|token| token.output).count();
            with_rows.push((attempt, rows.by_ref().take(outputs).collect::<Vec<_>>()));
        }
        let copies = with_rows.into_par_iter().with_max_len(1);
        let copies: Vec<Vec<(usize, usize)>> =
            copies.map(|(attempt, rows)| attempt.read(&rows)).collect::<Result<_, _>>()?;
        for (from, to) in copies.into_iter().flatten() {
            context.copy(from, to..to + 1);
        }
    }
    // The output of the encoder belongs to the first beam alone again.
    for request in requests {
        request.sequences.clone().skip(1).for_each(|sequence| context.clear(sequence));
    }
    Ok(attempts.into_iter().map(|attempt| attempt.finish(tokenizer)).collect())
}

/// A window that is being decoded.
struct Attempt<'a> {
    request: &'a DecodeRequest<'a>,
    sampler: Sampler,
    search: BeamSearch,
    /// Tokens of the next run; none if the attempt has ended.
    next: Vec<Token>,
    /// Probability that the window has no speech.
    no_speech_prob: f64,
}

impl<'a> Attempt<'a> {
    fn new(request: &'a DecodeRequest<'a>) -> Self {
        let DecodeRequest { rules, prompt, temperature, seed, .. } = *request;
        let sequences = request.sequences.clone();
        // `min_p` drops the tokens that the rules forbid.
        let sampling = SamplingOptions {
            temperature,
            top_k: 0,
            top_p: 1.0,
            min_p: f32::MIN_POSITIVE,
            seed,
            ..SamplingOptions::default()
        };
        let start = prompt.iter().rposition(|id| *id == rules.vocabulary.start);
        let last = prompt.len().saturating_sub(1);
        let token = |(at, &id): (usize, &u32)| Token {
            id,
            sequence: sequences.start,
            output: at == last || Some(at) == start,
        };
        Self {
            request,
            sampler: Sampler::new(sampling),
            next: prompt.iter().enumerate().map(token).collect(),
            search: BeamSearch::new(sequences, rules.vocabulary.end),
            no_speech_prob: 0.0,
        }
    }

    /// Whether the sequences have room for the next tokens, of which each has as many.
    fn fits(&self, context: &Context) -> bool {
        let tokens = self.next.len() / self.search.active().len().max(1);
        self.search.active().iter().all(|beam| context.room(beam.sequence) >= tokens)
    }

    /// Continues the texts, given the logits after each, and before them in the first run those after the start of the
    /// transcript. Returns the sequences to copy.
    fn read(&mut self, rows: &[&[f32]]) -> Result<Vec<(usize, usize)>, Error> {
        let vocabulary = self.request.rules.vocabulary;
        let active = self.search.active();
        let is_first = active.iter().all(|beam| beam.ids.is_empty());
        if let (true, Some(at_start)) = (is_first, rows.first()) {
            let no_speech = vocabulary.no_speech.and_then(|id| at_start.get(id as usize));
            self.no_speech_prob =
                no_speech.map_or(0.0, |logit| (f64::from(*logit) - log_sum_exp(at_start)).exp());
        }
        let last = rows.get(rows.len().saturating_sub(active.len())..).unwrap_or_default();
        let beams: Vec<_> = active.iter().zip(last).collect();
        let candidates: Vec<Vec<(u32, f64)>> = if self.request.temperature > 0.0 {
            let sampler = &mut self.sampler;
            let sampled = |(beam, logits): (&Beam, &&[f32])| {
                let allowed = self.request.allowed(beam, logits);
                let all = log_sum_exp(&allowed);
                let logit = |id: u32| Some((id, f64::from(*allowed.get(id as usize)?) - all));
                sampler.sample(&allowed).and_then(logit).into_iter().collect()
            };
            beams.into_iter().map(sampled).collect()
        } else {
            let count = self.search.width() + 1;
            let most_probable = |(beam, logits): (&Beam, &&[f32])| {
                let allowed = self.request.allowed(beam, logits);
                let all = log_sum_exp(&allowed);
                let most = largest(&allowed, count).into_iter();
                most.map(|(id, logit)| (id, f64::from(logit) - all)).collect()
            };
            beams.into_par_iter().with_max_len(1).map(most_probable).collect()
        };
        if candidates.iter().all(Vec::is_empty) {
            return Err(Error::weights("output", "all logits are NaN"));
        }
        let copies = self.search.advance(&candidates);
        let active = self.search.active();
        let is_long = active.first().is_none_or(|beam| beam.ids.len() >= self.request.max_tokens);
        self.next.clear();
        if !is_long && !self.search.is_complete() {
            let last = |beam: &Beam| Some((*beam.ids.last()?, beam.sequence));
            let next = active.iter().filter_map(last);
            self.next.extend(next.map(|(id, sequence)| Token { id, sequence, output: true }));
        }
        Ok(copies)
    }

    fn finish(self, tokenizer: &Tokenizer) -> Decoded {
        let Self { request, search, no_speech_prob, .. } = self;
        let (ids, sum) = search.best().map_or((Vec::new(), 0.0), |beam| (beam.ids, beam.sum));
        let text = text(tokenizer, &ids, request.rules.vocabulary.end);
        Decoded {
            avg_logprob: sum / (ids.len() + 1) as f64,
            ids,
            temperature: request.temperature,
            no_speech_prob,
            compression_ratio: compression_ratio(text.trim()),
        }
    }
}

/// Returns the ids of the largest logits with these, the largest first, and of equal ones the lowest id. Negative infinity
/// does not count.
fn largest(logits: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut found: Vec<(u32, f32)> = Vec::new();
    let mut least = f32::NEG_INFINITY;
    for (id, &logit) in (0..).zip(logits) {
        if logit > least {
            let place = found.partition_point(|(_, other)| *other >= logit);
            found.insert(place, (id, logit));
            found.truncate(count);
            if let (true, Some((_, last))) = (found.len() == count, found.last()) {
                least = *last;
            }
        }
    }
    found
}

/// Returns the text of ids, without timestamps.
pub(super) fn text(tokenizer: &Tokenizer, ids: &[u32], end: u32) -> String {
    let ids: Vec<u32> = ids.iter().copied().filter(|id| *id < end).collect();
    String::from_utf8_lossy(&tokenizer.decode(&ids, DecodeOptions::default())).into_owned()
}

fn compression_ratio(text: &str) -> f64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector does not fail.
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    text.len() as f64 / compressed.map_or(1, |bytes| bytes.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_logits_are_in_order() {
        let logits = [1.0, 3.0, f32::NEG_INFINITY, 2.0, 3.0, -1.0];
        assert_eq!(largest(&logits, 3), [(1, 3.0), (4, 3.0), (3, 2.0)]);
        assert_eq!(largest(&logits, 9).len(), 5);
        assert_eq!(largest(&[f32::NAN, f32::NEG_INFINITY], 2), []);
    }

    #[test]
    fn repetitive_text_has_a_high_compression_ratio() {
        assert_eq!(compression_ratio(""), 0.0);
        // Python: len(t) / len(zlib.compress(t)) is 0.878 and 25.0.
        let plain = compression_ratio("And God said, Let there be light: and there was light.");
        assert!((0.8..1.3).contains(&plain), "{plain}");
        let repeated = compression_ratio(&"and ".repeat(100));
        assert!(repeated > 20.0, "{repeated}");
    }
}
