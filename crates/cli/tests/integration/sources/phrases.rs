//! No page, help text, message, comment or name has a phrase of `banned.txt`: the field has a term for it.

use std::path::Path;
use std::process::Command;

use regex::RegexBuilder;

/// Phrases, and what to write instead.
const PHRASES: &str = include_str!("banned.txt");
/// Endings of the files that are read.
const ENDINGS: [&str; 8] = ["rs", "md", "py", "pyi", "ts", "tsx", "sh", "toml"];

#[test]
fn home_made_phrases_do_not_come_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rows = PHRASES.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let rows: Vec<_> = rows.map(|line| line.split_once(" # ").expect("`phrase # term`")).collect();
    let compile = |phrase: &str| RegexBuilder::new(phrase).case_insensitive(true).build().unwrap();
    let all = rows.iter().map(|(phrase, _)| format!("(?:{phrase})")).collect::<Vec<_>>().join("|");
    let all = compile(&all);
    let rows: Vec<_> = rows.into_iter().map(|(phrase, term)| (compile(phrase), term)).collect();
    let listed = Command::new("git").arg("-C").arg(&root).args(["ls-files", "-z"]).output();
    let listed = listed.expect("git lists the files");
    let files = String::from_utf8(listed.stdout).unwrap();
    let mut found = Vec::new();
    let mut read = 0;
    for file in files.split('\0') {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str());
        if !ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
            continue;
        }
        // A file that is deleted and not yet committed.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        read += 1;
        // Most files have none: one search for all of them first.
        if !all.is_match(&text) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for (_, term) in rows.iter().filter(|(phrase, _)| phrase.is_match(line)) {
                found.push(format!("{file}:{}: {} (write: {term})", number + 1, line.trim()));
            }
        }
    }
    assert!(read > 1000, "only {read} files were read");
    assert!(found.is_empty(), "{} phrases:\n{}", found.len(), found.join("\n"));
}
