//! `Recipe`: the types of tensors, and how they are quantized.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use gguf_kit::quantize::{Calibration, CalibrationText, ImatrixChoice, TextSource};
use gguf_quantize::recipe::{Target, parse_entry, parse_type_file};
use pyo3::prelude::*;

use crate::error::{raise, request};
use crate::template::renderer;

/// Written outputs: locations, notes, the recipe of the last output, and the fingerprint of the parts. Locations are
/// strings, since `pathlib.Path` would corrupt URLs of object stores.
pub type WriteResult = (Vec<OsString>, Vec<String>, String, Option<String>);

/// Parses a quantization type.
pub fn target(name: &str) -> PyResult<Target> {
    let parsed = name.parse::<Target>();
    parsed.map_err(|error| request("request-invalid", error.to_string()))
}

/// The fields of `gguf_kit.Recipe`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Recipe {
    pure: bool,
    leave_output_tensor: bool,
    output_tensor_type: Option<String>,
    token_embedding_type: Option<String>,
    tensor_types: Vec<String>,
    recipe: Option<String>,
    imatrix: Option<PathBuf>,
    allow_requantize: bool,
    calibrate: Vec<PathBuf>,
    calibrate_ctx: NonZeroUsize,
    calibrate_tokens: NonZeroUsize,
    calibration_data: Option<PathBuf>,
    effort: bool,
}

impl Recipe {
    /// Returns the options of the quantizer.
    pub fn options(&self) -> PyResult<gguf_quantize::QuantizeOptions> {
        let ty = |name: &Option<String>| match name {
            Some(name) => crate::codec::TypeName::Name(name.clone()).get().map(Some),
            None => Ok(None),
        };
        let allow_requantize = self.allow_requantize;
        let mut options = gguf_quantize::QuantizeOptions {
            allow_requantize,
            ..gguf_quantize::QuantizeOptions::default()
        };
        options.recipe.pure = self.pure;
        options.recipe.leave_output_tensor = self.leave_output_tensor;
        options.recipe.output_tensor_type = ty(&self.output_tensor_type)?;
        options.recipe.token_embedding_type = ty(&self.token_embedding_type)?;
        let entries = self.tensor_types.iter().map(|entry| parse_entry(entry).map_err(raise));
        options.recipe.tensor_types = entries.collect::<PyResult<_>>()?;
        if let Some(text) = &self.recipe {
            options.recipe.tensor_types.extend(parse_type_file(text).map_err(raise)?);
        }
        Ok(options)
    }

    /// Returns the source of calibration data.
    pub fn calibration(&self, py: Python<'_>) -> PyResult<Option<Calibration>> {
        match (&self.calibrate[..], &self.calibration_data) {
            ([], Some(file)) => Ok(Some(Calibration::Data(file.clone()))),
            ([], None) => Ok(self.effort.then_some(Calibration::Weights)),
            (_, Some(_)) => {
                Err(request("request-invalid", "expected either calibrate or calibration_data"))
            }
            (texts, None) => {
                let (chunk, tokens) = (self.calibrate_ctx.get(), self.calibrate_tokens.get());
                let source = |text: &PathBuf| match text.as_os_str() == "bundled" {
                    true => renderer(py).map(TextSource::Bundled),
                    false => Ok(TextSource::File(text.clone())),
                };
                let sources = texts.iter().map(source).collect::<PyResult<_>>()?;
                Ok(Some(Calibration::Text(CalibrationText { sources, chunk, tokens })))
            }
        }
    }

    /// Returns the importance matrix.
    pub fn choice(&self) -> Option<ImatrixChoice> {
        let file = self.imatrix.clone()?;
        Some(ImatrixChoice { file, ..ImatrixChoice::default() })
    }
}

/// Returns the types of all matrices of the last job as the text of a recipe.
pub fn types<'j>(jobs: impl Iterator<Item = &'j gguf_pipeline::Job>) -> String {
    let items = jobs.last().into_iter().flat_map(|job| &job.items);
    let matrices = items.filter(|item| item.tensor.shape.len() > 1);
    gguf_quantize::recipe::write_type_file(matrices.map(|i| (i.tensor.name.as_str(), i.target)))
}
