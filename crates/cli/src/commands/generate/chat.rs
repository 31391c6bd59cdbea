//! Conversation in the terminal.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use gguf_kit::generate::{Completion, GenerateOptions, StopReason, TextModel, generate};
use gguf_kit::prompt_cache::PromptCache;
use gguf_runtime::Context;
use gguf_runtime::speculation::Speculation;
use gguf_store::{AtomicFile, Existing, Overwrite};
use gguf_tokenizer::template::TemplateSource;
use serde_json::Value as Json;

use super::conversation::{self, message};
use super::editor::Input;
use super::interrupt::Interrupt;
use super::{PromptCacheArgs, Session, report_faults, report_speed};
use crate::failure::Failure;
use crate::terminal;

const HELP: &str = "\
/help             list the commands
/clear            forget the conversation, except for the system prompt
/regenerate       answer the last message again
/system TEXT      set the system prompt; without TEXT, remove it
/save FILE        save the conversation as JSON, for --messages
/bye              leave; also /exit, /quit, Ctrl-D, or Ctrl-C twice
\\ at the end of a line continues it; \"\"\" begins and ends several lines";

/// Continues a conversation: reads messages, and answers each.
pub fn run(
    session: &Session,
    template: TemplateSource,
    messages: Vec<Json>,
    first: &str,
    cache_args: &PromptCacheArgs,
) -> Result<(), Failure> {
    let interrupt = Interrupt::new();
    let size = session.args.ctx_size.unwrap_or_else(|| session.default_context());
    let context = session.context(size)?;
    let speculation = session.speculation(size)?;
    let mut input = Input::open();
    let mut chat = Chat {
        session,
        context,
        speculation,
        size,
        template,
        cached: Vec::new(),
        cache: cache_args.open(session)?,
        cache_args,
        messages,
        interrupt,
    };
    if input.is_terminal() {
        let name = session.running.metadata.str("general.name").unwrap_or("the model");
        terminal::dim(format!(
            "Chat with {}. /help lists the commands, /bye leaves.",
            terminal::plain(name)
        ));
    }
    let mut first = Some(first.to_owned()).filter(|text| !text.is_empty());
    let mut is_unanswered = chat.messages.last().is_some_and(|last| last["role"] == "user");
    loop {
        let outcome = if std::mem::take(&mut is_unanswered) {
            chat.answer().map(ControlFlow::Continue)
        } else {
            let text = match first.take() {
                Some(text) => text,
                None => match input.read(&chat.interrupt)? {
                    Some(text) => text,
                    None => break,
                },
            };
            chat.take(&text, input.is_terminal())
        };
        match outcome {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            // A person can try again.
            Err(failure) if input.is_terminal() => failure.print(),
            Err(failure) => return Err(failure),
        }
    }
    if cache_args.prompt_cache_all
        && let Some(cache) = &chat.cache
        && !chat.cached.is_empty()
    {
        cache.save(&chat.context, &chat.cached)?;
    }
    Ok(())
}

struct Chat<'s> {
    session: &'s Session<'s>,
    context: Context,
    speculation: Option<Speculation>,
    /// Context size in tokens.
    size: usize,
    template: TemplateSource,
    /// Tokens in the KV cache.
    cached: Vec<u32>,
    cache: Option<PromptCache>,
    cache_args: &'s PromptCacheArgs,
    messages: Vec<Json>,
    interrupt: Interrupt,
}

