//! Constant folding: the strings that an expression can become without any input.

use std::collections::HashMap;

use super::syntax::{Arguments, Expr, Kind, Statement, for_each};

/// Maximum number of values of one expression, and length of one value.
const MAX_VALUES: usize = 16;
const MAX_LEN: usize = 4096;

/// A constant value.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    List(Vec<String>),
    Number(f64),
}

/// Constants that a template assigns to names.
#[derive(Debug, Default)]
pub struct Constants {
    /// All values that each name, or `namespace.name`, is assigned to.
    values: HashMap<String, Vec<Value>>,
}

impl Constants {
    /// Collects the constants of a template.
    pub fn of(statements: &[Statement]) -> Self {
        let mut constants = Self::default();
        // A constant may be made of constants that are assigned before or, in a loop, after it.
        for _ in 0..3 {
            for_each(statements, &mut |statement| match statement {
                Statement::Set { target, value } => constants.assign(target, value),
                Statement::For { target, iterable, .. } => {
                    for value in constants.fold(iterable) {
                        if let Value::List(items) = value {
                            items
                                .into_iter()
                                .for_each(|item| constants.add(target, Value::Text(item)));
                        }
                    }
                }
                Statement::Capture { target, body, .. } => {
                    if let [Statement::Data { text, .. }] = &body[..] {
                        constants.add(target, Value::Text(text.clone()));
                    }
                }
                _ => {}
            });
        }
        constants
    }

    fn assign(&mut self, target: &Expr, value: &Expr) {
        if let (Kind::List(targets), Kind::List(values)) = (&target.kind, &value.kind) {
            targets.iter().zip(values).for_each(|(target, value)| self.assign(target, value));
            return;
        }
        if let Kind::Call(function, arguments) = &value.kind
            && matches!(&function.kind, Kind::Name(name) if name == "namespace")
            && let Kind::Name(target) = &target.kind
        {
            for (name, value) in &arguments.named {
                for value in self.fold(value) {
                    self.insert(format!("{target}.{name}"), value);
                }
            }
            return;
        }
        for value in self.fold(value) {
            self.add(target, value);
        }
    }

    fn add(&mut self, target: &Expr, value: Value) {
        if let Some(path) = path(target) {
            self.insert(path, value);
        }
    }

    fn insert(&mut self, path: String, value: Value) {
        let values = self.values.entry(path).or_default();
        if values.len() < MAX_VALUES && !values.contains(&value) {
            values.push(value);
        }
    }

