//! Arguments of a compatible program: its flags, by its table, and its positional arguments.

use clap::Parser;
use std::ffi::OsString;

use super::flag::{Flag, Handling};
use super::{ArgumentStyle, Program, environment};
use crate::failure::Failure;

/// A parsed command line.
pub enum Request {
    /// Help.
    Help,
    /// Version.
    Version,
    /// Work, with these arguments.
    Work(Arguments),
}

/// Flags with their values in order, and positional arguments.
pub struct Arguments {
    program: &'static Program,
    flags: Vec<(&'static Flag, Vec<String>)>,
    /// Positional arguments.
    pub positionals: Vec<String>,
}

impl Arguments {
    /// Parses the arguments by the table of the program. Fails on refused flags.
    pub fn parse(program: &'static Program, args: Vec<OsString>) -> Result<Request, Failure> {
        let mut arguments = Self { program, flags: Vec::new(), positionals: Vec::new() };
        let text = |word: OsString| {
            let shown = |word: OsString| format!("{} is not valid UTF-8", word.display());
            word.into_string().map_err(|word| Failure::Usage(shown(word)))
        };
        let mut args = args.into_iter();
        let mut only_positionals = false;
        while let Some(word) = args.next() {
            let word = text(word)?;
            if only_positionals || !word.starts_with('-') || word == "-" {
                arguments.positionals.push(word);
                continue;
            }
            if word == "--" {
                only_positionals = true;
                continue;
            }
            let (typed, joined) = program.style.split_value(&word);
            let flag = program.flag(&typed)?;
            let mut values: Vec<String> = joined.into_iter().collect();
            while values.len() < flag.values {
                let missing = || Failure::Usage(format!("{typed} requires a value"));
                let value = args.next().ok_or_else(missing)?;
                values.push(text(value)?);
            }
            if values.len() > flag.values {
                return Err(Failure::Usage(format!("{typed} takes no value")));
            }
            match flag.handling {
                Handling::Help => return Ok(Request::Help),
                Handling::Version => return Ok(Request::Version),
                Handling::Refused(why) => return Err(Failure::Usage(format!("{typed}: {why}"))),
                Handling::Ignored(why) => eprintln!("note: {typed} is ignored: {why}"),
                Handling::Flag(_) | Handling::Translated(_) => {}
            }
            arguments.flags.push((flag, values));
        }
        let from_environment = environment::flags(program, &arguments.flags)?;
        arguments.flags.splice(0..0, from_environment);
        Ok(Request::Work(arguments))
    }

    /// Whether a flag is present, under any of its names.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns the last one of these flags.
    pub fn last<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        let mut flags = self.flags.iter().rev();
        flags
            .find_map(|(flag, _)| names.iter().find(|name| flag.names().any(|n| n == **name)))
            .copied()
    }

    /// Returns the last value of a flag.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.all(name).last()?.first().map(String::as_str)
    }

    /// Returns the value of a flag as a number.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Failure> {
        let wrong = |text: &str| Failure::Usage(format!("{name}: `{text}` is not a valid number"));
        self.value(name).map(|text| text.trim().parse().map_err(|_| wrong(text))).transpose()
    }

    /// Returns the values of each occurrence of a flag.
    pub fn all<'g, 'n>(
        &'g self,
        name: &'n str,
    ) -> impl Iterator<Item = &'g [String]> + use<'g, 'n> {
        let named = move |flag: &Flag| flag.names().any(|own| own == name);
        self.flags.iter().filter(move |(flag, _)| named(flag)).map(|(_, values)| &values[..])
    }

    /// Returns the arguments of the `gguf` command: renamed flags, `others`, and the positional arguments.
    pub fn translate<O: Into<String>, P: Into<String>>(
        &self,
        others: impl IntoIterator<Item = O>,
        positions: impl IntoIterator<Item = P>,
    ) -> Vec<String> {
        let translated = self.flags.iter().filter_map(|(flag, values)| match flag.handling {
            Handling::Flag(flag) => Some(match values.first() {
                Some(value) => format!("{flag}={value}"),
                None => flag.to_owned(),
            }),
            _ => None,
        });
        let mut words: Vec<String> = translated.chain(others.into_iter().map(Into::into)).collect();
        words.push("--".to_owned());
        words.extend(positions.into_iter().map(Into::into));
        words
    }

    /// Returns exactly the named positional arguments.
    pub fn positions<const N: usize>(&self, names: [&str; N]) -> Result<[&str; N], Failure> {
        let words: Vec<_> = self.positionals.iter().map(String::as_str).collect();
        <[&str; N]>::try_from(words).map_err(|words| {
            let what = match words.get(N) {
                Some(word) => format!("unexpected argument `{word}`"),
                None => format!("{} is missing", names[words.len()]),
            };
            let usage = self.program.usage();
            Failure::Usage(format!("{what}: {usage}"))
        })
    }
}

impl Program {
    /// Returns the table row of a flag.
    fn flag(&self, typed: &str) -> Result<&'static Flag, Failure> {
        let normalized = self.style.normalized(typed);
        if let Some(flag) = self.rows().find(|flag| flag.names().any(|name| name == normalized)) {
            return Ok(flag);
        }
        let has_prefix = |flag: &&Flag| flag.names().any(|name| name.starts_with(&normalized));
        let mut candidates =
            self.rows().filter(has_prefix).take_while(|_| normalized.starts_with("--"));
        match (self.style, candidates.next(), candidates.next()) {
            // `argparse` accepts unambiguous prefixes.
            (ArgumentStyle::Package | ArgumentStyle::Converter, Some(flag), None) => Ok(flag),
            _ => {
                Err(Failure::Usage(format!("unknown argument {typed}: see `{} --help`", self.name)))
            }
        }
    }
}

impl ArgumentStyle {
    /// Splits `--flag=value`.
    fn split_value(self, word: &str) -> (String, Option<String>) {
        match (self, word.split_once('=')) {
            (Self::Package | Self::Converter, Some((flag, value))) => {
                (flag.to_owned(), Some(value.to_owned()))
            }
            _ => (word.to_owned(), None),
        }
    }

    /// Normalizes a flag: programs of llama.cpp accept underscores for dashes.
    fn normalized(self, typed: &str) -> String {
        match self {
            Self::LlamaCpp if typed.starts_with("--") => typed.replace('_', "-"),
            _ => typed.to_owned(),
        }
    }
}

#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct ArgsParser<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// Parses the arguments of a `gguf` command, as returned by [`Arguments::translate`].
pub fn parse_args<A: clap::Args>(words: Vec<String>) -> Result<A, Failure> {
    ArgsParser::try_parse_from(words).map(|parser: ArgsParser<A>| parser.args).map_err(|fault| {
        let text = fault.to_string();
        let what = text.split("\n\n").next().unwrap_or_default();
        Failure::Usage(what.trim_start_matches("error: ").to_owned())
    })
}
