//! `gguf quantize`: a GGUF to a smaller one.

pub mod importance;
mod outputs;
pub mod types;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::edit::reserve;
use gguf::{Model, Output, Overwrite};
use gguf_convert::budget::Budget;
use gguf_convert::pipeline::{Interruption, Job, write_all};
use gguf_convert::{budget, estimate, quantize};
use gguf_quant::recipe::{Target, write_type_file};
use serde_json::json;

use crate::commands::given::Given;
use crate::failure::Failure;
use crate::force::Force;
use crate::opened::Opened;
use crate::progress::Progress;
use crate::{commands, listing, target};
use outputs::{Files, Goal, Named, Part, Words};

const EXAMPLES: &str = "Examples:\n  \
     gguf quantize model-f16.gguf model-q4.gguf q4_k_m\n  \
     gguf quantize --tensor-type 'ffn_down=q6_k' model-f16.gguf out.gguf Q4_K_M 8\n  \
     gguf quantize model-f16.gguf --out Q4_K_M=small.gguf --out Q8_0=large.gguf\n  \
     gguf quantize --part 2/4 model-f16.gguf model-q4.gguf Q4_K_M";

/// Quantize a GGUF to a mix or a single type.
#[derive(clap::Args)]
#[command(
    override_usage = "gguf quantize [OPTIONS] <IN> [OUT] <TYPE> [THREADS]\n       \
                      gguf quantize [OPTIONS] <IN> --out <TYPE=PATH>... [THREADS]",
    after_help = EXAMPLES,
    after_long_help = format!("{}\n{EXAMPLES}", target::table())
)]
pub struct Args {
    // First: values are taken away as they are read.
    #[command(flatten)]
    given: Given,
    /// Input file, output file (may be left out: ggml-model-TYPE.gguf beside the input), type or
    /// types with commas between them, and number of threads (may be left out: one per core).
    #[arg(required = true, num_args = 1..=4, value_names = ["IN", "OUT"])]
    words: Vec<String>,
    /// Another output of the same pass over the input; may be repeated.
    #[arg(long, value_name = "TYPE=PATH", value_parser = outputs::parse_out)]
    out: Vec<Named>,
    #[command(flatten)]
    types: types::Args,
    /// Quantize again what is quantized already.
    #[arg(long)]
    allow_requantize: bool,
    /// Instead of a type: choose one per tensor so that the file has at most this size, N(K|M|G),
    /// and as little as possible is lost.
    #[arg(long, value_name = "SIZE", conflicts_with = "pure", value_parser = listing::parse_size)]
    target_size: Option<u64>,
    /// The same with at most so many bits per weight.
    #[arg(long, value_name = "BITS", conflicts_with_all = ["target_size", "pure"],
        allow_negative_numbers = true, value_parser = listing::parse_above_0::<f64>)]
    target_bpw: Option<f64>,
    /// Save which tensor gets which type, as a file for --tensor-type-file.
    #[arg(long, value_name = "FILE")]
    save_recipe: Option<PathBuf>,
    /// Leave out these blocks, by number from 0; those that stay are numbered anew.
    #[arg(long, value_name = "L0,L1,L2...", value_delimiter = ',')]
    prune_layers: Vec<u64>,
    /// Write the same shards as the input has.
    #[arg(long, conflicts_with = "part")]
    keep_split: bool,
    /// Write the I-th of N shards of the output only, with about an N-th of the work: for several
    /// machines. The shards together are the model; `gguf merge` makes one file of them.
    #[arg(long, value_name = "I/N")]
    part: Option<Part>,
    /// Go on where an earlier run was interrupted, and keep what is done if this one is.
    #[arg(long)]
    resume: bool,
    /// The most memory for rows of one tensor, in MiB, as for `llama-quantize`. Here no more than
    /// some MiB per thread are ever held, whatever is said.
    #[arg(long, value_name = "MIB")]
    max_buffer_size: Option<std::num::NonZeroU64>,
    /// Room for later edits of the header, so that they take an instant: N(K|M), at most 128M.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = listing::parse_reserve)]
    reserve: u64,
    /// Show the plan, with sizes and an estimate of the time, and write nothing but the file of
    /// --save-recipe.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run, the plan as JSON.
    #[arg(long, requires = "dry_run")]
    json: bool,
    #[command(flatten)]
    force: Force,
}

impl Args {
    fn budget(&self) -> Option<Budget> {
        let bits = self.target_bpw.map(Budget::BitsPerWeight);
        bits.or(self.target_size.map(Budget::FileBytes))
    }

    fn options(&self) -> Result<quantize::Options, Failure> {
        let mut options = self.types.options()?;
        options.recipe.keep_order = self.keep_split;
        options.allow_requantize = self.allow_requantize;
        options.prune_layers = self.prune_layers.iter().copied().collect();
        Ok(options)
    }

    /// Refuses what must not be written, as far as names are known before the plan.
    fn check(&self, words: &Words, overwrite: &Overwrite) -> Result<(), Failure> {
        let in_shards = self.keep_split || self.part.is_some();
        let outputs = words.outputs.iter().map(|named| &named.path).filter(|_| !in_shards);
        for path in outputs.chain(&self.save_recipe) {
            overwrite.check(path)?;
        }
        Ok(())
    }

    /// The file of --save-recipe, which waits for its name.
    fn recipe(
        &self,
        text: &str,
        jobs: &[(&Job, &Path)],
        overwrite: &Overwrite,
    ) -> Result<Option<Output>, Failure> {
        let Some(path) = &self.save_recipe else { return Ok(None) };
        let output = Output::create(path, overwrite)?;
        if jobs.iter().any(|(_, model)| output.is_for(model)) {
            return Err(Failure::Usage(format!("{} is named twice", path.display())));
        }
        output.write_at(text.as_bytes(), 0)?;
        Ok(Some(output))
    }

