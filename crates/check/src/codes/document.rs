//! The table of codes as Markdown: `docs/findings.md`.

use std::fmt::Write;

use super::CODES;

/// Returns the table in Markdown.
pub fn document() -> String {
    let mut out = String::from(INTRODUCTION);
    for area in CODES {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {}\n\n{}\n", area.title, area.about);
        let _ = write!(out, "\n| code | meaning | what to do |\n|---|---|---|\n");
        for code in area.codes {
            let _ = writeln!(out, "| `{}` | {} | {} |", code.name, code.meaning, code.advice);
        }
    }
    out
}

const INTRODUCTION: &str = "\
# Findings and errors

Generated from the table in `crates/check/src/codes`. The test `findings_are_current` compares it; run it with
`UPDATE=1` to write it.

Every finding of `gguf check` and every error of the libraries has a code. A code is stable: the message may change,
the code does not. `gguf check --explain CODE` prints its entry. The tables say which fault a code stands for; the
message of a finding says where it is: file, key or tensor, byte offset.

The exit code says whose fault an error is: 1 the input, 2 the request, 3 the environment.
";