impl Chat<'_> {
    /// Follows a command, or answers a message. Messages from pipes are no commands.
    fn take(&mut self, text: &str, has_commands: bool) -> Result<ControlFlow<()>, Failure> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        if !has_commands || !word.starts_with('/') || word.len() < 2 {
            self.messages.push(message("user", text));
            self.answer()?;
            return Ok(ControlFlow::Continue(()));
        }
        match word {
            "/help" | "/?" => terminal::dim(HELP),
            "/bye" | "/exit" | "/quit" => return Ok(ControlFlow::Break(())),
            "/clear" => {
                self.messages.retain(|message| message["role"] == "system");
                terminal::dim("The conversation is forgotten.");
            }
            "/regenerate" => {
                if self.messages.last().is_some_and(|message| message["role"] == "assistant") {
                    self.messages.pop();
                }
                match self.messages.last() {
                    Some(last) if last["role"] == "user" => self.answer()?,
                    _ => terminal::dim("There is no message to answer."),
                }
            }
            "/system" => {
                self.messages.retain(|message| message["role"] != "system");
                if !rest.is_empty() {
                    self.messages.insert(0, message("system", rest));
                }
                terminal::dim("The next answer follows the new system prompt.");
            }
            "/save" if rest.is_empty() => terminal::dim("Name a file: /save conversation.json"),
            "/save" => {
                let text = serde_json::to_string_pretty(&self.messages).unwrap_or_default() + "\n";
                let overwrite = Overwrite::new(Existing::Refuse);
                AtomicFile::write(Path::new(rest), text.as_bytes(), &overwrite)?;
                terminal::dim(format!("Saved {rest}."));
            }
            _ => terminal::dim(format!("There is no command {word}; /help lists them.")),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers the last message, which is of the user. Without an answer, the message is dropped.
    fn answer(&mut self) -> Result<(), Failure> {
        let answered = self.try_answer();
        if answered.is_err() {
            self.messages.pop();
        }
        answered
    }

    fn try_answer(&mut self) -> Result<(), Failure> {
        let ids = self.prompt()?;
        let is_first = self.cached.is_empty();
        let mut reused = self.reuse_prefix(&ids);
        let options = self.options();
        let Self { session, context, speculation, interrupt, cache, cache_args, .. } = self;
        let mut out = std::io::stdout().lock();
        let mut fault = None;
        let mut read = |text: &str| {
            let text = terminal::printable(text);
            fault = out.write_all(text.as_bytes()).and_then(|()| out.flush()).err();
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
        let mut answer = Ok(());
        if let Some(cache) = cache.as_ref().filter(|_| is_first) {
            answer =
                cache_args.prepare(cache, context, &ids, &progress).map(|found| reused = found);
        }
        let model = TextModel {
            context,
            tokenizer: &session.tokenizer,
            metadata: &session.running.metadata,
            speculation: speculation.as_mut(),
        };
        let answer = answer.and_then(|()| generate(model, &ids, &options, &mut read, &progress));
        self.interrupt.forget();
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        writeln!(out)?;
        report_faults(speculation);
        match answer {
            Ok(answer) => self.keep(ids, reused, answer),
            // After an interruption the contents of the KV cache are not known exactly.
            Err(gguf::Error::Interrupted) => {
                self.forget_cache();
                self.messages.push(message("assistant", ""));
            }
            Err(fault) => {
                self.forget_cache();
                return Err(fault.into());
            }
        }
        Ok(())
    }

    /// A repeated answer gets another seed.
    fn options(&self) -> GenerateOptions {
        let mut options = self.session.generation.clone();
        options.sampling.seed = options.sampling.seed.wrapping_add(self.messages.len() as u64);
        options
    }

    fn keep(&mut self, ids: Vec<u32>, reused: usize, answer: Completion) {
        let prompt_tokens = ids.len() - reused;
        self.cached = ids;
        self.cached.extend(&answer.ids);
        self.cached.truncate(self.context.len(0));
        if answer.text.is_empty() && answer.stop_reason == StopReason::Stop {
            terminal::dim("The model ended its answer at once.");
        }
        if answer.stop_reason == StopReason::Length && self.context.room(0) == 0 {
            terminal::dim(format!(
                "The context of {} tokens is full: the answer ends here.",
                self.size
            ));
        }
        report_speed(prompt_tokens, &answer);
        self.messages.push(message("assistant", &answer.text));
    }

    fn forget_cache(&mut self) {
        self.context.clear(0);
        self.cached.clear();
    }

    /// Returns the tokens of the conversation. Drops the oldest turns until an answer has room.
    fn prompt(&mut self) -> Result<Vec<u32>, Failure> {
        let wanted = self.session.args.predict.unwrap_or(self.size / 4).min(self.size / 2);
        let mut dropped = 0;
        loop {
            let ids =
                conversation::encode(&self.session.tokenizer, &self.template, &self.messages)?;
            let first =
                usize::from(self.messages.first().is_some_and(|one| one["role"] == "system"));
            let is_user = |message: &Json| message["role"] == "user";
            let next = self.messages.iter().skip(first + 1).position(is_user);
            if ids.len() + wanted <= self.size || next.is_none() && ids.len() < self.size {
                if dropped > 0 {
                    terminal::dim(format!(
                        "The context of {} tokens is full: dropped the oldest {dropped} messages.",
                        self.size
                    ));
                }
                return Ok(ids);
            }
            let Some(next) = next else {
                return Err(Failure::Usage(format!(
                    "the message has {} tokens with the template, more than the context of {}: make it shorter, or \
                     start again with a larger --ctx-size",
                    ids.len(),
                    self.size
                )));
            };
            self.messages.drain(first..=first + next);
            dropped += next + 1;
        }
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
