//! Sandbox of the template engine within the process: a separate stack, an output limit, bounded
//! filters.

use std::io::{self, Write};
use std::thread;

use minijinja::value::{Kwargs, Rest, StringInput, Value};
use minijinja::{Environment, Error, ErrorKind, State, filters};

/// Maximum count or width that a template may pass to a filter.
const MAX_COUNT: usize = 10_000;

/// Stack of the engine in a shared process. The engine recurses once per operator of a long
/// expression and per level of a nested value: at most once per byte of source or step. Only
/// touched pages take memory.
pub const STACK: usize = 1 << 30;

/// Message for a panic; the text of the panic means nothing to a user.
pub const PANICKED: &str = "the template engine panicked";

/// Runs the engine on a separate stack of this length.
///
/// # Errors
/// If the stack cannot be allocated, or the engine panics.
pub fn on_separate_stack<T: Send>(
    stack: usize,
    run: impl FnOnce() -> T + Send,
) -> Result<T, &'static str> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(stack).spawn_scoped(scope, run);
        let thread = thread.map_err(|_| "there is not enough memory to run the template")?;
        thread.join().map_err(|_| PANICKED)
    })
}

/// A buffer that fails when it exceeds `limit` bytes.
pub struct LimitedOutput {
    pub bytes: Vec<u8>,
    pub limit: usize,
    pub is_full: bool,
}

impl Write for LimitedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces the filters that allocate as much as a number in the template says.
pub fn bound_filters(environment: &mut Environment) {
    environment.add_filter("batch", |state: &State, value, count, fill| {
        filters::batch(state, value, bounded(count)?, fill)
    });
    environment.add_filter("slice", |state: &State, value, count, fill| {
        filters::slice(state, value, bounded(count)?, fill)
    });
    environment.add_filter("indent", indent);
    environment.add_filter("format", |state: &mut State, format: &Value, arguments: Rest<_>| {
        bounded_format(format)?;
        filters::format(state, format, arguments)
    });
}

fn indent(
    text: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<Value, Error> {
    bounded(width.unwrap_or_default())?;
    bounded(options.peek::<Option<usize>>("width")?.unwrap_or_default())?;
    filters::indent(text, width, first, blank, options)
}

fn bounded(count: usize) -> Result<usize, Error> {
    if count > MAX_COUNT {
        let cause = format!("{count} exceeds the limit of {MAX_COUNT}");
        return Err(Error::new(ErrorKind::InvalidOperation, cause));
    }
    Ok(count)
}

/// Refuses widths and precisions above the limit, and those passed as arguments.
pub fn bounded_format(format: &Value) -> Result<(), Error> {
    let text = format.as_str().unwrap_or_default();
    for digits in text.split(|char: char| !char.is_ascii_digit()).filter(|run| !run.is_empty()) {
        bounded(digits.parse().unwrap_or(usize::MAX))?;
    }
    if text.contains("%*") || text.contains(".*") {
        let cause = "widths cannot be arguments of a format";
        return Err(Error::new(ErrorKind::InvalidOperation, cause));
    }
    Ok(())
}
