//! Decodes the tokens of one window at one temperature.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, Sampler, SamplingOptions, Token};
use gguf_store::Progress;
use gguf_tokenizer::{DecodeOptions, Tokenizer};

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

/// Parameters of one decoding attempt.
pub(super) struct DecodeRequest<'a> {
    pub rules: &'a LogitRules<'a>,
    /// Tokens before the sampled ones.
    pub prompt: &'a [u32],
    /// Sampling temperature; 0 is greedy.
    pub temperature: f32,
    /// Maximum number of sampled tokens.
    pub max_tokens: usize,
    /// Seed of the sampler.
    pub seed: u64,
}

/// Decodes the window whose encoder output is in `context`.
pub(super) fn decode(
    context: &mut Context,
    tokenizer: &Tokenizer,
    request: &DecodeRequest<'_>,
    progress: &dyn Progress,
) -> Result<Decoded, Error> {
    let DecodeRequest { rules, prompt, temperature, max_tokens, seed } = *request;
    context.truncate(0, 0);
    let vocabulary = rules.vocabulary;
    // `min_p` drops the tokens that the rules forbid.
    let sampling = SamplingOptions {
        temperature,
        top_k: 0,
        top_p: 1.0,
        min_p: f32::MIN_POSITIVE,
        seed,
        ..SamplingOptions::default()
    };
    let mut sampler = Sampler::new(sampling);
    let mut decoded = Decoded { temperature, ..Decoded::default() };
    let start = prompt.iter().rposition(|id| *id == vocabulary.start);
    let last = prompt.len().saturating_sub(1);
    let token = |(at, &id): (usize, &u32)| Token {
        id,
        sequence: 0,
        output: at == last || Some(at) == start,
    };
    let mut batch = Batch { tokens: prompt.iter().enumerate().map(token).collect() };
    let mut sum = 0.0;
    while decoded.ids.len() < max_tokens && context.room(0) >= batch.tokens.len() {
        let output = context.run_finite(&batch, OutputKind::Logits, progress)?;
        if decoded.ids.is_empty() {
            let at_start = output.row(0);
            let no_speech = vocabulary.no_speech.and_then(|id| at_start.get(id as usize));
            decoded.no_speech_prob =
                no_speech.map_or(0.0, |logit| (f64::from(*logit) - log_sum_exp(at_start)).exp());
        }
        let mut logits = output.row(output.rows.saturating_sub(1)).to_vec();
        rules.apply(&decoded.ids, &mut logits);
        let sampled = sampler.sample(&logits);
        let Some((id, logit)) = sampled.and_then(|id| Some((id, *logits.get(id as usize)?))) else {
            return Err(Error::weights("output", "all logits are NaN"));
        };
        sum += f64::from(logit) - log_sum_exp(&logits);
        if id == vocabulary.end {
            break;
        }
        decoded.ids.push(id);
        batch = Batch::last_output(&[id], 0);
    }
    decoded.avg_logprob = sum / (decoded.ids.len() + 1) as f64;
    let text = text(tokenizer, &decoded.ids, vocabulary.end);
    decoded.compression_ratio = compression_ratio(text.trim());
    Ok(decoded)
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
