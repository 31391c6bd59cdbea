//! `gguf generate` and `gguf chat`: answers, completions and conversations.

mod chat;
mod conversation;
mod editor;
mod interrupt;

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use conversation::message;

use gguf_kit::draft::Draft;
use gguf_kit::generate::{Completion, GenerateOptions, StopReason, TextModel, generate};
use gguf_kit::prompt_cache::PromptCache;
use gguf_kit::run::{ExecutorOptions, LoadedModel};
use gguf_runtime::speculation::{self, PromptLookup, Speculation};
use gguf_runtime::{Context, ContextOptions, SamplingOptions};
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::json;

use crate::document;
use crate::downloads;
use crate::failure::Failure;
use crate::listing;
use crate::model_args::{PrecisionArg, RunArgs, trained_context, warn_if_too_long};
use crate::progress::Progress;
use crate::terminal;
use crate::threads::on_threads;

/// Generate text: answer or complete a prompt.
///
/// A model with a chat template answers the prompt as a message of the user; --raw completes it instead. Without a prompt,
/// on a terminal, a conversation begins, as with `gguf chat`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf generate model.gguf -p \"Why is the sky blue?\"\n  \
                        gguf generate model.gguf --raw -p \"Once upon a time\" -n 100\n  \
                        gguf generate model.gguf -f prompt.txt --temp 0 --json\n  \
                        gguf generate model.gguf --messages conversation.json")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    #[arg(required_unless_present = "model")]
    source: Option<String>,
    /// Prompt.
    #[arg(value_name = "PROMPT", conflicts_with_all = ["prompt", "file", "messages"])]
    words: Vec<String>,
    /// Model, as in llama.cpp.
    #[arg(short, long, value_name = "MODEL", hide = true)]
    model: Option<String>,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    template: TemplateArgs,
    /// Complete the prompt without the chat template.
    #[arg(long, alias = "no-conversation", conflicts_with_all = ["chat", "system", "messages", "chat_template"])]
    raw: bool,
    /// Print a JSON object with the text, its token ids, the finish reason, counts and speeds.
    #[arg(long, conflicts_with = "chat")]
    json: bool,
    #[command(flatten)]
    generation: GenerationArgs,
}

/// Chat with a model in the terminal.
///
/// /help lists the commands. Ctrl-C stops an answer; /bye, Ctrl-D, or Ctrl-C twice end the conversation. When the context is
/// full, the oldest messages are dropped.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  gguf chat model.gguf\n  gguf chat model.gguf --system \"Be brief.\"\n  \
                        gguf chat model.gguf --chat-template chatml\n  gguf chat model.gguf --messages conversation.json"
)]
pub struct ChatArgs {
    /// Model: a file, directory, shard or remote location.
    #[arg(required_unless_present = "model")]
    source: Option<String>,
    /// First message.
    #[arg(value_name = "MESSAGE", conflicts_with = "prompt")]
    words: Vec<String>,
    /// Model, as in llama.cpp.
    #[arg(short, long, value_name = "MODEL", hide = true)]
    model: Option<String>,
    /// First message.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Conversation to continue, as `/save` writes it: a JSON list of objects with `role` and `content`.
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    generation: GenerationArgs,
    #[command(flatten)]
    cache: PromptCacheArgs,
}

#[derive(clap::Args)]
#[group(skip)]
struct Input {
    /// Prompt: a message of the user, or with --raw the text to complete.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// File with the prompt; `-` for standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// Conversation: a JSON list of objects with `role` and `content`, or an object with the list as `messages`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "file"])]
    messages: Option<PathBuf>,
    /// Chat in the terminal, as `gguf chat` does.
    #[arg(long)]
    chat: bool,
    #[command(flatten)]
    cache: PromptCacheArgs,
}

