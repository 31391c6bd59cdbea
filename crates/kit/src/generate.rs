//! Text generation.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gguf::Metadata;
use gguf_graph::OutputKind;
use gguf_models::token::TokenType;
use gguf_runtime::speculation::Speculation;
use gguf_runtime::{Batch, Checkpoint, Context, Sampler, SamplingOptions, Value};
use gguf_store::Progress;
use gguf_tokenizer::{DecodeOptions, Decoder, Tokenizer};

use crate::Error;

/// Options of a generation.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// Sampling parameters.
    pub sampling: SamplingOptions,
    /// Maximum number of tokens; `None` for the rest of the context.
    pub max_tokens: Option<usize>,
    /// Stop sequences, which are not part of the text.
    pub stop: Vec<String>,
    /// Continues after end-of-generation tokens.
    pub ignore_eos: bool,
    /// Whether the text continues that of the prompt, so that a space at its start is kept. Without effect on models with a
    /// text encoder (T5), whose text is another one.
    pub completes: bool,
}

/// A model that generates text.
pub struct TextModel<'m> {
    /// Context, whose first sequence is empty or has the first tokens of the prompt.
    pub context: &'m mut Context,
    /// Tokenizer.
    pub tokenizer: &'m Tokenizer,
    /// Metadata of the model.
    pub metadata: &'m Metadata,
    /// Speculative decoding, which does not change the text; without effect on models without states.
    pub speculation: Option<&'m mut Speculation>,
}

/// Reason for the end of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// An end-of-generation token or a stop sequence.
    Stop,
    /// The maximum number of tokens, or a full context.
    Length,
    /// The callback cancelled the generation.
    Cancelled,
}

/// A generated text.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The text.
    pub text: String,
    /// Token ids, with the end-of-generation token.
    pub ids: Vec<u32>,
    /// Reason for the end.
    pub stop_reason: StopReason,
    /// Time in which the prompt was processed, up to the first token.
    pub prompt_time: Duration,
    /// Time in which the other tokens were generated.
    pub generation_time: Duration,
    /// Number of drafted tokens.
    pub drafted: usize,
    /// Number of drafted tokens that were right.
    pub accepted: usize,
}

impl Completion {
    /// Returns the speed of generation in tokens per second, without the first token, which the prompt gives; `None` for
    /// fewer tokens.
    pub fn tokens_per_second(&self) -> Option<f64> {
        let tokens = self.ids.len().checked_sub(1).filter(|tokens| *tokens > 0)?;
        Some(tokens as f64 / self.generation_time.as_secs_f64().max(1e-9))
    }
}

