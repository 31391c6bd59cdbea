//! `gguf help`: help on commands and topics.

mod topics;

use std::io::Write;

use gguf::suggest;
use topics::TOPICS;

use crate::failure::Failure;
use crate::{aliases, guesses};

/// Show help on a command or topic.
#[derive(clap::Args)]
#[command(after_help = format!(
    "Topics: {}.\n\nExamples:\n  gguf help convert\n  gguf help lora merge\n  gguf help quantization",
    topic_names().join(", ")
))]
pub struct Args {
    /// Command or topic.
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

/// Returns the names of help topics.
pub fn topic_names() -> Vec<&'static str> {
    TOPICS.iter().map(|(name, _)| *name).collect()
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut command = crate::command();
    command.build();
    let mut found = &command;
    for (depth, word) in args.words.iter().enumerate() {
        if let (0, Some(text)) = (depth, topic(word)) {
            return Ok(std::io::stdout().lock().write_all(text.as_bytes())?);
        }
        let below = found.find_subcommand(if depth == 0 { aliases::resolved(word) } else { word });
        found = below.ok_or_else(|| unknown(found, word, depth == 0))?;
    }
    // Prints the same help as `--help` of the command.
    let words = args.words.iter().map(|word| aliases::resolved(word));
    let args = ["gguf"].into_iter().chain(words).chain(["--help"]);
    match crate::command().try_get_matches_from(args) {
        Err(help) => Ok(help.print()?),
        Ok(_) => Ok(()),
    }
}

fn topic(word: &str) -> Option<String> {
    // Alias of earlier versions.
    let word = if word == "mixes" { "quantization" } else { word };
    let found = TOPICS.iter().find(|(name, _)| *name == word);
    found.map(|(_, text)| text())
}

/// Returns the error for an unknown command or topic.
fn unknown(command: &clap::Command, word: &str, with_topics: bool) -> Failure {
    let topics = TOPICS.iter().map(|(name, _)| *name).filter(|_| with_topics);
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).chain(topics).collect();
    let guess = guesses::answer(word).filter(|_| with_topics);
    let hint = match &suggest::nearest(word, names.iter().copied())[..] {
        _ if let Some(answer) = guess => answer.to_owned(),
        [] if names.is_empty() => format!("`{command}` has no subcommands"),
        [] if with_topics => "`gguf help` lists the commands and topics".to_owned(),
        [] => format!("expected one of {}", names.join(", ")),
        near => suggest::did_you_mean(near),
    };
    Failure::Usage(format!("unknown command or topic `{word}`; {hint}"))
}
