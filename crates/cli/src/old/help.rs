//! The tables of old programs, printed: for their `--help`, and for the documentation.

use std::fmt::Write;

use super::common::GROUPS;
use super::flag::{Becomes, Flag};
use super::{PROGRAMS, Program, environment};

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

/// The tables of all programs, as a page: what programs share is there once.
pub fn page() -> String {
    let mut text = String::new();
    for program in PROGRAMS {
        let _ = write!(
            text,
            "## {}\n\nDoes what `{}` does. `{}`\n\n",
            program.name,
            program.ours,
            program.usage()
        );
        let (shared, own): (Vec<_>, Vec<_>) = program
            .flags
            .iter()
            .map(|flags| (heading(flags), *flags))
            .partition(|(heading, _)| heading.is_some());
        text += &table(own.into_iter().flat_map(|(_, flags)| flags));
        let headings: Vec<_> = shared.into_iter().filter_map(|(heading, _)| heading).collect();
        if !headings.is_empty() {
            let _ = writeln!(text, "Beside these, the shared flags of: {}.\n", headings.join("; "));
        }
    }
    text += "## Flags that programs of llama.cpp share\n\n";
    for (heading, flags) in GROUPS {
        let _ = write!(text, "### {heading}\n\n{}", table(flags.iter()));
    }
    text += "## Variables of the environment\n\nRead by those that have the flags of \"The program itself\", \
             where the flag is not given; of flags that do nothing here they are not read.\n\n";
    text += &environment::page();
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The heading of a group that programs share.
fn heading(flags: &[Flag]) -> Option<&'static str> {
    let same = |group: &[Flag]| group[0].names == flags[0].names && group.len() == flags.len();
    GROUPS.iter().find(|(_, group)| same(group)).map(|(heading, _)| *heading)
}

fn table<'f>(flags: impl Iterator<Item = &'f Flag>) -> String {
    let mut text = "| flag | here |\n|---|---|\n".to_owned();
    for flag in flags {
        let names: Vec<_> = flag.names().map(|name| format!("`{name}`")).collect();
        let becomes = match flag.becomes {
            Becomes::Ours(name) => format!("`{name}`"),
            other => said(other).replace('|', "\\|"),
        };
        let _ = writeln!(text, "| {} | {becomes} |", names.join(" "));
    }
    text + "\n"
}
