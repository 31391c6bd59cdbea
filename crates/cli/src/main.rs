//! The `gguf` command.
//!
//! Each sub-command is one file: what the user typed (`Args`, no work done), then a call into the
//! libraries, then what to print. Exit codes are in `failure.rs`.

mod commands;
mod compat;
mod failure;
mod force;
mod judging;
mod listing;
mod progress;
mod running;
mod sarif;
mod target;
mod terminal;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;

/// Convert, quantize, inspect and check GGUF model files.
#[derive(Parser)]
#[command(
    name = "gguf",
    version,
    after_help = "Exit codes: 0 done, 1 the input is at fault, 2 wrong usage (also an output that \
                  exists), 3 the environment (cannot read or write, disk full), 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    terminal: terminal::Flags,
}

#[derive(Subcommand)]
enum Command {
    Convert(commands::convert::Args),
    Export(commands::export::Args),
    Quantize(commands::quantize::Args),
    Imatrix(commands::imatrix::Args),
    Lora(commands::lora::Args),
    Recipe(commands::recipe::Args),
    Inspect(commands::inspect::Args),
    Check(commands::check::Args),
    Edit(commands::edit::Args),
    Name(commands::name::Args),
    Split(commands::split::Args),
    Merge(commands::merge::Args),
    Diff(commands::diff::Args),
    Hash(commands::hash::Args),
    Verify(commands::verify::Args),
    ConvertEndian(commands::endian::Args),
    Tokenize(commands::tokenize::Args),
    Detokenize(commands::detokenize::Args),
    ChatTemplate(commands::chat_template::Args),
    Graph(commands::graph::Args),
    Logits(commands::logits::Args),
    Perplexity(commands::perplexity::Args),
    Divergence(commands::divergence::Args),
    EvalMerge(commands::eval_merge::Args),
    Quality(Box<commands::quality::Args>),
    Sensitivity(Box<commands::sensitivity::Args>),
    Generate(Box<commands::generate::Args>),
    Transcribe(Box<commands::transcribe::Args>),
    Embed(commands::embed::Args),
    Bench(commands::bench::Args),
    Demo(commands::demo::Args),
    #[command(hide = true)]
    RenderTemplate(commands::render_template::Args),
}

fn main() -> ExitCode {
    progress::survive_limits();
    // Wrong usage ends in clap with exit code 2.
    let cli = Cli::parse();
    cli.terminal.obey();
    let result = match cli.command {
        Command::Convert(args) => commands::convert::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Quantize(args) => commands::quantize::run(&args),
        Command::Imatrix(args) => commands::imatrix::run(&args),
        Command::Lora(args) => commands::lora::run(&args),
        Command::Recipe(args) => commands::recipe::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Edit(args) => commands::edit::run(&args),
        Command::Name(args) => commands::name::run(&args),
        Command::Split(args) => commands::split::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Hash(args) => commands::hash::run(&args),
        Command::Verify(args) => commands::verify::run(&args),
        Command::ConvertEndian(args) => commands::endian::run(&args),
        Command::Tokenize(args) => commands::tokenize::run(&args),
        Command::Detokenize(args) => commands::detokenize::run(&args),
        Command::ChatTemplate(args) => commands::chat_template::run(&args),
        Command::Graph(args) => commands::graph::run(&args),
        Command::Logits(args) => commands::logits::run(&args),
        Command::Perplexity(args) => commands::perplexity::run(&args),
        Command::Divergence(args) => commands::divergence::run(&args),
        Command::EvalMerge(args) => commands::eval_merge::run(&args),
        Command::Quality(args) => commands::quality::run(&args),
        Command::Sensitivity(args) => commands::sensitivity::run(&args),
        Command::Generate(args) => commands::generate::run(&args),
        Command::Transcribe(args) => commands::transcribe::run(&args),
        Command::Embed(args) => commands::embed::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::RenderTemplate(args) => commands::render_template::run(&args),
    };
    match result {
        // Whoever reads our output may stop when it has enough: `gguf inspect x | head`.
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                terminal::error(message);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}
