//! Compatibility mode: programs of llama.cpp and scripts of the Python package `gguf`, under their own names:
//! `llama-quantize`, `gguf-dump`, `convert_hf_to_gguf.py` and others.
//!
//! Each has a module with the table of its flags and a function that translates the arguments to a `gguf`
//! command. Output that scripts parse has the original format.

mod arguments;
mod bench;
mod convert;
mod dump;
mod endian;
mod environment;
pub mod flag;
mod hash;
mod help;
mod imatrix;
mod lora;
mod new_metadata;
mod perplexity;
mod prompt;
mod quantize;
mod set_metadata;
mod shared_arguments;
pub mod shared_flags;
mod split;
#[cfg(test)]
mod tests;
mod tokenize;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use arguments::{Arguments, Request};
use flag::Flag;
pub use help::page;

use crate::aliases;
use crate::commands::render_template;
use crate::failure::Failure;

/// Compatible program.
struct Program {
    /// Name.
    name: &'static str,
    /// Equivalent `gguf` command.
    command: &'static str,
    /// Positional arguments, for the usage line.
    positionals: &'static str,
    /// Argument syntax.
    style: ArgumentStyle,
    /// Example arguments.
    example: &'static str,
    /// Flags, in groups that programs share.
    flags: &'static [&'static [Flag]],
    /// Runs the program and returns its exit code.
    run: fn(&Arguments) -> Result<u8, Failure>,
}

/// Argument syntax and exit codes of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArgumentStyle {
    /// Programs of llama.cpp: wrong usage has exit code 1.
    LlamaCpp,
    /// Scripts of the Python package: wrong usage has exit code 2, and help is printed without arguments.
    Package,
    /// Converters of llama.cpp: like [`ArgumentStyle::Package`], but fails without arguments.
    Converter,
}

/// All compatible programs.
const PROGRAMS: &[&Program] = &[
    &quantize::PROGRAM,
    &split::PROGRAM,
    &imatrix::PROGRAM,
    &perplexity::PROGRAM,
    &tokenize::PROGRAM,
    &hash::LLAMA,
    &bench::PROGRAM,
    &lora::PROGRAM,
    &dump::PROGRAM,
    &set_metadata::PROGRAM,
    &new_metadata::PROGRAM,
    &endian::PROGRAM,
    &hash::PACKAGE,
    &convert::CHECKPOINTS,
    &convert::ADAPTERS,
];

/// Returns the names of all compatible programs, and of llama.cpp's programs that a command replaces.
pub fn names() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.name).chain(aliases::programs()).collect()
}

/// Result of dispatching a command line.
pub enum Dispatch {
    /// A compatible program has run, with this exit code.
    Done(u8),
    /// The command line is for `gguf` itself.
    Command(Vec<OsString>),
}

/// Runs a compatible program if the process has its name, or the first argument is its name.
pub fn dispatch(args: impl IntoIterator<Item = OsString>) -> Dispatch {
    let mut args: Vec<_> = args.into_iter().collect();
    let word = |at: usize| args.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    // A child process of gguf keeps the name of its parent.
    if word(1) == render_template::COMMAND {
        return Dispatch::Command(args);
    }
    let named = Path::new(word(0)).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(program) = find(named) {
        return Dispatch::Done(program.main(args.split_off(1)));
    }
    if aliases::programs().any(|name| name == named) {
        args.insert(1, named.into());
    }
    let word = |at: usize| args.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let resolved = aliases::resolved(word(1));
    if let Some(program) = find(resolved) {
        return Dispatch::Done(program.main(args.split_off(2)));
    }
    if resolved != word(1) {
        args[1] = resolved.into();
    }
    Dispatch::Command(args)
}

/// Finds a program by name, with or without `.exe` or `.py`.
fn find(name: &str) -> Option<&'static Program> {
    let plain = |name: &str| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        let name = name.strip_suffix(".exe").unwrap_or(&name);
        name.strip_suffix(".py").unwrap_or(name).to_owned()
    };
    let name = plain(name);
    PROGRAMS.iter().copied().find(|program| plain(program.name) == name)
}

impl Program {
    fn rows(&self) -> impl Iterator<Item = &'static Flag> {
        self.flags.iter().copied().flatten()
    }

    fn main(&'static self, args: Vec<OsString>) -> u8 {
        if args.is_empty() && self.style == ArgumentStyle::Package {
            return self.code(self.print(&self.help()));
        }
        // A program of llama.cpp that needs arguments prints its usage and fails.
        if args.is_empty() && self.style == ArgumentStyle::LlamaCpp && !self.positionals.is_empty()
        {
            return match self.code(self.print(&self.help())) {
                0 => 1,
                code => code,
            };
        }
        self.code(Arguments::parse(self, args).and_then(|request| match request {
            Request::Help => self.print(&self.help()),
            Request::Version => self.print(concat!("gguf ", env!("GGUF_VERSION"), "\n")),
            Request::Work(arguments) => (self.run)(&arguments),
        }))
    }

    fn print(&self, text: &str) -> Result<u8, Failure> {
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(0)
    }

    /// Returns the exit code: 0 or 1, and 2 for wrong usage of Python programs.
    fn code(&self, done: Result<u8, Failure>) -> u8 {
        match done {
            Ok(code) => code,
            Err(Failure::ClosedPipe) => 0,
            Err(failure) => {
                if let Some(message) = failure.in_one_line() {
                    eprintln!("{}: {message}", self.name);
                }
                match failure {
                    Failure::Interrupted | Failure::Paused => failure.exit_code(),
                    failure
                        if failure.exit_code() == 2 && self.style != ArgumentStyle::LlamaCpp =>
                    {
                        2
                    }
                    _ => 1,
                }
            }
        }
    }
}
