//! A text that a model reads so that its weights are rounded by that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Value;
use gguf_calibrate::{Each, METHOD, Made, calibrate, matrices};
use gguf_eval::{Cut, RunOptions, Subject, Windows};
use gguf_pipeline::Item;
use gguf_quantize::sensitivity::Sensitivity;
use gguf_runtime::{Arithmetic, Executor};
use gguf_store::{Model, Progress};
use gguf_tokenizer::Tokenizer;

use super::PREFIX;
use super::judging::By;
use crate::run::run_model;
use crate::sensitivity::{By as Together, How, of_windows};
use crate::{Error, digest, read_text, run, tokens};

/// A text, and how much of it is read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The file.
    pub text: PathBuf,
    /// Tokens of a window; each is read for itself.
    pub window: usize,
    /// Tokens that are read at most, those that are kept back included.
    pub tokens: usize,
}

impl Reading {
    /// All windows of 256 tokens of a text, up to 100,000 tokens.
    pub fn new(text: impl Into<PathBuf>) -> Self {
        Self { text: text.into(), window: 256, tokens: 100_000 }
    }
}

/// One window of so many is kept back, to see what a model does with a text that it was not fitted to.
const KEPT: usize = 8;

/// So many of those are read at most, and as many of the others.
const JUDGED: usize = 16;

/// So many windows say what types of tensors do to predictions, where a size is to be kept.
const MEASURED: usize = 4;

/// How much worse the model may do there before that is said.
const OVER_FITTED: f64 = 1.5;

/// A model that is ready to read.
pub(super) struct Reader {
    /// As it is judged.
    executor: Arc<Executor>,
    windows: Windows,
    /// The windows that weights are fitted to, token by token.
    pub ids: Vec<Vec<u32>>,
    keys: Vec<(String, Value)>,
}

impl Reader {
    /// A model that `source` names.
    pub fn open(model: &Model, source: &str, reading: &Reading) -> Result<Self, Error> {
        let running = run_model(model, Vec::new(), source, &run::Options::default())?;
        let tokenizer = Tokenizer::from_metadata(model.metadata(), Default::default())
            .map_err(|error| error.in_file(source.as_ref()))?;
        Self::new(running.executor, &tokenizer, reading)
    }

    /// A model that is open.
    pub fn new(
        executor: Arc<Executor>,
        tokenizer: &Tokenizer,
        reading: &Reading,
    ) -> Result<Self, Error> {
        if let Some((encoder, _)) = executor.graph().encoder() {
            let what = "a model with an encoder of its own cannot be calibrated by a text";
            let help = match encoder.features_width() {
                Some(_) => {
                    "save what a recording shows with `gguf imatrix MODEL -f RECORDING --moments`, and give \
                     --calibration-data"
                }
                None => "leave --calibrate out",
            };
            return Err(Error::request("calibration-impossible", what, help));
        }
        let text = read_text(&reading.text)?;
        let mut ids = tokens::encode(tokenizer, &text, false);
        ids.truncate(reading.tokens.max(reading.window));
        let cut = Cut { len: reading.window, windows: None, stride: None };
        let windows = Windows::new(ids, tokens::first(tokenizer), cut)?;
        let kept = windows.count() / KEPT;
        let fitted = windows.count() - kept;
        let ids: Vec<_> =
            windows.numbers().take(fitted).map(|number| windows.inputs(number)).collect();
        let key = |name: &str| format!("{PREFIX}{name}");
        let keys = vec![
            (key("method"), Value::from(METHOD)),
            (key("text_sha256"), Value::from(digest::sha256(text.as_bytes()))),
            (key("tokens"), Value::U32((fitted * reading.window) as u32)),
            (key("tokens_most"), Value::U32(reading.tokens as u32)),
            (key("window"), Value::U32(reading.window as u32)),
        ];
        Ok(Self { executor, windows, ids, keys })
    }

    /// What stands in files for what was read.
    pub fn keys(&self) -> Vec<(String, Value)> {
        self.keys.clone()
    }

    /// The model.
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// Of each tensor that is multiplied the numbers of a row, times matrices.
    pub fn matrices(&self) -> HashMap<String, usize> {
        let raw = self.executor.graph().raw();
        let shape = |name: &str| {
            let weight = raw.weights.iter().find(|weight| weight.name == name);
            weight.map_or(&[][..], |weight| &weight.shape)
        };
        let len = |shape: &[u64]| {
            let matrices: u64 = shape.iter().skip(2).product();
            shape.first().map_or(0, |n| (n * matrices) as usize)
        };
        matrices(raw).into_iter().map(|name| (name.to_owned(), len(shape(name)))).collect()
    }

    /// The model with other items: `each` gets those that are calibrated.
    pub fn calibrate(
        &self,
        items: &[&Item],
        directory: &Path,
        made: &Made<'_>,
        each: &mut Each<'_>,
        progress: &dyn Progress,
    ) -> Result<Arc<Executor>, Error> {
        let fast = Arc::new(self.executor.with_arithmetic(Arithmetic::Fast));
        let (windows, options) = (&self.ids, Default::default());
        let made = calibrate(&fast, items, windows, options, directory, made, each, progress)?;
        Ok(Arc::new(made.with_arithmetic(Arithmetic::Exact)))
    }

    /// What types of each tensor do to predictions of the first windows: for the types of `model` within a size.
    pub fn sensitivity(
        &self,
        model: &Model,
        quantization: &gguf_quantize::Options,
        progress: &dyn Progress,
    ) -> Result<Sensitivity, Error> {
        let windows = self.windows.clone().only(0..MEASURED.min(self.ids.len()));
        let run = RunOptions::default();
        let how = How { types: &[], by: Together::Tensor, exact: false, together: 8, run };
        let subject = Subject { name: "the model".to_owned(), executor: self.executor.clone() };
        of_windows(model, quantization, &subject, &windows, &how, progress)
    }

    /// How far the model is from the original, in what it was fitted to and in what was kept back.
    pub fn judge(
        &self,
        quantized: &Arc<Executor>,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, Error> {
        let (all, fitted) = (self.windows.count(), self.ids.len());
        let kept = (all - fitted).min(JUDGED);
        let Some(by) = By::of(&self.executor) else { return Ok(Vec::new()) };
        if kept == 0 {
            return Ok(vec![format!(
                "the text is too short to keep a part of it back: {all} windows, {KEPT} would do"
            )]);
        }
        progress.begin("judging", 2 * by.tokens(&self.windows, kept));
        let of = |numbers| by.apart(&self.executor, quantized, &self.windows, numbers, progress);
        let (kept_back, read) = (of(fitted..fitted + kept)?, of(0..kept)?);
        let mut notes = vec![format!(
            "{}: {kept_back:.6} in {kept} windows that were kept back, {read:.6} in as many that were read",
            by.name()
        )];
        if kept_back > OVER_FITTED * read {
            notes.push("the weights fit that text more than others: take a longer one".to_owned());
        }
        Ok(notes)
    }
}
