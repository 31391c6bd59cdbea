//! `gguf card`: writes the model card of a repository.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_kit::card::{CardOptions, CollectedCard, card};
use gguf_kit::report::card_markdown;
use gguf_store::AtomicFile;

use crate::failure::Failure;
use crate::force::Force;
use crate::{document, terminal};

/// Name of a card on the Hub.
const README: &str = "README.md";

/// Write the model card of a directory of GGUF files.
///
/// Writes README.md for a repository on the Hugging Face Hub: front matter, a table of the files with sizes and measured
/// losses, recommended types, how the files were made, importance matrix, license and citation. The facts come from
/// the metadata of the files, and from results of `gguf quality --json` and `gguf divergence --json`, which are matched with
/// files by a digest of their tensors.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf card Llama-3.2-1B-GGUF\n  \
                        gguf card Llama-3.2-1B-GGUF --repo me/Llama-3.2-1B-GGUF --base-model meta-llama/Llama-3.2-1B\n  \
                        gguf card Llama-3.2-1B-GGUF --imatrix imatrix.gguf --calibration-text calibration.txt -o card.md")]
pub struct Args {
    /// Directory with the files of the repository. JSON results and importance matrices in it are used.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Output file; `-` for standard output [default: README.md in DIR].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Repository on the Hub, for the commands that run the model.
    #[arg(long, value_name = "ORG/NAME", value_parser = repository)]
    repo: Option<String>,
    /// Title [default: name of the repository or of the model].
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Base model: the model that the files were made of. May be repeated [default: from the metadata].
    #[arg(long, value_name = "ORG/NAME")]
    base_model: Vec<String>,
    /// Author of the quantization [default: from the metadata].
    #[arg(long, value_name = "NAME")]
    quantized_by: Option<String>,
    /// License, as the Hub names it, such as apache-2.0 [default: from the metadata].
    #[arg(long, value_name = "ID")]
    license: Option<String>,
    /// Task, such as text-generation [default: from the metadata].
    #[arg(long, value_name = "TASK")]
    pipeline_tag: Option<String>,
    /// JSON results of `gguf quality` or `gguf divergence`. May be repeated.
    #[arg(long, value_name = "FILE")]
    results: Vec<PathBuf>,
    /// Importance matrix, of which name and digest are stated. May be repeated.
    #[arg(long, value_name = "FILE")]
    imatrix: Vec<PathBuf>,
    /// Calibration text of the importance matrix, of which name and digest are stated.
    #[arg(long, value_name = "FILE")]
    calibration_text: Option<PathBuf>,
    /// File with the citation, such as BibTeX.
    #[arg(long, value_name = "FILE")]
    citation: Option<PathBuf>,
    /// Print the facts of the card as JSON, and write no card.
    #[arg(long, conflicts_with = "output")]
    json: bool,
    #[command(flatten)]
    force: Force,
}

fn repository(text: &str) -> Result<String, String> {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let is_valid = text.split('/').count() == 2 && text.split('/').all(is_part);
    is_valid
        .then(|| text.to_owned())
        .ok_or_else(|| "expected ORG/NAME, such as me/Qwen3-GGUF".into())
}

impl Args {
    fn options(&self) -> CardOptions {
        CardOptions {
            title: self.title.clone(),
            repository: self.repo.clone(),
            base_models: self.base_model.clone(),
            quantized_by: self.quantized_by.clone(),
            license: self.license.clone(),
            pipeline_tag: self.pipeline_tag.clone(),
            results: self.results.clone(),
            imatrices: self.imatrix.clone(),
            calibration_text: self.calibration_text.clone(),
            citation: self.citation.clone(),
        }
    }

    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let several = self.results.iter().chain(&self.imatrix);
        several.chain(&self.calibration_text).chain(&self.citation).map(PathBuf::as_path)
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let output = args.output.clone().unwrap_or_else(|| args.dir.join(README));
    let is_printed = args.json || output.as_os_str() == "-";
    let CollectedCard { card, notes, inputs } = card(&args.dir, &args.options())?;
    terminal::notes(&notes);
    let mut out = std::io::stdout().lock();
    if args.json {
        let card = serde_json::to_value(&card).map_err(std::io::Error::from)?;
        return Ok(document::print(&mut out, "card/1", card)?);
    }
    let text = card_markdown(&card);
    if is_printed {
        return Ok(out.write_all(text.as_bytes())?);
    }
    let inputs = inputs.iter().map(PathBuf::as_path).chain(args.inputs());
    let overwrite = args.force.protecting(inputs);
    AtomicFile::write(&output, text.as_bytes(), &overwrite)?;
    eprintln!("wrote {}", output.display());
    Ok(())
}
