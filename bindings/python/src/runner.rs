//! `Runner`: inference.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use gguf_kit::draft::Draft;
use gguf_kit::embed::{EmbedOutput, embed, labels, normalize, probabilities};
use gguf_kit::generate::{GenerateOptions, StopReason, TextModel, generate};
use gguf_kit::logits::{EncoderInput, logits};
use gguf_kit::run::{ExecutorOptions, LoadedModel, load};
use gguf_runtime::speculation::{self, PromptLookup, Speculation};
use gguf_runtime::{CacheType, Context, ContextOptions, Precision, SamplingOptions, Value};
use gguf_tokenizer::{EncodeOptions, Tokenizer};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::error::request;
use crate::model::Source;
use crate::task::{TaskOptions, quick, run};

/// A model loaded for inference.
#[pyclass(frozen, module = "gguf_kit._native")]
pub struct Runner {
    running: Arc<LoadedModel>,
    tokenizer: Option<Arc<Tokenizer>>,
    draft: Option<Draft>,
    cache: CacheType,
    threads: Option<NonZeroUsize>,
}

/// Parses the type of the KV cache.
pub fn cache(name: &str) -> PyResult<CacheType> {
    CacheType::from_name(name).ok_or_else(|| {
        let names = CacheType::ALL.map(CacheType::name).join(", ");
        request("request-invalid", format!("unknown cache type `{name}`; expected one of {names}"))
    })
}

/// Returns the precision of matrix multiplications.
pub fn precision(exact: bool) -> Precision {
    if exact { Precision::Exact } else { Precision::Fast }
}

