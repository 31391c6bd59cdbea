//! Options of remote files.

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
    /// environment if set and not empty. Without `HF_TOKEN`, the token that `hf auth login` has
    /// stored is used, unless `HF_HUB_DISABLE_IMPLICIT_TOKEN` is set.
    pub fn from_env() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let mut options = Self::default();
        if let Some(endpoint) = variable("HF_ENDPOINT") {
            options.hf_endpoint = endpoint.trim().into();
        }
        let stored = || {
            let disabled = variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|is| is != "0");
            if disabled { None } else { stored_token() }
        };
        let token = variable("HF_TOKEN").or_else(|| variable("HUGGING_FACE_HUB_TOKEN"));
        options.hf_token = token.or_else(stored).map(|token| HfToken(token.trim().into()));
        options.certificates = variable("SSL_CERT_FILE").map(Into::into);
        options
    }
}

/// Returns the directory of `huggingface_hub`: `HF_HOME`, `XDG_CACHE_HOME/huggingface` or
/// `~/.cache/huggingface`; `None` without a home directory.
pub(crate) fn hub_home() -> Option<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("HF_HOME")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("huggingface")))
        .or_else(|| Some(std::env::home_dir()?.join(".cache").join("huggingface")))
}

/// Returns the token in `HF_TOKEN_PATH`, or in the directory of `huggingface_hub`.
fn stored_token() -> Option<String> {
    let named = std::env::var_os("HF_TOKEN_PATH").filter(|path| !path.is_empty());
    let path = named.map(PathBuf::from).or_else(|| Some(hub_home()?.join("token")))?;
    let token = std::fs::read_to_string(path).ok()?;
    let is_token = |token: &str| token.bytes().all(|byte| byte.is_ascii_graphic());
    Some(token.trim().to_owned()).filter(|token| !token.is_empty() && is_token(token))
}

/// A secret token that `Debug` does not print.
#[derive(Clone)]
pub struct HfToken(pub String);

impl fmt::Debug for HfToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HfToken(..)")
    }
}
