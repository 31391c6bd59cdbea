//! How the command speaks to people: colours, the width of their terminal, and what it says beside the
//! output of a command.

use std::ffi::OsString;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ColorChoice;
use console::{Style, Term};
use gguf::Severity;

/// How every command speaks.
#[derive(clap::Args)]
#[command(next_help_heading = "Every command")]
#[group(skip)]
pub struct Flags {
    /// When to use colours.
    ///
    /// With `auto` on a terminal; NO_COLOR and CLICOLOR_FORCE are obeyed then.
    #[arg(long, value_enum, global = true, value_name = "auto|always|never", default_value_t = When::Auto)]
    #[arg(hide_possible_values = true)]
    color: When,
    /// Say also what needs nothing to be done.
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

static VERBOSE: AtomicBool = AtomicBool::new(false);

impl Flags {
    /// Lets all that is said from now on follow them. What `auto` means, `NO_COLOR`, `CLICOLOR_FORCE` and
    /// the terminal say.
    pub fn obey(&self) {
        VERBOSE.store(self.verbose, Ordering::Relaxed);
        if self.color != When::Auto {
            console::set_colors_enabled(self.color == When::Always);
            console::set_colors_enabled_stderr(self.color == When::Always);
        }
    }
}

/// When what is wrong with these words themselves is said in colours: `--color` is not understood yet then.
pub fn color_of(words: &[OsString]) -> ColorChoice {
    let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
    let before = words.split(|word| *word == "--").next().unwrap_or_default();
    let mut values = before.iter().enumerate().filter_map(|(at, word)| match *word {
        "--color" => before.get(at + 1).copied(),
        word => word.strip_prefix("--color="),
    });
    match values.next_back() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Whether the user wants to know more.
pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Columns of the terminal that the output goes to; `None` where it goes elsewhere, and lines may be of any
/// length.
pub fn width() -> Option<usize> {
    let (_, columns) = Term::stdout().size_checked()?;
    (columns > 0).then(|| columns.into())
}

/// A line that fits the terminal: what does not is cut off. Colours take no room.
pub fn fit(line: &str) -> String {
    match width() {
        Some(width) => console::truncate_str(line, width, "...").into_owned(),
        None => line.to_owned(),
    }
}

/// Words in lines that fit the terminal, or in one line where there is none; each begins with `indent`.
pub fn wrap(text: &str, indent: &str) -> String {
    let Some(width) = width() else { return format!("{indent}{text}") };
    let mut lines = vec![String::from(indent)];
    let mut is_first = true;
    for word in text.split_whitespace() {
        let line = lines.last().map_or("", String::as_str);
        let len = console::measure_text_width(line) + 1 + console::measure_text_width(word);
        if len > width && !is_first {
            lines.push(indent.to_owned());
            is_first = true;
        }
        if let Some(line) = lines.last_mut() {
            if !is_first {
                line.push(' ');
            }
            line.push_str(word);
            is_first = false;
        }
    }
    lines.join("\n")
}

/// Text of a file as it can be shown: control characters, which could be commands to the terminal, are
/// written out.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// What stands out in a list: a name, a verdict.
pub fn strong(text: impl Display) -> String {
    Style::new().bold().apply_to(text).to_string()
}

/// What is beside the matter.
pub fn faint(text: impl Display) -> String {
    Style::new().dim().apply_to(text).to_string()
}

/// What was not there before.
pub fn added(text: impl Display) -> String {
    Style::new().green().apply_to(text).to_string()
}

/// What is there no more.
pub fn removed(text: impl Display) -> String {
    Style::new().red().apply_to(text).to_string()
}

/// What is another than before.
pub fn changed(text: impl Display) -> String {
    Style::new().yellow().apply_to(text).to_string()
}

/// A text in the colour of a severity.
pub fn severe(severity: Severity, text: impl Display) -> String {
    of_severity(severity).apply_to(text).to_string()
}

/// What people call a severity: the word that a line about it begins with.
pub fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn of_severity(severity: Severity) -> Style {
    match severity {
        Severity::Error => Style::new().red().bold(),
        Severity::Warning => Style::new().yellow().bold(),
        Severity::Info => Style::new().cyan(),
    }
}

/// Says why the command failed, and on a line of its own what to do.
pub fn error(message: impl Display, help: Option<impl Display>) {
    say(Severity::Error, message);
    if let Some(help) = help {
        std::eprintln!("  help: {help}");
    }
}

/// Says what is probably not meant.
pub fn warning(message: impl Display) {
    say(Severity::Warning, message);
}

/// Says what is worth knowing.
pub fn note(message: impl Display) {
    say(Severity::Info, message);
}

fn say(severity: Severity, message: impl Display) {
    let word = of_severity(severity).for_stderr().apply_to(word(severity));
    match severity {
        // Errors are said whatever is not to be said.
        Severity::Error => std::eprintln!("{word}: {message}"),
        _ => eprintln!("{word}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(plain("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
        assert_eq!(plain("Grüße"), "Grüße");
    }

    #[test]
    fn lines_are_whole_where_there_is_no_terminal() {
        // Tests may have one: what is said here holds for both.
        let long = "word ".repeat(100);
        let lines = wrap(long.trim(), "  ");
        assert_eq!(lines.split_whitespace().count(), 100);
        assert!(lines.lines().all(|line| line.starts_with("  word")));
    }
}
