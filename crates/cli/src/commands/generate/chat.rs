//! Chat in the terminal.

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
use crate::terminal;

/// Reads messages line by line, and answers each.
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
            "{source} has no chat template: omit --chat, or add one with `gguf edit --chat-template-file`"
        ))
    })?;
    let interrupt = Interrupt::new();
    let mut chat = Chat { running, tokenizer, context, template, cached: Vec::new() };
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

/// Reads the next message; `None` at the end of the input.
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
                let what = format!("cannot read standard input: {fault}");
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
    /// Tokens in the KV cache.
    cached: Vec<u32>,
}

impl Chat<'_> {
    fn answer(
        &mut self,
        messages: &[Json],
        generation: &GenerateOptions,
        interrupt: &Interrupt,
    ) -> Result<String, Failure> {
        let variables =
            Variables::new(messages.iter().map(|message| self.protected(message)).collect());
        let text = render_template::renderer()?.render(&self.template, &variables)?;
        // The template itself writes BOS and EOS.
        let options = EncodeOptions { add_special: false, parse_special: true };
        let ids = self.tokenizer.encode_protected(&text, options);
        let reused = self.reuse_prefix(&ids);
        let mut out = std::io::stdout().lock();
        let mut fault = None;
        let mut read = |text: &str| {
            fault = out
                .write_all(terminal::printable(text).as_bytes())
                .and_then(|()| out.flush())
                .err();
            if fault.is_some() || interrupt.received() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let progress = |_| match interrupt.received() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let metadata = &self.running.metadata;
        let answer = generate(
            &mut self.context,
            self.tokenizer,
            metadata,
            &ids[reused..],
            generation,
            &mut read,
            &progress,
        );
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        writeln!(out)?;
        match answer {
            Ok(answer) => {
                self.cached = ids;
                self.cached.extend(&answer.ids);
                self.cached.truncate(self.context.len(0));
                Ok(answer.text)
            }
            // After an interruption the contents of the KV cache are not known exactly.
            Err(gguf::Error::Interrupted) => {
                self.context.clear(0);
                self.cached.clear();
                Ok(String::new())
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// Returns a message whose text becomes no control token, if it is one of the user.
    fn protected(&self, message: &Json) -> Json {
        let mut message = message.clone();
        if message["role"] == "user"
            && let Some(text) = message["content"].as_str()
        {
            message["content"] = self.tokenizer.protect(text).into();
        }
        message
    }

    /// Truncates the KV cache to the longest common prefix with `ids`, except their last token, which must be
    /// computed. Returns its length.
    fn reuse_prefix(&mut self, ids: &[u32]) -> usize {
        let common = self.cached.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let common = common.min(ids.len().saturating_sub(1));
        if self.context.truncate(0, common) {
            return common;
        }
        self.context.clear(0);
        0
    }
}

/// Handles Ctrl-C: stops an answer, or exits while waiting for a message.
struct Interrupt {
    received: Arc<AtomicBool>,
    waiting: Arc<AtomicBool>,
}

impl Interrupt {
    fn new() -> Self {
        let this = Self { received: Arc::default(), waiting: Arc::default() };
        // A signal that cannot be caught ends the program.
        let signal = signal_hook::consts::SIGINT;
        let _ = signal_hook::flag::register_conditional_default(signal, this.waiting.clone());
        let _ = signal_hook::flag::register(signal, this.received.clone());
        this
    }

    fn received(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.waiting.store(true, Ordering::Relaxed);
        let result = read();
        self.waiting.store(false, Ordering::Relaxed);
        self.received.store(false, Ordering::Relaxed);
        result
    }
}
