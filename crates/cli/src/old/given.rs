//! What a user of an old program typed: its flags by the table, and its positions.

use clap::Parser;
use std::ffi::OsString;

use super::flag::{Becomes, Flag};
use super::{Family, Program, environment};
use crate::failure::Failure;

/// What is asked of a program.
pub enum Asked {
    /// The list of its flags.
    Help,
    /// The version.
    Version,
    /// Its work.
    Work(Given),
}

/// Flags with their values, in the order in which they were given, and the other words.
pub struct Given {
    program: &'static Program,
    flags: Vec<(&'static Flag, Vec<String>)>,
    /// The words that are no flags.
    pub words: Vec<String>,
}

impl Given {
    /// Reads the arguments by the table of the program. Flags that are refused are refused here.
    pub fn parse(program: &'static Program, args: Vec<OsString>) -> Result<Asked, Failure> {
        let mut given = Self { program, flags: Vec::new(), words: Vec::new() };
        let text = |word: OsString| {
            let shown = |word: OsString| format!("{} is no UTF-8", word.display());
            word.into_string().map_err(|word| Failure::Usage(shown(word)))
        };
        let mut args = args.into_iter();
        let mut only_words = false;
        while let Some(word) = args.next() {
            let word = text(word)?;
            if only_words || !word.starts_with('-') || word == "-" {
                given.words.push(word);
                continue;
            }
            if word == "--" {
                only_words = true;
                continue;
            }
            let (typed, joined) = program.family.cut(&word);
            let flag = program.flag(&typed)?;
            let mut values: Vec<String> = joined.into_iter().collect();
            while values.len() < flag.values {
                let wants = || Failure::Usage(format!("{typed} wants a value"));
                let value = args.next().ok_or_else(wants)?;
                values.push(text(value)?);
            }
            if values.len() > flag.values {
                return Err(Failure::Usage(format!("{typed} takes no value")));
            }
            match flag.becomes {
                Becomes::Help => return Ok(Asked::Help),
                Becomes::Version => return Ok(Asked::Version),
                Becomes::Refused(why) => return Err(Failure::Usage(format!("{typed}: {why}"))),
                Becomes::Nothing(why) => eprintln!("note: {typed} does nothing: {why}"),
                Becomes::Ours(_) | Becomes::Read(_) => {}
            }
            given.flags.push((flag, values));
        }
        let of_environment = environment::flags(program, &given.flags)?;
        given.flags.splice(0..0, of_environment);
        Ok(Asked::Work(given))
    }

    /// Whether a flag was given under this name or another one of its row.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Which of these flags was given last.
    pub fn last<'n>(&self, names: &[&'n str]) -> Option<&'n str> {
        let mut given = self.flags.iter().rev();
        given
            .find_map(|(flag, _)| names.iter().find(|name| flag.names().any(|n| n == **name)))
            .copied()
    }

    /// The value of a flag; the last one, if it was given several times.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.all(name).last()?.first().map(String::as_str)
    }

    /// The value as a number.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Failure> {
        let wrong = |text: &str| Failure::Usage(format!("{name}: `{text}` is no such number"));
        self.value(name).map(|text| text.trim().parse().map_err(|_| wrong(text))).transpose()
    }

    /// The values of each time that a flag was given.
    pub fn all<'g, 'n>(
        &'g self,
        name: &'n str,
    ) -> impl Iterator<Item = &'g [String]> + use<'g, 'n> {
        let named = move |flag: &Flag| flag.names().any(|own| own == name);
        self.flags.iter().filter(move |(flag, _)| named(flag)).map(|(_, values)| &values[..])
    }

    /// The words of our command: the flags that are ours under another name, these others, and the
    /// positions.
    pub fn ours<O: Into<String>, P: Into<String>>(
        &self,
        others: impl IntoIterator<Item = O>,
        positions: impl IntoIterator<Item = P>,
    ) -> Vec<String> {
        let translated = self.flags.iter().filter_map(|(flag, values)| match flag.becomes {
            Becomes::Ours(ours) => Some(match values.first() {
                Some(value) => format!("{ours}={value}"),
                None => ours.to_owned(),
            }),
            _ => None,
        });
        let mut words: Vec<String> = translated.chain(others.into_iter().map(Into::into)).collect();
        words.push("--".to_owned());
        words.extend(positions.into_iter().map(Into::into));
        words
    }

    /// As many positions as the program has, by name.
    pub fn positions<const N: usize>(&self, names: [&str; N]) -> Result<[&str; N], Failure> {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        <[&str; N]>::try_from(words).map_err(|words| {
            let what = match words.get(N) {
                Some(word) => format!("`{word}` is one word too many"),
                None => format!("{} is missing", names[words.len()]),
            };
            let usage = self.program.usage();
            Failure::Usage(format!("{what}: {usage}"))
        })
    }
}

impl Program {
    /// The row of a flag.
    fn flag(&self, typed: &str) -> Result<&'static Flag, Failure> {
        let spelled = self.family.spelled(typed);
        if let Some(flag) = self.rows().find(|flag| flag.names().any(|name| name == spelled)) {
            return Ok(flag);
        }
        let begins = |flag: &&Flag| flag.names().any(|name| name.starts_with(&spelled));
        let mut likely = self.rows().filter(begins).take_while(|_| spelled.starts_with("--"));
        match (self.family, likely.next(), likely.next()) {
            // As `argparse` has it.
            (Family::Package | Family::Converter, Some(flag), None) => Ok(flag),
            _ => Err(Failure::Usage(format!(
                "unknown argument {typed}: `{} --help` lists those that are known",
                self.name
            ))),
        }
    }
}

impl Family {
    /// A flag and the value that is joined to it.
    fn cut(self, word: &str) -> (String, Option<String>) {
        match (self, word.split_once('=')) {
            (Self::Package | Self::Converter, Some((flag, value))) => {
                (flag.to_owned(), Some(value.to_owned()))
            }
            _ => (word.to_owned(), None),
        }
    }

    /// A flag as the tables have it: programs of llama.cpp take underscores for dashes.
    fn spelled(self, typed: &str) -> String {
        match self {
            Self::LlamaCpp if typed.starts_with("--") => typed.replace('_', "-"),
            _ => typed.to_owned(),
        }
    }
}

#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Of<A: clap::Args> {
    #[command(flatten)]
    args: A,
}

/// The arguments of one of our commands, of words as [`Given::ours`] makes them.
pub fn args_of<A: clap::Args>(words: Vec<String>) -> Result<A, Failure> {
    Of::try_parse_from(words).map(|of: Of<A>| of.args).map_err(|fault| {
        let text = fault.to_string();
        let what = text.split("\n\n").next().unwrap_or_default();
        Failure::Usage(what.trim_start_matches("error: ").to_owned())
    })
}