/// Options of prompt caches.
#[derive(clap::Args)]
#[group(skip)]
struct PromptCacheArgs {
    /// Prompt cache: a file with the state of the model after the prompt. Prompts that begin with the same text begin from it.
    /// It is created or brought up to date, and the text is the same as without it.
    #[arg(long, value_name = "FILE", help_heading = "Prompt cache")]
    prompt_cache: Option<PathBuf>,
    /// Save the answer in the prompt cache too; in a chat, the whole conversation when it ends.
    #[arg(long, requires = "prompt_cache", help_heading = "Prompt cache")]
    prompt_cache_all: bool,
    /// Do not write the prompt cache.
    #[arg(
        long,
        requires = "prompt_cache",
        conflicts_with = "prompt_cache_all",
        help_heading = "Prompt cache"
    )]
    prompt_cache_ro: bool,
}

#[derive(clap::Args)]
#[group(skip)]
pub(super) struct TemplateArgs {
    /// System prompt.
    #[arg(long, value_name = "TEXT", alias = "sys", alias = "system-prompt")]
    system: Option<String>,
    /// Chat template instead of the model's: a template file, the name of a variant in the model, or one of chatml, gemma,
    /// llama2, llama3, mistral, phi3, vicuna and zephyr.
    #[arg(long, value_name = "NAME|FILE", alias = "chat-template-file")]
    chat_template: Option<String>,
}

/// Options of every generation.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct GenerationArgs {
    /// Maximum number of tokens to generate [default: until end of text or the context is full].
    #[arg(short = 'n', long, value_name = "N", alias = "n-predict")]
    predict: Option<usize>,
    /// Context size, prompt and answer included [default: prompt plus -n, or at most 4096 tokens of the model's
    /// context].
    #[arg(short = 'c', long, value_name = "N")]
    ctx_size: Option<usize>,
    /// Compute precision. `fast` rounds activations to 8 bits, which can change greedy output where two tokens are
    /// nearly equally likely.
    #[arg(long, value_enum, default_value_t = PrecisionArg::Fast, alias = "arithmetic")]
    precision: PrecisionArg,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    speculation: SpeculationArgs,
}

/// Options of speculative decoding, which does not change the text.
#[derive(clap::Args)]
#[command(next_help_heading = "Speculative decoding")]
#[group(skip)]
struct SpeculationArgs {
    /// Draft model: a smaller model with the same vocabulary, or an EAGLE 3, DFlash or DSpark model, drafts tokens where
    /// prompt lookup finds none, and the model checks several in one run. The text is the same.
    #[arg(long, value_name = "MODEL", alias = "model-draft", alias = "spec-draft-model")]
    draft: Option<String>,
    /// Do not draft the tokens that followed the same tokens before (prompt lookup).
    #[arg(long)]
    no_lookup: bool,
    /// Do not draft by the layers for multi-token prediction (MTP) of the model.
    #[arg(long, hide_short_help = true)]
    no_mtp: bool,
    /// Maximum number of drafted tokens; 0 disables drafts. Drafts are as long as measured acceptance and speed make
    /// worthwhile.
    #[arg(
        long,
        value_name = "N",
        default_value_t = speculation::MAX_DRAFT,
        hide_short_help = true,
        alias = "draft-n",
        alias = "spec-draft-n-max"
    )]
    draft_max: usize,
}

/// Sampling options.
#[derive(clap::Args)]
#[command(next_help_heading = "Sampling")]
#[group(skip)]
struct SamplingArgs {
    /// Temperature; 0 is greedy.
    #[arg(long, value_name = "T", default_value_t = 0.8, alias = "temperature", value_parser = listing::parse_at_least_zero)]
    temp: f32,
    /// Top-k sampling; 0 disables.
    #[arg(long, value_name = "N", default_value_t = 40)]
    top_k: usize,
    /// Top-p (nucleus) sampling; 1 disables.
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = listing::parse_probability)]
    top_p: f32,
    /// Min-p sampling: keep tokens with at least P times the probability of the best; 0 disables.
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = listing::parse_probability)]
    min_p: f32,
    /// Locally typical sampling; 1 disables.
    #[arg(long, value_name = "P", default_value_t = 1.0, alias = "typical", value_parser = listing::parse_probability)]
    typical_p: f32,
    /// Repetition penalty; 1 disables.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = listing::parse_positive::<f32>)]
    repeat_penalty: f32,
    /// Presence penalty; 0 disables.
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = listing::parse_finite)]
    presence_penalty: f32,
    /// Frequency penalty; 0 disables.
    #[arg(long, value_name = "X", default_value_t = 0.0, value_parser = listing::parse_finite)]
    frequency_penalty: f32,
    /// Number of recent tokens that penalties consider.
    #[arg(long, value_name = "N", default_value_t = 64)]
    repeat_last_n: usize,
    /// Random seed [default: random].
    #[arg(short, long, value_name = "N")]
    seed: Option<u64>,
    /// Stop sequence. May be repeated.
    #[arg(short = 'r', long, value_name = "TEXT", alias = "reverse-prompt")]
    stop: Vec<String>,
    /// Suppress these token ids.
    #[arg(long, alias = "ban", value_name = "ID", value_delimiter = ',')]
    suppress_tokens: Vec<u32>,
    /// Continue after end-of-text tokens.
    #[arg(long)]
    ignore_eos: bool,
}

