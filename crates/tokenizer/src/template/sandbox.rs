//! Sandbox of the template engine within the process: a separate stack.

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
#[cfg(not(target_family = "wasm"))]
pub fn on_separate_stack<T: Send>(
    stack: usize,
    run: impl FnOnce() -> T + Send,
) -> Result<T, &'static str> {
    use std::thread;

    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(stack).spawn_scoped(scope, run);
        let thread = thread.map_err(|_| "there is not enough memory to run the template")?;
        thread.join().map_err(|_| PANICKED)
    })
}

/// Runs the engine on the only stack of an instance, which exceeding ends.
///
/// # Errors
/// Never.
#[cfg(target_family = "wasm")]
pub fn on_separate_stack<T: Send>(
    _: usize,
    run: impl FnOnce() -> T + Send,
) -> Result<T, &'static str> {
    Ok(run())
}
