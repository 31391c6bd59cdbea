//! Other people's programs that this one does the work of, under their names: `llama-quantize`,
//! `gguf-dump`, `convert_hf_to_gguf.py` and others.
//!
//! Each has a file with the table of its flags and a function that does the work: by translation to
//! the arguments of one of our commands, and in the words of the original where scripts read these.

mod bench;
mod common;
mod confirm;
mod convert;
mod dump;
mod endian;
mod environment;
mod flag;
mod given;
mod hash;
mod help;
mod imatrix;
mod lora;
mod new_metadata;
mod perplexity;
mod quantize;
mod set_metadata;
mod split;
#[cfg(test)]
mod tests;
mod tokenize;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use flag::Flag;
use given::{Asked, Given};
pub use help::page;

use crate::commands::render_template;
use crate::failure::Failure;

/// A program that this one does the work of.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Our command for it.
    ours: &'static str,
    /// Its positions.
    words: &'static str,
    /// How it reads its arguments.
    family: Family,
    /// An example of its arguments.
    example: &'static str,
    /// Its flags, in groups that programs share.
    flags: &'static [&'static [Flag]],
    /// Its work; the number is its exit code.
    run: fn(&Given) -> Result<u8, Failure>,
}

/// Whose habits a program has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// llama.cpp's: wrong usage is exit code 1.
    LlamaCpp,
    /// The Python package's: wrong usage is exit code 2; without arguments there is help.
    Package,
    /// The converters': the same, but without arguments there is an error.
    Converter,
}

/// All of them.
pub const PROGRAMS: &[&Program] = &[
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

/// Words that other programs have for commands: one of ours, or a program of [`PROGRAMS`].
const WORDS: &[(&str, &str)] = &[
    ("dump", "gguf-dump"),
    ("set-metadata", "gguf-set-metadata"),
    ("new-metadata", "gguf-new-metadata"),
    ("gguf-split", "llama-gguf-split"),
    ("export-lora", "llama-export-lora"),
    ("info", "inspect"),
    ("show", "inspect"),
    ("ls", "inspect"),
    ("ppl", "perplexity"),
    ("kl-divergence", "divergence"),
    ("run", "generate"),
];

/// What the process was started for.
pub enum Started {
    /// The work of an old program, which is done.
    Old(u8),
    /// A command of ours, by these words.
    Ours(Vec<OsString>),
}

/// Does the work of an old program if the process has its name, or its name is the first word.
pub fn start(args: impl IntoIterator<Item = OsString>) -> Started {
    let mut args: Vec<_> = args.into_iter().collect();
    let word = |at: usize| args.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    // A process of ours, whatever name it has inherited.
    if word(1) == render_template::WORD {
        return Started::Ours(args);
    }
    let named = Path::new(word(0)).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(program) = find(named) {
        return Started::Old(program.main(args.split_off(1)));
    }
    let meant = WORDS.iter().find(|(old, _)| *old == word(1)).map_or(word(1), |(_, new)| new);
    if let Some(program) = find(meant) {
        return Started::Old(program.main(args.split_off(2)));
    }
    if meant != word(1) {
        args[1] = meant.into();
    }
    Started::Ours(args)
}

/// The program of a name, with or without the endings that systems and languages give it.
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
        if args.is_empty() && self.family == Family::Package {
            return self.code(self.print(&self.help()));
        }
        self.code(Given::parse(self, args).and_then(|asked| match asked {
            Asked::Help => self.print(&self.help()),
            Asked::Version => self.print(&format!("gguf {}\n", env!("CARGO_PKG_VERSION"))),
            Asked::Work(given) => (self.run)(&given),
        }))
    }

    fn print(&self, text: &str) -> Result<u8, Failure> {
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(0)
    }

    /// The exit codes of old programs: 0 and 1, and 2 for wrong usage of those in Python.
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
                    failure if failure.exit_code() == 2 && self.family != Family::LlamaCpp => 2,
                    _ => 1,
                }
            }
        }
    }
}
