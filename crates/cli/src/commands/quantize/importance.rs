//! Importance weights for `gguf quantize`.

use std::path::{Path, PathBuf};

use gguf_kit::quantize::Choice;
use gguf_quantize::importance::MissingImportance;

/// What concerns importance weights.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct Args {
    /// Importance matrix, GGUF or legacy `.dat`: makes better use of the bits.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Use it for the tensors whose name contains this only; may be repeated.
    #[arg(long, value_name = "NAME", requires = "imatrix", conflicts_with = "exclude_weights")]
    include_weights: Vec<String>,
    /// Do not use it for tensors whose name contains this; may be repeated.
    #[arg(long, value_name = "NAME", requires = "imatrix")]
    exclude_weights: Vec<String>,
    /// What to do about tensors that would be garbage without importance weights and have none:
    /// refuse, give them a larger type, or let all their columns count alike.
    #[arg(long, value_enum, default_value = "error")]
    imatrix_missing: MissingArg,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum MissingArg {
    Error,
    Fallback,
    Uniform,
}

impl Args {
    /// The file that is read.
    pub fn input(&self) -> Option<&Path> {
        self.imatrix.as_deref()
    }

    /// What to do without weights.
    pub fn missing(&self) -> MissingImportance {
        match self.imatrix_missing {
            MissingArg::Error => MissingImportance::Error,
            MissingArg::Fallback => MissingImportance::Fallback,
            MissingArg::Uniform => MissingImportance::Uniform,
        }
    }

    /// The matrix, and what of it is to be used.
    pub fn choice(&self) -> Option<Choice> {
        self.imatrix.as_ref().map(|file| Choice {
            file: file.clone(),
            include: self.include_weights.clone(),
            exclude: self.exclude_weights.clone(),
        })
    }
}
