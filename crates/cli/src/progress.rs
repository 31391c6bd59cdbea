//! Progress: a bar on terminals for work of more than a second, or lines for a log; cancellation by signals.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{listing, quiet};

/// Elapsed time after which the bar is shown.
const DELAY: Duration = Duration::from_secs(1);

/// Time between two lines of `--progress plain`.
const INTERVAL: Duration = Duration::from_secs(60);

/// Form of the progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Display {
    /// A bar if standard error is a terminal.
    Auto,
    /// A line a minute, for logs.
    Plain,
    /// Nothing.
    None,
}

static DISPLAY: AtomicU8 = AtomicU8::new(Display::Auto as u8);

impl Display {
    /// Shows progress this way from now on.
    pub fn choose(self) {
        DISPLAY.store(self as u8, Ordering::Relaxed);
    }

    /// Whether this way was chosen.
    fn is_chosen(self) -> bool {
        DISPLAY.load(Ordering::Relaxed) == self as u8
    }
}

/// Counts bytes, or tokens.
pub struct Progress {
    bar: ProgressBar,
    rate: Arc<Mutex<Rate>>,
    interrupted: Arc<AtomicBool>,
    /// Whether the counts are sizes that mean something to the user.
    counts_bytes: bool,
}

impl Progress {
    /// Counts bytes.
    pub fn new() -> Self {
        Self::with("{msg} {wide_bar} {amount} {rate} {left}", true)
    }

    /// Shows a percentage: counts tokens, or bytes while a checkpoint is converted.
    pub fn of_tokens() -> Self {
        Self::with("{msg} {wide_bar} {percent}% {left}", false)
    }

    /// Counts the tokens of a prompt.
    pub fn of_prompt() -> Self {
        Self::with("{msg} {pos}/{len} tokens {wide_bar} {left}", false)
    }

