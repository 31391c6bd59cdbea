//! Flags of calibrated quantization (GPTQ).

use std::path::{Path, PathBuf};

use gguf_kit::quantize::{Calibration, CalibrationText, TextSource};

use crate::commands::render_template::renderer;
use crate::failure::Failure;
use crate::listing;

/// Value of `--calibrate` for a text that the model writes.
const SELF: &str = "self";

/// Value of `--calibrate` for the bundled text, also without a value.
pub const BUNDLED: &str = "bundled";

/// Names of the flags below.
pub const FLAGS: &[&str] =
    &["--calibrate", "--calibration-data", "--calibrate-ctx", "--calibrate-tokens", "--effort"];

/// Calibration data and its size.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Args {
    /// Calibrated quantization on this text (GPTQ: rounding errors are compensated within each matrix). Same
    /// size, lower KL divergence, and much slower. `bundled`, or no value at the end of the line: the text of gguf-kit.
    /// `self`: a text that the model writes (`gguf calibration-text`). May be repeated: several texts have equal shares of
    /// the tokens.
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = BUNDLED,
        value_parser = parse_text)]
    calibrate: Vec<PathBuf>,
    /// Calibrated quantization with saved Hessians (`gguf imatrix --hessian`), such as those of a Whisper model. Each matrix
    /// is fitted independently: for language models, --calibrate is far better.
    #[arg(long, value_name = "FILE", conflicts_with = "calibrate")]
    calibration_data: Option<PathBuf>,
    /// Search longer for the scales and quants of each block, to reduce the (importance-weighted) error. Needs
    /// no text. Has no effect on types with small codebooks (IQ1, IQ2, IQ3_XXS).
    #[arg(long, conflicts_with_all = ["calibrate", "calibration_data"])]
    effort: bool,
    /// Context size of the calibration text in tokens. Chunks are independent.
    #[arg(long, value_name = "N", default_value = "256", requires = "calibrate", value_parser = listing::parse_positive::<u32>)]
    calibrate_ctx: u32,
    /// Maximum number of calibration tokens. Of a longer text, chunks are taken at equal distances.
    #[arg(long, value_name = "N", default_value = "100000", requires = "calibrate", value_parser = listing::parse_positive::<u32>)]
    calibrate_tokens: u32,
}

impl Args {
    /// Input files.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        let is_file = |text: &&PathBuf| text.as_os_str() != SELF && text.as_os_str() != BUNDLED;
        self.calibrate.iter().filter(is_file).chain(&self.calibration_data).map(PathBuf::as_path)
    }

    /// Returns the number of tokens that the model writes for its own calibration, if this is requested.
    pub fn self_tokens(&self) -> Option<usize> {
        let is_self = |text: &PathBuf| text.as_os_str() == SELF;
        self.calibrate.iter().any(is_self).then_some(self.calibrate_tokens as usize)
    }

    /// Returns the calibration by the texts, given that of the model itself.
    ///
    /// # Errors
    /// As [`text_source`].
    pub fn by_texts(&self, own: &Path) -> Result<Calibration, Failure> {
        let (chunk, tokens) = (self.calibrate_ctx as usize, self.calibrate_tokens as usize);
        let source = |text: &PathBuf| match text.as_os_str() == SELF {
            true => Ok(TextSource::File(own.to_owned())),
            false => text_source(text),
        };
        let sources = self.calibrate.iter().map(source).collect::<Result<_, _>>()?;
        Ok(Calibration::Text(CalibrationText { sources, chunk, tokens }))
    }

    /// Returns the calibration, if requested.
    ///
    /// # Errors
    /// If the model has to write the text first.
    pub fn choice(&self) -> Result<Option<Calibration>, Failure> {
        if self.self_tokens().is_some() {
            return Err(Failure::Usage(
                "--calibrate self needs a text here: write it with `gguf calibration-text MODEL -o text.txt`, and \
                 pass `--calibrate text.txt`"
                    .into(),
            ));
        }
        Ok(match (&self.calibration_data, &self.calibrate[..]) {
            (Some(file), _) => Some(Calibration::Data(file.clone())),
            (None, []) => self.effort.then_some(Calibration::Weights),
            (None, _) => Some(self.by_texts(Path::new(SELF))?),
        })
    }
}

/// Parses a value of `--calibrate`. Without one the next word is taken for it, which is then a model.
pub fn parse_text(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.extension().is_some_and(|extension| extension == "gguf") {
        return Err("not a text: for the bundled text, write `--calibrate bundled`, or --calibrate at the end of the line".into());
    }
    Ok(path)
}

/// Returns the text that a value of `--calibrate` other than `self` names.
///
/// # Errors
/// As [`renderer`].
pub fn text_source(text: &Path) -> Result<TextSource, Failure> {
    Ok(match text.as_os_str() == BUNDLED {
        true => TextSource::Bundled(renderer()?),
        false => TextSource::File(text.to_owned()),
    })
}