/// Generates text after `prompt` in the first sequence of the context. Tokens of the prompt that the sequence has are not
/// computed again, except by a model with a text encoder (T5), which encodes the prompt. Passes the text to `on_text` in
/// pieces of whole characters.
///
/// # Errors
/// As [`Context::run_finite`]; `request-invalid` if the context has more tokens than the prompt; `result-missing` if all
/// tokens are suppressed.
pub fn generate(
    model: TextModel<'_>,
    prompt: &[u32],
    options: &GenerateOptions,
    on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    progress: &dyn Progress,
) -> Result<Completion, Error> {
    let TextModel { context, tokenizer, metadata, speculation } = model;
    let started = Instant::now();
    progress.begin("prompt", prompt.len().saturating_sub(context.len(0)) as u64);
    let mut next = first_tokens(context, metadata, prompt, progress)?;
    let has_states = !context.executor().graph().raw().states.is_empty();
    let mut speculation = speculation.filter(|_| has_states);
    let kinds = kinds(context, speculation.is_some());
    read_all_but_last_batch(context, &mut next, &mut speculation, progress)?;
    let mut decoder = Decoder::new(tokenizer, DecodeOptions { special: false });
    if options.completes && context.executor().graph().encoder().is_none() {
        decoder = decoder.continuing();
    }
    let mut writer = Writer::new(tokenizer, prompt, options, decoder, on_text);
    if let Some(speculation) = &mut speculation {
        speculation.begin(prompt);
    }
    let max_tokens = options.max_tokens.unwrap_or(usize::MAX);
    let has_room = |context: &Context, next: &[u32]| context.room(0) >= next.len();
    let mut flow = ControlFlow::Continue(());
    while flow.is_continue()
        && writer.completion.ids.len() < max_tokens
        && (writer.completion.ids.is_empty() || has_room(context, &next))
    {
        let is_first = writer.completion.ids.is_empty();
        let room = context.room(0).min(context.batch_size()).saturating_sub(next.len());
        let limit = room.min(max_tokens - writer.completion.ids.len() - 1);
        let mut draft = match &mut speculation {
            Some(speculation) if !is_first => speculation.draft(limit, progress)?,
            _ => Vec::new(),
        };
        let before = context.len(0);
        let run_started = Instant::now();
        let checkpoint = context.checkpoint(0).filter(|_| !draft.is_empty());
        let mut run = |draft: &[u32]| -> Result<Vec<Value>, Error> {
            if let Some(checkpoint) = &checkpoint {
                context.rewind(0, checkpoint);
            }
            let outputs = context.run_kinds(&batch(&next, draft), None, kinds, progress)?;
            outputs[0].require_finite()?;
            Ok(outputs)
        };
        let outputs = match run(&draft) {
            // NaN after a wrong token does not concern the text.
            Err(error) if !draft.is_empty() && error.code() == "weights-unusable" => {
                draft.clear();
                run(&draft)?
            }
            outputs => outputs?,
        };
        let mut run_time = run_started.elapsed();
        let logits = &outputs[0];
        let given = std::mem::take(&mut next);
        let mut right = 0;
        for row in 0..logits.rows {
            let Some(id) = writer.sampler.sample(logits.row(row)) else {
                let help = "suppress fewer tokens";
                return Err(Error::request("result-missing", "every token is suppressed", help));
            };
            if let Some(speculation) = &mut speculation {
                speculation.push(id);
            }
            writer.completion.ids.push(id);
            if is_first {
                writer.completion.prompt_time = started.elapsed();
                // The end of the progress of the prompt.
                progress.begin("", 0);
            }
            writer.completion.generation_time = started.elapsed() - writer.completion.prompt_time;
            flow = writer.write(id);
            next = vec![id];
            if flow.is_break() || draft.get(row) != Some(&id) {
                break;
            }
            right += 1;
        }
        let ids = [&given[..], &draft[..right]].concat();
        let removal_started = Instant::now();
        if right < draft.len() {
            remove_wrong(context, checkpoint.as_ref(), &ids, progress)?;
        }
        run_time += removal_started.elapsed();
        if let (Some(speculation), Some(features)) = (&mut speculation, outputs.get(1)) {
            speculation.read(before, &ids, features, progress)?;
        }
        writer.completion.drafted += draft.len();
        writer.completion.accepted += right;
        // What follows the end of the text is unknown.
        if let Some(speculation) = &mut speculation
            && !is_first
            && flow.is_continue()
        {
            speculation.record(right, run_time);
        }
    }
    Ok(writer.finish())
}

/// Returns the outputs that runs of the context compute: logits, and features if it has them for drafts.
fn kinds(context: &Context, drafts: bool) -> &'static [OutputKind] {
    let has_features = context.executor().graph().output(OutputKind::Features).is_some();
    match drafts && has_features {
        true => &[OutputKind::Logits, OutputKind::Features],
        false => &[OutputKind::Logits],
    }
}

/// Returns a batch of tokens of the first sequence, which requests the outputs of the last token and of the drafted ones.
fn batch(next: &[u32], draft: &[u32]) -> Batch {
    let mut batch = Batch::last_output(next, 0);
    batch.tokens.extend(Batch::all_outputs(draft).tokens);
    batch
}

/// Removes drafted tokens that are not in the text, given the tokens after the checkpoint that are: recurrent states have to
/// read these again.
fn remove_wrong(
    context: &mut Context,
    checkpoint: Option<&Checkpoint>,
    right: &[u32],
    progress: &dyn Progress,
) -> Result<(), Error> {
    let Some(checkpoint) = checkpoint else { return Ok(()) };
    if context.truncate(0, checkpoint.tokens() + right.len()) {
        return Ok(());
    }
    context.rewind(0, checkpoint);
    context.run(&Batch::without_outputs(right, 0), OutputKind::Logits, progress).map(drop)
}

/// Turns sampled tokens into text, up to the end.
struct Writer<'g> {
    tokenizer: &'g Tokenizer,
    options: &'g GenerateOptions,
    on_text: &'g mut dyn FnMut(&str) -> ControlFlow<()>,
    sampler: Sampler,
    decoder: Decoder<'g>,
    stop: StopSequences<'g>,
    completion: Completion,
    /// Whether the text ends at a stop sequence, or was cancelled.
    is_cut: bool,
}

