//! Retries with exponential backoff.

use std::hash::{BuildHasher, RandomState};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::error::Fault;
use crate::options::RemoteOptions;

/// Calls `attempt` until it succeeds, fails permanently, or has failed too often.
pub(crate) fn retry<T>(
    options: &RemoteOptions,
    mut attempt: impl FnMut() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut tried = 1;
    loop {
        let fault = match attempt() {
            Err(fault) if fault.is_transient() && tried < options.attempts => fault,
            result => return result,
        };
        pause(options, tried, fault)?;
        tried += 1;
    }
}

/// Waits after failure number `tried`.
///
/// # Errors
/// The fault, if the server requests a longer delay than the maximum.
pub(crate) fn pause(options: &RemoteOptions, tried: u32, fault: Fault) -> Result<(), Fault> {
    let backoff = backoff(options, tried);
    match fault {
        // Do not retry before the delay that the server requests.
        Fault::Busy { wait: Some(wait), .. } if wait > options.max_backoff => return Err(fault),
        Fault::Busy { wait: Some(wait), .. } => sleep(wait.max(backoff)),
        _ => sleep(backoff),
    }
    Ok(())
}

/// Returns the delay after failure number `tried`: doubled each time, less a random part of up to
/// half.
fn backoff(options: &RemoteOptions, tried: u32) -> Duration {
    let doubled = 2u32.saturating_pow(tried - 1);
    let full = options.backoff.saturating_mul(doubled).min(options.max_backoff);
    // Every `RandomState` has random keys, which is random enough for a delay.
    let random = RandomState::new().hash_one(tried) as f64 / u64::MAX as f64;
    full.mul_f64(1.0 - random / 2.0)
}

/// Parses a `Retry-After` header: seconds, or a date.
pub(crate) fn retry_after(header: &str) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_the_maximum() {
        let options = RemoteOptions::default();
        for (tried, full) in [(1, 500), (2, 1000), (3, 2000), (20, 60_000), (4_000_000, 60_000)] {
            let wait = backoff(&options, tried).as_millis();
            assert!((full / 2 - 1..=full).contains(&wait), "{tried}: {wait}");
        }
    }

    #[test]
    fn retry_after_is_parsed() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        let wait = retry_after(&soon).unwrap();
        assert!(wait > Duration::from_secs(90) && wait <= Duration::from_secs(100), "{wait:?}");
        assert_eq!(retry_after("soon"), None);
    }
}
