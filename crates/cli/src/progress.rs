//! A progress bar for work that takes more than a second, on a terminal only; and the end of work
//! when the user wants it to end.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::quiet;

/// Counts bytes read or written, or tokens.
pub struct Progress {
    bar: ProgressBar,
    started: Mutex<Instant>,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// Nothing to do yet.
    pub fn new() -> Self {
        Self::with(
            "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}",
        )
    }

    /// Tokens are counted; or bytes, as long as a checkpoint is converted.
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
        progress.obey_signals();
        progress
    }

    /// Lets Ctrl-C end the work in good order.
    fn obey_signals(&self) {
        for signal in signal_hook::consts::TERM_SIGNALS {
            // Where a signal cannot be caught, it ends the process as it always did. A second one
            // does so at once.
            let interrupted = || self.interrupted.clone();
            let _ = signal_hook::flag::register_conditional_default(*signal, interrupted());
            let _ = signal_hook::flag::register(*signal, interrupted());
        }
    }

    /// Says before the bar what is known so far.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Removes the bar and says how long the last work took.
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

    /// `Break` after Ctrl-C.
    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self.bar.inc(bytes);
        // On anything but a terminal this target stays hidden too.
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

/// Makes a file that grows over its limit (`ulimit -f`) an error like others: what is not complete
/// is then removed, which a process that is killed cannot do.
pub fn survive_limits() {
    #[cfg(unix)]
    {
        let passed = Arc::default();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, passed);
    }
}
