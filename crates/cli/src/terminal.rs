//! Terminal output: colors, width, and messages on standard error.

use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ColorChoice;
use console::{Style, Term};
use gguf::Severity;

/// Flags of all commands.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
#[group(skip)]
pub struct Flags {
    /// When to use colors.
    ///
    /// With `auto`, only on a terminal; NO_COLOR, CLICOLOR_FORCE and FORCE_COLOR are honored.
    #[arg(long, value_enum, global = true, value_name = "auto|always|never", default_value_t = When::Auto)]
    #[arg(hide_possible_values = true)]
    color: When,
    /// Also show informational messages.
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
    /// Applies the flags. `NO_COLOR`, `CLICOLOR_FORCE`, `FORCE_COLOR` and the terminal decide about `auto`.
    pub fn apply(&self) {
        VERBOSE.store(self.verbose, Ordering::Relaxed);
        if self.color == When::Auto && is_color_forced() {
            console::set_colors_enabled(true);
            console::set_colors_enabled_stderr(true);
        }
        if self.color != When::Auto {
            console::set_colors_enabled(self.color == When::Always);
            console::set_colors_enabled_stderr(self.color == When::Always);
        }
    }
}

/// Whether `FORCE_COLOR` asks for colors, and `NO_COLOR` does not refuse them.
fn is_color_forced() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    is_set("FORCE_COLOR") && !is_set("NO_COLOR")
}

/// Returns the color choice for parse errors, found before the arguments are parsed.
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
        _ if is_color_forced() => ColorChoice::Always,
        _ => ColorChoice::Auto,
    }
}

/// Whether `--verbose` is given.
pub fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Returns the width of the terminal of standard output; `None` if it is not a terminal.
pub fn width() -> Option<usize> {
    let (_, columns) = Term::stdout().size_checked()?;
    (columns > 0).then(|| columns.into())
}

/// Truncates a line to the width of the terminal. Color codes take no space.
pub fn fit(line: &str) -> String {
    match width() {
        Some(width) => console::truncate_str(line, width, "...").into_owned(),
        None => line.to_owned(),
    }
}

/// Wraps text at the width of the terminal; each line begins with `indent`. Without a terminal, returns one
/// line.
pub fn wrap(text: &str, indent: &str) -> String {
    match width() {
        Some(width) => wrap_at(text, indent, width),
        None => format!("{indent}{text}"),
    }
}

/// Wraps a message at the width of the terminal of standard error; lines after the first begin with `indent`. Without a
/// terminal, and if the message has lines of its own, returns it unchanged.
fn wrap_message(text: &str, indent: &str) -> String {
    match Term::stderr().size_checked() {
        Some((_, columns @ 1..)) if !text.contains('\n') => {
            wrap_at(text, indent, columns.into()).trim_start().to_owned()
        }
        _ => text.to_owned(),
    }
}

/// Prints wrong usage, with lines wrapped at words if standard error is a terminal.
pub fn print_usage_error(error: &clap::Error, color: ColorChoice) {
    let Some((_, columns @ 1..)) = Term::stderr().size_checked() else {
        // A reader that is gone still gets the exit code.
        let _ = error.print();
        return;
    };
    let is_colored = match color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => console::colors_enabled_stderr(),
    };
    let text = match is_colored {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    for line in text.lines() {
        match console::measure_text_width(line) > columns.into() {
            true => {
                let indent = &line[..line.len() - line.trim_start().len()];
                eprintln!("{}", wrap_at(line, indent, columns.into()));
            }
            false => eprintln!("{line}"),
        }
    }
}

fn wrap_at(text: &str, indent: &str, width: usize) -> String {
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

/// Escapes characters that could control the terminal.
pub fn plain(text: &str) -> String {
    escaped(text, is_controlling)
}

/// Returns text of a model as it can be printed: on a terminal, characters that could control it are escaped, except line
/// breaks and tabs. In a pipe the text is unchanged.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_controlling(c) && !matches!(c, '\n' | '\t');
    match std::io::stdout().is_terminal() && text.contains(is_escaped) {
        true => escaped(text, is_escaped).into(),
        false => text.into(),
    }
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let shown = |c: char| match is_escaped(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// Whether a character controls the terminal, or the direction of the characters around it.
fn is_controlling(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a name or a verdict in bold.
pub fn strong(text: impl Display) -> String {
    Style::new().bold().apply_to(text).to_string()
}

/// Formats secondary text, dimmed.
pub fn faint(text: impl Display) -> String {
    Style::new().dim().apply_to(text).to_string()
}

/// Formats added items in green.
pub fn added(text: impl Display) -> String {
    Style::new().green().apply_to(text).to_string()
}

/// Formats removed items in red.
pub fn removed(text: impl Display) -> String {
    Style::new().red().apply_to(text).to_string()
}

/// Formats changed items in yellow.
pub fn changed(text: impl Display) -> String {
    Style::new().yellow().apply_to(text).to_string()
}

/// Formats text in the color of a severity.
pub fn severe(severity: Severity, text: impl Display) -> String {
    of_severity(severity).apply_to(text).to_string()
}

fn of_severity(severity: Severity) -> Style {
    match severity {
        Severity::Error => Style::new().red().bold(),
        Severity::Warning => Style::new().yellow().bold(),
        Severity::Note => Style::new().cyan(),
    }
}

/// Prints an error, and its advice on a second line.
pub fn error(message: impl Display, help: Option<impl Display>) {
    print(Severity::Error, message);
    if let Some(help) = help {
        std::eprintln!("  {}", wrap_message(&format!("help: {help}"), "  "));
    }
}

/// Prints a dimmed remark without a label, as part of a conversation.
pub fn dim(message: impl Display) {
    if !crate::quiet::is_on() {
        eprintln!("{}", Style::new().for_stderr().dim().apply_to(message));
    }
}

/// Prints a warning.
pub fn warning(message: impl Display) {
    print(Severity::Warning, message);
}

/// Prints a note.
pub fn note(message: impl Display) {
    print(Severity::Note, message);
}

/// Prints notes, and warnings among them.
pub fn notes(notes: &[String]) {
    for text in notes {
        match text.strip_prefix("warning: ") {
            Some(text) => warning(text),
            None => note(text),
        }
    }
}

fn print(severity: Severity, message: impl Display) {
    let word = of_severity(severity).for_stderr().apply_to(severity);
    let message = wrap_message(&format!("{word}: {message}"), "  ");
    match severity {
        // `--quiet` does not suppress errors.
        Severity::Error => std::eprintln!("{message}"),
        _ => eprintln!("{message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}[31mb\n"), r"a\u{1b}[31mb\n");
        assert_eq!(plain("Grüße"), "Grüße");
    }

    #[test]
    fn wrap_keeps_all_words() {
        // Holds with and without a terminal.
        let long = "word ".repeat(100);
        let lines = wrap(long.trim(), "  ");
        assert_eq!(lines.split_whitespace().count(), 100);
        assert!(lines.lines().all(|line| line.starts_with("  word")));
    }
}
