//! `gguf verify --signature`: checks who published a model, and that no file has changed.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_kit::signature::{Trusted, verify};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::progress::Progress;

/// Flags of the signature.
#[derive(clap::Args)]
// Without `skip`, the name of this group would be that of the command.
#[group(skip)]
pub struct Args {
    /// Verify this signature, as `gguf sign` and OpenSSF model signing write it.
    #[arg(long, value_name = "FILE", requires = "trusted")]
    signature: Option<PathBuf>,
    /// Public key of the signer, in PEM.
    #[arg(long, value_name = "FILE", group = "trusted", requires = "signature")]
    public_key: Option<PathBuf>,
    /// Certificates of the authorities that vouch for the signer, in PEM.
    #[arg(long, value_name = "FILE", group = "trusted", requires = "signature")]
    authorities: Option<PathBuf>,
}

/// Outcome of a verified signature.
pub struct Outcome {
    /// Whether all files are as they were signed.
    pub is_intact: bool,
    /// Report in JSON.
    pub json: Json,
}

impl Args {
    /// Verifies the signature, if one is given, and prints the result unless it goes into a document.
    pub fn check(&self, model: &str, is_json: bool) -> Result<Option<Outcome>, Failure> {
        let Some(signature) = &self.signature else { return Ok(None) };
        let key = self.public_key.clone().map(Trusted::Key);
        let Some(trusted) = key.or_else(|| self.authorities.clone().map(Trusted::Authorities))
        else {
            return Err(Failure::Usage("--signature needs --public-key or --authorities".into()));
        };
        let progress = Progress::new();
        let verified = verify(Path::new(model), signature, &trusted, &progress)?;
        progress.finish();
        if !is_json {
            let mut out = std::io::stdout().lock();
            for (name, fault) in &verified.faults {
                writeln!(out, "{name}: {fault}")?;
            }
            let changed = verified.faults.len();
            let files = verified.files.len();
            match changed {
                0 if files == 1 => writeln!(out, "1 file is as signed by {}", verified.signer)?,
                0 => writeln!(out, "{files} files are as signed by {}", verified.signer)?,
                1 => writeln!(out, "signed by {}, but 1 file differs", verified.signer)?,
                _ => writeln!(out, "signed by {}, but {changed} files differ", verified.signer)?,
            }
        }
        let faults =
            verified.faults.iter().map(|(name, fault)| json!({ "file": name, "message": fault }));
        let json = json!({
            "signer": verified.signer,
            "model": verified.model,
            "files": verified.files,
            "faults": faults.collect::<Vec<_>>(),
        });
        Ok(Some(Outcome { is_intact: verified.faults.is_empty(), json }))
    }
}
