//! The `gguf` command, for the program of this name and for the Python package, which brings it along.
//!
//! Each sub-command is one file: what the user typed (`Args`, no work done), then a call into the
//! libraries, then what to print. Exit codes are in `failure.rs`.

/// What is said beside the output, which `--quiet` leaves out. It stands for the macro of the standard
/// library in all modules below, so that none of them can forget to ask.
macro_rules! eprintln {
    ($($text:tt)*) => {
        if !$crate::quiet::is_on() {
            ::std::eprintln!($($text)*);
        }
    };
}

mod commands;
mod compat;
mod demo_model;
mod document;
mod failure;
mod force;
mod groups;
mod habits;
mod judging;
mod launch;
mod listing;
mod old;
mod progress;
mod quiet;
mod running;
mod sarif;
mod sharding;
mod target;
mod terminal;
mod words;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
pub use launch::Launch;

/// Convert, quantize, inspect and check GGUF model files.
#[derive(Parser)]
#[command(name = "gguf", version = env!("GGUF_VERSION"), disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print only what was asked for, and errors.
    #[arg(short, long, global = true)]
    quiet: bool,
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
    View(commands::view::Args),
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
    Help(commands::help::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
    Links(commands::links::Args),
}

/// The command line: what help, completions and manual pages are made of.
fn command() -> clap::Command {
    groups::in_groups(Cli::command())
}

fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = command().color(terminal::color_of(&words));
    let matches = command.try_get_matches_from_mut(&words);
    let mut matches = matches.map_err(|error| habits::explain(error, &words))?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Does what a command line says, whose first word is the name of the program, and answers with the exit
/// code. Wrong usage, and requests for help, end the process. `launch` says how the program is started;
/// `None` if nobody knows.
///
/// To be called once, by a process that does nothing else.
pub fn run(words: Vec<OsString>, launch: Option<Launch>) -> u8 {
    progress::survive_limits();
    launch::begin(&words, launch);
    let words = match old::start(words) {
        old::Started::Old(code) => return code,
        old::Started::Ours(words) => words,
    };
    if words.get(1).is_some_and(|word| word == commands::render_template::WORD) {
        return ended(commands::render_template::run());
    }
    let cli = match parse(words) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                document::print_error(&Failure::from(&error));
            }
            // Wrong usage ends here with exit code 2; help and version with 0.
            error.exit();
        }
    };
    if cli.quiet {
        quiet::begin();
    }
    cli.terminal.obey();
    let result = match cli.command {
        Command::Convert(args) => commands::convert::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Quantize(args) => commands::quantize::run(&args),
        Command::Imatrix(args) => commands::imatrix::run(&args),
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
        Command::Help(args) => commands::help::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Links(args) => commands::links::run(&args),
    };
    ended(result)
}

/// Says why a command failed, if it did, and to whoever started it by the exit code.
fn ended(result: Result<(), Failure>) -> u8 {
    match result {
        // Whoever reads our output may stop when it has enough: `gguf inspect x | head`.
        Ok(()) | Err(Failure::ClosedPipe) => 0,
        Err(failure) => {
            failure.say();
            document::print_error(&failure);
            failure.exit_code()
        }
    }
}
