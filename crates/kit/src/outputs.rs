//! Destinations of outputs.

use std::sync::Arc;

use gguf_remote::{ObjectStores, RemoteOptions};
use gguf_store::{Existing, Overwrite};

/// Returns the policy for outputs of a front end: existing files are kept or replaced, and outputs may be in object stores
/// with credentials of the environment.
pub fn overwrite(existing: Existing) -> Overwrite {
    Overwrite::new(existing).with_remote(Arc::new(ObjectStores::new(RemoteOptions::from_env())))
}
