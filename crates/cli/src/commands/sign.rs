//! `gguf sign`: signs a model.

use std::io::Write;
use std::path::PathBuf;

use gguf_kit::signature::{Signer, default_path, sign};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;

/// Sign a model in the form of OpenSSF model signing.
///
/// Writes a Sigstore bundle with the SHA-256 of every file. The Python package `model-signing` verifies it too.
#[derive(clap::Args)]
#[command(after_help = "The key is ECDSA on P-256, P-384 or P-521, in PEM and not encrypted:\n  \
    openssl ecparam -name prime256v1 -genkey -noout -out key.pem\n  \
    openssl ec -in key.pem -pubout -out key.pub\n\nExamples:\n  \
    gguf sign model.gguf --key key.pem\n  \
    gguf sign Qwen3-0.6B --key key.pem -o Qwen3-0.6B.sig\n  \
    gguf verify model.gguf --signature model.gguf.sig --public-key key.pub")]
pub struct Args {
    /// Model: a file with its shards, or a directory with everything in it.
    model: PathBuf,
    /// Private key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Certificate of the key, and those between it and a trusted authority. May be repeated.
    #[arg(long, value_name = "FILE")]
    certificate: Vec<PathBuf>,
    /// Signature to write [default: MODEL.sig, or model.sig in a directory].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the signed files as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let to = args.output.clone().unwrap_or_else(|| default_path(&args.model));
    let signer = Signer { key: args.key.clone(), certificates: args.certificate.clone() };
    let inputs = args.certificate.iter().chain([&args.key, &args.model]);
    let overwrite = args.force.protecting(inputs);
    let progress = Progress::new();
    let signature = sign(&args.model, &signer, &to, &overwrite, &progress)?;
    progress.finish();
    if args.json {
        let report =
            json!({ "output": signature.path.display().to_string(), "files": signature.files });
        document::print(&mut std::io::stdout().lock(), "sign/1", report)?;
    } else {
        let count = signature.files.len();
        let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
        writeln!(std::io::stdout().lock(), "signed {files}: {}", signature.path.display())?;
    }
    Ok(())
}
