//! Flow of data through a template: which names hold content of messages, and which hold a date.

use std::collections::{HashMap, HashSet};

use crate::jinja::{Expr, Kind, Parsed, Statement, expressions, for_each, for_each_expr};

/// Functions and variables that return the present time.
const DATES: &[&str] = &["strftime_now", "now", "today", "utcnow", "datetime", "time"];

/// Names that hold content of messages or a date; `namespace.name` for attributes of namespaces.
#[derive(Debug, Default)]
pub struct Taint {
    content: HashSet<String>,
    dates: HashSet<String>,
}

impl Taint {
    /// Follows the assignments, loops and macro calls of a template.
    pub fn of(parsed: &Parsed) -> Self {
        let mut taint = Self::default();
        let mut macros = HashMap::new();
        for_each(&parsed.statements, &mut |statement| {
            if let Statement::Macro { name, parameters, .. } = statement {
                macros.insert(name.as_str(), parameters);
            }
        });
        let all = expressions(&parsed.statements);
        loop {
            let before = taint.content.len() + taint.dates.len();
            for_each(&parsed.statements, &mut |statement| match statement {
                Statement::Set { target, value } => taint.assign(target, value),
                Statement::For { target, iterable, .. } if taint.is_content(iterable) => {
                    taint.assign(target, iterable);
                }
                Statement::Capture { target, body, .. } => {
                    for_each(body, &mut |inner| {
                        if let Statement::Output(value) = inner {
                            taint.assign(target, value);
                        }
                    });
                }
                _ => {}
            });
            for expr in &all {
                if let Kind::Call(function, arguments) = &expr.kind
                    && let Kind::Name(name) = &function.kind
                    && let Some(parameters) = macros.get(name.as_str())
                {
                    let positional = parameters.iter().zip(&arguments.positional);
                    let named = arguments.named.iter().map(|(name, value)| (name, value));
                    for (parameter, value) in positional.chain(named) {
                        if taint.is_content(value) {
                            taint.content.insert(parameter.clone());
                        }
                        if taint.is_date(value) {
                            taint.dates.insert(parameter.clone());
                        }
                    }
                }
            }
            if taint.content.len() + taint.dates.len() == before {
                return taint;
            }
        }
    }

    fn assign(&mut self, target: &Expr, value: &Expr) {
        let (content, date) = (self.is_content(value), self.is_date(value));
        if !content && !date {
            return;
        }
        if let Kind::List(targets) = &target.kind {
            targets.iter().for_each(|target| self.assign(target, value));
        } else if let Some(path) = path(target) {
            if content {
                self.content.insert(path.clone());
            }
            if date {
                self.dates.insert(path);
            }
        }
    }

    /// Returns true if an expression depends on the content of a message.
    pub fn is_content(&self, expr: &Expr) -> bool {
        let mut found = false;
        for_each_expr(expr, &mut |part| {
            found = found
                || match &part.kind {
                    Kind::Attribute(_, name) => is_content_key(name),
                    Kind::Item(_, key) => key.as_text().is_some_and(is_content_key),
                    Kind::Call(function, arguments) => {
                        matches!(&function.kind, Kind::Attribute(_, name) if name == "get")
                            && arguments
                                .positional
                                .first()
                                .and_then(Expr::as_text)
                                .is_some_and(is_content_key)
                    }
                    Kind::Filter(_, name, arguments) => {
                        let attribute = match &**name {
                            "map" | "join" => arguments.named("attribute"),
                            "selectattr" | "rejectattr" => arguments.positional.first(),
                            _ => None,
                        };
                        attribute.and_then(Expr::as_text).is_some_and(is_content_key)
                    }
                    _ => false,
                }
                || path(part).is_some_and(|path| self.content.contains(&path));
        });
        found
    }

    /// Returns true if an expression depends on the present time.
    pub fn is_date(&self, expr: &Expr) -> bool {
        let mut found = false;
        for_each_expr(expr, &mut |part| {
            found = found
                || matches!(&part.kind, Kind::Name(name) if DATES.contains(&name.as_str()))
                || path(part).is_some_and(|path| self.dates.contains(&path));
        });
        found
    }

    /// Returns true if the template reads the present time.
    pub fn reads_date(parsed: &Parsed) -> bool {
        expressions(&parsed.statements)
            .iter()
            .any(|expr| matches!(&expr.kind, Kind::Name(name) if DATES.contains(&name.as_str())))
    }
}

fn is_content_key(key: &str) -> bool {
    matches!(key, "content" | "text")
}

fn path(expr: &Expr) -> Option<String> {
    match &expr.kind {
        Kind::Name(name) => Some(name.clone()),
        Kind::Attribute(object, name) => match &object.kind {
            Kind::Name(object) => Some(format!("{object}.{name}")),
            _ => None,
        },
        _ => None,
    }
}
