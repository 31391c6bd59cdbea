//! `gguf generate`: completes prompts and chats.

mod chat;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use gguf_kit::generate::{Completion, GenerateOptions, StopReason, generate};
use gguf_kit::run::LoadedModel;
use gguf_runtime::{Context, ContextOptions, SamplingOptions};
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::model_args::{PrecisionArg, RunArgs, trained_context, warn_if_too_long};
use crate::progress::Progress;
use crate::terminal;
use crate::text_input;
use crate::threads::on_threads;

/// Generate text, or chat.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf generate model.gguf -p \"Once upon a time\" -n 100\n  \
                        gguf generate model.gguf --chat\n  \
                        gguf generate model.gguf -f prompt.txt --temp 0 --json")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    #[command(flatten)]
    input: Input,
    /// Maximum number of tokens to generate [default: until end of text or the context is full].
    #[arg(short = 'n', long, value_name = "N", alias = "n-predict")]
    predict: Option<usize>,
    /// Context size, prompt and answer included [default: prompt plus -n, or at most 4096 tokens of the model's
    /// context].
    #[arg(short = 'c', long, value_name = "N")]
    ctx_size: Option<usize>,
    /// Print a JSON object with the text, its token ids and the finish reason.
    #[arg(long, conflicts_with = "chat")]
    json: bool,
    /// Compute precision. `fast` rounds activations to 8 bits, which can change greedy output where two tokens are
    /// nearly equally likely.
    #[arg(long, value_enum, default_value_t = PrecisionArg::Fast, alias = "arithmetic")]
    precision: PrecisionArg,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Input {
    /// Prompt to complete; with --chat, the first message.
    #[arg(short, long, value_name = "TEXT")]
    prompt: Option<String>,
    /// File with the prompt.
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// Chat with the model's chat template. Ctrl-C stops an answer, Ctrl-D exits.
    #[arg(long)]
    chat: bool,
    /// System prompt.
    #[arg(long, value_name = "TEXT", requires = "chat", alias = "sys")]
    system: Option<String>,
}

/// Sampling options.
#[derive(clap::Args)]
#[command(next_help_heading = "Sampling")]
#[group(skip)]
struct SamplingArgs {
    /// Temperature; 0 is greedy.
    #[arg(long, value_name = "T", default_value_t = 0.8, alias = "temperature")]
    temp: f32,
    /// Top-k sampling; 0 disables.
    #[arg(long, value_name = "N", default_value_t = 40)]
    top_k: usize,
    /// Top-p (nucleus) sampling; 1 disables.
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    top_p: f32,
    /// Min-p sampling: keep tokens with at least P times the probability of the best; 0 disables.
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    min_p: f32,
    /// Locally typical sampling; 1 disables.
    #[arg(long, value_name = "P", default_value_t = 1.0, alias = "typical")]
    typical_p: f32,
    /// Repetition penalty; 1 disables.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    repeat_penalty: f32,
    /// Presence penalty; 0 disables.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    presence_penalty: f32,
    /// Frequency penalty; 0 disables.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
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
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    on_threads(args.run.threads, || {
        let running = args.run.open(&args.source, args.precision)?;
        let tokenizer = Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
        let generation = args.sampling.generation(args.predict);
        if args.input.chat {
            let tokens = args.ctx_size.unwrap_or_else(|| default_context(&running));
            let context = context(&running, args, tokens)?;
            return chat::run(&running, &tokenizer, context, &generation, args);
        }
        let ids = tokenizer.encode(&args.input.text()?, EncodeOptions::default());
        if ids.is_empty() {
            return Err(Failure::Usage(
                "the prompt is empty, and the model has no BOS token".into(),
            ));
        }
        let needed = args.predict.map(|predict| ids.len().saturating_add(predict));
        let tokens = needed.unwrap_or_else(|| default_context(&running).max(ids.len() + 1));
        let mut context = context(&running, args, args.ctx_size.unwrap_or(tokens))?;
        generate_once(&running, &tokenizer, &mut context, &ids, &generation, args)
    })
}

fn default_context(running: &LoadedModel) -> usize {
    trained_context(&running.metadata).unwrap_or(4096).min(4096)
}

fn context(running: &LoadedModel, args: &Args, tokens: usize) -> Result<Context, Failure> {
    warn_if_too_long(&running.metadata, tokens);
    let cache_type = args.run.cache_type(args.precision);
    let options = ContextOptions { tokens, cache_type, ..ContextOptions::default() };
    Ok(Context::new(running.executor.clone(), options)?)
}

/// Prints one answer as it is generated, or as JSON when complete.
fn generate_once(
    running: &LoadedModel,
    tokenizer: &Tokenizer,
    context: &mut Context,
    ids: &[u32],
    generation: &GenerateOptions,
    args: &Args,
) -> Result<(), Failure> {
    let progress = Progress::new();
    let mut out = std::io::stdout().lock();
    let mut fault = None;
    let mut read = |text: &str| {
        if args.json {
            return ControlFlow::Continue(());
        }
        fault =
            out.write_all(terminal::printable(text).as_bytes()).and_then(|()| out.flush()).err();
        if fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let started = Instant::now();
    let answer =
        generate(context, tokenizer, &running.metadata, ids, generation, &mut read, &progress)?;
    let seconds = started.elapsed().as_secs_f64();
    progress.finish();
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    if args.json {
        let Completion { text, ids: made, stop_reason } = answer;
        let finish_reason = match stop_reason {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::Cancelled => "cancelled",
        };
        let shown = json!({
            "text": text, "ids": made, "finish_reason": finish_reason, "prompt_tokens": ids.len(),
            "seconds": seconds,
        });
        document::print_line(&mut out, "generate/2", shown)?;
    } else {
        writeln!(out)?;
    }
    Ok(())
}

impl Input {
    fn text(&self) -> Result<String, Failure> {
        text_input::text(self.prompt.as_deref(), self.file.as_deref())
    }
}
