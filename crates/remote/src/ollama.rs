//! Models in the store of Ollama.
//!
//! Layout (ollama/ollama, `server/manifest.go`, `server/layer.go`, `types/model/name.go`): `manifests/HOST/NAMESPACE/MODEL/TAG`
//! is a JSON manifest in the form of container images. Its layers are files `blobs/sha256-HEX`, each with a media type: the
//! model is a GGUF, a template and parameters are texts.

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use gguf_store::digest::hex;
use gguf_store::{Progress, ReadFile, Source};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Maximum length of a manifest: a hundred layers take a tenth of it.
pub(crate) const MAX_MANIFEST: u64 = 1 << 20;

/// Bytes per read.
const CHUNK: usize = 8 << 20;

/// Media type of manifests.
pub(crate) const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const MODEL: &str = "application/vnd.ollama.image.model";

const HOST: &str = "registry.ollama.ai";
const NAMESPACE: &str = "library";
const TAG: &str = "latest";

/// Name of a model: `[host/][namespace/]model[:tag]`.
///
/// `Display` writes the shortest form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaName {
    host: String,
    namespace: String,
    model: String,
    tag: String,
}

impl OllamaName {
    /// Parses a name; `latest` of the library of Ollama's registry is the default.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        let (path, tag) = match name.rsplit_once(':') {
            // The colon of a port comes before a slash.
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (name, TAG),
        };
        let parts: Vec<_> = path.split('/').collect();
        let (host, namespace, model) = match parts[..] {
            [model] => (HOST, NAMESPACE, model),
            [namespace, model] => (HOST, namespace, model),
            [host, namespace, model] => (host, namespace, model),
            _ => ("", "", ""),
        };
        // A host may have a port.
        let plain_host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        let is_valid = [plain_host, namespace, model, tag].iter().all(|part| is_part(part));
        let owned = str::to_owned;
        is_valid
            .then(|| Self {
                host: owned(host),
                namespace: owned(namespace),
                model: owned(model),
                tag: owned(tag),
            })
            .ok_or("expected ollama:model, ollama:model:tag or ollama:namespace/model:tag")
    }

    /// Host of the registry.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// Namespace and model.
    pub(crate) fn path_in_registry(&self) -> String {
        format!("{}/{}", self.namespace, self.model)
    }

    /// Path of the manifest below `manifests`. A colon is not allowed in names of files on Windows.
    fn path(&self) -> PathBuf {
        let host = if cfg!(windows) { self.host.replace(':', "%") } else { self.host.clone() };
        [&host, &self.namespace, &self.model, &self.tag].iter().collect()
    }
}

/// Whether a part of a name has only the characters that Ollama allows, and cannot leave its directory.
fn is_part(part: &str) -> bool {
    let mut bytes = part.bytes();
    let is_first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    bytes.next().is_some_and(is_first)
        && part.len() <= 128
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

impl fmt::Display for OllamaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host != HOST {
            write!(f, "{}/", self.host)?;
        }
        if self.host != HOST || self.namespace != NAMESPACE {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{}:{}", self.model, self.tag)
    }
}

/// The directory of the store.
#[derive(Clone, Debug)]
pub struct OllamaStore {
    directory: PathBuf,
}

/// A stored model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaModel {
    /// Name.
    pub name: OllamaName,
    /// Path of the GGUF.
    pub path: PathBuf,
    /// Length of the GGUF in bytes.
    pub bytes: u64,
}

/// A layer of a new model besides its GGUF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaLayer {
    /// Kind, the end of the media type: `template`, `params`, `system` or `license`.
    pub kind: &'static str,
    /// Content.
    pub bytes: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    media_type: String,
    pub config: Option<Layer>,
    #[serde(default)]
    pub layers: Vec<Layer>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Layer {
    media_type: String,
    pub digest: String,
    #[serde(default)]
    pub size: u64,
}

