//! What a reader of far files may be told.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where models are found by name, who asks, and how patient to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The Hugging Face service or a mirror of it.
    pub hf_endpoint: String,
    /// Sent to that service, and to no other host.
    pub hf_token: Option<HfToken>,
    /// A PEM file of the certificate authorities to trust in place of Mozilla's.
    pub certificates: Option<PathBuf>,
    /// Longest time to set up a connection.
    pub connect_timeout: Duration,
    /// Longest time without a byte.
    pub stall_timeout: Duration,
    /// Bytes per second below which a transfer counts as stalled, however steady it is.
    pub slowest: u64,
    /// How often a request is tried.
    pub attempts: u32,
    /// The wait after the first failure; each further one doubles it. Of each wait, a random
    /// part of up to half is left out, so that many readers do not come back together.
    pub backoff: Duration,
    /// The longest wait, also if the server asks for more.
    pub longest_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hf_endpoint: "https://huggingface.co".into(),
            hf_token: None,
            certificates: None,
            connect_timeout: Duration::from_secs(20),
            stall_timeout: Duration::from_secs(30),
            slowest: 4 << 10,
            attempts: 5,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl Options {
    /// The default, with `HF_ENDPOINT`, `HF_TOKEN` and, for the certificates, `SSL_CERT_FILE`
    /// from the environment where they are set and not empty.
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

/// A secret that is not printed.
#[derive(Clone)]
pub struct HfToken(pub String);

impl fmt::Debug for HfToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HfToken(..)")
    }
}
