//! Tables of compatible programs, for `--help` and for the documentation.

use std::fmt::Write;

use super::flag::{Flag, Handling};
use super::shared_flags::GROUPS;
use super::{PROGRAMS, Program, environment, quantize};

impl Program {
    /// Returns the usage line.
    pub fn usage(&self) -> String {
        format!(
            "{} [flags]{}{}",
            self.name,
            if self.positionals.is_empty() { "" } else { " " },
            self.positionals
        )
    }

    /// Returns the help: all flags and how they are handled.
    pub fn help(&self) -> String {
        let mut text = format!(
            "usage: {}\n\nThis is gguf in compatibility mode: {} runs `{}`.\n\nflags:\n",
            self.usage(),
            self.name,
            self.command
        );
        for flag in self.rows() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "  {:<44} {}",
                flag.names.replace(' ', ", "),
                self.meaning(flag.handling)
            );
        }
        let name = self.name;
        if std::ptr::eq(self, &quantize::PROGRAM) {
            let _ = write!(text, "\n{}", crate::outtype::table());
        }
        let _ = write!(text, "\nExample:\n  {name} {}\n", self.example);
        text
    }
}

impl Program {
    /// Returns what a flag does; for a flag of `gguf`, the first sentence of its help.
    fn meaning(&self, handling: Handling) -> String {
        let Handling::Flag(name) = handling else { return description(handling) };
        let command = crate::command();
        let words = self.command.trim_start_matches("gguf ").split(['`', ' ']);
        let found = words.take(2).try_fold(&command, |found, word| match word.starts_with('-') {
            true => Some(found),
            false => found.find_subcommand(word).or(Some(found)),
        });
        let arg = found.and_then(|found| {
            found.get_arguments().find(|arg| arg.get_long() == name.strip_prefix("--"))
        });
        let help = arg.and_then(clap::Arg::get_help).map(ToString::to_string);
        let sentence = help.as_deref().and_then(|help| help.split(". ").next());
        sentence.map_or_else(|| description(handling), |text| text.trim_end_matches('.').to_owned())
    }
}

fn description(handling: Handling) -> String {
    match handling {
        Handling::Flag(name) => format!("same as `gguf` {name}"),
        Handling::Translated(what) => what.to_owned(),
        Handling::Refused(why) => format!("refused: {why}"),
        Handling::Ignored(why) => format!("ignored: {why}"),
        Handling::Help => "help".to_owned(),
        Handling::Version => "version".to_owned(),
    }
}

/// Returns the tables of all programs as Markdown. Shared flags are listed once.
pub fn page() -> String {
    let mut text = String::new();
    for program in PROGRAMS {
        let _ = write!(
            text,
            "## {}\n\nRuns `{}`. Usage: `{}`\n\n",
            program.name,
            program.command,
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
            let _ = writeln!(text, "Also the shared flags: {}.\n", headings.join("; "));
        }
    }
    text += "## Shared flags of llama.cpp's programs\n\n";
    for (heading, flags) in GROUPS {
        let _ = write!(text, "### {heading}\n\n{}", table(flags.iter()));
    }
    text += "## Environment variables\n\nRead by programs with the flags of \"General\", unless the flag itself is given. \
             Variables of ignored flags are not read.\n\n";
    text += &environment::page();
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Returns the heading of a shared group of flags.
fn heading(flags: &[Flag]) -> Option<&'static str> {
    let same = |group: &[Flag]| group[0].names == flags[0].names && group.len() == flags.len();
    GROUPS.iter().find(|(_, group)| same(group)).map(|(heading, _)| *heading)
}

fn table<'f>(flags: impl Iterator<Item = &'f Flag>) -> String {
    let mut text = "| flag | handling |\n|---|---|\n".to_owned();
    for flag in flags {
        let names: Vec<_> = flag.names().map(|name| format!("`{name}`")).collect();
        let handling = match flag.handling {
            Handling::Flag(name) => format!("`{name}`"),
            other => description(other).replace('|', "\\|"),
        };
        let _ = writeln!(text, "| {} | {handling} |", names.join(" "));
    }
    text + "\n"
}
