//! Grammar of expressions, from the loosest operator to the tightest.

use super::parser::Parser;
use super::token::Token;
use super::tree::{
    Binary, CallArguments, Comparison, Constant, Expression, FilterCall, Target, Unary,
};
use crate::jinja::error::Result;

/// Where a list of expressions without parentheses may end.
#[derive(Clone, Copy, Default)]
pub(super) struct TupleRules {
    /// Whether an element may be `a if b else c`.
    pub conditional: bool,
    /// Whether the list is in parentheses, and may be empty.
    pub parentheses: bool,
    /// Name that ends the list.
    pub end: Option<&'static str>,
}

impl Parser {
    pub fn expression(&mut self) -> Result<Expression> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Expression> {
        let mut value = self.or()?;
        let depth = self.depth;
        while self.skip_name("if") {
            self.deeper()?;
            let condition = Box::new(self.or()?);
            let otherwise =
                if self.skip_name("else") { Some(Box::new(self.expression()?)) } else { None };
            value = Expression::Conditional { value: Box::new(value), condition, otherwise };
        }
        self.depth = depth;
        Ok(value)
    }

    fn or(&mut self) -> Result<Expression> {
        let mut left = self.and()?;
        let depth = self.depth;
        while self.skip_name("or") {
            self.deeper()?;
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth = depth;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression> {
        let mut left = self.not()?;
        let depth = self.depth;
        while self.skip_name("and") {
            self.deeper()?;
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        self.depth = depth;
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression> {
        if self.skip_name("not") {
            let value = self.nested(Self::not)?;
            return Ok(Expression::Unary(Unary::Not, Box::new(value)));
        }
        self.compare()
    }

    fn compare(&mut self) -> Result<Expression> {
        let first = self.sum()?;
        let mut others = Vec::new();
        loop {
            let comparison = match self.peek() {
                Some(Token::Operator("==")) => Comparison::Equal,
                Some(Token::Operator("!=")) => Comparison::NotEqual,
                Some(Token::Operator("<")) => Comparison::Less,
                Some(Token::Operator("<=")) => Comparison::LessOrEqual,
                Some(Token::Operator(">")) => Comparison::Greater,
                Some(Token::Operator(">=")) => Comparison::GreaterOrEqual,
                Some(Token::Name(name)) if name == "in" => Comparison::In,
                Some(Token::Name(name))
                    if name == "not"
                        && matches!(self.peek_second(), Some(Token::Name(n)) if n == "in") =>
                {
                    self.next();
                    Comparison::NotIn
                }
                _ => break,
            };
            self.next();
            others.push((comparison, self.sum()?));
        }
        Ok(match others.is_empty() {
            true => first,
            false => Expression::Compare(Box::new(first), others),
        })
    }

    /// Reads operations of one precedence, which associate to the left.
    fn binary(
        &mut self,
        operations: &[(&str, Binary)],
        operand: fn(&mut Self) -> Result<Expression>,
    ) -> Result<Expression> {
        let mut left = operand(self)?;
        let depth = self.depth;
        'operators: loop {
            for (operator, operation) in operations {
                if self.skip(operator) {
                    self.deeper()?;
                    let right = operand(self)?;
                    left = Expression::Binary(*operation, Box::new(left), Box::new(right));
                    continue 'operators;
                }
            }
            self.depth = depth;
            return Ok(left);
        }
    }

    fn sum(&mut self) -> Result<Expression> {
        self.binary(&[("+", Binary::Add), ("-", Binary::Subtract)], Self::concat)
    }

    fn concat(&mut self) -> Result<Expression> {
        let mut parts = vec![self.product()?];
        while self.skip("~") {
            parts.push(self.product()?);
        }
        Ok(match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                Expression::Concat(parts)
            }
        })
    }

    fn product(&mut self) -> Result<Expression> {
        let operations = [
            ("*", Binary::Multiply),
            ("/", Binary::Divide),
            ("//", Binary::FloorDivide),
            ("%", Binary::Remainder),
        ];
        self.binary(&operations, Self::power)
    }

    /// `**` associates to the left, and binds less than a sign.
    fn power(&mut self) -> Result<Expression> {
        self.binary(&[("**", Binary::Power)], Self::filtered)
    }

    /// Reads a signed value with filters and tests, which apply to the signed value.
    fn filtered(&mut self) -> Result<Expression> {
        let value = self.signed()?;
        self.filters_and_tests(value)
    }

    /// Reads a value with its sign; attributes and calls after it apply to the signed value too.
    fn signed(&mut self) -> Result<Expression> {
        let value = if self.skip("-") {
            Expression::Unary(Unary::Negative, Box::new(self.nested(Self::signed)?))
        } else if self.skip("+") {
            Expression::Unary(Unary::Positive, Box::new(self.nested(Self::signed)?))
        } else {
            self.primary()?
        };
        self.postfix(value)
    }

    fn primary(&mut self) -> Result<Expression> {
        let constant = match self.peek() {
            Some(Token::Name(name)) => match name.as_str() {
                "true" | "True" => Constant::Bool(true),
                "false" | "False" => Constant::Bool(false),
                "none" | "None" => Constant::None,
                _ => {
                    let name = self.name()?;
                    match name.as_str() {
                        "varargs" => self.uses.varargs = true,
                        "kwargs" => self.uses.kwargs = true,
                        "caller" => self.uses.caller = true,
                        _ => {}
                    }
                    return Ok(Expression::Name(name));
                }
            },
            Some(Token::String(_)) => {
                let mut text = String::new();
                while let Some(Token::String(part)) = self.peek() {
                    text.push_str(part);
                    self.next();
                }
                return Ok(Expression::Constant(Constant::Text(text)));
            }
            Some(Token::Int(value)) => Constant::Int(*value),
            Some(Token::Float(value)) => Constant::Float(*value),
            Some(Token::Operator("(")) => {
                self.next();
                let rules = TupleRules { conditional: true, parentheses: true, end: None };
                let value = self.tuple(rules)?;
                self.expect(")")?;
                return Ok(value);
            }
            Some(Token::Operator("[")) => return self.list(),
            Some(Token::Operator("{")) => return self.dict(),
            _ => return self.unexpected("an expression"),
        };
        self.next();
        Ok(Expression::Constant(constant))
    }

    fn list(&mut self) -> Result<Expression> {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.is_operator("]") {
            if !items.is_empty() {
                self.expect(",")?;
                if self.is_operator("]") {
                    break;
                }
            }
            items.push(self.expression()?);
        }
        self.expect("]")?;
        Ok(Expression::List(items))
    }

    fn dict(&mut self) -> Result<Expression> {
        self.expect("{")?;
        let mut items = Vec::new();
        while !self.is_operator("}") {
            if !items.is_empty() {
                self.expect(",")?;
                if self.is_operator("}") {
                    break;
                }
            }
            let key = self.expression()?;
            self.expect(":")?;
            items.push((key, self.expression()?));
        }
        self.expect("}")?;
        Ok(Expression::Dict(items))
    }

    /// Reads expressions with commas between them: one expression, or a tuple.
    pub fn tuple(&mut self, rules: TupleRules) -> Result<Expression> {
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                if !self.skip(",") {
                    break;
                }
                is_tuple = true;
            }
            if self.ends_tuple(rules.end) {
                break;
            }
            items.push(match rules.conditional {
                true => self.expression()?,
                false => self.nested(Self::or)?,
            });
        }
        if !is_tuple {
            match items.pop() {
                Some(only) => return Ok(only),
                None if !rules.parentheses => return self.unexpected("an expression"),
                None => {}
            }
        }
        Ok(Expression::Tuple(items))
    }

    fn ends_tuple(&self, end: Option<&str>) -> bool {
        match self.peek() {
            Some(Token::PrintEnd | Token::BlockEnd | Token::Operator(")")) => true,
            Some(Token::Name(name)) => Some(name.as_str()) == end,
            _ => false,
        }
    }

    /// Reads attributes, items and calls after a value.
    fn postfix(&mut self, mut value: Expression) -> Result<Expression> {
        let depth = self.depth;
        loop {
            if self.is_operator("(") {
                self.deeper()?;
                value = Expression::Call(Box::new(value), self.arguments()?);
            } else if self.skip(".") {
                self.deeper()?;
                value = match self.next() {
                    Some(Token::Name(name)) => Expression::Attribute(Box::new(value), name),
                    Some(Token::Int(index)) => {
                        let index = Expression::Constant(Constant::Int(index));
                        Expression::Item(Box::new(value), Box::new(index))
                    }
                    _ => return self.fail("expected name or number"),
                };
            } else if self.skip("[") {
                self.deeper()?;
                let mut indices = vec![self.index()?];
                while self.skip(",") {
                    indices.push(self.index()?);
                }
                self.expect("]")?;
                let index = match indices.pop() {
                    Some(only) if indices.is_empty() => only,
                    last => {
                        indices.extend(last);
                        Expression::Tuple(indices)
                    }
                };
                value = Expression::Item(Box::new(value), Box::new(index));
            } else {
                self.depth = depth;
                return Ok(value);
            }
        }
    }

    /// Reads an index or a slice.
    fn index(&mut self) -> Result<Expression> {
        let mut parts = [None, None, None];
        let mut part = 0;
        if !self.is_operator(":") {
            let first = self.expression()?;
            if !self.is_operator(":") {
                return Ok(first);
            }
            parts[0] = Some(Box::new(first));
        }
        while part < 2 && self.skip(":") {
            part += 1;
            if !self.is_operator(":") && !self.is_operator("]") && !self.is_operator(",") {
                parts[part] = Some(Box::new(self.expression()?));
            }
        }
        Ok(Expression::Slice(parts))
    }

    fn filters_and_tests(&mut self, mut value: Expression) -> Result<Expression> {
        let depth = self.depth;
        loop {
            if self.is_operator("|") {
                self.deeper()?;
                self.next();
                let filter = self.filter_call()?;
                value = Expression::Filter(Box::new(value), filter);
            } else if self.is_name("is") {
                self.deeper()?;
                value = self.test(value)?;
            } else if self.is_operator("(") {
                self.deeper()?;
                value = Expression::Call(Box::new(value), self.arguments()?);
            } else {
                self.depth = depth;
                return Ok(value);
            }
        }
    }

    /// Reads the filters of a block, the first without its bar unless `with_bar`.
    pub fn filter_calls(&mut self, with_bar: bool) -> Result<Vec<FilterCall>> {
        let mut filters = Vec::new();
        if !with_bar {
            filters.push(self.filter_call()?);
        }
        while self.skip("|") {
            filters.push(self.filter_call()?);
        }
        Ok(filters)
    }

    fn filter_call(&mut self) -> Result<FilterCall> {
        let name = self.dotted_name()?;
        let arguments =
            if self.is_operator("(") { self.arguments()? } else { CallArguments::default() };
        Ok(FilterCall { name, arguments })
    }

    fn dotted_name(&mut self) -> Result<String> {
        let mut name = self.name()?;
        while self.skip(".") {
            name = format!("{name}.{}", self.name()?);
        }
        Ok(name)
    }

    fn test(&mut self, value: Expression) -> Result<Expression> {
        self.next();
        let is_negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let mut arguments = CallArguments::default();
        let begins_argument = match self.peek() {
            Some(Token::Name(name)) => !["else", "or", "and"].contains(&name.as_str()),
            Some(Token::String(_) | Token::Int(_) | Token::Float(_)) => true,
            Some(Token::Operator(operator)) => ["[", "{"].contains(operator),
            _ => false,
        };
        if self.is_operator("(") {
            arguments = self.arguments()?;
        } else if begins_argument {
            if self.is_name("is") {
                return self.fail("You cannot chain multiple tests with is");
            }
            let argument = self.primary()?;
            arguments.positional.push(self.postfix(argument)?);
        }
        let test = Expression::Test { value: Box::new(value), name, arguments };
        Ok(if is_negated { Expression::Unary(Unary::Not, Box::new(test)) } else { test })
    }

    fn arguments(&mut self) -> Result<CallArguments> {
        self.expect("(")?;
        let mut arguments = CallArguments::default();
        let mut is_first = true;
        while !self.is_operator(")") {
            if !is_first {
                self.expect(",")?;
                if self.is_operator(")") {
                    break;
                }
            }
            is_first = false;
            let has_dict = arguments.dict.is_some();
            if self.skip("**") {
                if has_dict {
                    return self.fail("invalid syntax for function call expression");
                }
                arguments.dict = Some(Box::new(self.expression()?));
            } else if self.skip("*") {
                if has_dict || arguments.list.is_some() {
                    return self.fail("invalid syntax for function call expression");
                }
                arguments.list = Some(Box::new(self.expression()?));
            } else if matches!(self.peek_second(), Some(Token::Operator("=")))
                && matches!(self.peek(), Some(Token::Name(_)))
            {
                let name = self.name()?;
                self.expect("=")?;
                if has_dict {
                    return self.fail("invalid syntax for function call expression");
                }
                arguments.named.push((name, self.expression()?));
            } else {
                if has_dict || arguments.list.is_some() || !arguments.named.is_empty() {
                    return self.fail("invalid syntax for function call expression");
                }
                arguments.positional.push(self.expression()?);
            }
        }
        self.expect(")")?;
        Ok(arguments)
    }

    /// Reads the target of an assignment: a name, a tuple, or an attribute of a namespace.
    pub fn target(&mut self, with_namespace: bool, end: Option<&'static str>) -> Result<Target> {
        if with_namespace && matches!(self.peek_second(), Some(Token::Operator("."))) {
            let name = self.name()?;
            self.expect(".")?;
            return Ok(Target::Attribute(name, self.name()?));
        }
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                if !self.skip(",") {
                    break;
                }
                is_tuple = true;
            }
            if self.ends_tuple(end) || self.is_operator("=") {
                break;
            }
            items.push(self.simple_target()?);
        }
        match items.pop() {
            Some(only) if !is_tuple => Ok(only),
            None => self.unexpected("a name"),
            last => {
                items.extend(last);
                Ok(Target::Tuple(items))
            }
        }
    }

    fn simple_target(&mut self) -> Result<Target> {
        if self.skip("(") {
            let target = self.nested(|parser| parser.target(false, None))?;
            self.expect(")")?;
            return Ok(target);
        }
        let name = self.name()?;
        if ["true", "True", "false", "False", "none", "None"].contains(&name.as_str()) {
            return self.fail(format!("can't assign to '{name}'"));
        }
        Ok(Target::Name(name))
    }
}
