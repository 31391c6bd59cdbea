//! Syntax tree.

use std::sync::Arc;

/// A statement and its line.
#[derive(Debug)]
pub struct Statement {
    pub line: usize,
    pub kind: StatementKind,
}

/// Statements in order.
pub type Body = Vec<Statement>;

#[derive(Debug)]
pub enum StatementKind {
    /// Text outside tags.
    Text(String),
    /// `{{ ... }}`, and each expression of `{% print %}`.
    Print(Expression),
    If {
        branches: Vec<(Expression, Body)>,
        otherwise: Body,
    },
    For(Arc<Loop>),
    Continue,
    Break,
    Set {
        target: Target,
        value: Expression,
    },
    SetBlock {
        target: Target,
        filters: Vec<FilterCall>,
        body: Body,
    },
    With {
        assignments: Vec<(Target, Expression)>,
        body: Body,
    },
    Macro(Arc<Macro>),
    /// `{% call %}`: calls a macro with a body as `caller`.
    Call {
        call: Expression,
        caller: Arc<Macro>,
    },
    Filter {
        filters: Vec<FilterCall>,
        body: Body,
    },
    AutoEscape {
        enabled: Expression,
        body: Body,
    },
    /// `{% block %}`; its body is in [`Tree::blocks`].
    Block(String),
    /// `{% generation %}`: a scope of its own.
    Generation(Body),
    /// `extends`, `include`, `import` and `from`, which need a loader.
    Load,
}

#[derive(Debug)]
pub struct Loop {
    pub target: Target,
    pub items: Expression,
    pub condition: Option<Expression>,
    pub is_recursive: bool,
    pub body: Body,
    pub otherwise: Body,
}

#[derive(Debug)]
pub struct Macro {
    /// Name; empty for the body of `{% call %}`.
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub body: Body,
    /// Whether the body uses the variables `varargs`, `kwargs` and `caller`.
    pub uses: Uses,
}

#[derive(Debug)]
pub struct Parameter {
    pub name: String,
    pub default: Option<Expression>,
}

/// Special variables that a macro uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uses {
    pub varargs: bool,
    pub kwargs: bool,
    pub caller: bool,
}

#[derive(Debug)]
pub enum Target {
    Name(String),
    /// `namespace.attribute`.
    Attribute(String, String),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub struct FilterCall {
    pub name: String,
    pub arguments: CallArguments,
}

#[derive(Debug, Default)]
pub struct CallArguments {
    pub positional: Vec<Expression>,
    pub named: Vec<(String, Expression)>,
    /// `*list`.
    pub list: Option<Box<Expression>>,
    /// `**dict`.
    pub dict: Option<Box<Expression>>,
}

#[derive(Clone, Debug)]
pub enum Constant {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
}

#[derive(Debug)]
pub enum Expression {
    Constant(Constant),
    Name(String),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Dict(Vec<(Expression, Expression)>),
    Attribute(Box<Expression>, String),
    Item(Box<Expression>, Box<Expression>),
    Slice([Option<Box<Expression>>; 3]),
    Call(Box<Expression>, CallArguments),
    Filter(Box<Expression>, FilterCall),
    Test {
        value: Box<Expression>,
        name: String,
        arguments: CallArguments,
    },
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `a ~ b ~ c`.
    Concat(Vec<Expression>),
    /// `a < b <= c`.
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// `value if condition else otherwise`.
    Conditional {
        value: Box<Expression>,
        condition: Box<Expression>,
        otherwise: Option<Box<Expression>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Negative,
    Positive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

/// A parsed template.
#[derive(Debug)]
pub struct Tree {
    pub body: Body,
    /// Bodies of the blocks by name.
    pub blocks: Vec<(String, Arc<Body>)>,
}
