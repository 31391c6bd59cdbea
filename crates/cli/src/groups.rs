//! Groups of commands, as listed by `gguf --help`.

use std::fmt::Write;

use clap::Command;

/// Headings with their commands.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Create", &["convert", "quantize", "imatrix", "calibration-text", "recipe", "lora", "export"]),
    ("Inspect", &["inspect", "view", "check", "graph", "name"]),
    ("Edit", &["edit", "split", "merge", "convert-endian"]),
    ("Compare", &["diff", "hash", "sign", "verify"]),
    ("Run", &["generate", "chat", "transcribe", "embed", "logits"]),
    (
        "Evaluate",
        &["perplexity", "divergence", "quality", "sensitivity", "eval-merge", "bench", "recommend"],
    ),
    ("Text", &["tokenize", "detokenize", "chat-template"]),
    ("Hub", &["pull", "list", "rm", "card", "upload"]),
    ("Help", &["help", "demo", "completions", "man", "links"]),
];

/// Replaces clap's single list of subcommands by a list in groups.
pub fn in_groups(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max();
    let width = width.unwrap_or_default();
    let mut list = String::new();
    for (heading, names) in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {literal}{name:<width$}{literal:#}  {about}");
        }
        list.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n\
         {{options}}\n\nSee `gguf help COMMAND`, or `gguf help TOPIC` for one of the topics\n{}.\n",
        crate::commands::help::topic_names().join(", ")
    );
    with_negative_numbers(command.help_template(template).max_term_width(100))
}

/// Lets every flag with a value take a negative number, so that its parser says what is wrong with it.
fn with_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_action().takes_values() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        })
        .mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let command = crate::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let shown: BTreeSet<_> = shown.map(Command::get_name).collect();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), shown);
        assert_eq!(grouped.len(), shown.len(), "a command is in two groups: {grouped:?}");
    }

    #[test]
    fn every_command_has_one_line() {
        let mut command = crate::command();
        let help = command.render_help().to_string();
        let long: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        assert!(help.contains("\nEvaluate:\n  perplexity        Compute perplexity"), "{help}");
    }
}
