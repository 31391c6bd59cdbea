//! What filters and functions need to know of a rendering.

use std::cell::Cell;
use std::time::SystemTime;

use super::budget::Budget;

/// State of a rendering.
#[derive(Debug)]
pub struct Machine {
    pub budget: Budget,
    /// Whether `{% autoescape %}` is in effect.
    pub autoescape: Cell<bool>,
    /// Time that `strftime_now` formats, in UTC.
    pub now: SystemTime,
}
