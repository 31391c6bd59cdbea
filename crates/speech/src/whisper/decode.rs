//! Decodes the tokens of windows at one temperature.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, Sampler, SamplingOptions, Token};
use gguf_store::Progress;
use gguf_tokenizer::{DecodeOptions, Tokenizer};
use rayon::prelude::*;

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

/// Parameters of one attempt at the window of a sequence.
pub(super) struct DecodeRequest<'a> {
    pub rules: &'a LogitRules<'a>,
    /// Sequence of the window.
    pub sequence: usize,
    /// Tokens before the sampled ones.
    pub prompt: &'a [u32],
    /// Sampling temperature; 0 is greedy.
    pub temperature: f32,
    /// Maximum number of sampled tokens.
    pub max_tokens: usize,
    /// Seed of the sampler.
    pub seed: u64,
}

/// Decodes windows whose encoder outputs are in `context`, one for each request, with one run for a token of each.
pub(super) fn decode(
    context: &mut Context,
    tokenizer: &Tokenizer,
    requests: &[DecodeRequest<'_>],
    progress: &dyn Progress,
) -> Result<Vec<Decoded>, Error> {
    for request in requests {
        context.truncate(request.sequence, 0);
    }
    let mut attempts: Vec<Attempt<'_>> = requests.iter().map(Attempt::new).collect();
    loop {
        let mut batch = Batch::default();
        for attempt in &mut attempts {
            attempt.has_ended |= attempt.decoded.ids.len() >= attempt.request.max_tokens
                || context.room(attempt.request.sequence) < attempt.next.len();
            if !attempt.has_ended {
                batch.tokens.extend(&attempt.next);
            }
        }
        if batch.tokens.is_empty() {
            break;
        }
        let output = context.run_finite(&batch, OutputKind::Logits, progress)?;
        let mut row = 0;
        let mut with_rows = Vec::new();
        for attempt in attempts.iter_mut().filter(|attempt| !attempt.has_ended) {
            let first = row;
            row += attempt.next.iter().filter(|token| token.output).count();
            with_rows.push((attempt, first, row.saturating_sub(1)));
        }
        with_rows.into_par_iter().with_max_len(1).try_for_each(|(attempt, first, last)| {
            attempt.read(output.row(first), output.row(last))
        })?;
    }
    Ok(attempts.into_iter().map(|attempt| attempt.finish(tokenizer)).collect())
}

/// A window that is being decoded.
struct Attempt<'a> {
    request: &'a DecodeRequest<'a>,
    sampler: Sampler,
    /// Tokens of the next run.
    next: Vec<Token>,
    decoded: Decoded,
    /// Sum of the log-probabilities of the sampled tokens.
    sum: f64,
    has_ended: bool,
}

impl<'a> Attempt<'a> {
    fn new(request: &'a DecodeRequest<'a>) -> Self {
        let DecodeRequest { rules, sequence, prompt, temperature, seed, .. } = *request;
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
            sequence,
            output: at == last || Some(at) == start,
        };
        Self {
            request,
            sampler: Sampler::new(sampling),
            next: prompt.iter().enumerate().map(token).collect(),
            decoded: Decoded { temperature, ..Decoded::default() },
            sum: 0.0,
            has_ended: false,
        }
    }

    /// Samples the next token, given the logits after the last token, and in the first run those after the start of the
    /// transcript.
    fn read(&mut self, at_start: &[f32], last: &[f32]) -> Result<(), Error> {
        let DecodeRequest { rules, sequence, .. } = *self.request;
        let vocabulary = rules.vocabulary;
        let decoded = &mut self.decoded;
        if decoded.ids.is_empty() {
            let no_speech = vocabulary.no_speech.and_then(|id| at_start.get(id as usize));
            decoded.no_speech_prob =
                no_speech.map_or(0.0, |logit| (f64::from(*logit) - log_sum_exp(at_start)).exp());
        }
        let mut logits = last.to_vec();
        rules.apply(&decoded.ids, &mut logits);
        let sampled = self.sampler.sample(&logits);
        let Some((id, logit)) = sampled.and_then(|id| Some((id, *logits.get(id as usize)?))) else {
            return Err(Error::weights("output", "all logits are NaN"));
        };
        self.sum += f64::from(logit) - log_sum_exp(&logits);
        self.has_ended = id == vocabulary.end;
        if !self.has_ended {
            decoded.ids.push(id);
            self.next = vec![Token { id, sequence, output: true }];
        }
        Ok(())
    }

    fn finish(self, tokenizer: &Tokenizer) -> Decoded {
        let Self { mut decoded, sum, .. } = self;
        decoded.avg_logprob = sum / (decoded.ids.len() + 1) as f64;
        let text = text(tokenizer, &decoded.ids, self.request.rules.vocabulary.end);
        decoded.compression_ratio = compression_ratio(text.trim());
        decoded
    }
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
    fn repetitive_text_has_a_high_compression_ratio() {
        assert_eq!(compression_ratio(""), 0.0);
        // Python: len(t) / len(zlib.compress(t)) is 0.878 and 25.0.
        let plain = compression_ratio("And God said, Let there be light: and there was light.");
        assert!((0.8..1.3).contains(&plain), "{plain}");
        let repeated = compression_ratio(&"and ".repeat(100));
        assert!(repeated > 20.0, "{repeated}");
    }
}
