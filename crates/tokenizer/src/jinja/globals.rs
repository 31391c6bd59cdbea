//! Global functions and the objects that they return.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::arguments::{Arguments, required};
use super::budget::Budget;
use super::error::{Error, ErrorKind, Result, failed};
use super::machine::Machine;
use super::methods::from_keys;
use super::strftime::{MAX_WIDTH, strftime};
use super::value::{Dict, Object, Range, Value, repr_text};

/// Global functions by name.
const FUNCTIONS: [(&str, Function); 7] = [
    ("cycler", Function::Cycler),
    ("dict", Function::Dict),
    ("joiner", Function::Joiner),
    ("lipsum", Function::Lipsum),
    ("namespace", Function::Namespace),
    ("raise_exception", Function::RaiseException),
    ("range", Function::Range),
];

/// A function without state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Cycler,
    Dict,
    DictFromKeys,
    Joiner,
    Lipsum,
    Namespace,
    RaiseException,
    Range,
    StrftimeNow,
}

/// Returns the global variable of this name.
pub fn global(name: &str) -> Option<Value> {
    if name == "strftime_now" {
        return Some(Value::object(Function::StrftimeNow));
    }
    let found = FUNCTIONS.iter().find(|(other, _)| *other == name);
    found.map(|(_, function)| Value::object(*function))
}

impl Object for Function {
    fn attribute(&self, name: &str) -> Option<Value> {
        (*self == Self::Dict && name == "fromkeys").then(|| Value::object(Self::DictFromKeys))
    }

    fn repr(&self) -> String {
        match self {
            Self::Range => "<class 'range'>".into(),
            Self::Cycler => "<class 'jinja2.utils.Cycler'>".into(),
            Self::Joiner => "<class 'jinja2.utils.Joiner'>".into(),
            other => format!("<function {other:?}>"),
        }
    }

    fn is_callable(&self) -> bool {
        true
    }
}

impl Function {
    /// Calls the function.
    pub fn call(self, arguments: Arguments, machine: &Machine) -> Result<Value> {
        arguments.pay(&machine.budget)?;
        match self {
            Self::Range => range(arguments),
            Self::Dict => Ok(Value::Dict(Rc::new(dict(arguments, &machine.budget)?))),
            Self::DictFromKeys => {
                let [keys, value] = arguments.bind("fromkeys", ["", ""])?;
                from_keys(
                    &required(keys, "fromkeys")?,
                    value.unwrap_or(Value::None),
                    &machine.budget,
                )
            }
            Self::Namespace => {
                let names = dict(arguments, &machine.budget)?;
                names.keys().try_for_each(|name| check_name(name.expect_str()?))?;
                let names = Rc::new(RefCell::new(names));
                machine.namespaces.borrow_mut().push(Rc::clone(&names));
                Ok(Value::Namespace(names))
            }
            Self::Joiner => {
                let [separator] = arguments.bind("joiner", ["sep"])?;
                let separator = separator.unwrap_or_else(|| Value::text(", "));
                Ok(Value::object(Joiner { separator, is_used: Cell::new(false) }))
            }
            Self::Cycler => {
                if arguments.positional.is_empty() || !arguments.named.is_empty() {
                    return failed("at least one item has to be provided");
                }
                let (items, at) = (arguments.positional, Cell::new(0));
                Ok(Value::object(Cycler(Rc::new(Cycle { items, at }))))
            }
            Self::RaiseException => {
                let [message] = arguments.bind("raise_exception", ["message"])?;
                let message = required(message, "raise_exception")?;
                let message = super::value::text_of(&message, &machine.budget)?;
                Err(Error::new(ErrorKind::Raised(message.to_string())))
            }
            Self::StrftimeNow => {
                let [format] = arguments.bind("strftime_now", ["format"])?;
                let format = required(format, "strftime_now")?;
                let format = format.expect_str()?;
                // A directive may have a width.
                machine.budget.text(format.matches('%').count().saturating_mul(MAX_WIDTH))?;
                Ok(Value::text(strftime(machine.now, format)))
            }
            Self::Lipsum => failed("lipsum() makes random text, which a prompt cannot depend on"),
        }
    }
}