    /// Returns the strings that an expression can become; empty if it depends on an input.
    pub fn texts(&self, expr: &Expr) -> Vec<String> {
        let text = |value| match value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Number(_) => None,
        };
        self.fold(expr).into_iter().filter_map(text).collect()
    }

    /// Returns the values that an expression can become.
    fn fold(&self, expr: &Expr) -> Vec<Value> {
        let mut values = self.fold_unbounded(expr);
        values.truncate(MAX_VALUES);
        values.retain(|value| match value {
            Value::Text(text) => text.len() <= MAX_LEN,
            Value::List(items) => items.len() <= MAX_LEN,
            Value::Number(_) => true,
        });
        values
    }

    fn fold_unbounded(&self, expr: &Expr) -> Vec<Value> {
        match &expr.kind {
            Kind::Text(text) => vec![Value::Text(text.clone())],
            Kind::Number(number) => vec![Value::Number(*number)],
            Kind::Name(_) | Kind::Attribute(..) => {
                path(expr).and_then(|path| self.values.get(&path)).cloned().unwrap_or_default()
            }
            Kind::List(items) => {
                let items: Option<Vec<_>> = items.iter().map(|item| self.one(item)).collect();
                items.map(Value::List).into_iter().collect()
            }
            // Iterating a dictionary yields its keys.
            Kind::Dict(items) => {
                let keys: Option<Vec<_>> =
                    items.iter().step_by(2).map(|key| self.one(key)).collect();
                keys.map(Value::List).into_iter().collect()
            }
            Kind::Conditional(parts) => {
                parts[1..].iter().flat_map(|part| self.fold(part)).collect()
            }
            Kind::Unary(value) => {
                let negated = |value| match value {
                    Value::Number(number) => Some(Value::Number(-number)),
                    _ => None,
                };
                self.fold(value).into_iter().filter_map(negated).collect()
            }
            Kind::Chain(operands, operators) => self.chain(operands, operators),
            Kind::Item(object, key) => self.each(object, |value| {
                let index = self.number(key)?;
                match value {
                    Value::Text(text) => {
                        let chars: Vec<char> = text.chars().collect();
                        Some(Value::Text(chars.get(position(index, chars.len())?)?.to_string()))
                    }
                    Value::List(items) => {
                        Some(Value::Text(items.get(position(index, items.len())?)?.clone()))
                    }
                    Value::Number(_) => None,
                }
            }),
            Kind::Slice(object, bounds) => {
                let bound = |at: usize| match &bounds[at] {
                    None => Some(None),
                    Some(bound) => self.number(bound).map(Some),
                };
                let (Some(start), Some(stop), Some(step)) = (bound(0), bound(1), bound(2)) else {
                    return Vec::new();
                };
                self.each(object, |value| match value {
                    Value::Text(text) => {
                        let chars: Vec<char> = text.chars().collect();
                        Some(Value::Text(slice(&chars, start, stop, step).into_iter().collect()))
                    }
                    Value::List(items) => Some(Value::List(slice(&items, start, stop, step))),
                    Value::Number(_) => None,
                })
            }
            Kind::Filter(Some(value), name, arguments) => {
                self.each(value, |value| self.method(value, name, arguments, true))
            }
            Kind::Call(function, arguments) => match &function.kind {
                Kind::Attribute(object, name) => {
                    self.each(object, |value| self.method(value, name, arguments, false))
                }
                // `dict(a=1)` has the key `a`.
                Kind::Name(name) if name == "dict" && !arguments.named.is_empty() => {
                    let keys = arguments.named.iter().map(|(name, _)| name.clone());
                    vec![Value::List(keys.collect())]
                }
                _ => Vec::new(),
            },
            Kind::Filter(None, ..) | Kind::Test(..) => Vec::new(),
        }
    }

    fn each(&self, expr: &Expr, map: impl Fn(Value) -> Option<Value>) -> Vec<Value> {
        self.fold(expr).into_iter().filter_map(map).collect()
    }

    /// Returns the only value of an expression as text.
    fn one(&self, expr: &Expr) -> Option<String> {
        match self.fold(expr).into_iter().next()? {
            Value::Text(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            Value::List(_) => None,
        }
    }

    fn number(&self, expr: &Expr) -> Option<i64> {
        match self.fold(expr).into_iter().next()? {
            Value::Number(number) => Some(number as i64),
            _ => None,
        }
    }

    /// Folds a chain of operators that build text.
    fn chain(&self, operands: &[Expr], operators: &[&str]) -> Vec<Value> {
        let mut values = match operators[0] {
            "or" => return operands.iter().flat_map(|operand| self.fold(operand)).collect(),
            _ => self.fold(&operands[0]),
        };
        for (operator, operand) in operators.iter().zip(&operands[1..]) {
            let right = self.fold(operand);
            let mut next = Vec::new();
            for left in &values {
                for right in &right {
                    next.extend(combine(left, operator, right));
                }
            }
            next.truncate(MAX_VALUES);
            values = next;
            let is_long =
                |value: &Value| matches!(value, Value::Text(text) if text.len() > MAX_LEN);
            if values.is_empty() || values.iter().any(is_long) {
                return Vec::new();
            }
        }
        values
    }

    /// Applies a filter, or a method of the same name.
    fn method(
        &self,
        value: Value,
        name: &str,
        arguments: &Arguments,
        is_filter: bool,
    ) -> Option<Value> {
        let argument = |at: usize| arguments.positional.get(at).and_then(|expr| self.one(expr));
        let text = |text: String| Some(Value::Text(text));
        Some(match (value, name) {
            (Value::List(items), "join") if is_filter => {
                let separator = arguments.positional.first().or_else(|| arguments.named("d"));
                let separator = separator.and_then(|expr| self.one(expr)).unwrap_or_default();
                Value::Text(items.join(&separator))
            }
            (Value::List(items), "first") => Value::Text(items.first()?.clone()),
            (Value::List(items), "last") => Value::Text(items.last()?.clone()),
            (Value::List(mut items), "reverse") => {
                items.reverse();
                Value::List(items)
            }
            (Value::List(mut items), "sort" | "sorted") => {
                items.sort();
                Value::List(items)
            }
            (Value::List(items), "list" | "unique" | "keys") => Value::List(items),
            (Value::Text(separator), "join") if !is_filter => {
                let list = self.fold(arguments.positional.first()?).into_iter().next()?;
                match list {
                    Value::List(items) => Value::Text(items.join(&separator)),
                    Value::Text(text) => {
                        let chars: Vec<_> = text.chars().map(String::from).collect();
                        Value::Text(chars.join(&separator))
                    }
                    Value::Number(_) => return None,
                }
            }
            (Value::Text(it), "replace") => Value::Text(it.replace(&argument(0)?, &argument(1)?)),
            (Value::Text(it), "reverse") => Value::Text(it.chars().rev().collect()),
            (Value::Text(it), "list") => Value::List(it.chars().map(String::from).collect()),
            (Value::Text(it), "upper") => Value::Text(it.to_uppercase()),
            (Value::Text(it), "lower" | "casefold") => Value::Text(it.to_lowercase()),
            (Value::Text(it), "capitalize" | "title") => {
                let mut chars = it.chars();
                let first: String = chars.next()?.to_uppercase().collect();
                Value::Text(first + &chars.as_str().to_lowercase())
            }
            (Value::Text(it), "swapcase") => {
                let swapped = it.chars().map(|c| match c.is_uppercase() {
                    true => c.to_lowercase().next().unwrap_or(c),
                    false => c.to_uppercase().next().unwrap_or(c),
                });
                Value::Text(swapped.collect())
            }
            (Value::Text(it), "trim" | "strip" | "lstrip" | "rstrip") => {
                let set = argument(0).unwrap_or_else(|| " \t\r\n".into());
                let strips = |c| set.contains(c);
                return text(match name {
                    "lstrip" => it.trim_start_matches(strips).to_owned(),
                    "rstrip" => it.trim_end_matches(strips).to_owned(),
                    _ => it.trim_matches(strips).to_owned(),
                });
            }
            (Value::Text(it), "removeprefix") => {
                let prefix = argument(0)?;
                Value::Text(it.strip_prefix(&*prefix).unwrap_or(&it).to_owned())
            }
            (Value::Text(it), "removesuffix") => {
                let suffix = argument(0)?;
                Value::Text(it.strip_suffix(&*suffix).unwrap_or(&it).to_owned())
            }
            (Value::Text(it), "split") => match argument(0) {
                Some(separator) if !separator.is_empty() => {
                    Value::List(it.split(&*separator).map(String::from).collect())
                }
                _ => Value::List(it.split_whitespace().map(String::from).collect()),
            },
            (Value::Text(it), "format") => {
                let values: Vec<_> = arguments
                    .positional
                    .iter()
                    .filter_map(|expr| self.fold(expr).into_iter().next())
                    .collect();
                // The filter has printf-style directives, the method braces; attackers mix them up.
                return text(match it.contains('%') && is_filter {
                    true => percent(&it, &values),
                    false => braces(&it, &values, arguments, self),
                });
            }
            (it, "string" | "safe" | "escape" | "e" | "forceescape" | "default" | "d") => it,
            _ => return None,
        })
    }
}

