//! RemoteOptions for remote files.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Hub endpoint, credentials, timeouts and retries.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Base URL of the Hugging Face Hub or a mirror.
    pub hf_endpoint: String,
    /// Token of the hub, sent to no other host.
    pub hf_token: Option<HfToken>,
    /// PEM file of certificate authorities that replaces Mozilla's.
    pub certificates: Option<PathBuf>,
    /// Timeout for connecting.
    pub connect_timeout: Duration,
    /// Read timeout: longest time without a byte.
    pub read_timeout: Duration,
    /// Minimum throughput in bytes per second; slower transfers time out.
    pub min_throughput: u64,
    /// Number of attempts per request.
    pub attempts: u32,
    /// Delay after the first failure; each further failure doubles it. A random part of up to half
    /// is subtracted, so that many clients do not retry at the same time.
    pub backoff: Duration,
    /// Maximum delay, also if the server requests more.
    pub max_backoff: Duration,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            hf_endpoint: "https://huggingface.co".into(),
            hf_token: None,
            certificates: None,
            connect_timeout: Duration::from_secs(20),
            read_timeout: Duration::from_secs(30),
            min_throughput: 4 << 10,
            attempts: 5,
            backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(60),
        }
    }
}

impl RemoteOptions {
    /// Returns the defaults, with `HF_ENDPOINT`, `HF_TOKEN` and `SSL_CERT_FILE` from the
    /// environment if set and not empty.
    pub fn from_env() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let mut options = Self::default();
        if let Some(endpoint) = variable("HF_ENDPOINT") {
            options.hf_endpoint = endpoint.trim().into();
        }
        options.hf_token = variable("HF_TOKEN").map(|token| HfToken(token.trim().into()));
        options.certificates = variable("SSL_CERT_FILE").map(Into::into);
        options
    }
}

/// A secret token that `Debug` does not print.
#[derive(Clone)]
pub struct HfToken(pub String);

impl fmt::Debug for HfToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HfToken(..)")
    }
}
