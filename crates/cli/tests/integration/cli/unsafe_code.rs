//! `docs/security.md` lists all unsafe code of the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().unwrap() != "target" {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Counts uses of unsafe code in a source.
fn uses(source: &str) -> usize {
    let word = Regex::new(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b|trait\b|\()").unwrap();
    let comment = Regex::new(r"(?m)//.*$").unwrap();
    word.find_iter(&comment.replace_all(source, "")).count()
}

#[test]
fn unsafe_code_is_listed_with_its_justification() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    sources(&root.join("fuzz"), &mut files);
    sources(&root.join("bindings"), &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let mut found = BTreeMap::new();
    for path in files {
        let source = fs::read_to_string(&path).unwrap();
        let count = uses(&source);
        let allowed = source.contains(concat!("allow(unsafe", "_code)"));
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        assert!(
            source.matches("// SAFETY:").count() >= count,
            "{name}: every use of unsafe code needs a SAFETY comment"
        );
        if count > 0 || allowed {
            found.insert(name, count);
        }
    }
    let table = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `([^`]+\.rs)` \| (\d+) \| [^|]{10,} \| [^|]{40,} \|$").unwrap();
    let listed: BTreeMap<String, usize> =
        row.captures_iter(&table).map(|row| (row[1].to_owned(), row[2].parse().unwrap())).collect();
    assert_eq!(found, listed, "docs/security.md lists all unsafe code");
}

#[test]
fn unsafe_code_is_found() {
    // Spelled in upper case, so that this file has no match.
    for (source, count) in [
        ("let x = UNSAFE { y };", 1),
        ("UNSAFE\n{ y }", 1),
        ("pub UNSAFE fn f() {}\nUNSAFE impl Send for X {}", 2),
        ("#[UNSAFE(no_mangle)]", 1),
        ("// UNSAFE { y }", 0),
        ("let UNSAFEly = 1;", 0),
    ] {
        assert_eq!(uses(&source.replace("UNSAFE", "unsafe")), count, "{source}");
    }
}
