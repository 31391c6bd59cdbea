//! Times of runs of the target model.

use std::time::Duration;

use super::WEIGHT;

/// Runs without drafted tokens before the first draft: the first ones repack weights, and take longer.
pub(super) const WARM_UP: usize = 8;

/// Runs after which the time of one without drafted tokens is measured again.
pub(super) const INTERVAL: usize = 48;

/// Share of the last run in the average time of a token.
const RUN_WEIGHT: f64 = 0.1;

/// Factor of a time with each run that does not measure it: a run that was slow by chance is tried again.
const FADE: f64 = 0.999;

/// Share of a run that a drafted token adds to it, before it is measured.
const SHARE: f64 = 0.1;

/// Average times of runs by the number of drafted tokens, and of tokens.
pub(super) struct RunCosts {
    /// Seconds of a run with each number of drafted tokens; 0 before it is measured.
    seconds: Vec<f64>,
    /// Runs without drafted tokens.
    plain: usize,
    /// Runs since the last one without drafted tokens.
    since_plain: usize,
    /// Average number of tokens of a run, and average time of a run and its draft in seconds.
    average: Option<(f64, f64)>,
}

impl RunCosts {
    /// Returns costs of runs with at most `max` drafted tokens.
    pub fn new(max: usize) -> Self {
        Self { seconds: vec![0.0; max + 1], plain: 0, since_plain: 0, average: None }
    }

    /// Whether the next run should have no drafted tokens, to be measured.
    pub fn need_plain_run(&self) -> bool {
        self.seconds[0] == 0.0 || self.since_plain >= INTERVAL
    }

    /// Returns the seconds of a run with a number of drafted tokens: at least those of a run with fewer.
    pub fn run(&self, drafted: usize) -> f64 {
        let alone = self.seconds[0];
        self.seconds[1..=drafted].iter().fold(alone, |fewer, measured| match *measured {
            0.0 => fewer + SHARE * alone,
            measured => measured.max(fewer),
        })
    }

    /// Returns the seconds of a token, with or without drafts.
    pub fn seconds_per_token(&self) -> f64 {
        let average = self.average.map_or(f64::INFINITY, |(tokens, seconds)| seconds / tokens);
        average.min(self.seconds[0])
    }

    /// Records a run of a draft.
    pub fn record(&mut self, drafted: usize, accepted: usize, run: Duration, draft: Duration) {
        self.since_plain += 1;
        if drafted == 0 {
            (self.plain, self.since_plain) = (self.plain + 1, 0);
            if self.plain < WARM_UP {
                return;
            }
        }
        let time = run.as_secs_f64();
        for (number, seconds) in self.seconds.iter_mut().enumerate() {
            match number == drafted {
                true if *seconds == 0.0 => *seconds = time,
                true => *seconds += WEIGHT * (time - *seconds),
                false if number > 0 => *seconds *= FADE,
                false => {}
            }
        }
        let (tokens, time) = ((accepted + 1) as f64, time + draft.as_secs_f64());
        let (before, seconds) = self.average.unwrap_or((tokens, time));
        let mix = |before: f64, last: f64| before + RUN_WEIGHT * (last - before);
        self.average = Some((mix(before, tokens), mix(seconds, time)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_are_not_measured_are_estimated() {
        let mut costs = RunCosts::new(4);
        assert!(costs.need_plain_run());
        let millis = Duration::from_millis;
        (0..WARM_UP).for_each(|_| costs.record(0, 0, millis(100), Duration::ZERO));
        assert!(!costs.need_plain_run());
        let run = |costs: &RunCosts| [0, 1, 2, 3, 4].map(|len| (1000.0 * costs.run(len)).round());
        assert_eq!(run(&costs), [100.0, 110.0, 120.0, 130.0, 140.0]);
        costs.record(2, 2, millis(150), millis(30));
        assert_eq!(run(&costs), [100.0, 110.0, 150.0, 160.0, 170.0]);
        // Nine tenths of 100 ms, one of 180 ms; nine tenths of a token, one of three.
        assert_eq!((1000.0 * costs.seconds_per_token()).round(), 90.0);
    }
}
