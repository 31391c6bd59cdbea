//! What a model writes for a window.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, Sampler, Sampling, Token};
use gguf_store::Progress;
use gguf_tokenizer::{Decode, Tokenizer};

use super::rules::{Rules, log_sum};
use crate::Error;

/// What a model wrote, and how sure it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    /// Ids after those that it was told, without the one that ends the text.
    pub ids: Vec<u32>,
    /// How they were chosen.
    pub temperature: f32,
    /// The mean of the logarithms of their probabilities.
    pub mean_log: f64,
    /// How probable it is that nobody speaks.
    pub no_speech: f64,
    /// How much shorter the text becomes by compression: what repeats itself becomes very short.
    pub compression: f64,
}

/// How the model is to write.
pub(super) struct Attempt<'a> {
    /// What may follow.
    pub rules: &'a Rules<'a>,
    /// What it is told.
    pub told: &'a [u32],
    /// 0 takes the best token.
    pub temperature: f32,
    /// Tokens at most.
    pub most: usize,
    /// What chance begins with.
    pub seed: u64,
}

/// Lets the model write what the context has heard.
pub(super) fn write(
    context: &mut Context,
    tokenizer: &Tokenizer,
    attempt: &Attempt<'_>,
    progress: &dyn Progress,
) -> Result<Written, Error> {
    let Attempt { rules, told, temperature, most, seed } = *attempt;
    context.truncate(0, 0);
    let vocabulary = rules.vocabulary;
    // Very improbable tokens are as good as those that may not follow.
    let sampling = Sampling {
        temperature,
        top_k: 0,
        top_p: 1.0,
        min_p: f32::MIN_POSITIVE,
        seed,
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(sampling);
    let mut written = Written { temperature, ..Written::default() };
    let start = told.iter().rposition(|id| *id == vocabulary.start);
    let last = told.len().saturating_sub(1);
    let token = |(at, &id): (usize, &u32)| Token {
        id,
        sequence: 0,
        output: at == last || Some(at) == start,
    };
    let mut batch = Batch { tokens: told.iter().enumerate().map(token).collect() };
    let mut sum = 0.0;
    while written.ids.len() < most && context.room(0) >= batch.tokens.len() {
        let made = context.run(&batch, OutputKind::Logits, progress)?;
        if written.ids.is_empty() {
            let at_start = made.row(0);
            let no_speech = vocabulary.no_speech.and_then(|id| at_start.get(id as usize));
            written.no_speech =
                no_speech.map_or(0.0, |logit| (f64::from(*logit) - log_sum(at_start)).exp());
        }
        let mut logits = made.row(made.rows.saturating_sub(1)).to_vec();
        rules.apply(&written.ids, &mut logits);
        let chosen = sampler.choose(&logits);
        let Some((id, logit)) = chosen.and_then(|id| Some((id, *logits.get(id as usize)?))) else {
            return Err(Error::weights("output", "the model says nothing but NaN"));
        };
        sum += f64::from(logit) - log_sum(&logits);
        if id == vocabulary.end {
            break;
        }
        written.ids.push(id);
        batch = Batch::of_last(&[id], 0);
    }
    written.mean_log = sum / (written.ids.len() + 1) as f64;
    let text = text(tokenizer, &written.ids, vocabulary.end);
    written.compression = compression(text.trim());
    Ok(written)
}

/// The text of ids, without times.
pub(super) fn text(tokenizer: &Tokenizer, ids: &[u32], end: u32) -> String {
    let ids: Vec<u32> = ids.iter().copied().filter(|id| *id < end).collect();
    String::from_utf8_lossy(&tokenizer.decode(&ids, Decode::default())).into_owned()
}

fn compression(text: &str) -> f64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // A vector takes all.
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    text.len() as f64 / compressed.map_or(1, |bytes| bytes.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_itself_becomes_short() {
        assert_eq!(compression(""), 0.0);
        // Python: len(t) / len(zlib.compress(t)) is 0.878 and 25.0.
        let plain = compression("And God said, Let there be light: and there was light.");
        assert!((0.8..1.3).contains(&plain), "{plain}");
        let repeated = compression(&"and ".repeat(100));
        assert!(repeated > 20.0, "{repeated}");
    }
}