fn matrix(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyArray2<f32>>> {
    value.data.into_pyarray(py).reshape([value.rows, value.width])
}

impl Runner {
    fn task_options(&self) -> TaskOptions {
        TaskOptions { progress: None, threads: self.threads }
    }

    fn tokenizer(&self) -> PyResult<&Tokenizer> {
        let missing =
            || request("tokenizer-missing", "the model has no vocabulary; pass token ids");
        self.tokenizer.as_deref().ok_or_else(missing)
    }

    fn ids(&self, text: Text) -> PyResult<Vec<u32>> {
        match text {
            Text::Text(text) => Ok(self.tokenizer()?.encode(&text, EncodeOptions::default())),
            Text::Ids(ids) => Ok(ids),
        }
    }
}

/// A text or its token ids.
#[derive(FromPyObject)]
enum Text {
    Text(String),
    Ids(Vec<u32>),
}

#[pymethods]
impl Runner {
    #[new]
    #[pyo3(signature = (source, *, exact = false, adapters = Vec::new(), draft = None, cache_type = None, threads = None))]
    fn new(
        py: Python<'_>,
        source: Source,
        exact: bool,
        adapters: Vec<(String, f32)>,
        draft: Option<Source>,
        cache_type: Option<&str>,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Self> {
        let (location, cache) =
            (source.location()?, cache(cache_type.unwrap_or(if exact { "f32" } else { "f16" }))?);
        let options =
            ExecutorOptions { precision: precision(exact), adapters, ..ExecutorOptions::default() };
        let task = TaskOptions { progress: None, threads };
        let running = run(py, &task, |_| load(&location, &options))?;
        let draft = draft.map(|draft| draft.location()).transpose()?;
        let tokenizer = Tokenizer::from_metadata(&running.metadata, Default::default());
        let (tokenizer, draft) = match draft {
            // MTP layers that cannot be used do not concern the text.
            None => {
                (tokenizer.ok(), Draft::mtp(&ExecutorOptions::default(), &running).ok().flatten())
            }
            Some(draft) => run(py, &task, |_| {
                let (tokenizer, options) = (tokenizer?, ExecutorOptions::default());
                let draft = Draft::load(&draft, &options, &running, &tokenizer)?;
                Ok((Some(tokenizer), Some(draft)))
            })?,
        };
        let tokenizer = tokenizer.map(Arc::new);
        Ok(Self { running: Arc::new(running), tokenizer, draft, cache, threads })
    }

    /// Returns one row of logits per token.
    #[pyo3(signature = (text, *, features = None, encoder_ids = None))]
    fn logits<'py>(
        &self,
        py: Python<'py>,
        text: Text,
        features: Option<PyReadonlyArray2<'py, f32>>,
        encoder_ids: Option<Vec<u32>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let ids = self.ids(text)?;
        let features = match &features {
            Some(array) => {
                let (rows, width) = (array.shape()[0], array.shape()[1]);
                let data = array.as_array().iter().copied().collect();
                Some(Value { rows, width, data })
            }
            None => None,
        };
        let result = run(py, &self.task_options(), |progress| {
            let for_encoder = match (&features, &encoder_ids) {
                (Some(features), _) => EncoderInput::Features(features),
                (None, Some(ids)) => EncoderInput::Ids(ids),
                (None, None) => EncoderInput::None,
            };
            logits(&self.running, &ids, for_encoder, self.cache, progress)
        })?;
        matrix(py, result)
    }

    /// Generates text; returns the text, its token ids and the stop reason.
    #[pyo3(signature = (prompt, *, tokens = None, temperature = 0.8, top_k = 40, top_p = 0.95, min_p = 0.05,
        repeat_penalty = 1.0, seed = 0, stop = Vec::new(), ignore_end = false, context = 4096, on_text = None))]
    #[allow(clippy::too_many_arguments, reason = "Python passes them by keyword")]
    fn generate(
        &self,
        py: Python<'_>,
        prompt: Text,
        tokens: Option<usize>,
        temperature: f32,
        top_k: usize,
        top_p: f32,
        min_p: f32,
        repeat_penalty: f32,
        seed: u64,
        stop: Vec<String>,
        ignore_end: bool,
        context: usize,
        on_text: Option<Py<PyAny>>,
    ) -> PyResult<(String, Vec<u32>, &'static str)> {
        let tokenizer = self.tokenizer()?;
        let ids = self.ids(prompt)?;
        let sampling = SamplingOptions {
            temperature,
            top_k,
            top_p,
            min_p,
            repeat_penalty,
            seed,
            ..SamplingOptions::default()
        };
        let generation = GenerateOptions {
            sampling,
            max_tokens: tokens,
            stop,
            ignore_eos: ignore_end,
            completes: true,
        };
        let options =
            ContextOptions { tokens: context, cache_type: self.cache, ..ContextOptions::default() };
        let mut raised = None;
        let result = run(py, &self.task_options(), |progress| {
            let executor = self.draft.as_ref().map_or(&self.running.executor, Draft::target);
            let mut context = Context::new(executor.clone(), options)?;
            let mut read = |text: &str| {
                let Some(callback) = &on_text else { return ControlFlow::Continue(()) };
                // Acquire the GIL only for the callback.
                let answer = Python::attach(|py| {
                    let answer = callback.call1(py, (text,))?;
                    Ok(answer.bind(py).is(&*pyo3::types::PyBool::new(py, false)))
                });
                match answer {
                    Ok(false) => ControlFlow::Continue(()),
                    Ok(true) => ControlFlow::Break(()),
                    Err(error) => {
                        raised = Some(error);
                        ControlFlow::Break(())
                    }
                }
            };
            let mut speculation =
                Speculation::new(speculation::MAX_DRAFT).with(Box::new(PromptLookup::default()));
            if let Some(draft) = &self.draft {
                speculation = speculation.with(draft.source(options)?);
            }
            let model = TextModel {
                context: &mut context,
                tokenizer,
                metadata: &self.running.metadata,
                speculation: Some(&mut speculation),
            };
            generate(model, &ids, &generation, &mut read, progress)
        });
        if let Some(raised) = raised {
            return Err(raised);
        }
        let answer = result?;
        let ended = match answer.stop_reason {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::Cancelled => "reader",
        };
        Ok((answer.text, answer.ids, ended))
    }

    /// Returns one embedding per text, or one per token.
    #[pyo3(signature = (texts, *, tokens = false, normalized = true))]
    fn embed<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Text>,
        tokens: bool,
        normalized: bool,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f32>>>> {
        let ids: Vec<_> = texts.into_iter().map(|text| self.ids(text)).collect::<PyResult<_>>()?;
        let wanted = if tokens { EmbedOutput::Tokens } else { EmbedOutput::Pooled };
        let result = run(py, &self.task_options(), |progress| {
            let mut result = embed(&self.running, &ids, wanted, self.cache, progress)?;
            if normalized {
                result.iter_mut().for_each(normalize);
            }
            Ok(result)
        })?;
        result.into_iter().map(|value| matrix(py, value)).collect()
    }

    /// Returns the class probabilities of each text.
    fn classify(&self, py: Python<'_>, texts: Vec<Text>) -> PyResult<Vec<Vec<(String, f32)>>> {
        let ids: Vec<_> = texts.into_iter().map(|text| self.ids(text)).collect::<PyResult<_>>()?;
        let result = run(py, &self.task_options(), |progress| {
            embed(&self.running, &ids, EmbedOutput::Classes, self.cache, progress)
        })?;
        let names = labels(&self.running);
        let named = |value: &Value| {
            let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| at.to_string());
            let all = probabilities(&value.data).into_iter().enumerate();
            all.map(|(at, probability)| (name(at), probability)).collect()
        };
        Ok(result.iter().map(named).collect())
    }

    /// Returns the width of the logits; `None` if the model has no logits.
    #[getter]
    fn vocabulary_len(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        quick(py, || Ok(self.running.executor.vocabulary_len()))
    }
}
