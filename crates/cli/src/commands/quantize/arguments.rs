//! Positional arguments of `gguf quantize`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::Opened;
use gguf_kit::quantize::{Goal, QuantizeOutput, default_path};
use gguf_quantize::budget::Budget;
use gguf_quantize::recipe::{Target, UnknownTarget};

use crate::commands::hub_outputs::HubOutputs;
use crate::failure::Failure;

/// Requested output: at a path, in a directory under a default name, or beside the input under a default name.
#[derive(Clone, Debug)]
pub struct RequestedOutput {
    pub goal: Goal,
    path: Option<PathBuf>,
}

impl RequestedOutput {
    /// Returns the output at its local path, if it is for the Hub.
    pub fn locally(&self, hub: &mut HubOutputs) -> Result<Self, Failure> {
        let path = self.path.as_deref().map(|path| hub.local_path(path)).transpose()?;
        Ok(Self { path, ..self.clone() })
    }

    /// Returns the output with its path; the default name derives from the input.
    pub fn named(&self, opened: &Opened, input: &str) -> Result<QuantizeOutput, Failure> {
        let goal = self.goal;
        let path = match (&self.path, goal) {
            (Some(path), Goal::Target(target)) if path.is_dir() => {
                let name = default_path(opened, input, target)?;
                path.join(name.file_name().unwrap_or_default())
            }
            (Some(path), _) => path.clone(),
            (None, Goal::Target(target)) => default_path(opened, input, target)?,
            // A size target has exactly one output, with a path.
            (None, Goal::Budget(_)) => {
                return Err(Failure::Usage(
                    "OUT is missing: expected IN OUT with a size target".into(),
                ));
            }
        };
        Ok(QuantizeOutput { goal, path })
    }
}

pub fn parse_out(text: &str) -> Result<RequestedOutput, String> {
    let (target, path) = text.split_once('=').ok_or("expected TYPE=PATH")?;
    let target = target.parse().map_err(|fault: UnknownTarget| fault.to_string())?;
    Ok(RequestedOutput { goal: Goal::Target(target), path: Some(path.into()) })
}

/// Positional arguments by meaning.
pub struct Positionals {
    pub input: String,
    pub outputs: Vec<RequestedOutput>,
    /// Number of threads; one per core if `None`.
    pub threads: Option<NonZeroUsize>,
}

impl Positionals {
    /// Parses `IN TYPE`, `IN TYPE THREADS`, `IN OUT TYPE` or `IN OUT TYPE THREADS`. As in `llama-quantize`,
    /// there is no output name if the second word is a type. With `--out`: `IN` or `IN THREADS`. With a size
    /// target: `IN OUT` or `IN OUT THREADS`.
    pub fn parse(
        words: &[String],
        named: &[RequestedOutput],
        budget: Option<Budget>,
    ) -> Result<Self, Failure> {
        let [input, rest @ ..] = words else {
            return Err(Failure::Usage("expected an input file and a type".into()));
        };
        let input = input.clone();
        let within = |budget, path: &String| {
            vec![RequestedOutput { goal: Goal::Budget(budget), path: Some(path.into()) }]
        };
        let (outputs, threads) = match rest {
            [output] if let Some(budget) = budget => (within(budget, output), None),
            [_, word]
                if budget.is_some()
                    && word.parse::<u32>().is_err()
                    && parse_types(word).is_ok() =>
            {
                return Err(Failure::Usage(format!(
                    "`{word}` is a type, and a size target chooses the types: give one of them"
                )));
            }
            [output, threads] if let Some(budget) = budget => {
                (within(budget, output), Some(threads))
            }
            _ if budget.is_some() => {
                return Err(Failure::Usage("expected IN OUT [THREADS] with a size target".into()));
            }
            [] if !named.is_empty() => (named.to_vec(), None),
            [threads] if !named.is_empty() => (named.to_vec(), Some(threads)),
            _ if !named.is_empty() => {
                return Err(Failure::Usage("expected IN [THREADS] with --out".into()));
            }
            [] => return Err(type_missing()),
            [types] => (outputs_of_types(None, types)?, None),
            [first, second] if is_type(first) && is_type(second) => {
                return Err(Failure::Usage(format!(
                    "several types are one argument, separated by commas: `{first},{second}`"
                )));
            }
            [types, threads] if parse_types(types).is_ok() => {
                (outputs_of_types(None, types)?, Some(threads))
            }
            // A number can be a type or the number of threads.
            [word, number] if number.parse::<u32>().is_ok() && is_misspelled_type(word) => {
                return Err(unknown_types(word, number));
            }
            [output, types] => (outputs_of_types(Some(output), types)?, None),
            [output, types, threads] => (outputs_of_types(Some(output), types)?, Some(threads)),
            _ => return Err(Failure::Usage("expected IN [OUT] TYPE [THREADS]".into())),
        };
        let threads = threads.map(|text| parse_threads(text)).transpose()?;
        Ok(Self { input, outputs, threads })
    }
}

fn parse_threads(text: &str) -> Result<NonZeroUsize, Failure> {
    text.parse().map_err(|_| {
        let order = match is_file(text) {
            true => ": the output comes before TYPE, expected IN [OUT] TYPE [THREADS]",
            false => "",
        };
        Failure::Usage(format!("`{text}` is not a number of threads{order}"))
    })
}

fn type_missing() -> Failure {
    let what = "TYPE is missing: expected IN [OUT] TYPE [THREADS], such as \
                `gguf quantize IN Q4_K_M`; `gguf help quantization` lists the types";
    Failure::Usage(what.into())
}

/// Whether a word can only be a file name.
fn is_file(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".gguf") || Path::new(word).exists()
}

/// Whether a word resembles a type and is not a file name.
fn is_misspelled_type(word: &str) -> bool {
    let is_near = |word: &str| match word.parse::<Target>() {
        Ok(_) => true,
        Err(unknown) => !unknown.nearest().is_empty(),
    };
    !is_file(word) && word.split(',').all(is_near)
}

/// Returns the error for an unknown type before a number.
fn unknown_types(word: &str, number: &str) -> Failure {
    let what = parse_types(word).err().and_then(|fault| Some(fault.message()?.into_owned()));
    Failure::Usage(format!(
        "{} If `{word}` is the output file, write `./{word}` before `{number}`",
        what.unwrap_or_default()
    ))
}

/// Whether a word is the name of types, and neither a number nor a file.
fn is_type(word: &str) -> bool {
    word.parse::<u32>().is_err() && !is_file(word) && parse_types(word).is_ok()
}

fn parse_types(text: &str) -> Result<Vec<Target>, Failure> {
    let target =
        |word: &str| word.parse().map_err(|fault: UnknownTarget| Failure::Usage(fault.to_string()));
    text.split(',').map(target).collect()
}

/// Returns one output per type: `output` itself for one type; otherwise files with default names in the
/// directory `output`, or beside the input.
fn outputs_of_types(output: Option<&String>, types: &str) -> Result<Vec<RequestedOutput>, Failure> {
    let targets = match parse_types(types) {
        Err(_) if is_file(types) => return Err(type_missing()),
        targets => targets?,
    };
    if let Some(output) = output.filter(|output| targets.len() > 1 && !Path::new(output).is_dir()) {
        return Err(Failure::Usage(format!(
            "`{output}` is not a directory; several types need a directory, or a path each with --out TYPE=PATH"
        )));
    }
    let requested =
        |target| RequestedOutput { goal: Goal::Target(target), path: output.map(PathBuf::from) };
    Ok(targets.into_iter().map(requested).collect())
}
