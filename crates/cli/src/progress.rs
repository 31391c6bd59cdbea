//! A progress bar for work that takes more than a second, on a terminal only.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Counts bytes written.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
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
        Self { bar, started: Instant::now() }
    }

    /// Another `bytes` are done.
    pub fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
        // On anything but a terminal this target stays hidden too.
        if self.bar.is_hidden() && self.started.elapsed() > Duration::from_secs(1) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Removes the bar and says how long the work took.
    pub fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
    }
}
