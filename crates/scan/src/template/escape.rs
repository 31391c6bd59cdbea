//! Ways out of the sandbox of a template engine: attributes, names and filters that no chat template needs.

use std::collections::HashSet;

use gguf::Finding;
use unicode_normalization::UnicodeNormalization;

use super::line_finding;
use crate::jinja::{Constants, Expr, Kind, Parsed, Statement, expressions, for_each};

/// Attributes without underscores that lead to the frames, code and types of Python.
const INTERNALS: &[&str] = &[
    "mro",
    "gi_frame",
    "gi_code",
    "gi_yieldfrom",
    "cr_frame",
    "cr_code",
    "ag_frame",
    "ag_code",
    "f_back",
    "f_globals",
    "f_locals",
    "f_builtins",
    "f_code",
    "func_globals",
    "func_code",
    "func_closure",
    "co_consts",
    "tb_frame",
    "tb_next",
];

/// Names that run code or reach the system, wherever they stand.
const CALLS: &[&str] = &[
    "popen",
    "Popen",
    "eval",
    "exec",
    "getattr",
    "setattr",
    "delattr",
    "import",
    "compile",
    "builtins",
    "globals",
    "locals",
    "vars",
    "breakpoint",
    "importlib",
    "import_module",
    "execfile",
    "memoryview",
    "pty",
    "check_output",
    "getoutput",
    "marshal",
    "pickle",
    "ctypes",
    "codecs",
    "linecache",
    "load_module",
    "exec_module",
    "TemplateReference",
];

/// Modules and functions that are also common words: only as a variable, a key, or called.
const MODULES: &[&str] =
    &["os", "subprocess", "socket", "platform", "commands", "shutil", "posix", "urllib"];

/// Functions that are dangerous only when they are called.
const CALLED: &[&str] = &[
    "system",
    "open",
    "input",
    "spawn",
    "fork",
    "execv",
    "urlopen",
    "url_for",
    "get_flashed_messages",
];

/// Globals of jinja2 whose attributes reach the globals of Python, with their legitimate attributes.
const GLOBALS: &[(&str, &[&str])] = &[
    ("lipsum", &[]),
    ("cycler", &[]),
    ("joiner", &[]),
    ("range", &[]),
    ("dict", &[]),
    ("namespace", &[]),
    ("raise_exception", &[]),
    ("strftime_now", &[]),
    ("self", &[]),
    ("url_for", &[]),
];

/// Filters that decode text.
const DECODERS: &[&str] = &[
    "b64decode",
    "b64_decode",
    "base64_decode",
    "b32decode",
    "b16decode",
    "a85decode",
    "b85decode",
    "decodebytes",
    "urldecode",
    "unquote",
    "unquote_plus",
    "fromhex",
    "unhexlify",
    "rot13",
];

/// Reports ways out of the sandbox.
pub fn check(parsed: &Parsed, constants: &Constants) -> Vec<Finding> {
    let mut rules = Rules { constants, findings: Vec::new(), seen: HashSet::new() };
    for_each(&parsed.statements, &mut |statement| {
        if let Statement::Load { line, tag, .. } = statement {
            rules.report(*line, "template-import", format!("`{tag}` loads another template"));
        }
        for expr in statement.expressions() {
            rules.folded(expr);
        }
    });
    for expr in expressions(&parsed.statements) {
        rules.expression(expr);
    }
    rules.findings
}

struct Rules<'a> {
    constants: &'a Constants,
    findings: Vec<Finding>,
    /// Reported code and subject.
    seen: HashSet<(&'static str, String)>,
}

