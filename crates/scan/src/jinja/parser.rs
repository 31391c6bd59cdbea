//! Parser: tokens to a syntax tree, in the grammar of jinja2.

use super::lexer::{Located, Tag, Token, tokens};
use super::syntax::{Arguments, Expr, Kind, Statement};

/// Maximum nesting of expressions and of statements. Published templates reach some dozens.
const MAX_DEPTH: usize = 200;

/// A parsed template.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Statements of the template.
    pub statements: Vec<Statement>,
    /// Lines of tags that cannot be parsed; names and strings of these tags are in the tree.
    pub faulty_lines: Vec<u32>,
    /// Depth of the deepest nesting of statements and expressions.
    pub depth: usize,
}

/// Parses a template.
pub fn parse(template: &str) -> Parsed {
    let tokens = tokens(template);
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, result: Parsed::default() };
    let mut statements = Vec::new();
    while parser.at < parser.tokens.len() {
        // An end tag without its start is skipped.
        statements.extend(parser.statements(&[]));
    }
    Parsed { statements, ..parser.result }
}

/// A tag that cannot be parsed.
struct Fault;

type Result<T> = std::result::Result<T, Fault>;

/// Parts of one subscript and the number of colons between them.
struct Bounds {
    colons: usize,
    values: [Option<Expr>; 3],
}

