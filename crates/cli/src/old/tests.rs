//! Every flag in the help of the originals is in our tables, with as many values.

use std::collections::BTreeMap;
use std::path::Path;

use super::flag::Becomes;
use super::{PROGRAMS, Program, find};

/// The flags of a program by its own help: names with the number of values, made by
/// `interop/old_names.py`.
fn listed(program: &Program) -> BTreeMap<String, usize> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old");
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

/// Flags of ours that are in no help, and why.
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
    ("-rpc", "builds with that backend have it"),
    ("--rpc", "builds with that backend have it"),
];

#[test]
fn every_flag_of_every_help_is_known() {
    for program in PROGRAMS {
        for (name, values) in listed(program) {
            let rows = program.rows().filter(|flag| flag.names().any(|own| own == name));
            let rows: Vec<_> = rows.collect();
            assert!(!rows.is_empty(), "{}: {name} is not in the table", program.name);
            assert_eq!(rows[0].values, values, "{}: values of {name}", program.name);
        }
    }
}

#[test]
fn every_flag_of_ours_is_one_of_theirs() {
    for program in PROGRAMS {
        let listed = listed(program);
        for name in program.rows().flat_map(|flag| flag.names()) {
            let known = listed.contains_key(name);
            let excepted = NOT_LISTED.iter().any(|(flag, _)| *flag == name);
            assert!(known || excepted, "{}: {name} is no flag of the original", program.name);
        }
    }
}

#[test]
fn no_flag_is_in_two_rows() {
    for program in PROGRAMS {
        let mut names: Vec<_> = program.rows().flat_map(|flag| flag.names()).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "{}", program.name);
    }
}

#[test]
fn refusals_and_notes_have_reasons() {
    for flag in PROGRAMS.iter().flat_map(|program| program.rows()) {
        match flag.becomes {
            Becomes::Refused(why) | Becomes::Nothing(why) | Becomes::Read(why) => {
                assert!(why.len() > 10 || why.starts_with('`'), "{}: {why}", flag.names);
            }
            Becomes::Ours(ours) => assert!(ours.starts_with("--"), "{}", flag.names),
            Becomes::Help | Becomes::Version => assert_eq!(flag.values, 0),
        }
    }
}

#[test]
fn programs_are_found_by_what_systems_make_of_their_names() {
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
