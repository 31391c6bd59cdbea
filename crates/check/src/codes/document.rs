//! The table of codes as a document for people: `docs/findings.md`.

use std::fmt::Write;

use super::CODES;

/// The table in Markdown.
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

Printed from the table in `crates/check/src/codes` by the test `findings_are_current`; run it with
`UPDATE=1` to print it anew.

Every finding of `gguf check` and every error of the libraries has a code, which stays the same when
the words of the message change. `gguf check --explain CODE` prints an entry. The tables say what
kind of fault a code stands for; the message of a finding says where it is: which file, which key or
tensor, which byte.

Whose fault an error is, is told by the exit code of a command: 1 the input, 2 the request, 3 the
environment.
";
