//! Importance matrix flags of `gguf quantize`.

use std::path::{Path, PathBuf};

use gguf_kit::quantize::ImatrixChoice;
use gguf_quantize::importance::MissingImportance;

/// Importance matrix and its use.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Args {
    /// Importance matrix (GGUF or legacy `.dat`), which weights the quantization error.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Use the imatrix only for tensors whose name contains NAME. May be repeated.
    #[arg(
        long,
        value_name = "NAME",
        requires = "imatrix",
        conflicts_with = "exclude_weights",
        help_heading = "Advanced"
    )]
    include_weights: Vec<String>,
    /// Do not use the imatrix for tensors whose name contains NAME. May be repeated.
    #[arg(long, value_name = "NAME", requires = "imatrix", help_heading = "Advanced")]
    exclude_weights: Vec<String>,
    /// Handling of tensors whose type requires an imatrix that does not cover them: fail, fall back to a larger
    /// type, or use uniform weights.
    #[arg(
        long,
        value_enum,
        value_name = "ACTION",
        default_value = "error",
        help_heading = "Advanced"
    )]
    imatrix_missing: MissingArg,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum MissingArg {
    Error,
    Fallback,
    Uniform,
}

impl Args {
    /// Input file.
    pub fn input(&self) -> Option<&Path> {
        self.imatrix.as_deref()
    }

    /// Returns the handling of missing importance weights.
    pub fn missing(&self) -> MissingImportance {
        match self.imatrix_missing {
            MissingArg::Error => MissingImportance::Error,
            MissingArg::Fallback => MissingImportance::Fallback,
            MissingArg::Uniform => MissingImportance::Uniform,
        }
    }

    /// Returns the imatrix with its filters, if given.
    pub fn choice(&self) -> Option<ImatrixChoice> {
        self.imatrix.as_ref().map(|file| ImatrixChoice {
            file: file.clone(),
            include: self.include_weights.clone(),
            exclude: self.exclude_weights.clone(),
        })
    }
}