impl PromptCacheArgs {
    /// Returns the prompt cache, if one is wanted.
    fn open(&self, session: &Session) -> Result<Option<PromptCache>, Failure> {
        let Some(path) = &self.prompt_cache else { return Ok(None) };
        let cache_type = session.args.run.cache_type(session.args.precision);
        Ok(Some(PromptCache::new(path, &session.running, cache_type)?))
    }

    /// Restores the saved tokens with which a prompt begins, and returns their number. Then brings the cache up to date.
    fn prepare(
        &self,
        cache: &PromptCache,
        context: &mut Context,
        prompt: &[u32],
        progress: &dyn gguf_store::Progress,
    ) -> Result<usize, gguf_kit::Error> {
        let reused = cache.restore(context, prompt)?;
        if !self.prompt_cache_ro && reused + 1 < prompt.len() {
            cache.extend(context, prompt, progress)?;
        }
        Ok(reused)
    }
}

impl SamplingArgs {
    fn generation(&self, tokens: Option<usize>) -> GenerateOptions {
        let now = || std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
        let sampling = SamplingOptions {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            repeat_penalty: self.repeat_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            repeat_last: self.repeat_last_n,
            banned: self.suppress_tokens.clone(),
            seed: self.seed.unwrap_or_else(now),
        };
        GenerateOptions {
            sampling,
            max_tokens: tokens,
            stop: self.stop.clone(),
            ignore_eos: self.ignore_eos,
            completes: false,
        }
    }
}

/// A loaded model, and what it is asked.
struct Session<'a> {
    running: LoadedModel,
    tokenizer: Tokenizer,
    draft: Option<Draft>,
    generation: GenerateOptions,
    args: &'a GenerationArgs,
}

impl<'a> Session<'a> {
    fn open(source: &str, args: &'a GenerationArgs) -> Result<Self, Failure> {
        let running = args.run.open(source, args.precision)?;
        let tokenizer = Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
        let options =
            ExecutorOptions { adapters: Vec::new(), ..args.run.options(PrecisionArg::Fast) };
        let SpeculationArgs { draft, no_mtp, draft_max, .. } = &args.speculation;
        let draft = match draft {
            Some(draft) => {
                Some(Draft::load(&downloads::local(draft)?, &options, &running, &tokenizer)?)
            }
            None if *no_mtp || *draft_max == 0 => None,
            None => Draft::mtp(&options, &running).unwrap_or_else(|fault| {
                terminal::warning(format!("the MTP layers are not used for drafts: {fault}"));
                None
            }),
        };
        let generation = args.sampling.generation(args.predict);
        Ok(Self { running, tokenizer, draft, generation, args })
    }

    fn default_context(&self) -> usize {
        let trained = trained_context(&self.running.metadata).unwrap_or(4096).min(4096);
        let of_draft = self.draft.as_ref().and_then(Draft::trained_context);
        of_draft.map_or(trained, |of_draft| trained.min(of_draft))
    }

