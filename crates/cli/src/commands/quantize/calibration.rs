//! Flags of calibrated quantization (GPTQ).

use std::path::{Path, PathBuf};

use gguf_kit::quantize::{Calibration, CalibrationText};

use crate::listing;

/// Names of the flags below.
pub const FLAGS: &[&str] =
    &["--calibrate", "--calibration-data", "--calibrate-ctx", "--calibrate-tokens", "--effort"];

/// Calibration data and its size.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Args {
    /// Calibrated quantization on this text (GPTQ: rounding errors are compensated within each matrix). Same
    /// size, lower KL divergence, and much slower.
    #[arg(long, value_name = "TEXT")]
    calibrate: Option<PathBuf>,
    /// Calibrated quantization with saved Hessians (`gguf imatrix --hessian`), for several outputs or machines.
    /// Each matrix is fitted independently.
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    calibration_data: Option<PathBuf>,
    /// Search longer for the scales and quants of each block, to reduce the (importance-weighted) error. Needs
    /// no text. Has no effect on types with small codebooks (IQ1, IQ2, IQ3_XXS).
    #[arg(long, conflicts_with_all = ["calibrate", "calibration_data"])]
    effort: bool,
    /// Context size of the calibration text in tokens. Chunks are independent.
    #[arg(long, value_name = "N", default_value = "256", requires = "calibrate", value_parser = listing::parse_positive::<u32>)]
    calibrate_ctx: u32,
    /// Maximum number of calibration tokens.
    #[arg(long, value_name = "N", default_value = "100000", requires = "calibrate", value_parser = listing::parse_positive::<u32>)]
    calibrate_tokens: u32,
}

impl Args {
    /// Input file.
    pub fn input(&self) -> Option<&Path> {
        self.calibrate.as_deref().or(self.calibration_data.as_deref())
    }

    /// Returns the calibration, if requested.
    pub fn choice(&self) -> Option<Calibration> {
        if let Some(file) = &self.calibration_data {
            return Some(Calibration::Data(file.clone()));
        }
        if self.effort {
            return Some(Calibration::Weights);
        }
        let mut reading = CalibrationText::new(self.calibrate.as_ref()?);
        (reading.chunk, reading.tokens) =
            (self.calibrate_ctx as usize, self.calibrate_tokens as usize);
        Some(Calibration::Text(reading))
    }
}
