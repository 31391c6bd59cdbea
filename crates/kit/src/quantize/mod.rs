//! A GGUF to smaller ones: several outputs of one pass, parts for several machines, resumed work.

mod importance;
mod outputs;

use std::path::{Path, PathBuf};

use gguf_pipeline::{Interruption, Job, write_all};
use gguf_quantize::recipe::{Target, write_type_file};
use gguf_quantize::{budget, estimate};
use gguf_remote::Location;
use gguf_store::edit::reserve;
use gguf_store::{AtomicFile, Overwrite, Progress};
pub use importance::Choice;
pub(crate) use outputs::within;
pub use outputs::{Goal, Named, Part, Split};

use crate::{Error, Opened};

/// What is asked for.
#[derive(Clone, Default)]
pub struct Options {
    /// What to make, and the name of each file.
    pub outputs: Vec<Named>,
    /// Which tensor gets which type.
    pub quantization: gguf_quantize::Options,
    /// How the tensors are divided among files.
    pub split: Split,
    /// Bytes of room for later edits of the header.
    pub reserve: u64,
    /// A file for the types of all matrices.
    pub save_recipe: Option<PathBuf>,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    pub resume: bool,
}

/// Where an output goes that nobody has named: beside the model that `source` names, and beside its directory
/// if it is one; of a far model, to the current directory.
///
/// # Errors
/// If `source` names no place.
pub fn default_path(opened: &Opened, source: &str, target: Target) -> Result<PathBuf, Error> {
    let name = crate::name::of_output(opened.model(), target);
    Ok(match Location::parse(source)? {
        Location::Path(path) => path.with_file_name(name),
        _ => name.into(),
    })
}

/// Nobody can tell whether a far source is the one of an earlier run.
pub(crate) fn resume_unsure(source: &str) -> Error {
    Error::request(
        "resume-unsure",
        format!(
            "--resume: the server of {source} gives neither ETag nor date by which anybody could tell \
             whether it is the same file the next time"
        ),
        "leave --resume out, or download the file",
    )
}

/// Outputs that are ready to be written.
pub struct Plan {
    files: Vec<(Job, PathBuf)>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The types of all matrices, as a file for `recipe`; no recipe touches vectors.
    recipe: String,
    save_recipe: Option<PathBuf>,
    resume: bool,
    /// What the inputs are, if anybody can tell.
    input: Option<String>,
}

impl Plan {
    /// Plans every output of the model that `source` names.
    ///
    /// # Errors
    /// If the options do not go together, or with the model; if a tensor cannot have its type; if a
    /// file cannot be read; if `progress` ended a measurement.
    pub fn new(
        opened: &Opened,
        source: &str,
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let model = opened.model();
        let input = model.identity();
        if options.resume && input.is_none() {
            return Err(resume_unsure(source));
        }
        if options.save_recipe.is_some() && options.outputs.len() > 1 {
            return Err(Error::request(
                "option-contradicts",
                "--save-recipe goes with one output",
                "",
            ));
        }
        // Which blocks are left out shows neither in the input nor always in the header.
        let pruned = &options.quantization.prune_layers;
        let mut plan = Self {
            files: Vec::new(),
            notes: Vec::new(),
            recipe: String::new(),
            save_recipe: options.save_recipe.clone(),
            resume: options.resume,
            input: input.map(|input| format!("{input}{:?}", pruned.iter().collect::<Vec<_>>())),
        };
        for named in &options.outputs {
            let quantization = &options.quantization;
            let mut planned = match named.goal {
                Goal::Target(target) => gguf_quantize::plan(model, target, quantization)?,
                Goal::Budget(budget) => budget::plan(model, budget, quantization, progress)?,
            };
            if options.reserve > 0 {
                reserve(&mut planned.job.metadata, options.reserve);
            }
            plan.notes.append(&mut planned.notes);
            let job = planned.job;
            let matrices = job.items.iter().filter(|item| item.tensor.shape.len() > 1);
            plan.recipe = write_type_file(matrices.map(|i| (i.tensor.name.as_str(), i.target)));
            plan.files.extend(options.split.files(job, &named.path, model)?);
        }
        Ok(plan)
    }

    /// What goes to which file.
    pub fn files(&self) -> impl Iterator<Item = (&Job, &Path)> {
        self.files.iter().map(|(job, path)| (job, path.as_path()))
    }

    /// Bytes of tensor data of all outputs.
    ///
    /// # Errors
    /// If a header breaks a rule of the format.
    pub fn data_len(&self) -> Result<u64, Error> {
        self.files.iter().map(|(job, _)| Ok(job.header()?.data_len())).sum()
    }

    /// About how long encoding takes on the threads of the current rayon pool.
    pub fn seconds(&self) -> f64 {
        estimate::seconds(self.files.iter().map(|(job, _)| job))
    }

    /// Writes the recipe only.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_recipe(&self, overwrite: &Overwrite) -> Result<(), Error> {
        self.recipe_file(overwrite)?.map_or(Ok(()), AtomicFile::commit)
    }

    /// Writes all outputs in one pass over the model. `anew` is called if an earlier run left other
    /// work, which is thrown away.
    ///
    /// # Errors
    /// As [`write_all`].
    pub fn write(
        &self,
        overwrite: &Overwrite,
        anew: &(dyn Fn() + Sync),
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let recipe = self.recipe_file(overwrite)?;
        let interruption = match &self.input {
            Some(input) => Interruption::Journal { input, resume: self.resume, anew },
            None => Interruption::StartAnew,
        };
        let jobs: Vec<_> = self.files().collect();
        write_all(&jobs, interruption, overwrite, progress)?;
        recipe.map_or(Ok(()), AtomicFile::commit)
    }

    /// The file for the recipe, which waits for its name.
    fn recipe_file(&self, overwrite: &Overwrite) -> Result<Option<AtomicFile>, Error> {
        let Some(path) = &self.save_recipe else { return Ok(None) };
        let output = AtomicFile::create(path, overwrite)?;
        if self.files.iter().any(|(_, model)| output.is_for(model)) {
            let what = format!("{} is named twice", path.display());
            return Err(Error::request("output-twice", what, "name each output once"));
        }
        output.write_at(self.recipe.as_bytes(), 0)?;
        Ok(Some(output))
    }
}

impl Options {
    /// Refuses what must not be written, as far as names are known before the plan, which may take
    /// long.
    ///
    /// # Errors
    /// As [`Overwrite::check`].
    pub fn check_outputs(&self, overwrite: &Overwrite) -> Result<(), Error> {
        let whole = matches!(self.split, Split::None);
        let outputs = self.outputs.iter().map(|named| &named.path).filter(|_| whole);
        outputs.chain(&self.save_recipe).try_for_each(|path| overwrite.check(path))
    }
}
