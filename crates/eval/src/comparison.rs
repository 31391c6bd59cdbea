//! Models read a text side by side with the one that they were made of.

use std::ops::Range;
use std::sync::Arc;

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Executor, Value};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{Predictor, pieces};
use crate::scores::Scores;
use crate::{
    Candidate, Divergence, EachWindow, LogitsFile, LogitsWriter, Miss, RunOptions, Windows,
};

/// A model that is judged.
#[derive(Clone)]
pub struct Subject {
    /// The file, for messages.
    pub name: String,
    /// The model.
    pub executor: Arc<Executor>,
}

/// What models are compared with.
#[derive(Clone, Copy)]
pub enum Reference<'r> {
    /// A model, which reads the text too.
    Model(&'r Subject),
    /// What a model predicted before, of the same windows.
    Logits(&'r LogitsFile),
}

/// Models, what they are compared with, and what they read.
#[derive(Clone, Copy)]
pub struct Comparison<'c> {
    /// What they are compared with.
    pub reference: Reference<'c>,
    /// The models.
    pub models: &'c [Subject],
    /// The text; that of a file of logits, if there is one.
    pub windows: &'c Windows,
    /// How they are run.
    pub options: RunOptions,
    /// How many of the worst predictions are kept.
    pub worst: usize,
    /// Where the logits of the reference go.
    pub save: Option<&'c LogitsWriter>,
}

/// How far models are from the one that they were made of, in all windows together.
///
/// # Errors
/// As [`Comparison::run`].
pub fn divergence(
    reference: &Subject,
    models: &[Subject],
    windows: &Windows,
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<Divergence>, Error> {
    let reference = Reference::Model(reference);
    let mut found = vec![Divergence::default(); models.len()];
    let mut each = |window: Vec<Divergence>| {
        found.iter_mut().zip(&window).for_each(|(found, window)| found.append(window));
        Ok(())
    };
    Comparison { reference, models, windows, options, worst: 0, save: None }
        .run(&mut each, progress)?;
    Ok(found)
}

/// Tokens that are told before one of the worst predictions.
const BEFORE: usize = 12;

impl Comparison<'_> {
    /// Reads all windows, window by window: no more memory for a longer text. `each` gets of each model
    /// what was found in a window.
    ///
    /// # Errors
    /// `vocabulary-differs` if a model has another number of tokens than the reference; else as
    /// [`crate::perplexity`].
    pub fn run(
        &self,
        each: &mut EachWindow<'_, Vec<Divergence>>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.check_widths()?;
        let Self { models, windows, options, worst, save, .. } = *self;
        let mut original = Original::new(self)?;
        let new = |model: &Subject| Reader::new(model, windows, options);
        let mut readers = models.iter().map(new).collect::<Result<Vec<_>, _>>()?;
        let pieces = pieces(windows, &self.executors(), options);
        for window in windows.numbers() {
            let ids = windows.inputs(window);
            let position = windows.places().start + 1;
            let mut found = vec![Divergence::of_a_window(position, worst); models.len()];
            for piece in &pieces {
                let at = At { windows, window, ids: &ids, piece: piece.clone() };
                let wanted = original.read(&at, progress)?;
                let rows = (0..wanted.rows).into_par_iter();
                let scores: Vec<_> = rows.map(|row| original.scores(wanted.row(row))).collect();
                if let Some(row) = scores.iter().position(Option::is_none) {
                    return Err(original.not_a_number(&at, row, progress));
                }
                if let Some(save) = save {
                    save.write(window, at.first(), &wanted)?;
                }
                for (reader, found) in readers.iter_mut().zip(&mut found) {
                    let logits = reader.read(&at, progress)?;
                    let compared = |row: usize| {
                        let of_model = Scores::new(logits.row(row))?;
                        Some(miss(scores[row].as_ref()?, &of_model, &at, row))
                    };
                    let misses: Vec<_> = (0..logits.rows).into_par_iter().map(compared).collect();
                    for (row, miss) in misses.into_iter().enumerate() {
                        match miss {
                            Some(miss) => found.add(miss),
                            None => return Err(reader.not_a_number(&at, row, progress)),
                        }
                    }
                }
            }
            for found in &mut found {
                found.worst.with_tokens(|miss| windows.before(window, miss.position, BEFORE));
            }
            each(found)?;
        }
        Ok(())
    }

    fn check_widths(&self) -> Result<(), Error> {
        let len = |subject: &Subject| subject.executor.width(OutputKind::Logits);
        let wanted = match self.reference {
            Reference::Model(subject) => len(subject),
            Reference::Logits(file) => Some(file.vocabulary_len()),
        };
        let Some(model) = self.models.iter().find(|model| len(model) != wanted) else {
            return Ok(());
        };
        let said = |len: Option<usize>| len.map_or("none".to_owned(), |len| len.to_string());
        let (of_model, of_reference) = (said(len(model)), said(wanted));
        let what =
            format!("{} predicts {of_model} tokens, the reference {of_reference}", model.name);
        Err(Error::request("vocabulary-differs", what, "compare models of one vocabulary"))
    }

    /// All that logits are kept of at a time: what is read from a file takes as much room as what a model
    /// computes.
    fn executors(&self) -> Vec<Arc<Executor>> {
        let of_reference = match self.reference {
            Reference::Model(subject) => Some(subject),
            Reference::Logits(_) => self.models.first(),
        };
        self.models.iter().chain(of_reference).map(|subject| subject.executor.clone()).collect()
    }
}

