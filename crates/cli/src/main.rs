//! The `gguf` command.
//!
//! Each sub-command is one file: what the user typed (`Args`, no work done), then a call into the
//! libraries, then what to print. Exit codes are in `failure.rs`.

mod commands;
mod failure;
mod listing;
mod progress;
mod target;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Convert, quantize, inspect and check GGUF model files.
#[derive(Parser)]
#[command(
    name = "gguf",
    version,
    after_help = "Exit codes: 0 done, 1 the input is at fault, 2 wrong usage, 3 the environment \
                  (cannot read or write, disk full), 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Convert(commands::convert::Args),
    Quantize(commands::quantize::Args),
    Inspect(commands::inspect::Args),
    Check(commands::check::Args),
    Demo(commands::demo::Args),
}

fn main() -> ExitCode {
    // Wrong usage ends in clap with exit code 2.
    let result = match Cli::parse().command {
        Command::Convert(args) => commands::convert::run(&args),
        Command::Quantize(args) => commands::quantize::run(&args),
        Command::Inspect(args) => commands::inspect::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
    };
    match result {
        // Whoever reads our output may stop when it has enough: `gguf inspect x | head`.
        Ok(()) | Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                eprintln!("gguf: {message}");
            }
            ExitCode::from(failure.exit_code())
        }
    }
}