    /// Returns speculative decoding in a context of a size; `None` if it is off.
    fn speculation(&self, tokens: usize) -> Result<Option<Speculation>, Failure> {
        let SpeculationArgs { no_lookup, draft_max, .. } = self.args.speculation;
        let mut speculation = Speculation::new(draft_max);
        if !no_lookup {
            speculation = speculation.with(Box::new(PromptLookup::default()));
        }
        if let Some(draft) = &self.draft {
            let cache_type = self.args.run.cache_type(PrecisionArg::Fast);
            let options = ContextOptions { tokens, cache_type, ..ContextOptions::default() };
            speculation = speculation.with(draft.source(options)?);
        }
        Ok((draft_max > 0 && (!no_lookup || self.draft.is_some())).then_some(speculation))
    }

    fn context(&self, tokens: usize) -> Result<Context, Failure> {
        warn_if_too_long(&self.running.metadata, tokens);
        let cache_type = self.args.run.cache_type(self.args.precision);
        let options = ContextOptions { tokens, cache_type, ..ContextOptions::default() };
        let executor = self.draft.as_ref().map_or(&self.running.executor, Draft::target);
        Ok(Context::new(executor.clone(), options)?)
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let (source, words) = source_and_words(&args.source, &args.model, &args.words);
    let input = &args.input;
    let is_given = !words.is_empty()
        || input.prompt.is_some()
        || input.file.is_some()
        || input.messages.is_some();
    let is_conversation =
        input.chat || !is_given && !args.raw && !args.json && std::io::stdin().is_terminal();
    let prompt = match (&input.prompt, &input.file) {
        (Some(prompt), _) => prompt.clone(),
        (_, Some(file)) => gguf_kit::read_text(file)?,
        _ if is_given || is_conversation => words.join(" "),
        _ => gguf_kit::read_text(Path::new("-"))?,
    };
    on_threads(args.generation.run.threads, || {
        let mut session = Session::open(&source, &args.generation)?;
        let metadata = &session.running.metadata;
        let template = match args.raw {
            true => None,
            false => conversation::template(metadata, args.template.chat_template.as_deref())?,
        };
        if is_conversation {
            let template = template.ok_or_else(|| no_template(&source))?;
            let messages = conversation::begin(&args.template, input.messages.as_deref())?;
            return chat::run(&session, template, messages, &prompt, &input.cache);
        }
        session.generation.completes = template.is_none();
        let needs_template = input.messages.is_some() || args.template.system.is_some();
        let ids = match template {
            Some(template) => {
                let mut messages = conversation::begin(&args.template, input.messages.as_deref())?;
                if input.messages.is_none() {
                    messages.push(message("user", &prompt));
                }
                conversation::encode(&session.tokenizer, &template, &messages)?
            }
            None if needs_template => return Err(no_template(&source)),
            None => session.tokenizer.encode(&prompt, EncodeOptions::default()),
        };
        if ids.is_empty() {
            return Err(Failure::Usage(
                "the prompt is empty, and the model has no BOS token".into(),
            ));
        }
        generate_once(&session, &ids, &input.cache, args.json)
    })
}

pub fn run_chat(args: &ChatArgs) -> Result<(), Failure> {
    let (source, words) = source_and_words(&args.source, &args.model, &args.words);
    let first = args.prompt.clone().unwrap_or_else(|| words.join(" "));
    on_threads(args.generation.run.threads, || {
        let session = Session::open(&source, &args.generation)?;
        let chosen = args.template.chat_template.as_deref();
        let template = conversation::template(&session.running.metadata, chosen)?;
        let template = template.ok_or_else(|| no_template(&source))?;
        let messages = conversation::begin(&args.template, args.messages.as_deref())?;
        chat::run(&session, template, messages, &first, &args.cache)
    })
}

/// Returns the model and the words after it. With `-m`, all positional arguments are words.
fn source_and_words(
    source: &Option<String>,
    model: &Option<String>,
    words: &[String],
) -> (String, Vec<String>) {
    let (source, words) = (source.iter().cloned(), words.iter().cloned());
    match model {
        Some(model) => (model.clone(), source.chain(words).collect()),
        None => (source.collect(), words.collect()),
    }
}

fn no_template(source: &str) -> Failure {
    Failure::Input(format!(
        "{source} has no chat template: choose one with --chat-template, such as `--chat-template chatml`, or complete \
         a prompt with --raw -p"
    ))
}

/// Prints one answer as it is generated, or as JSON when complete.
fn generate_once(
    session: &Session,
    ids: &[u32],
    cache_args: &PromptCacheArgs,
    as_json: bool,
) -> Result<(), Failure> {
    let args = session.args;
    let needed = args.predict.map(|predict| ids.len().saturating_add(predict));
    let tokens = needed.unwrap_or_else(|| session.default_context().max(ids.len() + 1));
    let size = args.ctx_size.unwrap_or(tokens);
    let mut context = session.context(size)?;
    let mut speculation = session.speculation(size)?;
    let progress = Progress::of_prompt();
    let started = Instant::now();
    let cache = cache_args.open(session)?;
    let reused = match &cache {
        Some(cache) => cache_args.prepare(cache, &mut context, ids, &progress)?,
        None => 0,
    };
    let mut out = std::io::stdout().lock();
    let mut fault = None;
    let mut has_text = false;
    let mut read = |text: &str| {
        if as_json {
            return ControlFlow::Continue(());
        }
        has_text = true;
        fault =
            out.write_all(terminal::printable(text).as_bytes()).and_then(|()| out.flush()).err();
        if fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let cache_time = started.elapsed();
    let Session { running, tokenizer, generation, .. } = session;
    let model = TextModel {
        context: &mut context,
        tokenizer,
        metadata: &running.metadata,
        speculation: speculation.as_mut(),
    };
    let answer = generate(model, ids, generation, &mut read, &progress);
    if answer.is_err() && has_text {
        // The message begins a line.
        writeln!(out)?;
    }
    let mut answer = answer?;
    answer.prompt_time += cache_time;
    let computed = ids.len() - reused;
    let seconds = started.elapsed().as_secs_f64();
    progress.finish();
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    report_faults(&mut speculation);
    if let Some(cache) = cache.filter(|_| cache_args.prompt_cache_all) {
        let mut tokens = [ids, &answer.ids].concat();
        tokens.truncate(context.len(0));
        cache.save(&context, &tokens)?;
    }
    if as_json {
        let finish_reason = match answer.stop_reason {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::Cancelled => "cancelled",
        };
        let prompt_speed = computed as f64 / answer.prompt_time.as_secs_f64().max(1e-9);
        let shown = json!({
            "text": answer.text, "ids": answer.ids, "finish_reason": finish_reason,
            "prompt_tokens": ids.len(), "cached_prompt_tokens": reused, "generated_tokens": answer.ids.len(), "seconds": seconds,
            "prompt_tokens_per_second": prompt_speed,
            "tokens_per_second": answer.tokens_per_second(),
            "drafted_tokens": answer.drafted,
            "accepted_tokens": answer.accepted,
        });
        document::print_line(&mut out, "generate/3", shown)?;
        return Ok(());
    }
    writeln!(out)?;
    if answer.text.is_empty() {
        terminal::note("the model ended the text at once");
    }
    report_speed(computed, &answer);
    Ok(())
}

/// Warns of drafts that ended with an error, which does not concern the text.
fn report_faults(speculation: &mut Option<Speculation>) {
    for fault in speculation.iter_mut().flat_map(Speculation::take_faults) {
        terminal::warning(format!("the draft model is not used any more: {fault}"));
    }
}

/// Says how fast an answer was, with `--verbose`.
fn report_speed(prompt_tokens: usize, answer: &Completion) {
    if !terminal::is_verbose() {
        return;
    }
    let prompt = prompt_tokens as f64 / answer.prompt_time.as_secs_f64().max(1e-9);
    let speed = answer.tokens_per_second().map(|speed| format!(", {speed:.1} tokens/s"));
    let drafted = match answer.drafted {
        0 => String::new(),
        drafted => format!(", {} of {drafted} drafted tokens accepted", answer.accepted),
    };
    terminal::note(format!(
        "prompt {}, {prompt:.1} tokens/s; answer {}{}{drafted}",
        listing::plural(prompt_tokens, "token"),
        listing::plural(answer.ids.len(), "token"),
        speed.unwrap_or_default()
    ));
}