impl<'g> Writer<'g> {
    fn new(
        tokenizer: &'g Tokenizer,
        prompt: &[u32],
        options: &'g GenerateOptions,
        decoder: Decoder<'g>,
        on_text: &'g mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Self {
        let mut sampler = Sampler::new(options.sampling.clone());
        prompt.iter().for_each(|id| sampler.accept(*id));
        let completion = Completion {
            text: String::new(),
            ids: Vec::new(),
            stop_reason: StopReason::Length,
            prompt_time: Duration::ZERO,
            generation_time: Duration::ZERO,
            drafted: 0,
            accepted: 0,
        };
        let stop = StopSequences::new(&options.stop);
        Self { tokenizer, options, on_text, sampler, decoder, stop, completion, is_cut: false }
    }

    /// Writes the text of a token. Breaks at the end.
    fn write(&mut self, id: u32) -> ControlFlow<()> {
        if self.tokenizer.end_of_generation().contains(&id) && !self.options.ignore_eos {
            self.completion.stop_reason = StopReason::Stop;
            return ControlFlow::Break(());
        }
        let (mut text, mut stopped) = self.stop.push(&self.decoder.push(id));
        if !stopped && let Some(hidden) = hidden_text(self.tokenizer, id) {
            let more;
            (more, stopped) = self.stop.push_hidden(&hidden);
            text += &more;
        }
        self.completion.text.push_str(&text);
        let reason = match stopped {
            _ if !text.is_empty() && (self.on_text)(&text).is_break() => StopReason::Cancelled,
            true => StopReason::Stop,
            false => return ControlFlow::Continue(()),
        };
        self.completion.stop_reason = reason;
        self.is_cut = true;
        ControlFlow::Break(())
    }

    /// Writes the rest of the text, unless it is cut.
    fn finish(mut self) -> Completion {
        if self.is_cut {
            return self.completion;
        }
        let (rest, _) = self.stop.push(&self.decoder.finish());
        let rest = rest + &self.stop.finish();
        self.completion.text.push_str(&rest);
        if !rest.is_empty() && (self.on_text)(&rest).is_break() {
            self.completion.stop_reason = StopReason::Cancelled;
        }
        self.completion
    }
}

/// Returns the first tokens of the decoder: those of the prompt that the context does not have, or the decoder start token
/// after encoding the prompt with a text encoder.
fn first_tokens(
    context: &mut Context,
    metadata: &Metadata,
    prompt: &[u32],
    progress: &dyn Progress,
) -> Result<Vec<u32>, Error> {
    let graph = context.executor().graph();
    let has_text_encoder =
        graph.encoder().is_some_and(|(encoder, _)| encoder.features_width().is_none());
    if !has_text_encoder {
        let Some(rest) = prompt.get(context.len(0)..).filter(|rest| !rest.is_empty()) else {
            let (len, tokens) = (context.len(0), prompt.len());
            let what = format!("the context has {len} tokens, and the prompt {tokens}");
            let help = "truncate the context to a part of the prompt";
            return Err(Error::request("request-invalid", what, help));
        };
        return Ok(rest.to_vec());
    }
    context.encode_tokens(0, prompt, progress)?;
    let architecture = metadata.architecture().unwrap_or_default();
    let start = metadata.u64(&format!("{architecture}.decoder_start_token_id"));
    Ok(vec![start.and_then(|id| u32::try_from(id).ok()).unwrap_or(0)])
}

/// Runs the first batches of a long prompt, so that progress is seen, and leaves the tokens of the last one.
fn read_all_but_last_batch(
    context: &mut Context,
    tokens: &mut Vec<u32>,
    speculation: &mut Option<&mut Speculation>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    // A prompt that does not fit is refused whole.
    let batch = context.batch_size().max(1);
    if context.room(0) < tokens.len() {
        return Ok(());
    }
    let first: Vec<u32> = tokens.drain(..tokens.len().saturating_sub(1) / batch * batch).collect();
    read(context, &first, speculation.as_deref_mut(), progress)
}

