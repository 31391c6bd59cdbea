//! Downloads from a registry of Ollama models, in the protocol of container registries (OCI distribution).
//!
//! `GET /v2/NAMESPACE/MODEL/manifests/TAG` is the manifest, `GET /v2/NAMESPACE/MODEL/blobs/DIGEST` a layer.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use gguf_store::Progress;
use url::{Host, Url};

use crate::client::{Client, CountedBody};
use crate::error::{Error, Fault};
use crate::http::HttpFile;
use crate::hub_cache::download;
use crate::ollama::{MANIFEST, MAX_MANIFEST, Manifest, OllamaName, OllamaStore, write};
use crate::options::RemoteOptions;
use crate::retry::retry;

impl OllamaStore {
    /// Downloads what a model lacks, and returns the path of its GGUF. Each layer must have its digest; the manifest is
    /// written when all are there.
    ///
    /// # Errors
    /// Errors of the registry and the disk; `download-damaged` if a layer does not have its digest.
    pub fn pull(
        &self,
        name: &OllamaName,
        options: RemoteOptions,
        progress: &dyn Progress,
    ) -> Result<PathBuf, Error> {
        let client = Arc::new(Client::new(options)?);
        let url = address(name, "manifests", name.tag())?;
        let text = retry(&client.options, || manifest(&client, &url));
        let text = text.map_err(|fault| client.error(&url, fault))?;
        let unusable = |what: &str| client.error(&url, Fault::Response(what.into()));
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|_| unusable("it is not a manifest of Ollama"))?;
        for layer in manifest.layers.iter().chain(&manifest.config) {
            let blob = self.blob(&layer.digest);
            let blob = blob.ok_or_else(|| unusable("a layer has no SHA-256 digest"))?;
            if blob.metadata().is_ok_and(|status| status.len() == layer.size) {
                continue;
            }
            let url = address(name, "blobs", &layer.digest)?;
            let remote = HttpFile::open(client.clone(), url)?;
            let digest = layer.digest.trim_start_matches("sha256:");
            // A damaged blob of another length would be taken for the file.
            let _ = fs::remove_file(&blob);
            download(&remote, &format!("{name} ({})", layer.kind()), digest, &blob, progress)?;
        }
        write(&self.manifest_path(name), &mut &*text)?;
        self.model(name)
    }
}

/// Returns an address of the registry; on the loopback interface without encryption.
fn address(name: &OllamaName, kind: &str, last: &str) -> Result<Url, Error> {
    let host = name.host();
    let https = format!("https://{host}/v2/{}/{kind}/{last}", name.path_in_registry());
    let invalid =
        |reason: &str| Error::Location { word: format!("ollama:{name}"), reason: reason.into() };
    let url = Url::parse(&https).map_err(|_| invalid("the host of the registry is not valid"))?;
    let is_loopback = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Domain(domain)) => domain == "localhost",
        _ => false,
    };
    let http = || Url::parse(&https.replacen("https", "http", 1)).ok();
    Ok(is_loopback.then(http).flatten().unwrap_or(url))
}

fn manifest(client: &Client, url: &Url) -> Result<Vec<u8>, Fault> {
    let response = client.get(url, &[("Accept", MANIFEST)], MAX_MANIFEST)?.response;
    let mut text = Vec::new();
    CountedBody::new(response.into_body(), &client.transferred)
        .take(MAX_MANIFEST + 1)
        .read_to_end(&mut text)
        .map_err(|error| Fault::Connection(error.to_string()))?;
    match text.len() as u64 > MAX_MANIFEST {
        true => Err(Fault::Response("the manifest is too long".into())),
        false => Ok(text),
    }
}
