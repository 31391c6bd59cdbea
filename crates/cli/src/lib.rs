//! The `gguf` command, as a library for the binary and for the Python package that ships it.
//!
//! Each subcommand is one file: its arguments (`Args`), a call into the libraries, and what it prints. Exit
//! codes are in `failure.rs`.

/// Prints to standard error unless `--quiet` is given. Shadows the macro of the standard library in all modules
/// below, so that every message honors `--quiet`.
macro_rules! eprintln {
    ($($text:tt)*) => {
        if !$crate::quiet::is_on() {
            ::std::eprintln!($($text)*);
        }
    };
}

mod aliases;
mod caught_panics;
mod commands;
mod compat;
mod demo_model;
mod document;
mod downloads;
mod evaluation;
mod failure;
mod force;
mod foreign_flags;
mod groups;
mod guesses;
mod launch;
mod listing;
mod model_args;
mod outtype;
mod progress;
mod quiet;
mod sarif;
mod shard_args;
mod terminal;
mod text_input;
mod threads;
mod tokenizer_compat;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
pub use launch::Launch;

/// Package version, and the commit if built from a git tree.
const VERSION: &str = env!("GGUF_VERSION");

/// Convert, quantize, inspect and check GGUF model files.
#[derive(Parser)]
#[command(name = "gguf", bin_name = "gguf", version = VERSION, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Suppress notes and progress.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Progress display.
    ///
    /// With `auto`, a bar if standard error is a terminal; with `plain`, a line a minute, for the log of a long run.
    #[arg(long, value_enum, global = true, value_name = "auto|plain|none", default_value_t = progress::Display::Auto)]
    #[arg(hide_possible_values = true, help_heading = "Global options")]
    progress: progress::Display,
    #[command(flatten)]
    terminal: terminal::Flags,
}

#[derive(Subcommand)]
enum Command {
    Convert(commands::convert::Args),
    Export(commands::export::Args),
    Quantize(commands::quantize::Args),
    Imatrix(commands::imatrix::Args),
    CalibrationText(commands::calibration_text::Args),
    Lora(commands::lora::Args),
    Recipe(commands::recipe::Args),
    Inspect(commands::inspect::Args),
    View(commands::view::Args),
    Check(commands::check::Args),
    Edit(commands::edit::Args),
    Name(commands::name::Args),
    Split(commands::split::Args),
    Merge(commands::merge::Args),
    Diff(commands::diff::Args),
    Hash(commands::hash::Args),
    Sign(commands::sign::Args),
    Verify(Box<commands::verify::Args>),
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
    Chat(Box<commands::generate::ChatArgs>),
    Pull(commands::pull::PullArgs),
    Upload(commands::upload::Args),
    List(commands::pull::ListArgs),
    Rm(commands::pull::RemoveArgs),
    Card(Box<commands::card::Args>),
    Recommend(commands::recommend::Args),
    Transcribe(Box<commands::transcribe::Args>),
    Embed(commands::embed::Args),
    Bench(commands::bench::Args),
    Demo(commands::demo::Args),
    Help(commands::help::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
    Links(commands::links::Args),
}

/// Returns the command line definition, from which help, completions and manual pages are generated.
pub fn command() -> clap::Command {
    groups::in_groups(Cli::command())
}

fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = command().color(terminal::color_of(&words));
    command.build();
    let words = foreign_flags::translate(words, &command)?;
    let matches = command.try_get_matches_from_mut(&words);
    let mut matches = matches.map_err(|error| foreign_flags::explain(error, &words, &command))?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Runs a command line, whose first word is the program name, and returns the exit code. Requests for help
/// end the process. `launch` tells how to start this program again, if known.
///
/// Call it once, in a process that does nothing else.
pub fn run(words: Vec<OsString>, launch: Option<Launch>) -> u8 {
    progress::survive_limits();
    caught_panics::silence();
    launch::record(&words, launch);
    let words = match compat::dispatch(words) {
        compat::Dispatch::Done(code) => return code,
        compat::Dispatch::Command(words) => words,
    };
    if words.get(1).is_some_and(|word| word == commands::render_template::COMMAND) {
        return exit_code(commands::render_template::run());
    }
    // Most of the start is the definition of the command line, which the version does not need.
    if let [_, word] = &*words
        && (word == "--version" || word == "-V")
    {
        // As with the help, a reader that is gone is no error.
        let _ = writeln!(std::io::stdout(), "gguf {VERSION}");
        return 0;
    }
    let color = terminal::color_of(&words);
    let cli = match parse(words) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                document::print_error(&Failure::from(&error));
            }
            // Help and version have exit code 0.
            if !error.use_stderr() {
                error.exit();
            }
            terminal::print_usage_error(&error, color);
            return Failure::from(&error).exit_code();
        }
    };
    if cli.quiet {
        quiet::enable();
    }
    cli.progress.choose();
    cli.terminal.apply();
    let result = match cli.command {
        Command::Convert(args) => commands::convert::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Quantize(args) => commands::quantize::run(&args),
        Command::Imatrix(args) => commands::imatrix::run(&args),
        Command::CalibrationText(args) => commands::calibration_text::run(&args),
        Command::Lora(args) => commands::lora::run(&args),
        Command::Recipe(args) => commands::recipe::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::View(args) => commands::view::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Edit(args) => commands::edit::run(&args),
        Command::Name(args) => commands::name::run(&args),
        Command::Split(args) => commands::split::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Hash(args) => commands::hash::run(&args),
        Command::Sign(args) => commands::sign::run(&args),
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
        Command::Chat(args) => commands::generate::run_chat(&args),
        Command::Upload(args) => commands::upload::run(&args),
        Command::Pull(args) => commands::pull::pull(&args),
        Command::List(args) => commands::pull::list(&args),
        Command::Rm(args) => commands::pull::remove(&args),
        Command::Card(args) => commands::card::run(&args),
        Command::Recommend(args) => commands::recommend::run(&args),
        Command::Transcribe(args) => commands::transcribe::run(&args),
        Command::Embed(args) => commands::embed::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Help(args) => commands::help::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Links(args) => commands::links::run(&args, &compat::names(), compat::page),
    };
    exit_code(result)
}

/// Reports the failure, if any, and returns the exit code.
fn exit_code(result: Result<(), Failure>) -> u8 {
    match result {
        // The reader of a pipe may close it early: `gguf inspect x | head`.
        Ok(()) | Err(Failure::ClosedPipe) => 0,
        Err(failure) => {
            failure.print();
            document::print_error(&failure);
            failure.exit_code()
        }
    }
}
