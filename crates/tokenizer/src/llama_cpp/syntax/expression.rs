//! Grammar of expressions, from the loosest operator to the tightest.

use super::lexer::Kind as Token;
use super::parser::Parser;
use super::tree::{Kind, Node};
use crate::jinja::Error;

type Read = fn(&mut Parser) -> Result<Node, Error>;

fn boxed(node: Node) -> Box<Node> {
    Box::new(node)
}

impl Parser {
    pub fn expression(&mut self) -> Result<Node, Error> {
        self.nested(Self::conditional)
    }

    /// Reads one expression, or several with commas between them as a tuple.
    pub fn sequence(&mut self, read: Read) -> Result<Node, Error> {
        let line = self.line();
        let first = read(self)?;
        if !self.is(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip(",") {
            items.push(read(self)?);
        }
        Ok(Node { line, kind: Kind::Tuple(items) })
    }

    fn conditional(&mut self) -> Result<Node, Error> {
        let value = self.or()?;
        let line = self.line();
        if !self.skip_name("if") {
            return Ok(value);
        }
        let test = self.or()?;
        let otherwise = self.line();
        if !self.skip_name("else") {
            return Ok(Node { line, kind: Kind::Select(boxed(value), boxed(test)) });
        }
        let other = self.nested(Self::conditional)?;
        let kind = Kind::Conditional(boxed(test), boxed(value), boxed(other));
        Ok(Node { line: otherwise, kind })
    }

    /// Reads operations that associate to the left.
    fn left(
        &mut self,
        operand: Read,
        operator: impl Fn(&mut Self) -> Option<&'static str>,
    ) -> Result<Node, Error> {
        let mut left = operand(self)?;
        let depth = self.depth();
        loop {
            let line = self.line();
            let Some(operator) = operator(self) else { break };
            self.deeper()?;
            let right = operand(self)?;
            let (a, b) = (boxed(left), boxed(right));
            let kind = match operator {
                "and" => Kind::And(a, b),
                "or" => Kind::Or(a, b),
                _ => Kind::Binary(operator, a, b),
            };
            left = Node { line, kind };
        }
        self.set_depth(depth);
        Ok(left)
    }

    fn or(&mut self) -> Result<Node, Error> {
        self.left(Self::and, |this| this.skip_name("or").then_some("or"))
    }

    fn and(&mut self) -> Result<Node, Error> {
        self.left(Self::not, |this| this.skip_name("and").then_some("and"))
    }

    fn not(&mut self) -> Result<Node, Error> {
        let line = self.line();
        if !self.skip_name("not") {
            return self.compare();
        }
        let value = self.nested(Self::not)?;
        Ok(Node { line, kind: Kind::Not(boxed(value)) })
    }

    fn compare(&mut self) -> Result<Node, Error> {
        self.left(Self::sum, |this| {
            if this.is_names("not", "in") {
                this.skip_any();
                this.skip_any();
                return Some("not in");
            }
            if this.skip_name("in") {
                return Some("in");
            }
            ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|operator| this.skip(operator))
        })
    }

    fn sum(&mut self) -> Result<Node, Error> {
        self.left(Self::product, |this| ["+", "-", "~"].into_iter().find(|it| this.skip(it)))
    }

    fn product(&mut self) -> Result<Node, Error> {
        self.left(Self::test, |this| ["*", "/", "%"].into_iter().find(|it| this.skip(it)))
    }

    fn test(&mut self) -> Result<Node, Error> {
        let mut value = self.filtered()?;
        let depth = self.depth();
        loop {
            let line = self.line();
            if !self.skip_name("is") {
                break;
            }
            self.deeper()?;
            let negated = self.skip_name("not");
            let mut test = self.primary()?;
            let call_line = self.line();
            let begins_argument = match self.peek() {
                Some(Token::Number | Token::String) => true,
                Some(Token::Operator) => ["{", "["].contains(&self.value()),
                Some(Token::Name) => !["and", "or", "else"].contains(&self.value()),
                _ => false,
            };
            if self.is("(") {
                test = self.call(test)?;
            } else if begins_argument {
                let argument = self.signed()?;
                test = Node { line: call_line, kind: Kind::Call(boxed(test), vec![argument]) };
            }
            value = Node { line, kind: Kind::Test(boxed(value), negated, boxed(test)) };
        }
        self.set_depth(depth);
        Ok(value)
    }

    fn filtered(&mut self) -> Result<Node, Error> {
        let mut value = self.signed()?;
        let depth = self.depth();
        loop {
            let line = self.line();
            if !self.skip("|") {
                break;
            }
            self.deeper()?;
            let filter = self.filter()?;
            value = Node { line, kind: Kind::Filter(boxed(value), boxed(filter)) };
        }
        self.set_depth(depth);
        Ok(value)
    }