/// Returns the path of a name: `name` or `namespace.name`.
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

fn combine(left: &Value, operator: &str, right: &Value) -> Option<Value> {
    let text = |value: &Value| match value {
        Value::Text(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::List(_) => None,
    };
    Some(match (left, operator, right) {
        (Value::Number(a), "+", Value::Number(b)) => Value::Number(a + b),
        (Value::Number(a), "-", Value::Number(b)) => Value::Number(a - b),
        (Value::List(a), "+", Value::List(b)) => Value::List([&a[..], b].concat()),
        (_, "~" | "+", _) => Value::Text(text(left)? + &text(right)?),
        (Value::Number(a), "*", Value::Number(b)) => Value::Number(a * b),
        (Value::Text(text), "*", Value::Number(times)) => {
            let times = *times as usize;
            if text.len().saturating_mul(times) > MAX_LEN {
                return None;
            }
            Value::Text(text.repeat(times))
        }
        (Value::Text(format), "%", Value::List(items)) => {
            let values: Vec<_> = items.iter().cloned().map(Value::Text).collect();
            Value::Text(percent(format, &values))
        }
        (Value::Text(format), "%", value) => {
            Value::Text(percent(format, std::slice::from_ref(value)))
        }
        _ => return None,
    })
}

/// Formats one value as `%s`, `%c` and `%d` do.
fn directive(value: &Value, kind: char) -> String {
    match value {
        Value::Text(text) => match (kind, text.parse::<u32>().ok().and_then(char::from_u32)) {
            // Numbers in a list were made text.
            ('c', Some(c)) => c.to_string(),
            _ => text.clone(),
        },
        Value::Number(number) if kind == 'c' => {
            char::from_u32(*number as u32).map(String::from).unwrap_or_default()
        }
        Value::Number(number) => number.to_string(),
        Value::List(items) => items.join(", "),
    }
}

/// Formats as the operator `%` of Python does.
fn percent(format: &str, values: &[Value]) -> String {
    let mut result = String::new();
    let mut values = values.iter();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            result.push(c);
            continue;
        }
        let kind = chars.find(|c| c.is_alphabetic() || *c == '%');
        match kind {
            Some('%') => result.push('%'),
            Some(kind) => {
                result += &values.next().map(|value| directive(value, kind)).unwrap_or_default()
            }
            None => {}
        }
    }
    result
}

