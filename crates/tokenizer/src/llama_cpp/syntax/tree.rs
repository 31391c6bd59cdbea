//! Syntax tree. Statements and expressions are of one kind, as in llama.cpp: text outside tags is a string.

use std::sync::Arc;

/// A statement or expression, and its line.
#[derive(Debug)]
pub struct Node {
    pub line: usize,
    pub kind: Kind,
}

/// Statements in order.
pub type Body = Vec<Node>;

#[derive(Debug)]
pub enum Kind {
    /// A string, or text outside tags.
    Text(String),
    Int(i64),
    Float(f64),
    Name(String),
    List(Vec<Node>),
    Tuple(Vec<Node>),
    Dict(Vec<(Node, Node)>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negative(Box<Node>),
    Positive(Box<Node>),
    /// Operator between two values.
    Binary(&'static str, Box<Node>, Box<Node>),
    /// A value, and a filter: a name or a call.
    Filter(Box<Node>, Box<Node>),
    /// A value, whether the test is negated, and the test: a name or a call.
    Test(Box<Node>, bool, Box<Node>),
    /// `value if condition`: undefined if the condition is false. The items of a loop with a condition too.
    Select(Box<Node>, Box<Node>),
    /// Condition, value, other value.
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    /// `object.property`.
    Member(Box<Node>, Box<Node>),
    /// `object[property]`.
    Item(Box<Node>, Box<Node>),
    /// Start, stop and step within the brackets of an item.
    Slice([Option<Box<Node>>; 3]),
    /// Nothing, within the brackets of an item.
    Blank,
    Call(Box<Node>, Vec<Node>),
    /// `name=value` in arguments.
    Keyword(Box<Node>, Box<Node>),
    /// `*list` in arguments, which fails.
    Spread,
    If {
        test: Box<Node>,
        body: Body,
        otherwise: Body,
    },
    For {
        target: Box<Node>,
        items: Box<Node>,
        body: Body,
        otherwise: Body,
    },
    Set {
        target: Box<Node>,
        value: Option<Box<Node>>,
        body: Body,
    },
    Macro(Arc<Macro>),
    /// `{% call %}`: the call, and its body as a macro `caller`.
    CallBlock(Box<Node>, Arc<Macro>),
    FilterBlock(Box<Node>, Body),
    Break,
    Continue,
    /// A comment, `{% generation %}` or `{% endgeneration %}`.
    Nothing,
}

/// A macro, or the body of `{% call %}`.
#[derive(Debug)]
pub struct Macro {
    pub name: String,
    pub parameters: Vec<Node>,
    pub body: Body,
}

impl Node {
    /// Returns the text of a name.
    pub fn as_name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            _ => None,
        }
    }
}