impl Layer {
    /// Returns the end of the media type, such as `model`.
    pub fn kind(&self) -> &str {
        self.media_type.rsplit('.').next().unwrap_or_default()
    }
}

impl OllamaStore {
    /// Returns the store of the user: `OLLAMA_MODELS` or `~/.ollama/models`; that of the system's service if there is no
    /// other.
    pub fn from_env() -> Self {
        let named = std::env::var_os("OLLAMA_MODELS").filter(|path| !path.is_empty());
        let home = || Some(std::env::home_dir()?.join(".ollama").join("models"));
        let of_service = PathBuf::from("/usr/share/ollama/.ollama/models");
        let directory = named.map(PathBuf::from).or_else(|| {
            let home = home().filter(|home| home.is_dir() || !of_service.is_dir());
            home.or(Some(of_service))
        });
        Self { directory: directory.unwrap_or_default() }
    }

    /// Returns the store in a directory, which need not exist.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the path of the GGUF of a model.
    ///
    /// # Errors
    /// If there is no such model, or it is not one GGUF.
    pub fn model(&self, name: &OllamaName) -> Result<PathBuf, Error> {
        let fail = |reason: String| Error::Location { word: format!("ollama:{name}"), reason };
        let path = self.manifest_path(name);
        let Some(manifest) = read_manifest(&path) else {
            let what = match path.exists() {
                true => format!("{} is not a manifest; pull the model again", path.display()),
                false => format!("{}; `gguf pull ollama:{name}` downloads it", self.missing()),
            };
            return Err(fail(what));
        };
        let mut models = manifest.layers.iter().filter(|layer| layer.media_type == MODEL);
        let (Some(layer), None) = (models.next(), models.next()) else {
            return Err(fail("the model is not stored as one GGUF".into()));
        };
        let blob = self.blob(&layer.digest).filter(|blob| blob.is_file());
        blob.ok_or_else(|| {
            fail(format!("its file is missing; `ollama pull {name}` downloads it again"))
        })
    }

    /// Says that a model is missing, and which exist.
    fn missing(&self) -> String {
        let names: Vec<_> = self.models().iter().map(|model| model.name.to_string()).collect();
        let directory = self.directory.display();
        match names.len() {
            0 => format!(
                "Ollama has no models in {directory}; OLLAMA_MODELS names another directory"
            ),
            1..=3 => format!("Ollama has {} in {directory}", names.join(", ")),
            count => format!(
                "Ollama has {} and {} more in {directory}",
                names[..3].join(", "),
                count - 3
            ),
        }
    }

    /// Returns all models that are stored as one GGUF, sorted by name.
    pub fn models(&self) -> Vec<OllamaModel> {
        let mut found = Vec::new();
        let root = self.directory.join("manifests");
        for path in paths_at(&root, 4) {
            let parts: Option<Vec<_>> = path.iter().map(std::ffi::OsStr::to_str).collect();
            let Some(&[host, namespace, model, tag]) = parts.as_deref() else { continue };
            let host = if cfg!(windows) { host.replace('%', ":") } else { host.to_owned() };
            let Ok(name) = OllamaName::parse(&format!("{host}/{namespace}/{model}:{tag}")) else {
                continue;
            };
            let Ok(path) = self.model(&name) else { continue };
            let bytes = path.metadata().map_or(0, |status| status.len());
            found.push(OllamaModel { name, path, bytes });
        }
        found.sort_by_key(|model| model.name.to_string());
        found
    }

