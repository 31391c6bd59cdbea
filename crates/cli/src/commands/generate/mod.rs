//! `gguf generate`: text that goes on where a prompt ends, or a conversation.

mod chat;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use gguf_kit::generate::{Completion, GenerateOptions, StopReason, generate};
use gguf_kit::on_threads;
use gguf_kit::run::LoadedModel;
use gguf_runtime::{Context, ContextOptions, Sampling};
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::running::{RunArgs, Sums, trained_context, warn_of_length};
use crate::words;

/// Generate text with a model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf generate model.gguf -p \"Once upon a time\" -n 100\n  \
                        gguf generate model.gguf --chat\n  \
                        gguf generate model.gguf -f prompt.txt --temp 0 --json")]
pub struct Args {
    /// File, directory, shard or far location of the model.
    source: String,
    #[command(flatten)]
    input: Input,
    /// Tokens at most [default: until the model ends or the context is full].
    #[arg(short = 'n', long, value_name = "N", alias = "n-predict")]
    predict: Option<usize>,
    /// Tokens of prompt and answer together [default: what prompt and -n need, or 4096, or what the
    /// model was trained on].
    #[arg(short = 'c', long, value_name = "N")]
    ctx_size: Option<usize>,
    /// One JSON object with the text, its ids, and why it ended.
    #[arg(long, conflicts_with = "chat")]
    json: bool,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Fast)]
    arithmetic: Sums,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Input {
    /// The text to go on with; with --chat the first message.
    #[arg(short, long, value_name = "TEXT")]
    prompt: Option<String>,
    /// A file with the text.
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    file: Option<PathBuf>,
    /// Have a conversation by the model's chat template. Ctrl-C ends an answer, Ctrl-D the program.
    #[arg(long)]
    chat: bool,
    /// What the model is told before the conversation.
    #[arg(long, value_name = "TEXT", requires = "chat", alias = "sys")]
    system: Option<String>,
}

/// How tokens are chosen.
#[derive(clap::Args)]
#[group(skip)]
struct Choice {
    /// Temperature; 0 takes the best token.
    #[arg(long, value_name = "T", default_value_t = 0.8, alias = "temperature")]
    temp: f32,
    /// Choose among so many best tokens; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 40)]
    top_k: usize,
    /// Choose among the fewest best tokens that are so probable together.
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    top_p: f32,
    /// Choose among tokens that are so probable in parts of the best.
    #[arg(long, value_name = "P", default_value_t = 0.05)]
    min_p: f32,
    /// Choose among the tokens that surprise as expected; 1 for all.
    #[arg(long, value_name = "P", default_value_t = 1.0, alias = "typical")]
    typical_p: f32,
    /// Penalty of tokens that were there already; 1 for none.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    repeat_penalty: f32,
    /// Penalty for having been there at all; 0 for none.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    presence_penalty: f32,
    /// Penalty for each time of having been there; 0 for none.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    frequency_penalty: f32,
    /// How many last tokens penalties look at.
    #[arg(long, value_name = "N", default_value_t = 64)]
    repeat_last_n: usize,
    /// The same seed gives the same text [default: another one each time].
    #[arg(short, long, value_name = "N")]
    seed: Option<u64>,
    /// A text that ends the answer.
    #[arg(short = 'r', long, value_name = "TEXT", alias = "reverse-prompt")]
    stop: Vec<String>,
    /// Ids that are never chosen.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    ban: Vec<u32>,
    /// Go on after the token that ends a text.
    #[arg(long)]
    ignore_eos: bool,
}

impl Choice {
    fn generation(&self, tokens: Option<usize>) -> GenerateOptions {
        let now = || std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
        let sampling = Sampling {
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            repeat_penalty: self.repeat_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            repeat_last: self.repeat_last_n,
            banned: self.ban.clone(),
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
        let running = args.run.open(&args.source, args.arithmetic)?;
        let tokenizer = Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
        let generation = args.choice.generation(args.predict);
        if args.input.chat {
            let tokens = args.ctx_size.unwrap_or_else(|| usual_context(&running));
            let context = context(&running, args, tokens)?;
            return chat::run(&running, &tokenizer, context, &generation, args);
        }
        let ids = tokenizer.encode(&args.input.text()?, EncodeOptions::default());
        if ids.is_empty() {
            return Err(Failure::Usage(
                "the prompt is empty, and the model has no token to begin with".into(),
            ));
        }
        let needed = args.predict.map(|predict| ids.len().saturating_add(predict));
        let tokens = needed.unwrap_or_else(|| usual_context(&running).max(ids.len() + 1));
        let mut context = context(&running, args, args.ctx_size.unwrap_or(tokens))?;
        one(&running, &tokenizer, &mut context, &ids, &generation, args)
    })
}

fn usual_context(running: &LoadedModel) -> usize {
    trained_context(&running.metadata).unwrap_or(4096).min(4096)
}

fn context(running: &LoadedModel, args: &Args, tokens: usize) -> Result<Context, Failure> {
    warn_of_length(&running.metadata, tokens);
    let cache_type = args.run.cache_type();
    let options = ContextOptions { tokens, cache_type, ..ContextOptions::default() };
    Ok(Context::new(running.executor.clone(), options)?)
}

/// One answer, piece by piece, or as JSON when it is complete.
fn one(
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
        fault = out.write_all(text.as_bytes()).and_then(|()| out.flush()).err();
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
        let ended = match stop_reason {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::Cancelled => "reader",
        };
        let shown = json!({
            "text": text, "ids": made, "ended": ended, "prompt_tokens": ids.len(),
            "seconds": seconds,
        });
        document::print_line(&mut out, "generate/1", shown)?;
    } else {
        writeln!(out)?;
    }
    Ok(())
}

impl Input {
    fn text(&self) -> Result<String, Failure> {
        words::text(self.prompt.as_deref(), self.file.as_deref())
    }
}
