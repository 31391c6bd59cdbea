//! What outputs may replace, and where they may go.

use std::sync::Arc;

use gguf_remote::{Buckets, Options};
use gguf_store::{Existing, Overwrite};

/// The rule for outputs of a front end: what is there stays or is replaced, and models may also go to object
/// stores, with the keys of the environment.
pub fn overwrite(existing: Existing) -> Overwrite {
    Overwrite::new(existing).reaching(Arc::new(Buckets::new(Options::from_env())))
}
