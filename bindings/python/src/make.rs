//! Models made of others, and of checkpoints.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use gguf::{ByteOrder, Error};
use gguf_kit::convert::{self as conversion, Wanted};
use gguf_kit::quantize::{self as quantization, Calibration, Choice, Goal, Named, Reading, Split};
use gguf_quantize::recipe::{Target, parse_entry, parse_type_file};
use gguf_store::{Existing, Overwrite};
use pyo3::prelude::*;

use crate::error::{raise, request};
use crate::model::Source;
use crate::part;
use crate::work::{How, run};

/// What an output may replace.
pub fn overwrite(force: bool) -> Overwrite {
    gguf_kit::overwrite(if force { Existing::Replace } else { Existing::Refuse })
}

fn target(name: &str) -> PyResult<Target> {
    let parsed = name.parse::<Target>();
    parsed.map_err(|unknown| request("request-invalid", unknown.to_string()))
}

/// What decides the types of tensors, as Python gives it.
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
    calibrate: Option<PathBuf>,
    calibrate_ctx: NonZeroUsize,
    calibrate_tokens: NonZeroUsize,
    calibration_data: Option<PathBuf>,
    effort: bool,
}

impl Recipe {
    fn options(&self) -> PyResult<gguf_quantize::Options> {
        let ty = |name: &Option<String>| match name {
            Some(name) => crate::codec::TypeName::Name(name.clone()).get().map(Some),
            None => Ok(None),
        };
        let allow_requantize = self.allow_requantize;
        let mut options =
            gguf_quantize::Options { allow_requantize, ..gguf_quantize::Options::default() };
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

    fn calibration(&self) -> PyResult<Option<Calibration>> {
        match (&self.calibrate, &self.calibration_data) {
            (Some(_), Some(_)) => {
                Err(request("request-invalid", "calibrate and calibration_data are both given"))
            }
            (Some(text), None) => {
                let (window, tokens) = (self.calibrate_ctx.get(), self.calibrate_tokens.get());
                Ok(Some(Calibration::Text(Reading { text: text.clone(), window, tokens })))
            }
            (None, Some(file)) => Ok(Some(Calibration::Data(file.clone()))),
            (None, None) => Ok(self.effort.then_some(Calibration::Weights)),
        }
    }

    fn choice(&self) -> Option<Choice> {
        let file = self.imatrix.clone()?;
        Some(Choice { file, ..Choice::default() })
    }
}

/// Outputs that were written, what one should know, the types of matrices as a recipe, and of parts their
/// fingerprint. Outputs are words: a path of Python's would spoil the address of an object.
type Made = (Vec<OsString>, Vec<String>, String, Option<String>);

/// Smaller models of a model, in one pass.
#[pyfunction]
#[pyo3(signature = (source, outputs, recipe, part, resume, force, dry_run, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn quantize(
    py: Python<'_>,
    source: Source,
    outputs: Vec<(String, Option<PathBuf>)>,
    recipe: Recipe,
    part: Option<String>,
    resume: bool,
    force: bool,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Made> {
    let (opened, word) = (source.open(py)?, source.word()?);
    let named = outputs.into_iter().map(|(name, path)| {
        let target = target(&name)?;
        let path = match path {
            Some(path) => path,
            None => quantization::default_path(&opened, &word, target).map_err(raise)?,
        };
        Ok(Named { goal: Goal::Target(target), path })
    });
    let split = part::parse(part)?.map_or(Split::None, Split::Part);
    let options = quantization::Options {
        outputs: named.collect::<PyResult<_>>()?,
        quantization: recipe.options()?,
        split,
        resume,
        calibration: recipe.calibration()?,
        ..quantization::Options::default()
    };
    let choice = recipe.choice();
    run(py, &How { progress, threads }, |progress| {
        let mut options = options;
        let mut inputs: Vec<PathBuf> = opened.files().map(PathBuf::from).collect();
        if let Some(choice) = choice {
            choice.add_to(&mut options.quantization)?;
            options.quantization.recipe.has_imatrix = true;
            inputs.push(choice.file);
        }
        inputs.extend(options.calibration.iter().filter_map(|by| Some(by.file()?.to_owned())));
        let overwrite = overwrite(force).sparing(inputs);
        options.check_outputs(&overwrite)?;
        let mut plan = quantization::Plan::new(&opened, &word, &options, progress)?;
        if !dry_run {
            plan.write(&overwrite, &|| (), progress)?;
        }
        let files = plan.files().map(|(_, path)| path.into()).collect();
        let jobs = || plan.files().map(|(job, _)| job);
        Ok((files, plan.notes.clone(), types(jobs()), part::fingerprint_of(jobs())))
    })
}

/// The types of matrices, as a list for `recipe`.
fn types<'j>(jobs: impl Iterator<Item = &'j gguf_pipeline::Job>) -> String {
    let items = jobs.last().into_iter().flat_map(|job| &job.items);
    let matrices = items.filter(|item| item.tensor.shape.len() > 1);
    gguf_quantize::recipe::write_type_file(matrices.map(|i| (i.tensor.name.as_str(), i.target)))
}

/// Models of a checkpoint, an adapter, or a model from before GGUF.
#[pyfunction]
#[pyo3(signature = (source, outputs, recipe, vocab_only, mmproj, big_endian, architecture, model_name, metadata,
    base, target_model_dir, part, resume, force, dry_run, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub fn convert(
    py: Python<'_>,
    source: PathBuf,
    outputs: Vec<(Option<String>, Option<PathBuf>)>,
    recipe: Recipe,
    vocab_only: bool,
    mmproj: bool,
    big_endian: bool,
    architecture: Option<String>,
    model_name: Option<String>,
    metadata: Option<PathBuf>,
    base: Option<PathBuf>,
    target_model_dir: Option<PathBuf>,
    part: Option<String>,
    resume: bool,
    force: bool,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<NonZeroUsize>,
) -> PyResult<Made> {
    let word = Source::Word(source).word()?;
    let wanted = outputs.into_iter().map(|(name, path)| {
        Ok(Wanted { outtype: name.map(|name| target(&name)).transpose()?, path })
    });
    let options = conversion::Options {
        outputs: wanted.collect::<PyResult<_>>()?,
        quantization: recipe.options()?,
        imatrix: recipe.choice(),
        vocab_only,
        mmproj,
        order: if big_endian { ByteOrder::Big } else { ByteOrder::Little },
        architecture,
        model_name,
        metadata,
        base,
        target_model_dir,
        part: part::parse(part)?,
        resume,
        calibration: recipe.calibration()?,
        ..conversion::Options::default()
    };
    run(py, &How { progress, threads }, |progress| {
        let kind = conversion::kind(&word, options.architecture.as_deref())?;
        let mut plan = conversion::Plan::new(&word, kind, &options, progress)?;
        let overwrite = overwrite(force).sparing(&plan.inputs);
        let planned = plan.files()?;
        let files: Vec<PathBuf> = planned.iter().map(|(_, path)| path.clone()).collect();
        if !dry_run {
            files.iter().try_for_each(|path| overwrite.check(path))?;
            plan.write(&overwrite, &|| (), progress)?;
        }
        let jobs = || planned.iter().map(|(job, _)| job);
        let files = files.into_iter().map(OsString::from).collect();
        Ok::<_, Error>((files, plan.notes.clone(), types(jobs()), part::fingerprint_of(jobs())))
    })
}
