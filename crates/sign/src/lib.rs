//! Signatures of models in the form of OpenSSF model signing: <https://github.com/sigstore/model-transparency>.
//!
//! A signature is a Sigstore bundle with a DSSE envelope around an in-toto statement, which has the SHA-256 of every file of
//! the model. [`sign`] writes one with an ECDSA key; [`verify`] checks one with a public key or a certificate of a trusted
//! authority. Both work offline. The Python package `model-signing` reads and writes the same files.

mod bundle;
mod certificate;
mod files;
mod key;
mod statement;

use std::path::Path;

pub use certificate::{Authorities, certificates};
pub use files::{SignedFiles, digest as file_digest};
use gguf::Error;
use gguf_store::Progress;
pub use key::{PublicKey, SigningKey};
use statement::Statement;

/// Signs the files of a model and returns the signature, a JSON document. `signature_name` is its name if it is written into
/// the signed directory. With the certificates of the key, the first being that of the key itself, a verifier needs only the
/// certificate of their authority.
///
/// # Errors
/// If a file cannot be read; `signature-certificate` if the first certificate is not that of the key.
pub fn sign(
    files: &SignedFiles,
    signature_name: Option<&str>,
    key: &SigningKey,
    certificates: &[Vec<u8>],
    progress: &dyn Progress,
) -> Result<Vec<u8>, Error> {
    if let Some(certificate) = certificates.first()
        && certificate::public_key(certificate)? != key.public_key()
    {
        let what = "the certificate belongs to another key";
        return Err(Error::request(
            "signature-certificate",
            what,
            "name the certificate of the signing key first",
        ));
    }
    let statement = Statement::of(files, signature_name, progress)?;
    Ok(bundle::write(&statement.to_json(), key, certificates))
}

/// Who is trusted to sign.
pub enum Trust {
    /// The owner of a key.
    Key(PublicKey),
    /// Owners of certificates that these authorities issued.
    Authorities(Authorities),
}

/// Result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Subject of the certificate, or the SHA-256 of the public key.
    pub signer: String,
    /// Name of the model in the signature.
    pub model: String,
    /// Names of the files that were compared.
    pub files: Vec<String>,
    /// Differences: files that are missing, changed or not signed, each with the fault.
    pub faults: Vec<(String, &'static str)>,
}

/// Verifies the signature, and compares the files of `model` with it.
///
/// A directory must have exactly the signed files. A file and its shards must be among the signed files; the signature may
/// cover others, which are not read.
///
/// # Errors
/// `signature-invalid` if the signature is malformed or not made by a trusted signer; if a file cannot be read. Files that
/// differ are reported in the result.
pub fn verify(
    signature: &[u8],
    model: &Path,
    trust: &Trust,
    progress: &dyn Progress,
) -> Result<Verified, Error> {
    let (payload, signer) = bundle::verify(signature, trust)?;
    let statement = Statement::from_json(&payload)?;
    let (files, faults) = statement.compare(model, progress)?;
    Ok(Verified { signer, model: statement.model, files, faults })
}

/// Returns the error for a malformed or untrusted signature.
fn invalid(what: impl Into<Box<str>>) -> Error {
    gguf::Finding::error("signature-invalid", what)
        .help("get the signature and the public key from the publisher again")
        .into()
}
