//! Commands shown in documentation and help.

use std::path::Path;

use super::sandbox::gguf;

/// Script and its location.
pub struct Script {
    pub place: String,
    pub text: String,
}

/// Returns the README and docs by path.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let names = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()));
    let names = names.filter(|name| name.ends_with(".md"));
    let mut names: Vec<_> =
        names.chain(["README.md".into(), "packaging/README.md".into()]).collect();
    names.sort();
    let read = |name: String| (std::fs::read_to_string(root.join(&name)).unwrap(), name);
    names.into_iter().map(read).map(|(text, name)| (name, text)).collect()
}

/// Returns the code blocks of a language.
fn fenced<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = text.split(fence.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// Returns the blocks of commands, with optional parts included.
pub fn blocks() -> Vec<Script> {
    let mut scripts = Vec::new();
    for (place, text) in pages() {
        for block in fenced(&text, "sh") {
            let text = block.replace("\\\n", " ").replace(['[', ']'], "");
            scripts.push(Script { place: place.clone(), text });
        }
    }
    scripts
}

/// Returns commands with the output shown below them.
pub fn shown() -> Vec<(Script, String)> {
    let mut found = Vec::new();
    for (place, text) in pages() {
        for block in fenced(&text, "text") {
            let Some((line, output)) = block.strip_prefix("$ ").and_then(|b| b.split_once('\n'))
            else {
                continue;
            };
            found.push((Script { place: place.clone(), text: line.into() }, output.into()));
        }
    }
    found
}

/// Returns the cells of the table of equivalent commands.
pub fn equivalent_commands() -> Vec<Script> {
    let (place, text) =
        pages().into_iter().find(|(name, _)| name == "docs/compatibility.md").unwrap();
    let table = text.split("| llama.cpp, Python package | gguf |\n|---|---|\n").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let cells = table.lines().flat_map(|row| row.split('|').map(str::trim));
    let commands = cells.filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
    commands.map(|text| Script { place: place.clone(), text: text.into() }).collect()
}

/// Returns the examples of every help text.
pub fn examples() -> Vec<Script> {
    let place = super::sandbox::Place::new("").unwrap();
    assert!(place.run("gguf man pages").status.success());
    let mut scripts = Vec::new();
    for page in std::fs::read_dir(place.path("pages")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        let words = name.trim_end_matches(".1").split_once('-').map_or("", |(_, words)| words);
        // `gguf-eval-merge.1`, `gguf-lora-merge.1`.
        let apart = words.replacen('-', " ", 1);
        let help = [words, &apart].map(|words| gguf(&format!("{words} --help")));
        let help = help.into_iter().find(|output| output.status.success()).unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let Some((_, after)) = help.rsplit_once("\nExample") else { continue };
        let lines = after.lines().map(|line| line.trim_start_matches(['s', ':', ' ']));
        let lines = lines.filter(|line| line.starts_with("gguf ") || line.starts_with("cat "));
        scripts.extend(
            lines.map(|text| Script { place: format!("gguf {words} --help"), text: text.into() }),
        );
    }
    scripts
}
