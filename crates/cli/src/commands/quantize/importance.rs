//! Importance weights for `gguf quantize`.

use std::path::{Path, PathBuf};

use gguf::Value;
use gguf_convert::importance::{Importance, Missing};
use gguf_quant::imatrix::Imatrix;

use crate::failure::Failure;

/// Keys to set, with their values.
type Keys = Vec<(String, Value)>;

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
    pub fn missing(&self) -> Missing {
        match self.imatrix_missing {
            MissingArg::Error => Missing::Error,
            MissingArg::Fallback => Missing::Fallback,
            MissingArg::Uniform => Missing::Uniform,
        }
    }

    /// The weights, and the keys that say in the output where they came from, as the official tool
    /// writes them (it cuts names off at 127 bytes, which we do not).
    pub fn read(&self) -> Result<Option<(Importance, Keys)>, Failure> {
        let Some(path) = &self.imatrix else { return Ok(None) };
        let imatrix = Imatrix::open(path)?;
        let contains_any = |name: &str, parts: &[String]| parts.iter().any(|p| name.contains(p));
        let weights = imatrix
            .entries
            .keys()
            .filter(|name| !contains_any(name, &self.exclude_weights))
            .filter(|name| {
                self.include_weights.is_empty() || contains_any(name, &self.include_weights)
            })
            .filter_map(|name| Some((name.clone(), imatrix.importance(name)?.into())))
            .collect::<std::collections::HashMap<_, _>>();
        if weights.is_empty() {
            return Err(Failure::Usage(format!(
                "nothing of {} is to be used: look at --include-weights and --exclude-weights",
                path.display()
            )));
        }
        let key = |name: &str| format!("quantize.imatrix.{name}");
        let mut keys = vec![(key("file"), Value::from(path.display().to_string()))];
        if let Some(dataset) = imatrix.datasets.first() {
            keys.push((key("dataset"), Value::from(dataset.clone())));
        }
        keys.push((key("entries_count"), Value::U32(weights.len() as u32)));
        if imatrix.chunk_count > 0 {
            keys.push((key("chunks_count"), Value::U32(imatrix.chunk_count)));
        }
        Ok(Some((Importance { weights }, keys)))
    }
}
