//! Calibration texts that the model writes itself, for models whose training text nobody has.
//!
//! Many conversations are sampled at temperature 1, so that the text has the distribution of the model. Those in the chat
//! template begin with a message of the user, which the model writes too, and an answer. Source: Liu et al., "LLM-QAT"
//! (2023), for quantization by generated text; Xu et al., "Magpie" (2024), for messages of the user.

use std::collections::BTreeMap;
use std::sync::Arc;

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, Context, ContextOptions, Executor, Sampler, SamplingOptions};
use gguf_store::Progress;
use gguf_tokenizer::{DecodeOptions, Tokenizer};
use rayon::prelude::*;

/// Number of conversations that are sampled together. Each run then reads the weights once for all of them.
const TOGETHER: usize = 32;

/// Maximum number of tokens of a conversation.
const CONVERSATION: usize = 1024;

/// Maximum number of tokens of a message of the user.
const MESSAGE: usize = 128;

/// Between texts.
const SEPARATOR: &str = "\n\n";

/// The chat template around the first message of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Tokens before the message.
    pub before: Vec<u32>,
    /// Tokens after the message, up to the start of the answer.
    pub after: Vec<u32>,
}

/// Size and seed of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTextOptions {
    /// Number of sampled tokens, which is rounded up to a multiple of 32.
    pub tokens: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Samples a text from a model. With a `turn`, every other conversation is one of the chat template. Control tokens are not
/// part of the text. Progress counts sampled tokens.
///
/// A model, its options and the processor determine the text.
///
/// # Errors
/// `calibration-impossible` if the model writes no text; else as [`Context::run_finite`].
pub fn self_text(
    executor: &Arc<Executor>,
    tokenizer: &Tokenizer,
    turn: Option<&Turn>,
    options: SelfTextOptions,
    progress: &dyn Progress,
) -> Result<String, Error> {
    if executor.graph().encoder().is_some() || executor.graph().output(OutputKind::Logits).is_none()
    {
        return Err(impossible("the model does not generate text"));
    }
    let starts = Starts::new(tokenizer, turn)?;
    let context =
        ContextOptions { tokens: CONVERSATION, sequences: TOGETHER, ..ContextOptions::default() };
    let mut context = Context::new(executor.clone(), context)?;
    progress.begin_tokens("writing the calibration text", options.tokens as u64);
    let mut started = 0;
    let mut start = || {
        started += 1;
        Conversation::new(started - 1, &starts, options.seed)
    };
    let mut running: Vec<_> = (0..TOGETHER).map(|_| start()).collect();
    let (mut texts, mut sampled) = (BTreeMap::new(), 0);
    while sampled < options.tokens {
        let mut batch = Batch::default();
        for (sequence, conversation) in running.iter().enumerate() {
            batch.tokens.extend(Batch::last_output(&conversation.pending, sequence).tokens);
        }
        let logits = context.run_finite(&batch, OutputKind::Logits, progress)?;
        let rows = running.par_iter_mut().enumerate();
        rows.for_each(|(row, conversation)| conversation.sample(tokenizer, logits.row(row)));
        for (sequence, conversation) in running.iter_mut().enumerate() {
            if conversation.is_over || conversation.pending.len() > context.room(sequence) {
                context.clear(sequence);
                let ended = std::mem::replace(conversation, start());
                texts.insert(ended.number, ended.text(tokenizer));
            }
        }
        sampled += running.len();
        progress.step(running.len() as u64)?;
    }
    texts.extend(running.into_iter().map(|last| (last.number, last.text(tokenizer))));
    let texts: Vec<_> = texts.into_values().filter(|text| !text.is_empty()).collect();
    if texts.is_empty() {
        return Err(impossible("the model ends every text at once"));
    }
    Ok(texts.join(SEPARATOR) + "\n")
}

fn impossible(what: &str) -> Error {
    let help = "give a text of the kind that the model will process";
    Error::request("calibration-impossible", format!("no calibration text: {what}"), help)
}

/// Tokens that conversations start with.
struct Starts<'t> {
    turn: Option<&'t Turn>,
    plain: Vec<u32>,
}

impl<'t> Starts<'t> {
    fn new(tokenizer: &Tokenizer, turn: Option<&'t Turn>) -> Result<Self, Error> {
        // Without BOS, text follows the end of another text.
        let first =
            tokenizer.first_token().or_else(|| tokenizer.end_of_generation().first().copied());
        if first.is_none() && turn.is_none() {
            return Err(impossible("the model has neither a chat template nor a BOS or EOS token"));
        }
        Ok(Self { turn, plain: Vec::from_iter(first) })
    }

    /// Returns the first tokens of a conversation, and those after the message of the user, if it has one.
    fn of(&self, number: usize) -> (Vec<u32>, Option<Vec<u32>>) {
        match self.turn {
            Some(turn) if number.is_multiple_of(2) || self.plain.is_empty() => {
                (turn.before.clone(), Some(turn.after.clone()))
            }
            _ => (self.plain.clone(), None),
        }
    }
}

/// A conversation that is being sampled.
struct Conversation {
    number: usize,
    sampler: Sampler,
    /// Tokens that the next run reads.
    pending: Vec<u32>,
    /// Tokens between message and answer, while the message is sampled.
    after_message: Option<Vec<u32>>,
    /// Tokens of finished messages.
    messages: Vec<Vec<u32>>,
    /// Tokens of the message that is being sampled.
    message: Vec<u32>,
    is_over: bool,
}

impl Conversation {
    fn new(number: usize, starts: &Starts<'_>, seed: u64) -> Self {
        let (pending, after_message) = starts.of(number);
        let sampling = SamplingOptions {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: seed.wrapping_add(number as u64),
            ..SamplingOptions::default()
        };
        let sampler = Sampler::new(sampling);
        let (messages, message) = Default::default();
        Self { number, sampler, pending, after_message, messages, message, is_over: false }
    }

    /// Samples the next token, and chooses the tokens of the next run.
    fn sample(&mut self, tokenizer: &Tokenizer, logits: &[f32]) {
        let id = self.sampler.sample(logits).filter(|id| is_text(tokenizer, *id));
        self.message.extend(id);
        let is_long = self.after_message.is_some() && self.message.len() >= MESSAGE;
        match id.filter(|_| !is_long) {
            Some(id) => self.pending = vec![id],
            None => {
                self.messages.push(std::mem::take(&mut self.message));
                match self.after_message.take() {
                    Some(after) => self.pending = after,
                    None => self.is_over = true,
                }
            }
        }
    }

    fn text(mut self, tokenizer: &Tokenizer) -> String {
        self.messages.push(self.message);
        let text = |ids: &Vec<u32>| {
            let bytes = tokenizer.decode(ids, DecodeOptions { special: false });
            String::from_utf8_lossy(&bytes).trim().to_owned()
        };
        let texts: Vec<_> =
            self.messages.iter().map(text).filter(|text| !text.is_empty()).collect();
        texts.join(SEPARATOR)
    }
}

/// Whether a token is part of a text: neither its end nor a control token.
fn is_text(tokenizer: &Tokenizer, id: u32) -> bool {
    let is_control = tokenizer.token_type(id).is_some_and(|kind| kind.is_special());
    !is_control && !tokenizer.end_of_generation().contains(&id)
}
