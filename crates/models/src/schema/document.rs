//! Generates `docs/metadata.md` from the schema.

use std::fmt::Write;

use gguf::FILE_TYPES;

use crate::schema::architecture::{Architecture, Item};
use crate::schema::symbols::{SYMBOLS, Source};
use crate::schema::{Range, Requirement, SECTIONS, architectures, projector};

/// Returns the schema as Markdown.
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

Generated from the tables in `crates/models/src/schema` by the test `document_is_current`; run it with
`UPDATE=1` to update this page. The checker, the converter and the runtime use the same tables.

Types are those that writers use. UINT32 and UINT64 are interchangeable: readers should accept both.
Floats are finite unless stated otherwise. `{arch}` is the value of `general.architecture`, `{id}` an index
counted from 0, `{name}` any name. The default is what loaders use if a key is missing: a number, or an
expression of the [symbols](#symbols-in-shapes). The [architectures](#architectures) list which `{arch}` keys a model requires.

## Keys
";

const ARCHITECTURES_INTRODUCTION: &str = "
## Architectures

Shapes list the fastest dimension first. Unmarked tensors are required; *optional* tensors may be
missing; one of the *alternatives* must be complete.
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
            "\n### {}\n\n| key | type | unit | default | required | meaning |\n\
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
                Range::Ordered => ", infinity allowed",
            };
            let (name, value, meaning) = (key.name, key.value, key.meaning);
            let (unit, default) = (key.unit, key.default);
            line!(
                out,
                "| `{name}` | {value}{range} | {unit} | {default} | {required} | {meaning} |"
            );
        }
    }
}

fn file_types(out: &mut String) {
    line!(
        out,
        "\n## File types\n\n\
        The values of `general.file_type`: the quantization type of the file, and the tensor type \
        of most weights.\n\n| value | quantization type | main tensor type |\n|---|---|---|"
    );
    for row in FILE_TYPES {
        line!(out, "| {} | {} | {} |", row.id, row.name, row.main);
    }
}

fn symbols(out: &mut String) {
    line!(out, "\n## Symbols in shapes\n\n| symbol | value | default |\n|---|---|---|");
    for symbol in SYMBOLS {
        let (value, default) = match symbol.source {
            Source::Key(key) => {
                let formula = symbol.source.default_expression();
                (format!("`{key}`"), formula.map_or_else(String::new, |f| format!("`{f}`")))
            }
            Source::KeyOr(key, formula) => (format!("`{key}`"), format!("`{formula}`")),
            Source::Length(key, formula) => (format!("length of `{key}`"), format!("`{formula}`")),
            Source::Formula(formula) => (format!("`{formula}`"), String::new()),
        };
        line!(out, "| `{}` | {value} | {default} |", symbol.name);
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
            architecture.defaults.iter().map(|(key, default)| format!("`{key}` {default}"));
        line!(out, "Defaults: {}.\n", defaults.collect::<Vec<_>>().join(", "));
    }
    items(out, architecture.tensors, 0, "");
    for block in architecture.blocks {
        line!(out, "- `{}i`, {} ≤ i < {}:", block.prefix, block.from, block.to);
        items(out, block.items, 1, "");
    }
    if architecture.open {
        line!(out, "- and other tensors");
    }
}

fn projectors(out: &mut String) {
    let suffixes: Vec<_> = projector::SUFFIXES.iter().filter(|suffix| !suffix.is_empty()).collect();
    let suffixes: Vec<_> = suffixes.iter().map(|suffix| format!("`{suffix}`")).collect();
    line!(
        out,
        "\n## Tensor names of encoders and projectors\n\nFiles of the architecture clip. `{{}}` stands \
         for a number; a name can have the suffix {}.\n\n| prefix | name |\n|---|---|",
        suffixes.join(", ")
    );
    for group in projector::NAMES {
        let list = |names: &[&str]| {
            let names = names.iter().filter(|name| !name.is_empty());
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        line!(out, "| {} | {} |", list(group.prefixes), list(group.names));
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