    /// Stores a GGUF with further layers under a name. `config` describes it, as in Ollama's `ConfigV2`. What is stored
    /// already is not written again.
    ///
    /// # Errors
    /// [`gguf::Error::Exists`] if the name is taken and `replace` is false; errors of the disk.
    pub fn add(
        &self,
        name: &OllamaName,
        model: &Path,
        layers: &[OllamaLayer],
        mut config: serde_json::Map<String, serde_json::Value>,
        replace: bool,
        progress: &dyn Progress,
    ) -> Result<(), gguf::Error> {
        let path = self.manifest_path(name);
        if path.exists() && !replace {
            return Err(gguf::Error::Exists(format!("ollama:{name}").into()));
        }
        let mut stored = vec![self.add_file(model, progress)?];
        for layer in layers {
            let media_type = format!("application/vnd.ollama.image.{}", layer.kind);
            stored.push(self.add_bytes(&layer.bytes, media_type)?);
        }
        let digests: Vec<_> = stored.iter().map(|layer| layer.digest.clone()).collect();
        config.insert("architecture".into(), "amd64".into());
        config.insert("os".into(), "linux".into());
        config
            .insert("rootfs".into(), serde_json::json!({ "type": "layers", "diff_ids": digests }));
        let config = serde_json::Value::from(config).to_string();
        let manifest = Manifest {
            schema_version: 2,
            media_type: MANIFEST.into(),
            config: Some(self.add_bytes(config.as_bytes(), CONFIG.into())?),
            layers: stored,
        };
        // Cannot fail: there are no maps.
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        write(&path, &mut &*text)
    }

    /// Copies a file into the store while it is hashed.
    fn add_file(&self, model: &Path, progress: &dyn Progress) -> Result<Layer, gguf::Error> {
        let file = ReadFile::open(model)?;
        let (len, blobs) = (file.byte_len(), self.directory.join("blobs"));
        let failed = |fault| gguf::Error::environment("write to", &blobs, fault);
        create(&blobs)?;
        let mut copy = tempfile::NamedTempFile::new_in(&blobs).map_err(failed)?;
        progress.begin("copying the model", len);
        let (mut hasher, mut at, mut buffer) = (Sha256::new(), 0, vec![0; CHUNK]);
        while at < len {
            let count = usize::try_from(len - at).map_or(CHUNK, |left| left.min(CHUNK));
            file.read_at(&mut buffer[..count], at)?;
            hasher.update(&buffer[..count]);
            copy.write_all(&buffer[..count]).map_err(failed)?;
            at += count as u64;
            progress.step(count as u64)?;
        }
        let digest = format!("sha256:{}", hex(&hasher.finalize()));
        if let Some(blob) = self.blob(&digest).filter(|blob| !blob.exists()) {
            copy.as_file().sync_all().map_err(failed)?;
            persist(copy, &blob)?;
        }
        Ok(Layer { media_type: MODEL.into(), digest, size: len })
    }

    fn add_bytes(&self, bytes: &[u8], media_type: String) -> Result<Layer, gguf::Error> {
        let digest = format!("sha256:{}", hex(&Sha256::digest(bytes)));
        if let Some(blob) = self.blob(&digest).filter(|blob| !blob.exists()) {
            write(&blob, &mut &*bytes)?;
        }
        Ok(Layer { media_type, digest, size: bytes.len() as u64 })
    }

    pub(crate) fn manifest_path(&self, name: &OllamaName) -> PathBuf {
        self.directory.join("manifests").join(name.path())
    }

    /// Returns the path of a blob; `None` if the digest is not one.
    pub(crate) fn blob(&self, digest: &str) -> Option<PathBuf> {
        let digits = digest.strip_prefix("sha256:").or_else(|| digest.strip_prefix("sha256-"))?;
        let is_digest = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then(|| self.directory.join("blobs").join(format!("sha256-{digits}")))
    }
}