struct Parser<'a> {
    tokens: &'a [Located],
    at: usize,
    depth: usize,
    result: Parsed,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at).map(|located| &located.token)
    }

    fn line(&self) -> u32 {
        let at = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(1, |located| located.line)
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(found)) if *found == operator)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == name)
    }

    fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        self.at += usize::from(found);
        found
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, operator: &str) -> Result<()> {
        if self.skip_operator(operator) { Ok(()) } else { Err(Fault) }
    }

    fn name(&mut self) -> Result<String> {
        let Some(Token::Name(name)) = self.peek() else { return Err(Fault) };
        self.at += 1;
        Ok(name.clone())
    }

    /// Runs a part one level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        self.result.depth = self.result.depth.max(self.depth);
        let result = if self.depth > MAX_DEPTH { Err(Fault) } else { parse(self) };
        self.depth -= 1;
        result
    }

    // Statements.

    /// Parses statements up to one of the end tags, whose name is not consumed.
    fn statements(&mut self, ends: &[&str]) -> Vec<Statement> {
        let mut found = Vec::new();
        while let Some(token) = self.peek() {
            let line = self.line();
            match token {
                Token::Data(text) => {
                    self.at += 1;
                    found.push(Statement::Data { text: text.clone() });
                }
                Token::Open(Tag::Output) => {
                    self.at += 1;
                    let value = self.whole(|parser| parser.tuple());
                    found.push(Statement::Output(value));
                }
                Token::Open(Tag::Block) => {
                    self.at += 1;
                    let Some(Token::Name(name)) = self.peek() else {
                        let rest = self.rest_of_tag();
                        found.push(Statement::Other(vec![rest]));
                        continue;
                    };
                    if ends.contains(&name.as_str()) {
                        return found;
                    }
                    self.at += 1;
                    found.extend(self.statement(name, line));
                }
                // Cannot occur outside of a tag.
                _ => self.at += 1,
            }
        }
        found
    }

    /// Parses the body of a statement one level deeper, and the end tag.
    fn body(&mut self, ends: &[&str]) -> Vec<Statement> {
        self.depth += 1;
        self.result.depth = self.result.depth.max(self.depth);
        // A deeper body is read as statements of the same level.
        let body = if self.depth > MAX_DEPTH { Vec::new() } else { self.statements(ends) };
        self.depth -= 1;
        body
    }

    /// Parses a body and its end tag.
    fn block(&mut self, end: &str) -> Vec<Statement> {
        let body = self.body(&[end]);
        if self.skip_name(end) {
            self.rest_of_tag();
        }
        body
    }

    fn statement(&mut self, name: &str, line: u32) -> Option<Statement> {
        Some(match name {
            "if" => {
                let mut arms = Vec::new();
                let mut otherwise = Vec::new();
                let test = self.whole(|parser| parser.tuple());
                arms.push((test, self.body(&["elif", "else", "endif"])));
                loop {
                    if self.skip_name("elif") {
                        let test = self.whole(|parser| parser.tuple());
                        arms.push((test, self.body(&["elif", "else", "endif"])));
                    } else if self.skip_name("else") {
                        self.rest_of_tag();
                        otherwise = self.block("endif");
                        break;
                    } else {
                        if self.skip_name("endif") {
                            self.rest_of_tag();
                        }
                        break;
                    }
                }
                Statement::If { arms, otherwise }
            }
            "for" => {
                let start = self.at;
                let head = self.head(|parser| {
                    let target = parser.targets()?;
                    if !parser.skip_name("in") {
                        return Err(Fault);
                    }
                    let iterable = parser.tuple_of(|parser| parser.or())?;
                    let condition = match parser.skip_name("if") {
                        true => Some(parser.expression()?),
                        false => None,
                    };
                    parser.skip_name("recursive");
                    Ok((target, iterable, condition))
                });
                let (target, iterable, condition) = head.unwrap_or_else(|| {
                    let parts = self.words(start);
                    (Expr { line, kind: Kind::List(Vec::new()) }, parts, None)
                });
                let mut body = self.body(&["else", "endfor"]);
                if self.skip_name("else") {
                    self.rest_of_tag();
                    body.extend(self.body(&["endfor"]));
                }
                if self.skip_name("endfor") {
                    self.rest_of_tag();
                }
                Statement::For { target, iterable, condition, body }
            }
            "set" => {
                let start = self.at;
                let head = self.head(|parser| {
                    let target = parser.targets()?;
                    if parser.skip_operator("=") {
                        return Ok((target, Some(parser.tuple()?), Vec::new()));
                    }
                    let mut filters = Vec::new();
                    while parser.is_operator("|") {
                        filters.push(parser.filter(None)?);
                    }
                    Ok((target, None, filters))
                });
                match head {
                    Some((target, Some(value), _)) => Statement::Set { target, value },
                    Some((target, None, filters)) => {
                        Statement::Capture { target, filters, body: self.block("endset") }
                    }
                    None => Statement::Other(vec![self.words(start)]),
                }
            }
            "macro" => {
                let start = self.at;
                let head = self.head(|parser| {
                    let name = parser.name()?;
                    let (parameters, defaults) = parser.parameters()?;
                    Ok((name, parameters, defaults))
                });
                let body = self.block("endmacro");
                match head {
                    Some((name, parameters, defaults)) => {
                        Statement::Macro { name, parameters, defaults, body }
                    }
                    None => Statement::Block { expressions: vec![self.words(start)], body },
                }
            }
            "call" => {
                let head = self.whole(|parser| {
                    if parser.is_operator("(") {
                        parser.parameters()?;
                    }
                    parser.expression()
                });
                Statement::Block { expressions: vec![head], body: self.block("endcall") }
            }
            "filter" => {
                let head = self.whole(|parser| {
                    // A filter block begins as a filter without its bar.
                    let mut filter = parser.filter_name(None)?;
                    while parser.is_operator("|") {
                        filter = parser.filter(Some(filter))?;
                    }
                    Ok(filter)
                });
                Statement::Block { expressions: vec![head], body: self.block("endfilter") }
            }
            "with" => {
                let line = self.line();
                let head = self.whole(|parser| {
                    let mut parts = Vec::new();
                    while !parser.at_end() {
                        parts.push(parser.targets()?);
                        parser.expect("=")?;
                        parts.push(parser.expression()?);
                        parser.skip_operator(",");
                    }
                    Ok(Expr { line, kind: Kind::List(parts) })
                });
                Statement::Block { expressions: vec![head], body: self.block("endwith") }
            }
            "block" | "generation" | "autoescape" | "trans" => {
                let head = self.rest_of_tag();
                let end = format!("end{name}");
                Statement::Block { expressions: vec![head], body: self.block(&end) }
            }
            "include" | "import" | "from" | "extends" => {
                let expressions = vec![self.rest_of_tag()];
                Statement::Load { line, tag: name.to_owned(), expressions }
            }
            "do" => {
                let value = self.whole(|parser| parser.tuple());
                Statement::Other(vec![value])
            }
            // The end of a block whose start is missing.
            _ if name.starts_with("end") || matches!(name, "else" | "elif") => {
                self.rest_of_tag();
                return None;
            }
            _ => Statement::Other(vec![self.rest_of_tag()]),
        })
    }

    /// Parses the head of a tag up to its end; `None` if it cannot be parsed.
    fn head<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Option<T> {
        let (line, depth) = (self.line(), self.depth);
        let result = parse(self);
        self.depth = depth;
        let is_whole = self.at_end();
        self.skip_tag();
        match result {
            Ok(value) if is_whole => Some(value),
            _ => {
                self.result.faulty_lines.push(line);
                None
            }
        }
    }

    /// Parses an expression up to the end of the tag. One that cannot be parsed becomes a list of its words.
    fn whole(&mut self, parse: impl FnOnce(&mut Self) -> Result<Expr>) -> Expr {
        let start = self.at;
        self.head(parse).unwrap_or_else(|| self.words(start))
    }

    fn at_end(&self) -> bool {
        matches!(self.peek(), None | Some(Token::Close(_)))
    }

    fn skip_tag(&mut self) {
        while !self.at_end() {
            self.at += 1;
        }
        self.at += 1;
    }

    /// Returns the words of the rest of the tag, and skips it.
    fn rest_of_tag(&mut self) -> Expr {
        let start = self.at;
        self.skip_tag();
        self.words(start)
    }

    /// Returns the names and strings of a tag from this token on, as a list.
    fn words(&self, start: usize) -> Expr {
        let tag = self.tokens[start.min(self.tokens.len())..]
            .iter()
            .take_while(|located| !matches!(located.token, Token::Close(_)));
        let words = tag.filter_map(|Located { token, line }| {
            let kind = match token {
                Token::Name(name) => Kind::Name(name.clone()),
                Token::Text(text) => Kind::Text(text.clone()),
                _ => return None,
            };
            Some(Expr { line: *line, kind })
        });
        let line = self.tokens.get(start).map_or(1, |located| located.line);
        Expr { line, kind: Kind::List(words.collect()) }
    }

    /// Parses the targets of an assignment.
    fn targets(&mut self) -> Result<Expr> {
        let line = self.line();
        let mut targets = Vec::new();
        loop {
            if self.skip_operator("(") {
                targets.push(self.deeper(Self::targets)?);
                self.expect(")")?;
            } else {
                let mut target = Expr { line: self.line(), kind: Kind::Name(self.name()?) };
                while self.skip_operator(".") {
                    let kind = Kind::Attribute(Box::new(target), self.name()?);
                    target = Expr { line, kind };
                    // Only `namespace.name` is a target.
                    if self.is_operator(".") {
                        return Err(Fault);
                    }
                }
                targets.push(target);
            }
            if !self.skip_operator(",") {
                break;
            }
            if self.is_name("in") || self.is_operator("=") || self.at_end() {
                break;
            }
        }
        Ok(match targets.len() {
            1 => targets.remove(0),
            _ => Expr { line, kind: Kind::List(targets) },
        })
    }

    /// Parses the parameters of a macro: names and default values.
    fn parameters(&mut self) -> Result<(Vec<String>, Vec<Expr>)> {
        let (mut names, mut defaults) = (Vec::new(), Vec::new());
        self.expect("(")?;
        while !self.skip_operator(")") {
            names.push(self.name()?);
            if self.skip_operator("=") {
                defaults.push(self.expression()?);
            }
            if !self.skip_operator(",") && !self.is_operator(")") {
                return Err(Fault);
            }
        }
        Ok((names, defaults))
    }

    // Expressions, from the loosest to the tightest operator.

    /// Parses expressions with commas.
    fn tuple(&mut self) -> Result<Expr> {
        self.tuple_of(Self::expression)
    }

    fn tuple_of(&mut self, item: impl Fn(&mut Self) -> Result<Expr>) -> Result<Expr> {
        let line = self.line();
        let first = item(self)?;
        if !self.is_operator(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_operator(",") {
            if self.at_end() || self.is_operator(")") {
                break;
            }
            items.push(item(self)?);
        }
        Ok(Expr { line, kind: Kind::List(items) })
    }

    fn expression(&mut self) -> Result<Expr> {
        self.deeper(|parser| {
            let line = parser.line();
            let value = parser.or()?;
            if !parser.skip_name("if") {
                return Ok(value);
            }
            let test = parser.or()?;
            let mut parts = vec![test, value];
            if parser.skip_name("else") {
                parts.push(parser.expression()?);
            }
            Ok(Expr { line, kind: Kind::Conditional(parts) })
        })
    }

    /// Parses operands of one precedence; `operator` consumes an operator.
    fn chain(
        &mut self,
        operand: impl Fn(&mut Self) -> Result<Expr>,
        operator: impl Fn(&mut Self) -> Option<&'static str>,
    ) -> Result<Expr> {
        let line = self.line();
        let first = operand(self)?;
        let Some(found) = operator(self) else { return Ok(first) };
        let (mut operands, mut operators) = (vec![first, operand(self)?], vec![found]);
        while let Some(found) = operator(self) {
            operators.push(found);
            operands.push(operand(self)?);
        }
        Ok(Expr { line, kind: Kind::Chain(operands, operators) })
    }

    fn one_of(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        let Some(Token::Operator(found)) = self.peek() else { return None };
        let found = operators.iter().find(|one| *one == found)?;
        self.at += 1;
        Some(found)
    }

    fn or(&mut self) -> Result<Expr> {
        self.chain(Self::and, |parser| parser.skip_name("or").then_some("or"))
    }

    fn and(&mut self) -> Result<Expr> {
        self.chain(Self::not, |parser| parser.skip_name("and").then_some("and"))
    }

    fn not(&mut self) -> Result<Expr> {
        let line = self.line();
        if !self.skip_name("not") {
            return self.comparison();
        }
        let value = self.deeper(Self::not)?;
        Ok(Expr { line, kind: Kind::Unary(Box::new(value)) })
    }

    fn comparison(&mut self) -> Result<Expr> {
        self.chain(Self::sum, |parser| {
            if let Some(found) = parser.one_of(&["==", "!=", ">=", "<=", ">", "<"]) {
                return Some(found);
            }
            if parser.skip_name("in") {
                return Some("in");
            }
            let next = parser.tokens.get(parser.at + 1).map(|located| &located.token);
            if parser.is_name("not") && matches!(next, Some(Token::Name(name)) if name == "in") {
                parser.at += 2;
                return Some("not in");
            }
            None
        })
    }

    fn sum(&mut self) -> Result<Expr> {
        self.chain(Self::concatenation, |parser| parser.one_of(&["+", "-"]))
    }

    fn concatenation(&mut self) -> Result<Expr> {
        self.chain(Self::product, |parser| parser.one_of(&["~"]))
    }

    fn product(&mut self) -> Result<Expr> {
        self.chain(Self::power, |parser| parser.one_of(&["*", "/", "//", "%"]))
    }

    fn power(&mut self) -> Result<Expr> {
        self.chain(|parser| parser.unary(true), |parser| parser.one_of(&["**"]))
    }

    fn unary(&mut self, with_filters: bool) -> Result<Expr> {
        let line = self.line();
        let mut value = match self.one_of(&["-", "+"]) {
            Some(_) => {
                let value = self.deeper(|parser| parser.unary(false))?;
                Expr { line, kind: Kind::Unary(Box::new(value)) }
            }
            None => self.primary()?,
        };
        let depth = self.depth;
        let mut steps = 0;
        loop {
            steps += 1;
            self.result.depth = self.result.depth.max(depth + steps / 4);
            if steps > MAX_DEPTH {
                return Err(Fault);
            }
            value = if self.skip_operator(".") {
                let kind = match self.peek() {
                    Some(Token::Number(number)) => {
                        let key = Expr { line: self.line(), kind: Kind::Number(*number) };
                        self.at += 1;
                        Kind::Item(Box::new(value), Box::new(key))
                    }
                    _ => Kind::Attribute(Box::new(value), self.name()?),
                };
                Expr { line, kind }
            } else if self.skip_operator("[") {
                self.subscript(value)?
            } else if self.is_operator("(") {
                let arguments = self.arguments()?;
                Expr { line, kind: Kind::Call(Box::new(value), arguments) }
            } else if with_filters && self.is_operator("|") {
                self.filter(Some(value))?
            } else if with_filters && self.skip_name("is") {
                self.test(value)?
            } else {
                return Ok(value);
            };
        }
    }

    fn subscript(&mut self, object: Expr) -> Result<Expr> {
        let line = self.line();
        let mut subscripts = Vec::new();
        while !self.skip_operator("]") {
            if !subscripts.is_empty() {
                self.expect(",")?;
            }
            subscripts.push(self.bounds()?);
        }
        let kind = match (subscripts.pop().ok_or(Fault)?, subscripts.is_empty()) {
            (Bounds { colons: 0, values: [Some(key), ..] }, true) => {
                Kind::Item(Box::new(object), Box::new(key))
            }
            (last, true) => Kind::Slice(Box::new(object), Box::new(last.values)),
            // Several subscripts are one tuple, in which slices are values too.
            (last, false) => {
                subscripts.push(last);
                let values = subscripts.into_iter().flat_map(|bounds| bounds.values).flatten();
                let key = Expr { line, kind: Kind::List(values.collect()) };
                Kind::Item(Box::new(object), Box::new(key))
            }
        };
        Ok(Expr { line, kind })
    }

    /// Parses one subscript: `key`, or `start:stop:step` with any part missing.
    fn bounds(&mut self) -> Result<Bounds> {
        let mut bounds = Bounds { colons: 0, values: [None, None, None] };
        loop {
            if self.is_operator("]") || self.is_operator(",") {
                let is_empty = bounds.colons == 0 && bounds.values[0].is_none();
                return if is_empty { Err(Fault) } else { Ok(bounds) };
            } else if self.skip_operator(":") {
                bounds.colons += 1;
                if bounds.colons == bounds.values.len() {
                    return Err(Fault);
                }
            } else if bounds.values[bounds.colons].is_none() {
                bounds.values[bounds.colons] = Some(self.expression()?);
            } else {
                return Err(Fault);
            }
        }
    }

    /// Parses `|name(arguments)`.
    fn filter(&mut self, value: Option<Expr>) -> Result<Expr> {
        self.expect("|")?;
        self.filter_name(value)
    }

    fn filter_name(&mut self, value: Option<Expr>) -> Result<Expr> {
        let line = self.line();
        let name = self.dotted_name()?;
        let arguments = match self.is_operator("(") {
            true => self.arguments()?,
            false => Arguments::default(),
        };
        Ok(Expr { line, kind: Kind::Filter(value.map(Box::new), name, arguments) })
    }

    /// Parses the name and the argument of a test.
    fn test(&mut self, value: Expr) -> Result<Expr> {
        let line = self.line();
        let negated = self.skip_name("not");
        self.dotted_name()?;
        let mut arguments = Arguments::default();
        if self.is_operator("(") {
            arguments = self.arguments()?;
        } else {
            let is_operand = match self.peek() {
                Some(Token::Name(name)) => !matches!(
                    &name[..],
                    "else" | "or" | "and" | "is" | "if" | "in" | "not" | "recursive"
                ),
                Some(Token::Text(_) | Token::Number(_)) => true,
                Some(Token::Operator(operator)) => matches!(*operator, "[" | "{"),
                _ => false,
            };
            if is_operand {
                arguments.positional.push(self.deeper(|parser| parser.unary(false))?);
            }
        }
        let test = Expr { line, kind: Kind::Test(Box::new(value), arguments) };
        Ok(match negated {
            true => Expr { line, kind: Kind::Unary(Box::new(test)) },
            false => test,
        })
    }

    fn dotted_name(&mut self) -> Result<String> {
        let mut name = self.name()?;
        while self.skip_operator(".") {
            name = name + "." + &self.name()?;
        }
        Ok(name)
    }

    fn arguments(&mut self) -> Result<Arguments> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        while !self.skip_operator(")") {
            // `*list` and `**mapping`.
            let _ = self.skip_operator("**") || self.skip_operator("*");
            let next = self.tokens.get(self.at + 1).map(|located| &located.token);
            match (self.peek(), next) {
                (Some(Token::Name(name)), Some(Token::Operator("="))) => {
                    self.at += 2;
                    let value = self.expression()?;
                    arguments.named.push((name.clone(), value));
                }
                _ => arguments.positional.push(self.expression()?),
            }
            if !self.skip_operator(",") && !self.is_operator(")") {
                return Err(Fault);
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expr> {
        let line = self.line();
        let Some(token) = self.peek() else { return Err(Fault) };
        self.at += 1;
        let kind = match token {
            Token::Name(name) => Kind::Name(name.clone()),
            Token::Number(number) => Kind::Number(*number),
            Token::Text(text) => {
                // Adjacent literals are one.
                let mut text = text.clone();
                while let Some(Token::Text(more)) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Kind::Text(text)
            }
            Token::Operator("(") => {
                if self.skip_operator(")") {
                    Kind::List(Vec::new())
                } else {
                    let value = self.deeper(Self::tuple)?;
                    self.expect(")")?;
                    return Ok(value);
                }
            }
            Token::Operator("[") => Kind::List(self.items("]")?),
            Token::Operator("{") => Kind::Dict(self.items("}")?),
            _ => {
                self.at -= 1;
                return Err(Fault);
            }
        };
        Ok(Expr { line, kind })
    }

    /// Parses the items of a list, or keys and values of a dictionary.
    fn items(&mut self, end: &str) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.skip_operator(end) {
            items.push(self.expression()?);
            if end == "}" {
                self.expect(":")?;
                items.push(self.expression()?);
            }
            if !self.skip_operator(",") && !self.is_operator(end) {
                return Err(Fault);
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jinja::expressions;

    fn names_and_texts(template: &str) -> (Vec<String>, Vec<u32>) {
        let parsed = parse(template);
        let words =
            expressions(&parsed.statements).into_iter().filter_map(|expr| match &expr.kind {
                Kind::Name(word) | Kind::Text(word) | Kind::Attribute(_, word) => {
                    Some(word.clone())
                }
                _ => None,
            });
        (words.collect(), parsed.faulty_lines)
    }

    #[test]
    fn constructs_of_jinja2_are_parsed() {
        for template in [
            "{{ a['b'][1:2, ::-1][::-1] }}",
            "{% for k, v in d|dictsort if v is not none recursive %}{{ loop(v) }}{% else %}x{% endfor %}",
            "{% set ns.a = 1, 2 %}{% set x | upper %}a{% endset %}{% set (a, b) = c %}",
            "{% macro m(a, b=1) %}{{ caller(a) }}{% endmacro %}{% call(x) m(1) %}y{% endcall %}",
            "{% if a is defined and b is divisibleby 3 or not c is in [1] %}a{% elif b %}{% else %}{% endif %}",
            "{{ 'a' 'b' ~ c|d(e=1)|f if g else -h ** 2 // 3 }}",
            "{% filter upper|trim %}a{% endfilter %}{% with a = 1, b = {'c': ()} %}{% endwith %}",
            "{% generation %}{{ x }}{% endgeneration %}{% break %}{% do a.append(*b, **c) %}",
            "{{ a.0.b(1,) if c }}{{ (1,)[0] }}{{ a not in b == c < d }}{{ x is test 'y' }}",
        ] {
            assert_eq!(names_and_texts(template).1, [0u32; 0], "{template}");
        }
    }

    #[test]
    fn words_of_broken_tags_are_kept() {
        let (words, faulty) = names_and_texts(
            "\n{{ a ? 'b' }}{% if x y %}{{ c }}{% endif %}{% for q %}{% set = e %}",
        );
        assert_eq!(words, ["a", "b", "x", "y", "c", "q", "e"]);
        assert_eq!(faulty, [2, 2, 2, 2]);
        let (words, faulty) = names_and_texts("{% if a %}{{ b");
        assert_eq!((words, faulty), (vec!["a".to_owned(), "b".to_owned()], vec![]));
        assert_eq!(names_and_texts("{% endif %}{% else %}{{ a }}").0, ["a"]);
    }

    #[test]
    fn deep_and_long_templates_end() {
        for template in [
            format!("{{{{ {}a }}}}", "(".repeat(100_000)),
            format!("{{{{ {}a }}}}", "not ".repeat(100_000)),
            format!("{{{{ a{} }}}}", ".b".repeat(100_000)),
            format!("{{{{ a{} }}}}", "~b".repeat(100_000)),
            format!("{{{{ a{} }}}}", " if a else b".repeat(20_000)),
            "{% if a %}".repeat(100_000),
            "{% raw %}".repeat(20_000),
            "{{".repeat(100_000),
        ] {
            let parsed = parse(&template);
            assert!(parsed.depth <= MAX_DEPTH + 1, "{}", parsed.depth);
        }
    }
}
