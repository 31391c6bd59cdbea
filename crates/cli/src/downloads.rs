//! Models of the Hub that are needed whole: downloaded once, into the cache of `huggingface_hub`.

use gguf_remote::{HubCache, Location, RemoteOptions};

use crate::failure::Failure;
use crate::progress::Progress;

/// Returns the path of a stored model for a location of the Hub, which is downloaded if it is not stored; other sources are
/// returned unchanged.
pub fn local(source: &str) -> Result<String, Failure> {
    let Ok(Location::Hub(repository)) = Location::parse(source) else {
        return Ok(source.to_owned());
    };
    let Some(cache) = HubCache::from_env() else { return Ok(source.to_owned()) };
    let progress = Progress::new();
    let path = cache.model(&repository, RemoteOptions::from_env(), &progress)?;
    progress.finish();
    Ok(path.display().to_string())
}
