//! A text by which weights are rounded.

use std::path::{Path, PathBuf};

use gguf_kit::quantize::{Calibration, CalibrationText};

use crate::listing;

/// The flags below.
pub const FLAGS: &[&str] =
    &["--calibrate", "--calibration-data", "--calibrate-ctx", "--calibrate-tokens", "--effort"];

/// What is read, and how much of it.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct Args {
    /// Round weights by what this text shows of the model, and not each for itself: the same size, closer to
    /// the original, and it takes much longer.
    #[arg(long, value_name = "TEXT")]
    calibrate: Option<PathBuf>,
    /// The same by what was saved of such a text by `gguf imatrix --moments`: for several outputs and machines.
    /// Each matrix is then fitted for itself.
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    calibration_data: Option<PathBuf>,
    /// Search longer for the scales and values of each block: closer to the weights, or by an importance matrix to what
    /// it says that counts. No text is needed. Types with small codebooks (IQ1, IQ2, IQ3_XXS) stay as they are without.
    #[arg(long, conflicts_with_all = ["calibrate", "calibration_data"])]
    effort: bool,
    /// Tokens of a window of that text; each is read for itself.
    #[arg(long, value_name = "N", default_value = "256", requires = "calibrate", value_parser = listing::parse_above_0::<u32>)]
    calibrate_ctx: u32,
    /// Tokens of that text that are read at most.
    #[arg(long, value_name = "N", default_value = "100000", requires = "calibrate", value_parser = listing::parse_above_0::<u32>)]
    calibrate_tokens: u32,
}

impl Args {
    /// The file that is read.
    pub fn input(&self) -> Option<&Path> {
        self.calibrate.as_deref().or(self.calibration_data.as_deref())
    }

    /// What was asked for.
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