/// Formats as `str.format` does: `{}`, `{0}`, `{name}`, `{:c}`.
fn braces(format: &str, values: &[Value], arguments: &Arguments, constants: &Constants) -> String {
    let mut result = String::new();
    let mut rest = format;
    let mut next = 0;
    while let Some(at) = rest.find('{') {
        result.push_str(&rest[..at]);
        let Some(end) = rest[at..].find('}') else { break };
        let field = &rest[at + 1..at + end];
        rest = &rest[at + end + 1..];
        let (name, kind) = field.split_once(':').unwrap_or((field, "s"));
        let value = match name.parse::<usize>() {
            Ok(index) => values.get(index).cloned(),
            Err(_) if name.is_empty() => {
                next += 1;
                values.get(next - 1).cloned()
            }
            Err(_) => {
                arguments.named(name).and_then(|expr| constants.fold(expr).into_iter().next())
            }
        };
        let kind = kind.chars().last().unwrap_or('s');
        result += &value.map(|value| directive(&value, kind)).unwrap_or_default();
    }
    result + rest
}

/// Converts an index of Python, which counts from the end if it is negative.
fn position(index: i64, len: usize) -> Option<usize> {
    usize::try_from(if index < 0 { index.checked_add(len as i64)? } else { index }).ok()
}

/// Slices as Python does.
fn slice<T: Clone>(
    items: &[T],
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
) -> Vec<T> {
    let (len, step) = (items.len() as i64, step.unwrap_or(1));
    if step == 0 {
        return Vec::new();
    }
    let bound = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let mut at =
        start.map_or(if step > 0 { 0 } else { len - 1 }, |index| bound(index).clamp(low, high));
    let stop = stop.map_or(if step > 0 { len } else { -1 }, |index| bound(index).clamp(low, high));
    let mut result = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        result.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jinja::parse;

    /// Returns the constants of the last output of a template.
    fn folded(template: &str) -> Vec<String> {
        let parsed = parse(template);
        let constants = Constants::of(&parsed.statements);
        match parsed.statements.last() {
            Some(Statement::Output(expr)) => constants.texts(expr),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn assembled_strings_are_found() {
        for template in [
            "{{ '__cl' ~ 'ass__' }}",
            "{{ '__' + 'class' + '__' }}",
            "{{ ['__', 'class', '__']|join }}",
            "{{ ''.join(['__cl', 'ass__']) }}",
            "{{ '__ssalc__'|reverse }}",
            "{{ '__ssalc__'[::-1] }}",
            "{{ '__clXss__'|replace('X', 'a') }}",
            "{{ '__CLASS__'.lower() }}",
            "{{ '%s%s' % ('__cl', 'ass__') }}",
            "{{ '__%cl%ss__'|replace('%c', 'c')|replace('%s', 'as') }}",
            "{{ '{}{}'.format('__cl', 'ass__') }}",
            "{{ '{1}{x}'.format('', '__cl', x='ass__') }}",
            "{{ '%c%cclass__' % (95, 95) }}",
            "{{ '\\x5f\\x5fclass\\x5f\\x5f' }}",
            "{{ dict(__cl=1, ass__=2)|join }}",
            "{{ dict(__class__=1)|list|first }}",
            "{{ {'__class__': 1}|first }}",
            "{{ ('_' * 2) ~ 'class' ~ '_' * 2 }}",
            "{{ 'x__class__y'[1:-1] }}",
            "{% set a = '__cl' %}{% set b = a ~ 'ass__' %}{{ b }}",
            "{% set ns = namespace(a='__cl') %}{% set ns.b = 'ass__' %}{{ ns.a ~ ns.b }}",
            "{% set a, b = '__cl', 'ass__' %}{{ a ~ b }}",
            "{% set a %}__class__{% endset %}{{ a }}",
            "{{ 'a,__class__'.split(',')[1] }}",
            "{{ '**__class__**'.strip('*') }}",
        ] {
            assert_eq!(folded(template), ["__class__"], "{template}");
        }
        assert_eq!(folded("{{ 'a' if x else 'b' }}"), ["a", "b"]);
        assert_eq!(folded("{{ x ~ 'b' }}"), [""; 0]);
        assert_eq!(folded("{{ 'a' * 1000000 * 1000000 }}"), [""; 0]);
    }
}