    /// Plans every output, and tells the user what is worth knowing. Returns the recipe too, for
    /// --save-recipe: the types of all matrices, for no recipe touches vectors.
    fn plan(&self, model: &Model, words: &Words) -> Result<(Vec<Files>, String), Failure> {
        if self.save_recipe.is_some() && words.outputs.len() > 1 {
            return Err(Failure::Usage("--save-recipe goes with one output".into()));
        }
        let options = self.options()?;
        let mut recipe = String::new();
        let plan = |named: &Named| {
            let mut quantization = match named.goal {
                Goal::Target(target) => quantize::plan(model, target, &options)?,
                Goal::Budget(budget) => {
                    let progress = Progress::new(model.byte_len(), "measuring").stoppable();
                    let count = |bytes| progress.advance(bytes);
                    let planned = budget::plan(model, budget, &options, words.threads, &count);
                    progress.finish();
                    planned?
                }
            };
            if self.reserve > 0 {
                reserve(&mut quantization.job.metadata, self.reserve);
            }
            commands::print_notes(&quantization.notes);
            let job = quantization.job;
            let matrices = job.items.iter().filter(|item| item.tensor.shape.len() > 1);
            recipe = write_type_file(matrices.map(|i| (i.tensor.name.as_str(), i.target)));
            match self.part {
                Some(part) => Files::part(job, &named.path, part, words.threads),
                None if self.keep_split => Ok(Files::as_split(job, &named.path, model)),
                None => Ok(Files::single(job, &named.path)),
            }
        };
        let all = words.outputs.iter().map(plan).collect::<Result<_, _>>()?;
        Ok((all, recipe))
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let words = Words::parse(&args.words, &args.out, args.budget())?;
    let copies = |named: &Named| matches!(named.goal, Goal::Target(Target::Copy));
    if let Some(flag) = args.given.find(types::FLAGS).filter(|_| words.outputs.iter().all(copies)) {
        return Err(Failure::Usage(format!(
            "{flag} says how weights become blocks, and `copy` leaves them as they are: name another \
             type"
        )));
    }
    let opened = Opened::open(&words.input)?;
    let input = opened.model().identity();
    if args.resume && input.is_none() {
        return Err(Failure::Usage(format!(
            "--resume: the server of {} gives neither ETag nor date by which anybody could tell \
             whether it is the same file the next time; leave --resume out, or download the file",
            words.input
        )));
    }
    // Which blocks are left out shows neither in the input nor always in the header.
    let input = input.map(|input| format!("{input}{:?}", args.prune_layers));
    let model = opened.model();
    let overwrite = args.force.sparing(args.types.inputs().chain(opened.files()));
    if !args.dry_run {
        // Before work that takes long.
        args.check(&words, &overwrite)?;
    }
    let (all, recipe) = args.plan(model, &words)?;
    let jobs: Vec<_> = all.iter().flat_map(Files::jobs).collect();
    let recipe = args.recipe(&recipe, &jobs, &overwrite)?;
    if args.dry_run {
        show(args, &words, &jobs)?;
        return Ok(recipe.map_or(Ok(()), Output::commit)?);
    }
    let total =
        jobs.iter().map(|(job, _)| Ok(job.header()?.data_len())).sum::<Result<_, Failure>>();
    let total = total?;
    let progress = Progress::new(total, "quantizing").stoppable();
    let anew = || {
        eprintln!(
            "begins anew: what an earlier run left is of other inputs, options or another version"
        );
    };
    let interruption = match &input {
        Some(input) => Interruption::Journal { input, resume: args.resume, anew: &anew },
        None => Interruption::StartAnew,
    };
    let advance = |bytes| progress.advance(bytes);
    match write_all(&jobs, words.threads, interruption, &overwrite, &advance) {
        Err(gguf_convert::Error::Container(gguf::Error::Interrupted)) if args.resume => {
            return Err(Failure::Paused);
        }
        written => written?,
    }
    recipe.map_or(Ok(()), Output::commit)?;
    let elapsed = progress.finish().as_secs_f64();
    for (_, path) in &jobs {
        eprintln!("wrote {}", path.display());
    }
    eprintln!("{} in {elapsed:.1} s", listing::bytes(total));
    Ok(())
}

/// The plan, and how long it would take.
fn show(args: &Args, words: &Words, jobs: &[(&Job, &Path)]) -> Result<(), Failure> {
    for (job, _) in jobs {
        job.header()?;
    }
    let seconds = estimate::seconds(jobs.iter().map(|(job, _)| *job), words.threads);
    let mut out = std::io::stdout().lock();
    if args.json {
        let plans = jobs.iter().map(|(job, path)| {
            let mut plan = listing::plan_json(job);
            plan["path"] = json!(path.display().to_string());
            plan
        });
        let plans: Vec<_> = plans.collect();
        let whole = match <[_; 1]>::try_from(plans) {
            Ok([mut plan]) => {
                plan["seconds"] = json!(seconds);
                plan
            }
            Err(plans) => json!({ "outputs": plans, "seconds": seconds }),
        };
        writeln!(out, "{whole:#}")?;
    } else {
        for (job, path) in jobs {
            if jobs.len() > 1 {
                writeln!(out, "{}:", path.display())?;
            }
            write!(out, "{}", listing::plan_text(job))?;
        }
        writeln!(out, "about {seconds:.0} s of encoding on {} threads", words.threads)?;
    }
    Ok(())
}
