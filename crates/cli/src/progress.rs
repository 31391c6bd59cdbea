//! Progress bar on terminals, for work of more than a second; cancellation by signals.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::quiet;

/// Counts bytes, or tokens.
pub struct Progress {
    bar: ProgressBar,
    started: Mutex<Instant>,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// Counts bytes.
    pub fn new() -> Self {
        Self::with(
            "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {left}",
        )
    }

    /// Shows a percentage: counts tokens, or bytes while a checkpoint is converted.
    pub fn of_tokens() -> Self {
        Self::with("{msg} {wide_bar} {percent}% {left}")
    }

    /// Counts the tokens of a prompt.
    pub fn of_prompt() -> Self {
        Self::with("{msg} {pos}/{len} tokens {wide_bar} {left}")
    }

    fn with(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("left", time_left));
        }
        let started = Mutex::new(Instant::now());
        let progress = Self { bar, started, interrupted: Arc::default() };
        progress.handle_signals();
        progress
    }

    /// Lets Ctrl-C cancel the work cleanly.
    fn handle_signals(&self) {
        for signal in signal_hook::consts::TERM_SIGNALS {
            // A signal that cannot be caught ends the process, as does a second one.
            let interrupted = || self.interrupted.clone();
            let _ = signal_hook::flag::register_conditional_default(*signal, interrupted());
            let _ = signal_hook::flag::register(*signal, interrupted());
        }
    }

    /// Shows a message before the bar.
    pub fn set_message(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Removes the bar and returns the elapsed time.
    pub fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        self.started.lock().map_or(Duration::ZERO, |started| started.elapsed())
    }
}

impl gguf_store::Progress for Progress {
    fn begin(&self, what: &str, total: u64) {
        if let Ok(mut started) = self.started.lock() {
            *started = Instant::now();
        }
        if total == 0 {
            // What is printed from now on belongs to the result.
            self.bar.finish_and_clear();
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        self.bar.reset();
        self.bar.set_message(what.to_owned());
        self.bar.set_length(total);
    }

    /// Returns `Break` after Ctrl-C.
    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self.bar.inc(bytes);
        // Without a terminal this target stays hidden too.
        let has_length = self.bar.length().is_some_and(|length| length > 0);
        let may_show = has_length && self.bar.is_hidden() && !quiet::is_on();
        if may_show && self.elapsed() > Duration::from_secs(1) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if self.interrupted.load(Ordering::Relaxed) {
            self.bar.finish_and_clear();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Writes the estimated time left, as soon as a rate is known.
fn time_left(state: &ProgressState, out: &mut dyn Write) {
    if state.pos() > 0 {
        let _ = write!(out, "ETA {:#}", HumanDuration(state.eta()));
    }
}

/// Turns exceeding the file size limit (`ulimit -f`) into an ordinary error, so that incomplete outputs are
/// removed.
pub fn survive_limits() {
    #[cfg(unix)]
    {
        let exceeded = Arc::default();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, exceeded);
    }
}
