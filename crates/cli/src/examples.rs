//! Command lines in the documentation and in help texts are understood.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

/// The command lines of a text: what begins with `gguf`, up to what only a shell understands.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let commands = text.lines().flat_map(|line| line.split("&&")).map(str::trim);
    let commands = commands.filter(|line| line.starts_with("gguf "));
    commands
        .map(|line| {
            // Comments; output that goes elsewhere; what may be left out.
            let end = [" #", " >", " |", " &"].iter().filter_map(|mark| line.find(mark)).min();
            line[..end.unwrap_or(line.len())].replace(['[', ']'], "")
        })
        .collect()
}

fn fault(line: &str) -> Option<String> {
    let words = shlex::split(line)?;
    // Variables of shells stand for numbers.
    let words = words.iter().map(|word| {
        let parts: Vec<_> =
            word.split('/').map(|part| if part.starts_with('$') { "1" } else { part }).collect();
        parts.join("/")
    });
    let error = crate::command().try_get_matches_from(words).err()?;
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_help).then(|| format!("{line}: {error}"))
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    docs.chain([root.join("README.md"), root.join("packaging/README.md")]).collect()
}

#[test]
fn commands_of_the_documentation_are_understood() {
    let mut found = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```sh\n").skip(1) {
            let lines = lines(block.split("```").next().unwrap_or_default());
            found += lines.len();
            wrong.extend(lines.iter().filter_map(|line| fault(line)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 30, "{found} commands are too few: the blocks look different now");
}

#[test]
fn examples_of_help_are_understood() {
    fn visit(command: &clap::Command, wrong: &mut Vec<String>, found: &mut usize) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = lines(&text);
        *found += lines.len();
        wrong.extend(lines.iter().filter_map(|line| fault(line)));
        command.get_subcommands().for_each(|command| visit(command, wrong, found));
    }
    let (mut wrong, mut found) = (Vec::new(), 0);
    visit(&crate::command(), &mut wrong, &mut found);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 60, "{found}");
}