    /// Reads the name of a filter, with arguments if it has some.
    pub fn filter(&mut self) -> Result<Node, Error> {
        let name = self.primary()?;
        if self.is("(") { self.call(name) } else { Ok(name) }
    }

    fn signed(&mut self) -> Result<Node, Error> {
        let line = self.line();
        if self.peek() == Some(Token::Sign) {
            let is_negative = self.next()?.value == "-";
            let value = boxed(self.nested(Self::signed)?);
            let kind = if is_negative { Kind::Negative(value) } else { Kind::Positive(value) };
            return Ok(Node { line, kind });
        }
        let value = self.primary()?;
        let value = self.members(value)?;
        if self.is("(") { self.call(value) } else { Ok(value) }
    }

    /// Reads arguments after a value, and members and further calls after them.
    fn call(&mut self, mut callee: Node) -> Result<Node, Error> {
        let depth = self.depth();
        while self.is("(") {
            let line = self.line();
            self.deeper()?;
            let arguments = self.arguments()?;
            let call = Node { line, kind: Kind::Call(boxed(callee), arguments) };
            callee = self.members(call)?;
        }
        self.set_depth(depth);
        Ok(callee)
    }

    /// Reads arguments in parentheses. Commas between them may be missing.
    pub fn arguments(&mut self) -> Result<Vec<Node>, Error> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            let line = self.line();
            if self.skip("*") {
                self.expression()?;
                arguments.push(Node { line, kind: Kind::Spread });
            } else {
                let mut argument = self.expression()?;
                let line = self.line();
                if self.skip("=") {
                    let value = self.expression()?;
                    argument = Node { line, kind: Kind::Keyword(boxed(argument), boxed(value)) };
                }
                arguments.push(argument);
            }
            self.skip(",");
        }
        self.expect(")")?;
        Ok(arguments)
    }

    fn members(&mut self, mut object: Node) -> Result<Node, Error> {
        let depth = self.depth();
        let line = self.line();
        loop {
            let kind = if self.skip(".") {
                let property = self.primary()?;
                Kind::Member(boxed(object), boxed(property))
            } else if self.skip("[") {
                let property = self.index()?;
                self.expect("]")?;
                Kind::Item(boxed(object), boxed(property))
            } else {
                break;
            };
            self.deeper()?;
            object = Node { line, kind };
        }
        self.set_depth(depth);
        Ok(object)
    }

    /// Reads what stands in the brackets of an item: nothing, an expression or a slice.
    fn index(&mut self) -> Result<Node, Error> {
        let line = self.line();
        let mut parts: Vec<Option<Box<Node>>> = Vec::new();
        let mut is_slice = false;
        while !self.is("]") {
            if self.skip(":") {
                parts.push(None);
                is_slice = true;
            } else {
                parts.push(Some(boxed(self.expression()?)));
                is_slice |= self.skip(":");
            }
        }
        let mut parts = parts.into_iter();
        if is_slice {
            let mut part = || parts.next().flatten();
            return Ok(Node { line, kind: Kind::Slice([part(), part(), part()]) });
        }
        Ok(parts.next().flatten().map_or(Node { line, kind: Kind::Blank }, |part| *part))
    }

    pub fn primary(&mut self) -> Result<Node, Error> {
        let line = self.line();
        let token = self.next()?;
        let kind = match token.kind {
            Token::Number => number(&token.value),
            Token::String => {
                let mut text = token.value;
                while self.peek() == Some(Token::String) {
                    text += &self.next()?.value;
                }
                Some(Kind::Text(text))
            }
            Token::Name => Some(Kind::Name(token.value)),
            Token::Operator => match token.value.as_str() {
                "(" => {
                    let value = self.nested(|this| this.sequence(Self::expression))?;
                    self.expect(")")?;
                    return Ok(value);
                }
                "[" => {
                    let mut items = Vec::new();
                    while !self.skip("]") {
                        items.push(self.expression()?);
                        self.skip(",");
                    }
                    Some(Kind::List(items))
                }
                "{" => {
                    let mut items = Vec::new();
                    while !self.skip("}") {
                        let key = self.expression()?;
                        self.expect(":")?;
                        items.push((key, self.expression()?));
                        self.skip(",");
                    }
                    Some(Kind::Dict(items))
                }
                _ => return self.fail(format!("unexpected `{}`", token.value)),
            },
            _ => return self.fail(format!("unexpected `{}`", token.value)),
        };
        match kind {
            Some(kind) => Ok(Node { line, kind }),
            None => self.fail("an integer has more than 64 bits"),
        }
    }
}

fn number(text: &str) -> Option<Kind> {
    if text.contains('.') {
        return text.parse().ok().map(Kind::Float);
    }
    text.parse().ok().map(Kind::Int)
}
