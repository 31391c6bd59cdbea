//! The page that specifies the stored form names everything that occurs in it.

use std::collections::BTreeSet;

/// Names of operations, fields and choices in the source: those of the stored form.
fn names(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in source.lines().map(str::trim) {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let Some((name, rest)) = line.split_once([':', ',', ' ', '(']) else { continue };
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let begins_field = line.starts_with(&format!("{name}: ")) && rest.ends_with(',');
        let begins_variant = name.starts_with(|c: char| c.is_ascii_uppercase())
            && [",", " {", "("].iter().any(|after| line[name.len()..].starts_with(after));
        if is_name && (begins_field || begins_variant) {
            names.insert(snake_case(name));
        }
    }
    names
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[test]
fn everything_is_specified() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
    let read = |file: &str| std::fs::read_to_string(format!("{folder}{file}")).unwrap();
    let page = std::fs::read_to_string(format!("{folder}../../../docs/graph.md")).unwrap();
    let words: BTreeSet<&str> =
        page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let sources = ["op.rs", "rotation.rs", "raw.rs"].map(read);
    let declared = sources.map(|source| {
        // What is done with them is not declared.
        source.split("\nimpl ").next().unwrap().split("\nconst fn ").next().unwrap().to_owned()
    });
    let names = names(&declared.concat());
    assert!(names.len() > 100, "they are found: {}", names.len());
    // Types of fields, not names of the form.
    const TYPES: [&str; 3] = ["some", "self", "ok"];
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !words.contains(&***name) && !TYPES.contains(&&***name))
        .collect();
    assert!(missing.is_empty(), "docs/graph.md does not say what these are: {missing:?}");
}
