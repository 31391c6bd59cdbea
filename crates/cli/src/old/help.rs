//! The tables of old programs, printed: for their `--help`, and for the documentation.

use std::fmt::Write;

use super::flag::Becomes;
use super::{PROGRAMS, Program};

impl Program {
    /// How the program is called.
    pub fn usage(&self) -> String {
        format!(
            "{} [flags]{}{}",
            self.name,
            if self.words.is_empty() { "" } else { " " },
            self.words
        )
    }

    /// All flags, with what becomes of them.
    pub fn help(&self) -> String {
        let mut text = format!(
            "usage: {}\n\nThis is gguf, which does the work of {} as `{}` does it.\n\nflags:\n",
            self.usage(),
            self.name,
            self.ours
        );
        for flag in self.rows() {
            // Writing to a string does not fail.
            let _ =
                writeln!(text, "  {:<44} {}", flag.names.replace(' ', ", "), said(flag.becomes));
        }
        let name = self.name;
        let _ = write!(text, "\nExample:\n  {name} {}\n", self.example);
        text
    }
}

fn said(becomes: Becomes) -> String {
    match becomes {
        Becomes::Ours(name) => format!("{name} of ours"),
        Becomes::Read(what) => what.to_owned(),
        Becomes::Refused(why) => format!("refused: {why}"),
        Becomes::Nothing(why) => format!("does nothing: {why}"),
        Becomes::Help => "prints this list".to_owned(),
        Becomes::Version => "prints the version".to_owned(),
    }
}

/// The tables of all programs, as a page.
pub fn page() -> String {
    let mut text = String::new();
    for program in PROGRAMS {
        let _ = write!(
            text,
            "## {}\n\nDoes what `{}` does. `{}`\n\n| flag | here |\n|---|---|\n",
            program.name,
            program.ours,
            program.usage()
        );
        for flag in program.rows() {
            let names: Vec<_> = flag.names().map(|name| format!("`{name}`")).collect();
            let becomes = match flag.becomes {
                Becomes::Ours(name) => format!("`{name}`"),
                other => said(other).replace('|', "\\|"),
            };
            let _ = writeln!(text, "| {} | {becomes} |", names.join(" "));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}
