//! The schema as a document for people: `docs/metadata.md`.

use std::fmt::Write;

use crate::schema::architecture::{Architecture, Item};
use crate::schema::symbols::{SYMBOLS, Source};
use gguf::FILE_TYPES;

use crate::schema::{Range, Requirement, SECTIONS, architectures, projector};

/// The tables in Markdown.
pub fn document() -> String {
    let mut out = String::from(INTRODUCTION);
    keys(&mut out);
    file_types(&mut out);
    symbols(&mut out);
    out.push_str(ARCHITECTURES_INTRODUCTION);
    for architecture in architectures() {
        one_architecture(&mut out, architecture);
    }
    projectors(&mut out);
    out
}

const INTRODUCTION: &str = "\
# Metadata and tensors

Printed from the tables in `crates/models/src/schema` by the test `document_is_current`; run it with
`UPDATE=1` to print it anew. The checker, the converter and the runtime use the same tables.

Types are those that writers choose. UINT32 and UINT64 stand for each other: readers should take
both. Floats are finite unless it says otherwise. `{arch}` is the value of `general.architecture`, `{id}` a number counted from 0, `{name}`
any name. A value for a missing key is what programs take: a size is an expression of the symbols further
below. Which of the `{arch}` keys a model needs stands with its architecture, further below.

## Keys
";

const ARCHITECTURES_INTRODUCTION: &str = "
## Architectures

Shapes are given with the fastest dimension first. Tensors without a mark are needed; *optional*
ones may be missing; of *alternatives* one must be complete.
";

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => {
        let _ = writeln!($out, $($arg)*);
    };
}

fn keys(out: &mut String) {
    for section in SECTIONS {
        line!(
            out,
            "\n### {}\n\n| key | type | unit | if missing | required | meaning |\n\
             |---|---|---|---|---|---|",
            section.title
        );
        for key in section.keys {
            let required = match key.requirement {
                Requirement::Always => "yes".to_owned(),
                Requirement::When(when) => format!("if {when}"),
                Requirement::Optional => String::new(),
                Requirement::Deprecated("") => "deprecated".to_owned(),
                Requirement::Deprecated(instead) => format!("deprecated: use `{instead}`"),
            };
            let range = match key.value.range {
                Range::Finite => "",
                Range::NotNegative => ", 0 or more",
                Range::Positive => ", above 0",
                Range::Ordered => ", also infinite",
            };
            let (name, value, meaning) = (key.name, key.value, key.meaning);
            let (unit, absent) = (key.unit, key.absent);
            line!(
                out,
                "| `{name}` | {value}{range} | {unit} | {absent} | {required} | {meaning} |"
            );
        }
    }
}

fn file_types(out: &mut String) {
    line!(
        out,
        "\n## File types\n\n\
        The values of `general.file_type`: the mix that the file was quantized to, and the type \
        of most weights.\n\n| value | mix | main type |\n|---|---|---|"
    );
    for row in FILE_TYPES {
        line!(out, "| {} | {} | {} |", row.id, row.name, row.main);
    }
}

fn symbols(out: &mut String) {
    line!(
        out,
        "\n## Symbols in shapes\n\n| symbol | value | if the key is missing |\n|---|---|---|"
    );
    for symbol in SYMBOLS {
        let (value, otherwise) = match symbol.source {
            Source::Key(key) => {
                let formula = symbol.source.otherwise();
                (format!("`{key}`"), formula.map_or_else(String::new, |f| format!("`{f}`")))
            }
            Source::KeyOr(key, formula) => (format!("`{key}`"), format!("`{formula}`")),
            Source::Length(key, formula) => (format!("length of `{key}`"), format!("`{formula}`")),
            Source::Formula(formula) => (format!("`{formula}`"), String::new()),
        };
        line!(out, "| `{}` | {value} | {otherwise} |", symbol.name);
    }
}

fn one_architecture(out: &mut String, architecture: &Architecture) {
    line!(out, "\n### {}\n", architecture.name);
    if !architecture.note.is_empty() {
        line!(out, "{}\n", architecture.note);
    }
    let list = |groups: &[&[&str]]| {
        let names: Vec<_> = groups.concat().iter().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    };
    if !architecture.required.is_empty() {
        line!(out, "Required keys: {}.\n", list(architecture.required));
    }
    if !architecture.optional.is_empty() {
        line!(out, "Optional keys: {}.\n", list(architecture.optional));
    }
    if !architecture.defaults.is_empty() {
        let defaults =
            architecture.defaults.iter().map(|(key, absent)| format!("`{key}` {absent}"));
        line!(out, "If missing: {}.\n", defaults.collect::<Vec<_>>().join(", "));
    }
    items(out, architecture.tensors, 0, "");
    for block in architecture.blocks {
        line!(out, "- `{}i`, i from {} to below {}:", block.prefix, block.from, block.to);
        items(out, block.items, 1, "");
    }
    if architecture.open {
        line!(out, "- and others");
    }
}

fn projectors(out: &mut String) {
    let ends: Vec<_> = projector::ENDS.iter().filter(|end| !end.is_empty()).collect();
    let ends: Vec<_> = ends.iter().map(|end| format!("`{end}`")).collect();
    line!(
        out,
        "\n## Names of tensors of encoders and projectors\n\nOf files of the architecture clip. `{{}}` stands \
         for a number; behind a name may stand {}.\n\n| begins with | goes on with |\n|---|---|",
        ends.join(", ")
    );
    for group in projector::NAMES {
        let list = |names: &[&str]| {
            let names = names.iter().filter(|name| !name.is_empty());
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        line!(out, "| {} | {} |", list(group.places), list(group.names));
    }
}

fn items(out: &mut String, list: &[Item], depth: usize, mark: &str) {
    let indent = "  ".repeat(depth);
    for item in list {
        match item {
            Item::Required(name, shape) => {
                line!(out, "{indent}- `{name}` [{shape}]{mark}");
            }
            Item::Optional(name, shape) => {
                line!(out, "{indent}- `{name}` [{shape}] *optional*");
            }
            Item::All(inner) => items(out, inner, depth, mark),
            Item::Maybe(inner) => items(out, inner, depth, " *optional*"),
            Item::When(symbol, inner) => {
                line!(out, "{indent}- if `{symbol}` is not 0:");
                items(out, inner, depth + 1, mark);
            }
            Item::Unless(symbol, inner) => {
                line!(out, "{indent}- if `{symbol}` is 0:");
                items(out, inner, depth + 1, mark);
            }
            Item::OneOf(options) => {
                line!(out, "{indent}- *alternatives*:");
                for (i, option) in options.iter().enumerate() {
                    line!(out, "{indent}  - {}:", if i == 0 { "either" } else { "or" });
                    items(out, option, depth + 2, mark);
                }
            }
        }
    }
}
