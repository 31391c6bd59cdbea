//! Signatures of models.

use std::fs;
use std::path::{Path, PathBuf};

use gguf_sign::{Authorities, PublicKey, SignedFiles, SigningKey, Trust, Verified};
use gguf_store::{AtomicFile, Overwrite, Progress, read_text};

use crate::Error;

/// A key, with the certificates that vouch for it.
#[derive(Clone, Debug)]
pub struct Signer {
    /// Private key in PEM.
    pub key: PathBuf,
    /// Certificates in PEM, that of the key first; may be empty.
    pub certificates: Vec<PathBuf>,
}

/// A written signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Path of the signature.
    pub path: PathBuf,
    /// Names of the signed files.
    pub files: Vec<String>,
}

/// Returns where the signature of a model is written if the user does not say: `model.sig` in a directory, or beside the file.
pub fn default_path(model: &Path) -> PathBuf {
    if model.is_dir() {
        return model.join("model.sig");
    }
    let mut name = model.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

/// Signs the files of a model: a file with its shards, or everything in a directory.
///
/// # Errors
/// If a file cannot be read, the key cannot be used, or the signature cannot be written.
pub fn sign(
    model: &Path,
    signer: &Signer,
    to: &Path,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<Signature, Error> {
    let key = SigningKey::from_pem(&read_text(&signer.key)?)?;
    let mut certificates = Vec::new();
    for path in &signer.certificates {
        certificates.extend(gguf_sign::certificates(&read_text(path)?)?);
    }
    overwrite.check(to)?;
    let files = SignedFiles::find(model, Some(to))?;
    // Within the directory, verifiers must skip the signature.
    let name = to.strip_prefix(model).ok().and_then(Path::to_str).filter(|_| model.is_dir());
    let bytes = gguf_sign::sign(&files, name, &key, &certificates, progress)?;
    let inputs: Vec<_> = files.paths().chain([signer.key.as_path()]).collect();
    AtomicFile::write(to, &bytes, &overwrite.clone().protecting(inputs))?;
    Ok(Signature { path: to.to_owned(), files: files.names().map(str::to_owned).collect() })
}

/// Whom a verification trusts.
#[derive(Clone, Debug)]
pub enum Trusted {
    /// The owner of the public key in this file, in PEM.
    Key(PathBuf),
    /// The authorities whose certificates are in this file, in PEM.
    Authorities(PathBuf),
}

/// Verifies a signature, and compares the files of the model with it.
///
/// # Errors
/// If a file cannot be read, or the signature is not valid. Files that differ are in the result.
pub fn verify(
    model: &Path,
    signature: &Path,
    trusted: &Trusted,
    progress: &dyn Progress,
) -> Result<Verified, Error> {
    let trust = match trusted {
        Trusted::Key(path) => Trust::Key(PublicKey::from_pem(&read_text(path)?)?),
        Trusted::Authorities(path) => Trust::Authorities(Authorities::from_pem(&read_text(path)?)?),
    };
    let bytes = fs::read(signature).map_err(|fault| Error::read(signature, fault))?;
    gguf_sign::verify(&bytes, model, &trust, progress).map_err(|error| error.in_file(signature))
}
