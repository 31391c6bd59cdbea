//! Progress bar on terminals, for work of more than a second; cancellation by signals.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
            "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}",
        )
    }

    /// Shows a percentage: counts tokens, or bytes while a checkpoint is converted.
    pub fn of_tokens() -> Self {
        Self::with("{msg} {wide_bar} {percent}% {eta}")
    }

    fn with(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
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
        self.bar.set_message(what.to_owned());
        self.bar.set_position(0);
        self.bar.set_length(total);
    }

    /// Returns `Break` after Ctrl-C.
    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self.bar.inc(bytes);
        // Without a terminal this target stays hidden too.
        let may_show = self.bar.is_hidden() && !quiet::is_on();
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

/// Turns exceeding the file size limit (`ulimit -f`) into an ordinary error, so that incomplete outputs are
/// removed.
pub fn survive_limits() {
    #[cfg(unix)]
    {
        let exceeded = Arc::default();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, exceeded);
    }
}