fn range(arguments: Arguments) -> Result<Value> {
    let [first, second, step] = arguments.bind("range", ["", "", ""])?;
    let first = required(first, "range")?.expect_int()?;
    let step = step.map_or(Ok(1), |step| step.expect_int())?;
    let range = match second {
        Some(stop) => Range::new(first, stop.expect_int()?, step)?,
        None => Range::new(0, first, step)?,
    };
    Ok(Value::Range(range))
}

/// Returns the dictionary that `dict(...)` makes.
fn dict(arguments: Arguments, budget: &Budget) -> Result<Dict> {
    let Arguments { positional, named } = arguments;
    let mut dict = Dict::default();
    match &positional[..] {
        [] => {}
        [Value::Dict(other)] => {
            for (key, value) in other.iter() {
                dict.insert(key.clone(), value.clone(), budget)?;
            }
        }
        [pairs] => {
            for pair in pairs.items(budget)? {
                match <[Value; 2]>::try_from(pair.items(budget)?) {
                    Ok([key, value]) => dict.insert(key, value, budget)?,
                    Err(_) => return failed("dict() needs pairs of keys and values"),
                }
            }
        }
        _ => return failed("dict expected at most 1 argument"),
    }
    for (name, value) in named {
        dict.insert(Value::text(name), value, budget)?;
    }
    Ok(dict)
}

/// Fails for an attribute that a namespace may not hold.
pub fn check_name(name: &str) -> Result<()> {
    if name.starts_with('_') {
        return failed(format!(
            "a namespace cannot hold an attribute with an underscore first: {}",
            repr_text(name)
        ));
    }
    Ok(())
}

/// Result of `joiner()`: nothing at the first call, then the separator.
#[derive(Debug)]
pub struct Joiner {
    separator: Value,
    is_used: Cell<bool>,
}

impl Joiner {
    pub fn call(&self) -> Value {
        match self.is_used.replace(true) {
            true => self.separator.clone(),
            false => Value::text(""),
        }
    }
}

impl Object for Joiner {
    fn attribute(&self, name: &str) -> Option<Value> {
        match name {
            "sep" => Some(self.separator.clone()),
            "used" => Some(Value::Bool(self.is_used.get())),
            _ => None,
        }
    }

    fn repr(&self) -> String {
        "<jinja2.utils.Joiner object>".into()
    }

    fn is_callable(&self) -> bool {
        true
    }
}

/// Items of a cycler and its place.
#[derive(Debug)]
struct Cycle {
    items: Vec<Value>,
    at: Cell<usize>,
}

/// Result of `cycler()`.
#[derive(Debug)]
pub struct Cycler(Rc<Cycle>);

/// The methods `next` and `reset` of a cycler.
#[derive(Debug)]
pub struct CyclerMethod {
    cycle: Rc<Cycle>,
    is_next: bool,
}

impl CyclerMethod {
    pub fn call(&self) -> Value {
        let Cycle { items, at } = &*self.cycle;
        if !self.is_next {
            at.set(0);
            return Value::None;
        }
        let item = items[at.get()].clone();
        at.set((at.get() + 1) % items.len());
        item
    }
}

impl Object for Cycler {
    fn attribute(&self, name: &str) -> Option<Value> {
        let Cycle { items, at } = &*self.0;
        match name {
            "current" => Some(items[at.get()].clone()),
            "items" => Some(Value::tuple(items.clone())),
            "pos" => Some(Value::Int(at.get() as i128)),
            "next" | "reset" => {
                let cycle = Rc::clone(&self.0);
                Some(Value::object(CyclerMethod { cycle, is_next: name == "next" }))
            }
            _ => None,
        }
    }

    fn repr(&self) -> String {
        "<jinja2.utils.Cycler object>".into()
    }

    fn is_callable(&self) -> bool {
        false
    }
}

impl Object for CyclerMethod {
    fn attribute(&self, _: &str) -> Option<Value> {
        None
    }

    fn repr(&self) -> String {
        "<bound method of a Cycler>".into()
    }

    fn is_callable(&self) -> bool {
        true
    }
}
