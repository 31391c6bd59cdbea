//! Text that goes on where a text ends.

use std::ops::ControlFlow;

use gguf::Metadata;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, Sampler, Sampling};
use gguf_store::Progress;
use gguf_tokenizer::{Decode, Decoder, Tokenizer};

use crate::Error;

/// When an answer ends, and how its tokens are chosen.
#[derive(Clone, Debug, Default)]
pub struct Generation {
    /// How the next token is chosen.
    pub sampling: Sampling,
    /// Tokens at most; without a number until the context is full.
    pub tokens: Option<usize>,
    /// Texts that end the answer; they do not belong to it.
    pub stop: Vec<String>,
    /// Whether to go on after tokens that end an answer.
    pub ignore_end: bool,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model said so, or a text that is to stop it came.
    Stop,
    /// There were as many tokens as asked for, or the context is full.
    Length,
    /// Whoever reads wanted no more.
    Reader,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its text.
    pub text: String,
    /// Its ids, with the one that ended it.
    pub ids: Vec<u32>,
    /// Why it ended.
    pub ended: Ended,
}

/// Lets a model go on after `prompt`, in the first sequence of a context that may have tokens
/// already. A model with an encoder of text (T5) reads the prompt by that, and answers it. `read` gets the text piece by piece, each whole characters.
///
/// # Errors
/// As [`Context::run`]; `weights-unusable` if every logit is NaN.
pub fn generate(
    context: &mut Context,
    tokenizer: &Tokenizer,
    metadata: &Metadata,
    prompt: &[u32],
    generation: &Generation,
    read: &mut dyn FnMut(&str) -> ControlFlow<()>,
    progress: &dyn Progress,
) -> Result<Answer, Error> {
    let ends = ends(metadata, tokenizer);
    let mut sampler = Sampler::new(generation.sampling.clone());
    prompt.iter().for_each(|id| sampler.accept(*id));
    let mut decoder = Decoder::new(tokenizer, Decode { special: false });
    let mut stop = StopTexts::new(&generation.stop);
    let mut answer = Answer { text: String::new(), ids: Vec::new(), ended: Ended::Length };
    let mut next = begin(context, metadata, prompt, progress)?;
    let most = generation.tokens.unwrap_or(usize::MAX);
    let room = |context: &Context, next: &[u32]| context.room(0) >= next.len();
    while answer.ids.len() < most && (answer.ids.is_empty() || room(context, &next)) {
        let logits = context.run(&Batch::of_last(&next, 0), OutputKind::Logits, progress)?;
        let Some(id) = sampler.choose(&logits.data) else {
            return Err(Error::weights("output", "the model says nothing but NaN"));
        };
        answer.ids.push(id);
        if ends.contains(&id) && !generation.ignore_end {
            answer.ended = Ended::Stop;
            break;
        }
        let (text, stopped) = stop.push(&decoder.push(id));
        answer.text.push_str(&text);
        if !text.is_empty() && read(&text).is_break() {
            answer.ended = Ended::Reader;
            return Ok(answer);
        }
        if stopped {
            answer.ended = Ended::Stop;
            return Ok(answer);
        }
        next = vec![id];
    }
    let (rest, _) = stop.push(&decoder.finish());
    let rest = rest + &stop.finish();
    answer.text.push_str(&rest);
    if !rest.is_empty() && read(&rest).is_break() {
        answer.ended = Ended::Reader;
    }
    Ok(answer)
}

/// What the model is given first: the prompt, or, where an encoder reads that, the token that begins
/// what a decoder writes.
fn begin(
    context: &mut Context,
    metadata: &Metadata,
    prompt: &[u32],
    progress: &dyn Progress,
) -> Result<Vec<u32>, Error> {
    let graph = context.executor().graph();
    let reads_text = graph.encoder().is_some_and(|(encoder, _)| encoder.features_width().is_none());
    if !reads_text {
        return Ok(prompt.to_vec());
    }
    context.encode_tokens(0, prompt, progress)?;
    let architecture = metadata.architecture().unwrap_or_default();
    let start = metadata.u64(&format!("{architecture}.decoder_start_token_id"));
    Ok(vec![start.and_then(|id| u32::try_from(id).ok()).unwrap_or(0)])
}

/// Ids that end an answer: those of the keys, and tokens that are known to end a turn.
pub fn ends(metadata: &Metadata, tokenizer: &Tokenizer) -> Vec<u32> {
    const KEYS: [&str; 3] = ["eos_token_id", "eot_token_id", "eom_token_id"];
    /// As llama.cpp knows them (`llama-vocab.cpp`).
    const TEXTS: [&str; 9] = [
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<EOT>",
        "<|end_of_text|>",
        "<end_of_utterance>",
    ];
    let of_keys = KEYS.iter().filter_map(|key| {
        metadata.u64(&format!("tokenizer.ggml.{key}")).and_then(|id| u32::try_from(id).ok())
    });
    let known = |id: &u32| {
        tokenizer.token_text(*id).is_some_and(|text| TEXTS.iter().any(|end| end.as_bytes() == text))
    };
    let count = u32::try_from(tokenizer.len()).unwrap_or(u32::MAX);
    of_keys.chain((0..count).filter(known)).collect()
}

/// Looks for texts that end an answer, and holds back what may be the beginning of one.
struct StopTexts<'s> {
    stops: &'s [String],
    held: String,
}

impl<'s> StopTexts<'s> {
    fn new(stops: &'s [String]) -> Self {
        Self { stops, held: String::new() }
    }

    /// What of the text so far is certain, and whether a stop text came.
    fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        let found = self.stops.iter().filter(|stop| !stop.is_empty());
        if let Some(at) = found.filter_map(|stop| self.held.find(&**stop)).min() {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let begins = |from: &str| self.stops.iter().any(|stop| stop.starts_with(from));
        let starts = self.held.char_indices().map(|(at, _)| at);
        let keep = starts.into_iter().find(|at| begins(&self.held[*at..]));
        let keep = keep.unwrap_or(self.held.len());
        let rest = self.held.split_off(keep);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// What was held back.
    fn finish(self) -> String {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_text_may_come_in_pieces() {
        let stops = ["END".to_owned(), "\n\n".to_owned()];
        let mut stop = StopTexts::new(&stops);
        assert_eq!(stop.push("Hello E"), ("Hello ".into(), false));
        assert_eq!(stop.push("N"), (String::new(), false));
        assert_eq!(stop.push("O\n"), ("ENO".into(), false));
        assert_eq!(stop.push("\nmore"), (String::new(), true));
        let mut stop = StopTexts::new(&stops);
        assert_eq!(stop.push("the EN"), ("the ".into(), false));
        assert_eq!(stop.finish(), "EN");
    }
}