/// Runs tokens of the first sequence in batches without outputs. Passes their features to drafts that read them.
pub(crate) fn read(
    context: &mut Context,
    tokens: &[u32],
    mut speculation: Option<&mut Speculation>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let kinds = kinds(context, speculation.is_some());
    for tokens in tokens.chunks(context.batch_size().max(1)) {
        let position = context.len(0);
        let outputs =
            context.run_kinds(&Batch::without_outputs(tokens, 0), None, kinds, progress)?;
        if let (Some(speculation), Some(features)) = (&mut speculation, outputs.get(1)) {
            speculation.read(position, tokens, features, progress)?;
        }
        progress.step(tokens.len() as u64)?;
    }
    Ok(())
}

/// Returns the text of a control token, which is not part of the generated text, but may be a stop sequence.
fn hidden_text(tokenizer: &Tokenizer, id: u32) -> Option<String> {
    let is_hidden = tokenizer.token_type(id).is_some_and(TokenType::is_special);
    let text = tokenizer.token_text(id).filter(|_| is_hidden)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Finds stop sequences, and buffers text that may be the start of one.
struct StopSequences<'s> {
    stops: &'s [String],
    buffer: String,
    /// Whether each byte of the buffer is part of the generated text.
    shown: Vec<bool>,
}

impl<'s> StopSequences<'s> {
    fn new(stops: &'s [String]) -> Self {
        Self { stops, buffer: String::new(), shown: Vec::new() }
    }

    /// Adds text. Returns the text before a possible stop sequence, and whether a stop sequence is complete.
    fn push(&mut self, text: &str) -> (String, bool) {
        self.add(text, true)
    }

    /// Adds text that is compared with the stop sequences, but never returned.
    fn push_hidden(&mut self, text: &str) -> (String, bool) {
        self.add(text, false)
    }

    fn add(&mut self, text: &str, shown: bool) -> (String, bool) {
        self.buffer.push_str(text);
        self.shown.resize(self.buffer.len(), shown);
        let found = self.stops.iter().filter(|stop| !stop.is_empty());
        if let Some(at) = found.filter_map(|stop| self.buffer.find(&**stop)).min() {
            return (self.take(at), true);
        }
        let begins = |from: &str| self.stops.iter().any(|stop| stop.starts_with(from));
        let starts = self.buffer.char_indices().map(|(at, _)| at);
        let end = starts.into_iter().find(|at| begins(&self.buffer[*at..]));
        (self.take(end.unwrap_or(self.buffer.len())), false)
    }

    /// Removes the first `len` bytes, and returns those of the generated text.
    fn take(&mut self, len: usize) -> String {
        let rest = self.buffer.split_off(len);
        let taken = std::mem::replace(&mut self.buffer, rest);
        let shown: Vec<bool> = self.shown.drain(..len).collect();
        taken.char_indices().filter(|(at, _)| shown[*at]).map(|(_, char)| char).collect()
    }

    /// Returns the buffered text.
    fn finish(mut self) -> String {
        self.take(self.buffer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_sequence_in_pieces() {
        let stops = ["END".to_owned(), "\n\n".to_owned()];
        let mut stop = StopSequences::new(&stops);
        assert_eq!(stop.push("Hello E"), ("Hello ".into(), false));
        assert_eq!(stop.push("N"), (String::new(), false));
        assert_eq!(stop.push("O\n"), ("ENO".into(), false));
        assert_eq!(stop.push("\nmore"), (String::new(), true));
        let mut stop = StopSequences::new(&stops);
        assert_eq!(stop.push("the EN"), ("the ".into(), false));
        assert_eq!(stop.finish(), "EN");
    }

    #[test]
    fn stop_sequences_see_control_tokens() {
        let stops = ["<|user|>".to_owned(), "END<|x|>".to_owned()];
        let mut stop = StopSequences::new(&stops);
        assert_eq!(stop.push("hi"), ("hi".into(), false));
        assert_eq!(stop.push_hidden("<|other|>"), (String::new(), false));
        assert_eq!(stop.push(" E"), (" ".into(), false));
        assert_eq!(stop.push_hidden("<|other|>"), ("E".into(), false));
        assert_eq!(stop.push_hidden("<|user|>"), (String::new(), true));
        let mut stop = StopSequences::new(&stops);
        assert_eq!(stop.push("the END"), ("the ".into(), false));
        assert_eq!(stop.push_hidden("<|x|>"), (String::new(), true));
        let mut stop = StopSequences::new(&stops);
        assert_eq!(stop.push_hidden("<|us"), (String::new(), false));
        assert_eq!(stop.finish(), "");
    }
}
