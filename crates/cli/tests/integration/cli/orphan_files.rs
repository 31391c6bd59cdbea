//! Every source file is part of a crate. A file that no `mod` declares is silently not compiled.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
}

#[test]
fn every_file_is_part_of_a_crate() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = BTreeMap::new();
    sources(crates, &mut files);
    assert!(files.len() > 500, "{}", files.len());
    let is_attribute = |line: &&str| line.trim_start().starts_with("#[path");
    let attributes = files.values().flat_map(|text| text.lines().filter(is_attribute));
    let attributes: Vec<_> = attributes.collect();
    let orphans: Vec<_> =
        files.keys().filter(|path| !is_named(path, &files, &attributes)).collect();
    assert!(orphans.is_empty(), "no `mod` names {orphans:?}");
}

/// Returns whether Cargo finds a file, or a parent module, a macro row such as `Matmul: matmul,` or one of the `#[path]`
/// attributes declares it.
fn is_named(path: &Path, files: &BTreeMap<PathBuf, String>, attributes: &[&str]) -> bool {
    let (stem, dir) = (path.file_stem().unwrap(), path.parent().unwrap());
    let is_root = ["lib", "main", "build"].iter().any(|root| stem == *root)
        || ["tests", "benches", "examples"].iter().any(|roots| dir.ends_with(roots));
    if is_root {
        return true;
    }
    let is_folder = stem == "mod";
    let (stem, dir) = match is_folder {
        true => (dir.file_name().unwrap(), dir.parent().unwrap()),
        false => (stem, dir),
    };
    let stem = stem.to_str().unwrap();
    let module = format!("mod {stem};");
    let by_path = if is_folder { format!("/{stem}/mod.rs\"]") } else { format!("/{stem}.rs\"]") };
    let row = format!(": {stem},");
    let by_macro = |text: &str| text.contains("mod $") && text.contains(&row);
    let declares = |text: &String| text.contains(&module) || by_macro(text);
    let beside = files.range(dir.to_path_buf()..).take_while(|(other, _)| other.starts_with(dir));
    let mut beside = beside.filter(|(other, _)| other.parent() == Some(dir)).map(|(_, text)| text);
    attributes.iter().any(|attribute| attribute.contains(&by_path))
        || files.get(&dir.with_extension("rs")).is_some_and(declares)
        || beside.any(declares)
}