/// A piece of a window.
struct At<'w> {
    windows: &'w Windows,
    window: usize,
    ids: &'w [u32],
    piece: Range<usize>,
}

impl At<'_> {
    /// The first place of the piece whose prediction counts.
    fn first(&self) -> usize {
        self.piece.start.max(self.windows.places().start)
    }
}

/// A model that reads.
struct Reader {
    name: String,
    predictor: Predictor,
}

impl Reader {
    fn new(model: &Subject, windows: &Windows, options: RunOptions) -> Result<Self, Error> {
        let predictor = Predictor::new(&model.executor, windows, options)?;
        Ok(Self { name: model.name.clone(), predictor })
    }

    fn read(&mut self, at: &At<'_>, progress: &dyn Progress) -> Result<Value, Error> {
        let places = at.windows.places();
        let logits = self.predictor.read(at.ids, at.piece.clone(), places, progress)?;
        progress.step(at.piece.len() as u64)?;
        Ok(logits)
    }

    fn not_a_number(&mut self, at: &At<'_>, row: usize, progress: &dyn Progress) -> Error {
        let place = at.first() + row;
        let error = self.predictor.not_a_number(at.windows, at.window, place, progress);
        error.in_file(self.name.as_ref())
    }
}

/// The reference, which reads or has been read.
enum Original<'r> {
    Model(Reader),
    Logits(&'r LogitsFile),
}

impl<'r> Original<'r> {
    fn new(comparison: &Comparison<'r>) -> Result<Self, Error> {
        Ok(match comparison.reference {
            Reference::Model(subject) => {
                Self::Model(Reader::new(subject, comparison.windows, comparison.options)?)
            }
            Reference::Logits(file) => Self::Logits(file),
        })
    }

    fn read(&mut self, at: &At<'_>, progress: &dyn Progress) -> Result<Value, Error> {
        match self {
            Self::Model(reader) => reader.read(at, progress),
            Self::Logits(file) => file.read(at.window, at.first()..at.piece.end.max(at.first())),
        }
    }

    fn scores<'v>(&self, row: &'v [f32]) -> Option<Scores<'v>> {
        match self {
            Self::Model(_) => Scores::new(row),
            Self::Logits(_) => Scores::of_logarithms(row),
        }
    }

    fn not_a_number(&mut self, at: &At<'_>, row: usize, progress: &dyn Progress) -> Error {
        match self {
            Self::Model(reader) => reader.not_a_number(at, row, progress),
            Self::Logits(file) => file.not_a_number(at.window, at.first() + row),
        }
    }
}

fn miss(reference: &Scores<'_>, model: &Scores<'_>, at: &At<'_>, row: usize) -> Miss {
    let place = at.first() + row;
    let candidate = |id: usize| Candidate {
        id: id as u32,
        reference: reference.log_probability(id),
        model: model.log_probability(id),
    };
    Miss {
        window: at.window,
        position: place + 1,
        divergence: reference.divergence(model),
        came: candidate(at.windows.target(at.window, place) as usize),
        by_reference: candidate(reference.top()),
        by_model: candidate(model.top()),
        before: Vec::new(),
    }
}
