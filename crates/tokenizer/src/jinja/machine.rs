//! State of a rendering, for filters and functions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::SystemTime;

use super::budget::Budget;
use super::value::Dict;

/// Budget, modes and counters of a rendering.
#[derive(Debug)]
pub struct Machine {
    pub budget: Budget,
    /// Whether `{% autoescape %}` is in effect.
    pub autoescape: Cell<bool>,
    /// Time that `strftime_now` formats, in UTC.
    pub now: SystemTime,
    /// Number of filters that are running: `map` and its relatives call others.
    pub filters: Cell<usize>,
    /// Namespaces. They may refer to each other, and are emptied at the end.
    pub namespaces: RefCell<Vec<Rc<RefCell<Dict>>>>,
}
