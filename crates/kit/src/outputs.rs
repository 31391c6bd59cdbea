//! What outputs may replace, and where they may go.

use std::sync::Arc;

use gguf_remote::{ObjectStores, RemoteOptions};
use gguf_store::{Existing, Overwrite};

/// The rule for outputs of a front end: what is there stays or is replaced, and models may also go to object
/// stores, with the keys of the environment.
pub fn overwrite(existing: Existing) -> Overwrite {
    Overwrite::new(existing).with_remote(Arc::new(ObjectStores::new(RemoteOptions::from_env())))
}
