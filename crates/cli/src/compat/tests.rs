//! Checks the tables against the help of the original programs.

use std::collections::BTreeMap;
use std::path::Path;

use super::flag::Handling;
use super::{PROGRAMS, Program, find};

/// Returns the flags of a program with their number of values, extracted from its help by
/// `interop/compatibility/commands.py`.
fn original_flags(program: &Program) -> BTreeMap<String, usize> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/compat/flags");
    let path = folder.join(format!("{}.txt", program.name));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{}", path.display()));
    let mut flags = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words: Vec<_> = line.split(' ').collect();
        let values = words.pop().unwrap().parse().unwrap();
        flags.extend(words.into_iter().map(|name| (name.to_owned(), values)));
    }
    assert!(!flags.is_empty(), "{}", path.display());
    flags
}

/// Flags in our tables that the original help does not list, and the reason.
const NOT_LISTED: &[(&str, &str)] = &[
    ("--help", "every program takes it"),
    ("-h", "every program takes it"),
    ("--version", "every program of llama.cpp takes it here"),
    ("--mlock", "older versions had it"),
    ("--mmap", "older versions had it"),
    ("--no-mmap", "older versions had it"),
    ("-mmp", "older versions had it"),
    ("-dio", "older versions had it"),
    ("--direct-io", "older versions had it"),
    ("--imatrix-missing", "advice of an error names it"),
    ("-rpc", "builds with that backend have it"),
    ("--rpc", "builds with that backend have it"),
];

#[test]
fn tables_contain_every_original_flag() {
    for program in PROGRAMS {
        for (name, values) in original_flags(program) {
            let rows = program.rows().filter(|flag| flag.names().any(|own| own == name));
            let rows: Vec<_> = rows.collect();
            assert!(!rows.is_empty(), "{}: {name} is not in the table", program.name);
            assert_eq!(rows[0].values, values, "{}: values of {name}", program.name);
        }
    }
}

#[test]
fn tables_contain_no_unknown_flag() {
    for program in PROGRAMS {
        let originals = original_flags(program);
        for name in program.rows().flat_map(|flag| flag.names()) {
            let known = originals.contains_key(name);
            let excepted = NOT_LISTED.iter().any(|(flag, _)| *flag == name);
            assert!(known || excepted, "{}: {name} is not a flag of the original", program.name);
        }
    }
}

#[test]
fn flags_are_unique() {
    for program in PROGRAMS {
        let mut names: Vec<_> = program.rows().flat_map(|flag| flag.names()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "{}", program.name);
    }
}

#[test]
fn every_handling_has_a_description() {
    for flag in PROGRAMS.iter().flat_map(|program| program.rows()) {
        match flag.handling {
            Handling::Refused(why) | Handling::Ignored(why) | Handling::Translated(why) => {
                assert!(why.len() > 10 || why.starts_with('`'), "{}: {why}", flag.names);
            }
            Handling::Flag(flag_name) => assert!(flag_name.starts_with("--"), "{}", flag.names),
            Handling::Help | Handling::Version => assert_eq!(flag.values, 0),
        }
    }
}

#[test]
fn programs_are_found_by_platform_specific_names() {
    for (called, name) in [
        ("llama-quantize", Some("llama-quantize")),
        ("llama-quantize.exe", Some("llama-quantize")),
        ("LLAMA-QUANTIZE.EXE", Some("llama-quantize")),
        ("convert_hf_to_gguf.py", Some("convert_hf_to_gguf.py")),
        ("convert-hf-to-gguf", Some("convert_hf_to_gguf.py")),
        ("gguf_dump.py", Some("gguf-dump")),
        ("gguf", None),
        ("gguf.exe", None),
        ("quantize", None),
        ("", None),
    ] {
        assert_eq!(find(called).map(|program| program.name), name, "{called}");
    }
}