impl Rules<'_> {
    fn report(&mut self, line: u32, code: &'static str, message: String) {
        if self.seen.insert((code, message.clone())) {
            let finding = match code {
                "template-import" | "template-decode" | "template-introspection" => {
                    line_finding(Finding::warning(code, ""), line, &message)
                }
                _ => line_finding(Finding::error(code, ""), line, &message),
            };
            self.findings.push(finding);
        }
    }

    fn expression(&mut self, expr: &Expr) {
        let line = expr.line;
        match &expr.kind {
            Kind::Name(name) => self.name(line, name, Place::Variable),
            Kind::Attribute(object, name) => {
                self.name(line, name, Place::Attribute { of_literal: is_literal(object) });
                self.global(line, object, name);
            }
            Kind::Item(object, key) => {
                for key in self.constants.texts(key) {
                    self.name(line, &key, Place::Key { of_literal: is_literal(object) });
                    self.global(line, object, &key);
                }
                let is_empty = match &object.kind {
                    Kind::Text(text) => text.is_empty(),
                    Kind::Number(_) => true,
                    Kind::List(items) | Kind::Dict(items) => items.is_empty(),
                    _ => false,
                };
                if is_empty {
                    self.report(
                        line,
                        "template-escape",
                        "takes an item of an empty literal".into(),
                    );
                }
            }
            Kind::Text(text) => self.text(line, text, false),
            Kind::Call(function, _) => match &function.kind {
                Kind::Name(name) | Kind::Attribute(_, name) if CALLED.contains(&&*folded(name)) => {
                    self.report(line, "template-call", format!("calls `{name}`"));
                }
                Kind::Name(name) if name == "lipsum" => {
                    self.report(line, "template-escape", "calls `lipsum`".into());
                }
                _ => {}
            },
            Kind::Filter(_, name, arguments) => {
                if name == "attr" {
                    self.report(line, "template-attr-filter", "uses the filter `attr`".into());
                }
                let first = arguments.positional.first();
                let first = first.map(|expr| self.constants.texts(expr)).unwrap_or_default();
                if name == "map" && first.iter().any(|name| name == "attr") {
                    self.report(
                        line,
                        "template-attr-filter",
                        "uses the filter `map('attr')`".into(),
                    );
                }
                if DECODERS.contains(&&**name) {
                    self.report(
                        line,
                        "template-decode",
                        format!("decodes text with the filter `{name}`"),
                    );
                }
                // The attribute of `map`, `selectattr`, `sort`, `groupby` and others is a path.
                let named = arguments.named("attribute").map(|expr| self.constants.texts(expr));
                let selects = matches!(&**name, "selectattr" | "rejectattr" | "groupby");
                let paths = named
                    .unwrap_or_default()
                    .into_iter()
                    .chain(first.into_iter().filter(|_| selects));
                for part in paths.collect::<Vec<_>>().iter().flat_map(|path| path.split('.')) {
                    self.name(line, part, Place::Key { of_literal: true });
                }
            }
            _ => {}
        }
        if let Kind::Call(function, _) = &expr.kind
            && let Kind::Name(name) = &function.kind
            && DECODERS.contains(&&**name)
        {
            self.report(line, "template-decode", format!("decodes text with `{name}`"));
        }
    }

    /// Checks the strings that the largest constant parts of an expression become.
    fn folded(&mut self, expr: &Expr) {
        if expr.as_text().is_none() {
            let texts = self.constants.texts(expr);
            if !texts.is_empty() {
                let is_assembled = !matches!(expr.kind, Kind::Name(_) | Kind::Attribute(..));
                texts.iter().for_each(|text| self.text(expr.line, text, is_assembled));
            }
        }
        for part in expr.parts() {
            self.folded(part);
        }
    }

    /// Checks a string that may be used as a name later.
    fn text(&mut self, line: u32, text: &str, is_assembled: bool) {
        let text = folded(text);
        let how = if is_assembled { "assembles" } else { "has the string" };
        let whole = text.trim_start_matches('.');
        let is_name = whole.len() > 4 && is_dunder(whole);
        if is_name || INTERNALS[1..].contains(&whole) {
            self.report(
                line,
                "template-escape",
                format!("{how} `{whole}`, a name of Python's internals"),
            );
            return;
        }
        let tokens = dunders(&text);
        let is_example = |token: &&&str| !is_assembled && EXAMPLES.contains(*token);
        let escape = tokens.iter().find(|token| ESCAPES.contains(*token) && !is_example(token));
        // A format string reads attributes of its arguments.
        let is_path = text.contains('{') && (text.contains(".__") || text.contains("[__"));
        if let Some(token) = escape.or(tokens.first().filter(|_| is_path)) {
            self.report(
                line,
                "template-escape",
                format!("{how} with `{token}`, a name of Python's internals"),
            );
            return;
        }
        let lower = text.to_lowercase();
        let call =
            ["popen", "subprocess", "importlib", "getattr", "setattr", "import os", "os.system"];
        if is_assembled && let Some(call) = call.iter().find(|call| lower.contains(**call)) {
            self.report(line, "template-call", format!("assembles `{call}`"));
        }
        // A piece such as `__cl` or `ass__` has no other use than to be joined.
        let is_piece = |text: &str| {
            let inner = text.trim_matches('_');
            !inner.is_empty()
                && inner.len() < 16
                && inner.bytes().all(|byte| byte.is_ascii_alphabetic())
                && (text.starts_with("__") != text.ends_with("__"))
        };
        if is_piece(&text) {
            self.report(
                line,
                "template-introspection",
                format!("{how} `{text}`, a part of a name of Python's internals"),
            );
        }
    }

    fn name(&mut self, line: u32, name: &str, place: Place) {
        let name = &*folded(name);
        let (what, of_literal) = match place {
            Place::Variable => ("variable", false),
            Place::Attribute { of_literal } => ("attribute", of_literal),
            Place::Key { of_literal } => ("key", of_literal),
        };
        let is_inert = matches!(name, "__class__" | "__name__" | "__doc__") && !of_literal;
        if is_inert {
            self.report(line, "template-introspection", format!("reads the {what} `{name}`"));
        } else if is_dunder(name)
            || INTERNALS.contains(&name) && !matches!(place, Place::Variable)
            || name.starts_with('_') && name.len() > 1 && matches!(place, Place::Attribute { .. })
        {
            self.report(
                line,
                "template-escape",
                format!("reads the {what} `{name}`, which leads out of the sandbox"),
            );
        }
        let is_module = MODULES.contains(&name) && !matches!(place, Place::Attribute { .. });
        if CALLS.contains(&name) || is_module {
            self.report(line, "template-call", format!("has the {what} `{name}`, which runs code"));
        }
    }

    /// Reports attributes of globals of the engine.
    fn global(&mut self, line: u32, object: &Expr, attribute: &str) {
        let mut root = object;
        while let Kind::Attribute(object, _) | Kind::Item(object, _) = &root.kind {
            root = object;
        }
        if let Kind::Name(name) = &root.kind
            && let Some((global, legitimate)) = GLOBALS.iter().find(|(global, _)| global == name)
            && !legitimate.contains(&attribute)
        {
            let message = format!("reads `{attribute}` of `{global}`, a function of the engine");
            self.report(line, "template-escape", message);
        }
    }
}

