//! `llama-perplexity`.

mod benchmark;
mod divergence;

use std::io::Write;

use gguf_kit::eval::{PartWriter, Perplexity, SaveLogits, perplexity};
use gguf_kit::on_threads;
use gguf_store::{Existing, Overwrite};

use super::common::{self, LOG, MACHINE, MODEL, RUN, SAMPLING};
use super::flag::{Flag, nothing, ours, read};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::perplexity::Args;
use crate::failure::Failure;
use crate::progress::Progress;

pub const PROGRAM: Program = Program {
    name: "llama-perplexity",
    ours: "gguf perplexity` and `gguf divergence",
    words: "",
    family: Family::LlamaCpp,
    example: "-m model-q4_k_m.gguf -f wiki.test.raw",
    flags: &[common::PROGRAM, FLAGS, MODEL, RUN, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    read("--chunks", 1, "`--chunks`; all if it is not above 0"),
    read("--ppl-stride", 1, "`--stride`; 0 is none"),
    read("--ppl-output-type", 1, "1 prints a line for each chunk"),
    read(
        "--kl-divergence",
        0,
        "`gguf divergence --reference-logits`, with the file of the next flag",
    ),
    read(
        "--save-all-logits --kl-divergence-base",
        1,
        "`--save-logits`, or what --kl-divergence reads",
    ),
    ours("--hellaswag", 0, "--hellaswag"),
    ours("--hellaswag-tasks", 1, "--hellaswag-tasks"),
    ours("--winogrande", 0, "--winogrande"),
    ours("--winogrande-tasks", 1, "--winogrande-tasks"),
    ours("--multiple-choice", 0, "--multiple-choice"),
    ours("--multiple-choice-tasks", 1, "--multiple-choice-tasks"),
    nothing("--context-shift --no-context-shift", 0, common::NO_SAMPLING),
    nothing("--warmup --no-warmup", 0, "nothing runs before the text is read"),
    nothing("-kvu --kv-unified -no-kvu --no-kv-unified", 0, "results do not depend on it"),
];

fn run(given: &Given) -> Result<u8, Failure> {
    if let Some(word) = given.words.first() {
        return Err(Failure::Usage(format!("`{word}` is no flag: name the model with -m")));
    }
    let model = common::model(given)?;
    let mut flags = common::run_flags(given)?;
    let chunks = given.number::<i64>("--chunks")?.filter(|number| *number > 0);
    flags.extend(chunks.map(|chunks| format!("--chunks={chunks}")));
    let logits = given.value("--kl-divergence-base");
    if given.has("--kl-divergence") {
        let Some(logits) = logits else {
            let what = "--kl-divergence wants the logits of the base: --kl-divergence-base FILE";
            return Err(Failure::Usage(what.to_owned()));
        };
        flags.push(format!("--reference-logits={logits}"));
        divergence::run(&args_of(given.ours(flags, [model]))?)?;
        return Ok(0);
    }
    let Some(text) = common::text(given) else {
        return Err(Failure::Usage("which text? Name it with -f".to_owned()));
    };
    flags.push(format!("--file={text}"));
    let context = given.number::<u64>("--ctx-size")?;
    flags.extend(context.map(|context| format!("--ctx-size={context}")));
    let stride = given.number::<u64>("--ppl-stride")?.filter(|stride| *stride > 0);
    flags.extend(stride.map(|stride| format!("--stride={stride}")));
    flags.extend(logits.map(|logits| format!("--save-logits={logits}")));
    flags.push("--force".to_owned());
    let args: Args = args_of(given.ours(flags, [model]))?;
    if let Some((benchmark, count)) = args.benchmark.chosen() {
        benchmark::run(&args, benchmark, count)?;
    } else {
        let step = stride.or(context).unwrap_or(512);
        let lines = given.number::<u8>("--ppl-output-type")?.unwrap_or(0) != 0;
        of_text(&args, lines.then_some((step, stride.is_some())))?;
    }
    Ok(0)
}

/// The perplexity after each chunk, in one line; or in a line each, with the tokens before it and, of
/// chunks that do not overlap, the mean of the logarithms with its error.
fn of_text(args: &Args, lines: Option<(u64, bool)>) -> Result<(), Failure> {
    let task = args.judge.task()?;
    let options = args.judge.run.options(args.judge.arithmetic);
    let inputs = args.judge.inputs().chain(args.models.iter().map(std::path::Path::new));
    let overwrite = Overwrite::new(Existing::Replace).protecting(inputs);
    let save = args.save_logits.as_deref().map(|path| SaveLogits { path, overwrite: &overwrite });
    let model = &args.models[0];
    let found = on_threads(args.judge.run.threads, || -> Result<Perplexity, Failure> {
        let progress = Progress::of_tokens();
        let mut out = std::io::stdout().lock();
        let mut written = Ok(());
        let mut each = |found: &Perplexity| {
            let (number, value) = (found.chunks, found.value());
            let (mean, error) = (found.surprise.value(), found.surprise.error());
            let line = match lines {
                None => write!(out, "[{number}]{value:.4},"),
                Some((step, true)) => {
                    writeln!(out, "{:8}  {value:.4}", (number as u64 - 1) * step)
                }
                Some((step, false)) => {
                    let before = (number as u64 - 1) * step;
                    writeln!(out, "{before:8}  {value:.4}  {mean:4.6}  {error:4.6}")
                }
            };
            let line = line.and_then(|()| out.flush());
            if written.is_ok() {
                written = line;
            }
        };
        let keeper = &mut PartWriter::default();
        let found = perplexity(model, &options, &task, save, keeper, &mut each, &progress)?;
        progress.finish();
        written?;
        writeln!(out, "\n")?;
        Ok(found)
    })?;
    if !lines.is_some_and(|(_, strided)| strided) {
        let (value, error) = (found.value(), found.error());
        eprintln!("Final estimate: PPL = {value:.4} +/- {error:.5}");
    }
    Ok(())
}
