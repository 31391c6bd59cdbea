//! Parts of chat templates that llama.cpp's engine does not know.
//!
//! The names are those that `common/jinja/value.cpp` and `runtime.cpp` of llama.cpp register.

use std::collections::BTreeSet;

use gguf::{Finding, Metadata};

use crate::jinja::{Expr, Kind, Statement, expressions, for_each, parse};
use crate::metadata::is_template;

/// Filters and methods of any type.
const FUNCTIONS: &[&str] = &[
    "abs",
    "append",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "endswith",
    "escape",
    "first",
    "float",
    "format",
    "get",
    "indent",
    "int",
    "items",
    "join",
    "keys",
    "last",
    "length",
    "list",
    "lower",
    "lstrip",
    "map",
    "max",
    "min",
    "pop",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "rsplit",
    "rstrip",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "startswith",
    "string",
    "strip",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "update",
    "upper",
    "values",
    "wordcount",
];

/// Filters of jinja2.
const FILTERS: &[&str] = &[
    "attr",
    "batch",
    "center",
    "filesizeformat",
    "forceescape",
    "groupby",
    "pprint",
    "random",
    "round",
    "striptags",
    "urlencode",
    "urlize",
    "wordwrap",
    "xmlattr",
];

/// Methods of Python's texts, lists and dictionaries.
const METHODS: &[&str] = &[
    "casefold",
    "center",
    "clear",
    "copy",
    "encode",
    "expandtabs",
    "extend",
    "find",
    "index",
    "insert",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "ljust",
    "partition",
    "popitem",
    "remove",
    "removeprefix",
    "removesuffix",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "setdefault",
    "splitlines",
    "swapcase",
    "translate",
    "zfill",
];

/// Global functions of jinja2.
const GLOBALS: &[&str] = &["cycler", "joiner", "lipsum"];

/// Returns a finding for each template with parts that llama.cpp's engine refuses, although jinja2 renders them.
pub fn unknown_to_llama_cpp(metadata: &Metadata) -> Vec<Finding> {
    let templates = metadata.iter().filter(|(key, _)| is_template(key));
    let finding =
        |(key, value): (&str, &gguf::Value)| {
            let names = unknown(value.as_str()?);
            let (first, rest) = names.split_first()?;
            let names = rest.iter().fold(first.clone(), |all, name| all + ", " + name);
            let message = format!("has parts that llama.cpp's engine refuses: {names}");
            let finding = Finding::warning("template-llama-cpp", message).key(key);
            Some(finding.help(
                "transformers renders them; programs of llama.cpp fail or use another template",
            ))
        };
    templates.filter_map(finding).collect()
}

/// Returns the names of the parts, sorted.
fn unknown(template: &str) -> Vec<String> {
    let parsed = parse(template);
    let mut names = BTreeSet::new();
    for_each(&parsed.statements, &mut |statement| {
        if let Statement::Load { tag, .. } = statement {
            names.insert(format!("the tag `{tag}`"));
        }
    });
    names.extend(expressions(&parsed.statements).into_iter().filter_map(part));
    names.into_iter().collect()
}

fn part(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Filter(_, name, _) => {
            let is_known = FUNCTIONS.contains(&&**name) || !FILTERS.contains(&&**name);
            (!is_known).then(|| format!("the filter `{name}`"))
        }
        Kind::Call(function, _) => match &function.kind {
            Kind::Attribute(_, name) if METHODS.contains(&&**name) => {
                Some(format!("the method `{name}`"))
            }
            Kind::Name(name) if GLOBALS.contains(&&**name) => {
                Some(format!("the function `{name}`"))
            }
            _ => None,
        },
        Kind::Chain(operands, operators) if operators.first() == Some(&"%") => {
            operands[0].as_text().map(|_| "a text with the operator `%`".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named() {
        for (template, expected) in [
            ("{{ messages | groupby('role') }}", "the filter `groupby`"),
            ("{{ m.content.swapcase() }}", "the method `swapcase`"),
            ("{% set c = cycler('a', 'b') %}", "the function `cycler`"),
            ("{{ '%s' % m.content }}", "a text with the operator `%`"),
            ("{% include 'x' %}", "the tag `include`"),
        ] {
            assert_eq!(unknown(template), [expected], "{template}");
        }
        let known = "{% for m in messages %}{% if loop.index0 % 2 == 0 %}{{ m.content | trim }}\
                     {{ m.content.split('x')[-1].strip() | tojson }}{% endif %}{% endfor %}";
        assert_eq!(unknown(known), [""; 0]);
    }
}