/// Position of a name.
enum Place {
    Variable,
    Attribute { of_literal: bool },
    Key { of_literal: bool },
}

/// Names that also appear in examples of code.
const EXAMPLES: &[&str] = &["__class__", "__init__", "__dict__"];

/// Names that escapes are made of.
const ESCAPES: &[&str] = &[
    "__globals__",
    "__builtins__",
    "__subclasses__",
    "__mro__",
    "__bases__",
    "__base__",
    "__reduce__",
    "__reduce_ex__",
    "__getattribute__",
    "__import__",
    "__code__",
    "__closure__",
    "__loader__",
    "__spec__",
    "__class__",
    "__init__",
    "__dict__",
    "__self__",
    "__func__",
];

/// Folds the compatibility forms of a name, as Python does.
fn folded(name: &str) -> String {
    if name.is_ascii() { name.to_owned() } else { name.nfkc().collect() }
}

fn is_dunder(name: &str) -> bool {
    name.len() > 4
        && name.starts_with("__")
        && name.ends_with("__")
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the words of a text that begin and end with two underscores.
fn dunders(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| is_dunder(word))
        .collect()
}

/// Returns true for a literal, whose attributes begin every escape.
fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Text(_) | Kind::Number(_) => true,
        Kind::List(items) | Kind::Dict(items) => items.is_empty(),
        _ => false,
    }
}