fn read_manifest(path: &Path) -> Option<Manifest> {
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(MAX_MANIFEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Writes a file beside its path and renames it.
pub(crate) fn write(path: &Path, bytes: &mut dyn Read) -> Result<(), gguf::Error> {
    let parent = path.parent().unwrap_or(path);
    create(parent)?;
    let failed = |fault| gguf::Error::environment("write", path, fault);
    let mut file = tempfile::NamedTempFile::new_in(parent).map_err(failed)?;
    std::io::copy(bytes, &mut file).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    persist(file, path)
}

/// Renames a temporary file, and lets others read it: a service may run Ollama.
fn persist(file: tempfile::NamedTempFile, path: &Path) -> Result<(), gguf::Error> {
    let failed = |fault| gguf::Error::environment("write", path, fault);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(failed)?;
    }
    file.persist(path).map(drop).map_err(|fault| failed(fault.error))
}

fn create(directory: &Path) -> Result<(), gguf::Error> {
    fs::create_dir_all(directory)
        .map_err(|fault| gguf::Error::environment("create", directory, fault))
}

/// Returns the paths of files at this depth below a directory, relative to it.
fn paths_at(directory: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = |entry: fs::DirEntry| -> Vec<PathBuf> {
        let name = PathBuf::from(entry.file_name());
        match depth {
            1 => vec![name],
            _ => paths_at(&entry.path(), depth - 1).iter().map(|path| name.join(path)).collect(),
        }
    };
    entries.flat_map(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_defaults() {
        let cases = [
            ("llama3.2", "llama3.2:latest", "registry.ollama.ai/library/llama3.2/latest"),
            ("llama3.2:1b", "llama3.2:1b", "registry.ollama.ai/library/llama3.2/1b"),
            ("me/m:q4", "me/m:q4", "registry.ollama.ai/me/m/q4"),
            ("hf.co/org/M-GGUF:Q8_0", "hf.co/org/M-GGUF:Q8_0", "hf.co/org/M-GGUF/Q8_0"),
        ];
        for (name, shown, path) in cases {
            let name = OllamaName::parse(name).unwrap();
            assert_eq!((name.to_string().as_str(), name.path()), (shown, PathBuf::from(path)));
            assert_eq!(OllamaName::parse(shown), Ok(name));
        }
        for name in ["", ":", "a:", "../b", "a/../b", "a/b/c/d", "a b", "a:..", "/a", "a:b/c/../d"]
        {
            assert!(OllamaName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn models_are_read_in_place_and_added() {
        let directory = tempfile::tempdir().unwrap();
        let store = OllamaStore::at(directory.path().join("models"));
        let file = directory.path().join("m.gguf");
        fs::write(&file, b"GGUF bytes").unwrap();
        let name = OllamaName::parse("mine:q8").unwrap();
        let error = store.model(&name).unwrap_err().to_string();
        assert!(error.contains("Ollama has no models in"), "{error}");
        let layers = [OllamaLayer { kind: "params", bytes: b"{}".to_vec() }];
        let add = |replace| store.add(&name, &file, &layers, serde_json::Map::new(), replace, &());
        add(false).unwrap();
        assert!(matches!(add(false), Err(gguf::Error::Exists(_))));
        add(true).unwrap();
        let path = store.model(&name).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"GGUF bytes");
        let digest = hex(&Sha256::digest(b"GGUF bytes"));
        assert_eq!(path.file_name().unwrap().to_str(), Some(&*format!("sha256-{digest}")));
        let models = store.models();
        assert_eq!(models, [OllamaModel { name, path: path.clone(), bytes: 10 }]);
        // The model, the parameters and the configuration.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
        let error = store.model(&OllamaName::parse("other").unwrap()).unwrap_err().to_string();
        assert!(error.contains("Ollama has mine:q8 in"), "{error}");
        fs::remove_file(path).unwrap();
        let error = store.model(&OllamaName::parse("mine:q8").unwrap()).unwrap_err().to_string();
        assert!(error.contains("`ollama pull mine:q8`"), "{error}");
    }

    #[test]
    fn digests_cannot_leave_the_store() {
        let store = OllamaStore::at("models".into());
        assert_eq!(store.blob("sha256:../../etc/passwd"), None);
        assert_eq!(store.blob(&format!("sha256:{}/", "a".repeat(63))), None);
        assert!(store.blob(&format!("sha256:{}", "a".repeat(64))).is_some());
    }
}
