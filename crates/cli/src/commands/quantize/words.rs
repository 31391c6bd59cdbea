//! What `gguf quantize` is to write, and where.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::quantize::{Goal, Named};
use gguf_quantize::budget::Budget;
use gguf_quantize::recipe::{Target, UnknownTarget};

use crate::failure::Failure;

pub fn parse_out(text: &str) -> Result<Named, String> {
    let (target, path) = text.split_once('=').ok_or("expected TYPE=PATH")?;
    let target = target.parse().map_err(|fault: UnknownTarget| fault.to_string())?;
    Ok(Named { goal: Goal::Target(target), path: path.into() })
}

/// The positional words, told apart.
pub struct Words {
    pub input: String,
    pub outputs: Vec<Named>,
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
        named: &[Named],
        budget: Option<Budget>,
    ) -> Result<Self, Failure> {
        let [input, rest @ ..] = words else {
            return Err(Failure::Usage("name an input file and a type".into()));
        };
        let input = input.clone();
        let within =
            |budget, path: &String| vec![Named { goal: Goal::Budget(budget), path: path.into() }];
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
            [types] => (of_types(&input, None, types)?, None),
            [types, threads] if parse_types(types).is_ok() => {
                (of_types(&input, None, types)?, Some(threads))
            }
            [output, types] => (of_types(&input, Some(output), types)?, None),
            [output, types, threads] => (of_types(&input, Some(output), types)?, Some(threads)),
            _ => return Err(Failure::Usage("expected IN [OUT] TYPE [THREADS]".into())),
        };
        let threads = match threads {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| Failure::Usage(format!("`{text}` is no number of threads")))?,
            ),
            None => None,
        };
        Ok(Self { input, outputs, threads })
    }
}

fn parse_types(text: &str) -> Result<Vec<Target>, Failure> {
    let target =
        |word: &str| word.parse().map_err(|fault: UnknownTarget| Failure::Usage(fault.to_string()));
    text.split(',').map(target).collect()
}

/// One output per type: `output` itself if there is one type, and files named by type in the
/// directory `output`, or beside the input, otherwise.
fn of_types(input: &str, output: Option<&String>, types: &str) -> Result<Vec<Named>, Failure> {
    let targets = parse_types(types)?;
    let named = |target: &Target| format!("ggml-model-{target}.gguf");
    let path = |target: &Target| match output {
        None => Ok(Path::new(input).with_file_name(named(target))),
        Some(output) if Path::new(output).is_dir() => Ok(Path::new(output).join(named(target))),
        Some(output) if targets.len() == 1 => Ok(PathBuf::from(output)),
        Some(output) => Err(Failure::Usage(format!(
            "`{output}` is no directory: several types need one, or a name each with --out TYPE=PATH"
        ))),
    };
    targets
        .iter()
        .map(|target| Ok(Named { goal: Goal::Target(*target), path: path(target)? }))
        .collect()
}
