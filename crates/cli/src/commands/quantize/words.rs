//! What `gguf quantize` is to write, and where.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::Opened;
use gguf_kit::quantize::{Goal, QuantizeOutput, default_path};
use gguf_quantize::budget::Budget;
use gguf_quantize::recipe::{Target, UnknownTarget};

use crate::failure::Failure;

/// An output, and where it goes: to a file, to a directory under a name of ours, or beside the input under
/// that name.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub goal: Goal,
    path: Option<PathBuf>,
}

impl Wanted {
    /// The output under its name, which for those without one is made of the name of the input.
    pub fn named(&self, opened: &Opened, input: &str) -> Result<QuantizeOutput, Failure> {
        let goal = self.goal;
        let path = match (&self.path, goal) {
            (Some(path), Goal::Target(target)) if path.is_dir() => {
                let name = default_path(opened, input, target)?;
                path.join(name.file_name().unwrap_or_default())
            }
            (Some(path), _) => path.clone(),
            (None, Goal::Target(target)) => default_path(opened, input, target)?,
            // A budget is of one output, which has a name.
            (None, Goal::Budget(_)) => return Err(Failure::Usage("name OUT".into())),
        };
        Ok(QuantizeOutput { goal, path })
    }
}

pub fn parse_out(text: &str) -> Result<Wanted, String> {
    let (target, path) = text.split_once('=').ok_or("expected TYPE=PATH")?;
    let target = target.parse().map_err(|fault: UnknownTarget| fault.to_string())?;
    Ok(Wanted { goal: Goal::Target(target), path: Some(path.into()) })
}

/// The positional words, told apart.
pub struct Words {
    pub input: String,
    pub outputs: Vec<Wanted>,
    /// One per core if there is none.
    pub threads: Option<NonZeroUsize>,
}

impl Words {
    /// `IN TYPE`, `IN TYPE THREADS`, `IN OUT TYPE` or `IN OUT TYPE THREADS`: as with
    /// llama.cpp's tool, there is no output name if the second word is a type. With outputs by name, `IN` or
    /// `IN THREADS`.
    ///
    /// With a budget there is no type: `IN OUT` or `IN OUT THREADS`.
    pub fn parse(
        words: &[String],
        named: &[Wanted],
        budget: Option<Budget>,
    ) -> Result<Self, Failure> {
        let [input, rest @ ..] = words else {
            return Err(Failure::Usage("name an input file and a type".into()));
        };
        let input = input.clone();
        let within = |budget, path: &String| {
            vec![Wanted { goal: Goal::Budget(budget), path: Some(path.into()) }]
        };
        let (outputs, threads) = match rest {
            [output] if let Some(budget) = budget => (within(budget, output), None),
            [output, threads] if let Some(budget) = budget => {
                (within(budget, output), Some(threads))
            }
            _ if budget.is_some() => {
                return Err(Failure::Usage("with a size target expected IN OUT [THREADS]".into()));
            }
            [] if !named.is_empty() => (named.to_vec(), None),
            [threads] if !named.is_empty() => (named.to_vec(), Some(threads)),
            _ if !named.is_empty() => {
                return Err(Failure::Usage("with --out expected IN [THREADS]".into()));
            }
            [] => return Err(type_missing()),
            [types] => (of_types(None, types)?, None),
            [types, threads] if parse_types(types).is_ok() => {
                (of_types(None, types)?, Some(threads))
            }
            // A number can be a type, and the number of threads.
            [slip, number] if number.parse::<u32>().is_ok() && is_slip(slip) => {
                return Err(unknown_types(slip, number));
            }
            [output, types] => (of_types(Some(output), types)?, None),
            [output, types, threads] => (of_types(Some(output), types)?, Some(threads)),
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
        Failure::Usage(format!("`{text}` is no number of threads{order}"))
    })
}

fn type_missing() -> Failure {
    let what = "TYPE is missing: expected IN [OUT] TYPE [THREADS], such as \
                `gguf quantize IN Q4_K_M`; `gguf help mixes` lists the types";
    Failure::Usage(what.into())
}

/// Whether a word can only be the name of a file.
fn is_file(word: &str) -> bool {
    word.contains(['/', '\\']) || word.ends_with(".gguf") || Path::new(word).exists()
}

/// Whether a word is spelt much like types, and is no name of a file.
fn is_slip(word: &str) -> bool {
    let is_near = |word: &str| match word.parse::<Target>() {
        Ok(_) => true,
        Err(unknown) => !unknown.nearest().is_empty(),
    };
    !is_file(word) && word.split(',').all(is_near)
}

/// What is wrong with a word before a number that should have been types.
fn unknown_types(slip: &str, number: &str) -> Failure {
    let what = parse_types(slip).err().and_then(|fault| Some(fault.message()?.into_owned()));
    Failure::Usage(format!(
        "{} If `{slip}` is the name of the output, write `./{slip}` before `{number}`",
        what.unwrap_or_default()
    ))
}

fn parse_types(text: &str) -> Result<Vec<Target>, Failure> {
    let target =
        |word: &str| word.parse().map_err(|fault: UnknownTarget| Failure::Usage(fault.to_string()));
    text.split(',').map(target).collect()
}

/// One output per type: `output` itself if there is one type, and files with names of ours in the
/// directory `output`, or beside the input, otherwise.
fn of_types(output: Option<&String>, types: &str) -> Result<Vec<Wanted>, Failure> {
    let targets = match parse_types(types) {
        Err(_) if is_file(types) => return Err(type_missing()),
        targets => targets?,
    };
    if let Some(output) = output.filter(|output| targets.len() > 1 && !Path::new(output).is_dir()) {
        return Err(Failure::Usage(format!(
            "`{output}` is no directory: several types need one, or a name each with --out TYPE=PATH"
        )));
    }
    let wanted = |target| Wanted { goal: Goal::Target(target), path: output.map(PathBuf::from) };
    Ok(targets.into_iter().map(wanted).collect())
}
