//! A progress bar for work that takes more than a second, on a terminal only; and the end of work
//! when the user wants it to end.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Counts bytes read or written.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    interrupted: Arc<AtomicBool>,
}

impl Progress {
    /// Work of `total` bytes.
    pub fn new(total: u64, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        ) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self { bar, started: Instant::now(), interrupted: Arc::default() }
    }

    /// Lets Ctrl-C end the work in good order.
    pub fn stoppable(self) -> Self {
        for signal in signal_hook::consts::TERM_SIGNALS {
            // Where a signal cannot be caught, it ends the process as it always did. A second one
            // does so at once.
            let interrupted = || self.interrupted.clone();
            let _ = signal_hook::flag::register_conditional_default(*signal, interrupted());
            let _ = signal_hook::flag::register(*signal, interrupted());
        }
        self
    }

    /// Another `bytes` are done.
    pub fn count(&self, bytes: u64) {
        self.bar.inc(bytes);
        // On anything but a terminal this target stays hidden too.
        if self.bar.is_hidden() && self.started.elapsed() > Duration::from_secs(1) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// As [`Progress::count`]; `Break` after Ctrl-C: whoever writes files then removes what is not
    /// complete.
    pub fn advance(&self, bytes: u64) -> ControlFlow<()> {
        self.count(bytes);
        if self.interrupted.load(Ordering::Relaxed) {
            self.bar.finish_and_clear();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Removes the bar and says how long the work took.
    pub fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
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
