//! Comparison of `docs/graph.md` with the operations in the code.

use std::collections::BTreeSet;

use gguf_graph::Op;

/// Returns a file of the crate.
fn read(file: &str) -> String {
    let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn page() -> String {
    read("../../docs/graph.md")
}

/// Returns the declarations of a source file: what comes before the first implementation.
fn declarations(file: &str) -> String {
    let source = read(file);
    let cut = |source: &str, mark: &str| source.split(mark).next().unwrap_or_default().to_owned();
    cut(&cut(&source, "#[cfg(test)]"), "\nimpl Operation for")
}

/// Returns the fields of a struct, or of all variants of an enum.
fn fields(source: &str, name: &str) -> BTreeSet<String> {
    let body = [format!("pub struct {name} {{"), format!("pub enum {name} {{")]
        .iter()
        .find_map(|start| source.split_once(start.as_str()))
        .map_or("", |(_, rest)| rest.split("\n}").next().unwrap_or_default());
    let field = |line: &str| {
        let line = line.trim();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let (name, _) = line.split_once(": ")?;
        let is_name =
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        is_name.then(|| name.to_owned())
    };
    body.lines().filter_map(field).collect()
}

fn camel_case(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('_').map(capital).collect()
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[test]
fn every_operator_has_a_section_with_its_fields() {
    let page = page();
    let mut sections: Vec<(&str, &str)> = page
        .split("\n### `")
        .skip(1)
        .map(|section| section.split_once('`').expect("a name ends"))
        .collect();
    sections.sort_unstable();
    let mut names = Op::NAMES.to_vec();
    names.sort_unstable();
    assert_eq!(sections.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for (name, section) in sections {
        let section = section.split("\n## ").next().unwrap_or_default();
        let row = |line: &str| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let kind = cells.next()?;
            let is_field = ["input", "weight", "attribute", "state"].contains(&kind);
            let name = cells.next()?.trim_matches('`').to_owned();
            is_field.then_some(name)
        };
        let mut documented: BTreeSet<String> = section.lines().filter_map(row).collect();
        // The tag of the recurrences.
        documented.retain(|field| (name, &**field) != ("wkv", "version"));
        let source = declarations(&format!("src/op/{name}.rs"));
        assert_eq!(documented, fields(&source, &camel_case(name)), "{name}");
        assert!(section.contains("ince version "), "{name}");
        assert!(section.contains("| output |"), "{name}");
        assert!(page.contains(&format!("[`{name}`](#{name})")), "{name} is missing from the list");
    }
}

#[test]
fn every_name_of_the_stored_form_is_on_the_page() {
    let page = page();
    let words: BTreeSet<&str> =
        page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let mut files: Vec<String> = Op::NAMES.iter().map(|name| format!("src/op/{name}.rs")).collect();
    files.extend(["src/tensor.rs", "src/raw.rs"].map(str::to_owned));
    let mut names = BTreeSet::new();
    for file in files {
        let source = declarations(&file);
        let types = source.split("\npub ").skip(1).filter_map(|item| {
            let mut words = item.split_whitespace();
            ["struct", "enum"].contains(&words.next()?).then(|| words.next())?
        });
        for name in types {
            names.extend(fields(&source, name));
        }
        for line in source.lines() {
            let name = line.strip_prefix("    ").unwrap_or_default();
            let end = name.find([',', ' ', '(']).unwrap_or(name.len());
            let is_variant = name.starts_with(|c: char| c.is_ascii_uppercase())
                && [",", " {", "("].iter().any(|after| name[end..].starts_with(after));
            if is_variant {
                names.insert(snake_case(&name[..end]));
            }
        }
    }
    assert!(names.len() > 100, "{} names were found", names.len());
    let missing: Vec<_> = names.iter().filter(|name| !words.contains(&***name)).collect();
    assert!(missing.is_empty(), "docs/graph.md does not mention {missing:?}");
}