    fn with(template: &str, counts_bytes: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let rate = Arc::new(Mutex::new(Rate::new(0, Unit::Bytes)));
        if let Ok(style) = ProgressStyle::with_template(template) {
            let of_rate = |text: fn(&Rate) -> Option<String>| {
                let rate = rate.clone();
                move |_: &ProgressState, out: &mut dyn Write| {
                    let _ = out.write_str(
                        &rate.lock().ok().and_then(|rate| text(&rate)).unwrap_or_default(),
                    );
                }
            };
            let style = style
                .with_key("amount", of_rate(|rate| Some(rate.amount())))
                .with_key("rate", of_rate(Rate::per_second))
                .with_key("left", of_rate(Rate::time_left));
            bar.set_style(style);
        }
        let progress = Self { bar, rate, interrupted: Arc::default(), counts_bytes };
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

    /// Prints a line if the last one is a minute old.
    fn log(&self) {
        static LAST: OnceLock<Mutex<Instant>> = OnceLock::new();
        let now = Instant::now();
        let Ok(mut last) = LAST.get_or_init(|| Mutex::new(now)).lock() else { return };
        if now.duration_since(*last) < INTERVAL {
            return;
        }
        *last = now;
        if let Ok(rate) = self.rate.lock() {
            eprintln!("{}", rate.line(&self.bar.message(), self.counts_bytes));
        }
    }

    fn begin_phase(&self, what: &str, phase: Rate) {
        let total = phase.total;
        if let Ok(mut rate) = self.rate.lock() {
            *rate = phase;
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

    fn elapsed(&self) -> Duration {
        self.rate.lock().map_or(Duration::ZERO, |rate| rate.started.elapsed())
    }
}

impl gguf_store::Progress for Progress {
    fn begin(&self, what: &str, total: u64) {
        self.begin_phase(what, Rate::new(total, Unit::Bytes));
    }

    fn begin_tokens(&self, what: &str, total: u64) {
        self.begin_phase(what, Rate::new(total, Unit::Tokens));
    }

    /// Returns `Break` after Ctrl-C.
    fn advance(&self, bytes: u64) -> ControlFlow<()> {
        if bytes > 0
            && let Ok(mut rate) = self.rate.lock()
        {
            rate.advance(bytes, Instant::now());
        }
        self.bar.inc(bytes);
        // Without a terminal this target stays hidden too.
        let has_length = self.bar.length().is_some_and(|length| length > 0);
        let may_show = has_length && self.bar.is_hidden() && !quiet::is_on();
        if may_show && Display::Auto.is_chosen() && self.elapsed() > DELAY {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if has_length && Display::Plain.is_chosen() {
            self.log();
        }
        if self.interrupted.load(Ordering::Relaxed) {
            self.bar.finish_and_clear();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Unit of the counted work.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Tokens,
}

/// Average rate of work, and the time that it leaves.
struct Rate {
    started: Instant,
    unit: Unit,
    total: u64,
    done: u64,
    /// Work that was done at once at the beginning, such as that of an interrupted run.
    initial: u64,
    /// Time of the last advance.
    advanced: Instant,
}

/// Time from the start in which work counts as done before.
const AT_ONCE: Duration = Duration::from_millis(20);

impl Rate {
    fn new(total: u64, unit: Unit) -> Self {
        let now = Instant::now();
        Self { started: now, unit, total, done: 0, initial: 0, advanced: now }
    }

    fn advance(&mut self, work: u64, now: Instant) {
        self.done += work;
        if now.saturating_duration_since(self.started) < AT_ONCE {
            self.initial = self.done;
        }
        self.advanced = now;
    }

    /// Returns the seconds from the start to the last advance and the work in them, once there is a rate.
    fn measured(&self) -> Option<(f64, f64)> {
        let seconds = self.advanced.duration_since(self.started).as_secs_f64();
        let work = self.done.saturating_sub(self.initial) as f64;
        (work > 0.0 && seconds > 0.0).then_some((seconds, work))
    }

    /// Returns a line for a log.
    fn line(&self, what: &str, counts_bytes: bool) -> String {
        let percent = 100 * u128::from(self.done) / u128::from(self.total.max(1));
        let mut parts = vec![format!("{what}: {percent}%")];
        if counts_bytes {
            parts.push(self.amount());
            parts.extend(self.per_second());
        }
        parts.extend(self.time_left());
        parts.join(", ")
    }

    fn per_second(&self) -> Option<String> {
        let (seconds, work) = self.measured()?;
        let rate = (work / seconds) as u64;
        Some(match self.unit {
            Unit::Bytes => format!("{}/s", listing::bytes(rate)),
            Unit::Tokens => format!("{rate} tokens/s"),
        })
    }

    /// Returns the finished work of all work.
    fn amount(&self) -> String {
        match self.unit {
            Unit::Bytes => format!("{}/{}", listing::bytes(self.done), listing::bytes(self.total)),
            Unit::Tokens => format!("{}/{} tokens", self.done, self.total),
        }
    }

    fn time_left(&self) -> Option<String> {
        let seconds = self.seconds_left(Instant::now())?;
        Some(format!("ETA {}", duration(seconds.ceil() as u64)))
    }

    /// Returns the estimated seconds until the end. Between two advances they count down; `None` if they are over and
    /// the work is not.
    fn seconds_left(&self, now: Instant) -> Option<f64> {
        let (seconds, work) = self.measured()?;
        let left = self.total.saturating_sub(self.done) as f64 * seconds / work;
        let left = left - now.saturating_duration_since(self.advanced).as_secs_f64();
        (left > 0.0 || self.done >= self.total).then_some(left.max(0.0))
    }
}

/// Formats seconds: `8s`, `1m 05s`, `2h 03m`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Six pieces of work of 8 seconds each, looked at each second.
    #[test]
    fn the_estimate_counts_down() {
        let mut rate = Rate::new(600, Unit::Bytes);
        let after = |seconds: u64| rate.started + Duration::from_secs(seconds);
        let times: Vec<Instant> = (0..=48).map(after).collect();
        let mut shown = Vec::new();
        for (second, now) in times.iter().enumerate() {
            if second > 0 && second % 8 == 0 {
                rate.advance(100, *now);
            }
            shown.push(rate.seconds_left(*now));
        }
        // No estimate before a rate is known.
        assert!(shown[..8].iter().all(Option::is_none));
        let shown: Vec<f64> = shown.into_iter().flatten().collect();
        assert_eq!(shown[0], 40.0);
        assert!(shown.windows(2).all(|pair| pair[1] == pair[0] - 1.0), "{shown:?}");
        assert_eq!(shown.last(), Some(&0.0));
    }

    /// The work of an interrupted run is done at once, and says nothing about the rate.
    #[test]
    fn resumed_work_is_no_rate() {
        let mut rate = Rate::new(1000, Unit::Bytes);
        rate.advance(900, rate.started);
        assert_eq!(rate.seconds_left(rate.started), None);
        let later = rate.started + Duration::from_secs(10);
        rate.advance(10, later);
        assert_eq!(rate.seconds_left(later), Some(90.0));
    }

    #[test]
    fn lines_of_a_log() {
        let mut rate = Rate::new(4000, Unit::Bytes);
        assert_eq!(rate.line("calibrating", true), "calibrating: 0%, 0 B/4.00 kB");
        rate.advance(1000, rate.started + Duration::from_secs(100));
        // The estimate counts down from the last advance, which is in the future here.
        let line = "calibrating: 25%, 1.00 kB/4.00 kB, 10 B/s, ETA 5m 00s";
        assert_eq!(rate.line("calibrating", true), line);
        assert_eq!(rate.line("reading", false), "reading: 25%, ETA 5m 00s");
        let mut rate = Rate::new(4000, Unit::Tokens);
        rate.advance(1000, rate.started + Duration::from_secs(100));
        let line = "evaluating: 25%, 1000/4000 tokens, 10 tokens/s, ETA 5m 00s";
        assert_eq!(rate.line("evaluating", true), line);
    }

    #[test]
    fn durations() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (65, "1m 05s"), (7380, "2h 03m")] {
            assert_eq!(duration(seconds), text);
        }
    }
}
