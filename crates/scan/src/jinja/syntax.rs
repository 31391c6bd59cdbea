//! Syntax tree of a template.

/// Expression with its line.
#[derive(Debug)]
pub struct Expr {
    /// Line, from 1.
    pub line: u32,
    /// Kind and parts.
    pub kind: Kind,
}

/// Kinds of expressions.
#[derive(Debug)]
pub enum Kind {
    /// Variable.
    Name(String),
    /// String literal.
    Text(String),
    /// Number literal.
    Number(f64),
    /// List or tuple; also the parts of a tag that cannot be parsed.
    List(Vec<Expr>),
    /// Dictionary: keys and values in turn.
    Dict(Vec<Expr>),
    /// `object.name`.
    Attribute(Box<Expr>, String),
    /// `object[key]`.
    Item(Box<Expr>, Box<Expr>),
    /// `object[start:stop:step]`.
    Slice(Box<Expr>, Box<[Option<Expr>; 3]>),
    /// `function(arguments)`.
    Call(Box<Expr>, Arguments),
    /// `value|filter(arguments)`; a filter block has no value.
    Filter(Option<Box<Expr>>, String, Arguments),
    /// `value is test(arguments)`, without the name of the test.
    Test(Box<Expr>, Arguments),
    /// Operands with the operators between them, all of one precedence.
    Chain(Vec<Expr>, Vec<&'static str>),
    /// `not value`, `-value`.
    Unary(Box<Expr>),
    /// `value if test else other`: test, value and the other value, if there is one.
    Conditional(Vec<Expr>),
}

/// Arguments of a call.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Positional arguments.
    pub positional: Vec<Expr>,
    /// Named arguments.
    pub named: Vec<(String, Expr)>,
}

/// Statement of a template.
#[derive(Debug)]
pub enum Statement {
    /// Text.
    Data { text: String },
    /// `{{ value }}`.
    Output(Expr),
    /// `{% if %}` with its branches.
    If { arms: Vec<(Expr, Vec<Statement>)>, otherwise: Vec<Statement> },
    /// `{% for target in iterable if condition %}`; the body of `else` is appended.
    For { target: Expr, iterable: Expr, condition: Option<Expr>, body: Vec<Statement> },
    /// `{% set target = value %}`.
    Set { target: Expr, value: Expr },
    /// `{% set target %}` with a body.
    Capture { target: Expr, filters: Vec<Expr>, body: Vec<Statement> },
    /// `{% macro name(parameters) %}`; defaults are expressions.
    Macro { name: String, parameters: Vec<String>, defaults: Vec<Expr>, body: Vec<Statement> },
    /// Block of another kind, such as `with`, `call` and `generation`.
    Block { expressions: Vec<Expr>, body: Vec<Statement> },
    /// `include`, `import`, `from` or `extends`.
    Load { line: u32, tag: String, expressions: Vec<Expr> },
    /// Statement of another kind.
    Other(Vec<Expr>),
}

impl Expr {
    /// Returns the direct parts.
    pub fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Name(_) | Kind::Text(_) | Kind::Number(_) => Vec::new(),
            Kind::List(items)
            | Kind::Dict(items)
            | Kind::Chain(items, _)
            | Kind::Conditional(items) => items.iter().collect(),
            Kind::Attribute(object, _) | Kind::Unary(object) => vec![object],
            Kind::Item(object, key) => vec![object, key],
            Kind::Slice(object, bounds) => {
                std::iter::once(&**object).chain(bounds.iter().flatten()).collect()
            }
            Kind::Call(first, arguments) | Kind::Test(first, arguments) => {
                std::iter::once(&**first).chain(arguments.iter()).collect()
            }
            Kind::Filter(Some(first), _, arguments) => {
                std::iter::once(&**first).chain(arguments.iter()).collect()
            }
            Kind::Filter(None, _, arguments) => arguments.iter().collect(),
        }
    }

    /// Returns the text of a string literal.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Arguments {
    /// Returns all arguments.
    pub fn iter(&self) -> impl Iterator<Item = &Expr> {
        self.positional.iter().chain(self.named.iter().map(|(_, value)| value))
    }

    /// Returns the named argument.
    pub fn named(&self, name: &str) -> Option<&Expr> {
        self.named.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }
}

impl Statement {
    /// Returns the expressions of the statement itself, without those in bodies.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Self::Data { .. } => Vec::new(),
            Self::Output(value) => vec![value],
            Self::If { arms, .. } => arms.iter().map(|(test, _)| test).collect(),
            Self::For { target, iterable, condition, .. } => {
                [target, iterable].into_iter().chain(condition).collect()
            }
            Self::Set { target, value } => vec![target, value],
            Self::Capture { target, filters, .. } => {
                std::iter::once(target).chain(filters).collect()
            }
            Self::Macro { defaults: expressions, .. }
            | Self::Block { expressions, .. }
            | Self::Load { expressions, .. }
            | Self::Other(expressions) => expressions.iter().collect(),
        }
    }

    /// Returns the bodies.
    pub fn bodies(&self) -> Vec<&[Statement]> {
        match self {
            Self::If { arms, otherwise } => {
                let bodies = arms.iter().map(|(_, body)| &body[..]);
                bodies.chain([&otherwise[..]]).collect()
            }
            Self::For { body, .. }
            | Self::Capture { body, .. }
            | Self::Macro { body, .. }
            | Self::Block { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }
}

/// Calls a function with every statement, also nested ones, in order.
pub fn for_each<'a>(statements: &'a [Statement], call: &mut dyn FnMut(&'a Statement)) {
    for statement in statements {
        call(statement);
        for body in statement.bodies() {
            for_each(body, call);
        }
    }
}

/// Calls a function with an expression and all its parts; with the whole before its parts.
pub fn for_each_expr<'a>(expr: &'a Expr, call: &mut dyn FnMut(&'a Expr)) {
    call(expr);
    for part in expr.parts() {
        for_each_expr(part, call);
    }
}

/// Returns all expressions of the statements, also nested ones.
pub fn expressions(statements: &[Statement]) -> Vec<&Expr> {
    let mut found = Vec::new();
    for_each(statements, &mut |statement| {
        for expr in statement.expressions() {
            for_each_expr(expr, &mut |part| found.push(part));
        }
    });
    found
}
