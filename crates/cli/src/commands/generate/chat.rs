//! A conversation in the terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gguf_kit::generate::{GenerateOptions, generate};
use gguf_kit::run::LoadedModel;
use gguf_runtime::Context;
use gguf_tokenizer::template::{Context as Variables, TemplateSource};
use gguf_tokenizer::{EncodeOptions, Tokenizer};
use serde_json::{Value as Json, json};

use super::Args;
use crate::commands::render_template;
use crate::failure::Failure;

/// Reads messages line by line and answers each.
pub fn run(
    running: &LoadedModel,
    tokenizer: &Tokenizer,
    context: Context,
    generation: &GenerateOptions,
    args: &Args,
) -> Result<(), Failure> {
    let template = TemplateSource::from_metadata(&running.metadata, None)?.ok_or_else(|| {
        let source = &args.source;
        Failure::Input(format!(
            "{source} has no chat template: go without --chat, or give it one with `gguf edit \
             --chat-template-file`"
        ))
    })?;
    let interrupt = Interrupt::new();
    let mut chat = Chat { running, tokenizer, context, template, seen: Vec::new() };
    let mut messages: Vec<Json> = Vec::new();
    if let Some(system) = &args.input.system {
        messages.push(json!({"role": "system", "content": system}));
    }
    let first = args.input.text()?;
    let mut first = Some(first).filter(|text| !text.is_empty());
    let mut lines = std::io::stdin().lock().lines();
    loop {
        let message = match first.take() {
            Some(message) => message,
            None => match interrupt.while_reading(|| read_line(&mut lines))? {
                Some(line) => line,
                None => return Ok(()),
            },
        };
        messages.push(json!({"role": "user", "content": message}));
        let answer = chat.answer(&messages, generation, &interrupt)?;
        messages.push(json!({"role": "assistant", "content": answer}));
    }
}

/// The next message; `None` at the end of the input.
fn read_line(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
) -> Result<Option<String>, Failure> {
    loop {
        if std::io::stdin().is_terminal() {
            eprint!("> ");
        }
        match lines.next().transpose() {
            Ok(Some(line)) if line.trim().is_empty() => {}
            Ok(line) => return Ok(line),
            Err(fault) => {
                let what = format!("cannot read the standard input: {fault}");
                return Err(Failure::Environment(what));
            }
        }
    }
}

struct Chat<'c> {
    running: &'c LoadedModel,
    tokenizer: &'c Tokenizer,
    context: Context,
    template: TemplateSource,
    /// The tokens that the context has.
    seen: Vec<u32>,
}

impl Chat<'_> {
    fn answer(
        &mut self,
        messages: &[Json],
        generation: &GenerateOptions,
        interrupt: &Interrupt,
    ) -> Result<String, Failure> {
        let variables = Variables::new(Json::Array(messages.to_vec()));
        let text = render_template::renderer()?.render(&self.template, &variables)?;
        // The template writes the tokens at the ends itself.
        let how = EncodeOptions { add_special: false, parse_special: true };
        let ids = self.tokenizer.encode(&text, how);
        let kept = self.keep(&ids);
        let mut out = std::io::stdout().lock();
        let mut fault = None;
        let mut read = |text: &str| {
            fault = out.write_all(text.as_bytes()).and_then(|()| out.flush()).err();
            if fault.is_some() || interrupt.came() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let progress = |_| match interrupt.came() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let metadata = &self.running.metadata;
        let made = generate(
            &mut self.context,
            self.tokenizer,
            metadata,
            &ids[kept..],
            generation,
            &mut read,
            &progress,
        );
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        writeln!(out)?;
        match made {
            Ok(answer) => {
                self.seen = ids;
                self.seen.extend(&answer.ids);
                self.seen.truncate(self.context.len(0));
                Ok(answer.text)
            }
            // Between two tokens: what the context has is not known to the token.
            Err(gguf::Error::Interrupted) => {
                self.context.clear(0);
                self.seen.clear();
                Ok(String::new())
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// Leaves the tokens in the context that the text begins with, but for its last one, which has to
    /// be computed. Says how many.
    fn keep(&mut self, ids: &[u32]) -> usize {
        let same = self.seen.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let same = same.min(ids.len().saturating_sub(1));
        if self.context.truncate(0, same) {
            return same;
        }
        self.context.clear(0);
        0
    }
}

/// Ctrl-C: ends an answer while there is one, the program while it waits for a message.
struct Interrupt {
    came: Arc<AtomicBool>,
    waiting: Arc<AtomicBool>,
}

impl Interrupt {
    fn new() -> Self {
        let this = Self { came: Arc::default(), waiting: Arc::default() };
        // Where the signal cannot be caught, it ends the program as it always did.
        let signal = signal_hook::consts::SIGINT;
        let _ = signal_hook::flag::register_conditional_default(signal, this.waiting.clone());
        let _ = signal_hook::flag::register(signal, this.came.clone());
        this
    }

    fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }

    fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.waiting.store(true, Ordering::Relaxed);
        let made = read();
        self.waiting.store(false, Ordering::Relaxed);
        self.came.store(false, Ordering::Relaxed);
        made
    }
}
