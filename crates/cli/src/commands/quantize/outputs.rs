//! What `gguf quantize` is to write, and where.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gguf::{Model, PART_FINGERPRINT};
use gguf_convert::budget::Budget;
use gguf_convert::pipeline::{Job, shard_paths};
use gguf_quant::recipe::{Target, UnknownTarget};

use crate::commands;
use crate::failure::Failure;

/// What to make of a model, and the name of the file.
#[derive(Clone, Debug)]
pub struct Named {
    pub goal: Goal,
    pub path: PathBuf,
}

/// What to make of a model.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// A mix or a type.
    Target(Target),
    /// The best that fits.
    Budget(Budget),
}

pub fn parse_out(text: &str) -> Result<Named, String> {
    let (target, path) = text.split_once('=').ok_or("expected TYPE=PATH")?;
    let target = target.parse().map_err(|fault: UnknownTarget| fault.to_string())?;
    Ok(Named { goal: Goal::Target(target), path: path.into() })
}

/// Which part of how many, from 1.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    number: u16,
    count: u16,
}

impl FromStr for Part {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            Some(Self { number: number.parse().ok()?, count: count.parse().ok()? })
        });
        match parsed {
            Some(part) if (1..=part.count).contains(&part.number) => Ok(part),
            _ => Err("expected I/N with I from 1 to N, such as 2/4"),
        }
    }
}

/// The positional words, told apart.
pub struct Words {
    pub input: String,
    pub outputs: Vec<Named>,
    pub threads: NonZeroUsize,
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
            Some(text) => text
                .parse()
                .map_err(|_| Failure::Usage(format!("`{text}` is no number of threads")))?,
            None => commands::all_cores(),
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

/// The files of one output.
pub struct Files(Vec<(Job, PathBuf)>);

impl Files {
    pub fn single(job: Job, path: &Path) -> Self {
        Self(vec![(job, path.to_owned())])
    }

    /// One of several even parts, with the key by which they know each other.
    pub fn part(job: Job, path: &Path, part: Part, threads: NonZeroUsize) -> Result<Self, Failure> {
        let ranges = job.even_parts(part.count)?;
        let fingerprint = job.fingerprint(threads)?;
        let shard_of = |i| ranges.iter().position(|range| range.contains(&i)).unwrap_or(0) as u16;
        let mut shards = job.in_shards(part.count, shard_of);
        for shard in &mut shards {
            shard.metadata.push(PART_FINGERPRINT, fingerprint.clone());
        }
        let all = shards.into_iter().zip(shard_paths(path, part.count));
        Ok(Self(all.skip(usize::from(part.number) - 1).take(1).collect()))
    }

    /// In the same shards as the model.
    pub fn as_split(job: Job, path: &Path, model: &Model) -> Self {
        let Ok(count @ 2..) = u16::try_from(model.parts().len()) else {
            return Self::single(job, path);
        };
        let shards: Vec<u16> = job
            .items
            .iter()
            .map(|item| {
                let mut tensors = model.tensors().iter();
                let stored = tensors.find(|tensor| item.tensor.is_stored_in(&*tensor.source));
                stored.map_or(0, |tensor| tensor.shard) as u16
            })
            .collect();
        let jobs = job.in_shards(count, |i| shards[i]);
        Self(jobs.into_iter().zip(shard_paths(path, count)).collect())
    }

    pub fn jobs(&self) -> impl Iterator<Item = (&Job, &Path)> {
        self.0.iter().map(|(job, path)| (job, path.as_path()))
    }
}
