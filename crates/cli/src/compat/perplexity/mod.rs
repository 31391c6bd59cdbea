//! `llama-perplexity`.

mod benchmark;
mod divergence;

use std::io::Write;

use gguf_kit::eval::{PartWriter, Perplexity, SaveLogits, perplexity};
use gguf_store::{Existing, Overwrite};

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, ignored, renamed, translated};
use super::shared_arguments;
use super::shared_flags::{self, LOG, MACHINE, MODEL, RUN, SAMPLING};
use super::{ArgumentStyle, Program};
use crate::commands::perplexity::Args;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;

pub const PROGRAM: Program = Program {
    name: "llama-perplexity",
    command: "gguf perplexity` and `gguf divergence",
    positionals: "",
    style: ArgumentStyle::LlamaCpp,
    example: "-m model-q4_k_m.gguf -f wiki.test.raw",
    flags: &[shared_flags::PROGRAM, FLAGS, MODEL, RUN, MACHINE, SAMPLING, LOG],
    run,
};

const FLAGS: &[Flag] = &[
    translated("--chunks", 1, "`--chunks`; all if not positive"),
    translated("--ppl-stride", 1, "`--stride`; 0 disables"),
    translated("--ppl-output-type", 1, "1 prints one line per chunk"),
    translated(
        "--kl-divergence",
        0,
        "`gguf divergence --reference-logits`, with the file of --kl-divergence-base",
    ),
    translated(
        "--save-all-logits --kl-divergence-base",
        1,
        "`--save-logits`; with --kl-divergence, the logits of the reference",
    ),
    renamed("--hellaswag", 0, "--hellaswag"),
    renamed("--hellaswag-tasks", 1, "--hellaswag-tasks"),
    renamed("--winogrande", 0, "--winogrande"),
    renamed("--winogrande-tasks", 1, "--winogrande-tasks"),
    renamed("--multiple-choice", 0, "--multiple-choice"),
    renamed("--multiple-choice-tasks", 1, "--multiple-choice-tasks"),
    ignored("--context-shift --no-context-shift", 0, shared_flags::NO_SAMPLING),
    ignored("--warmup --no-warmup", 0, "there is no warm-up run"),
    ignored("-kvu --kv-unified -no-kvu --no-kv-unified", 0, "it does not affect results"),
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    if let Some(word) = arguments.positionals.first() {
        return Err(Failure::Usage(format!("unexpected argument `{word}`: use -m for the model")));
    }
    let model = shared_arguments::model(arguments)?;
    let mut flags = shared_arguments::run_flags(arguments)?;
    let chunks = arguments.number::<i64>("--chunks")?.filter(|number| *number > 0);
    flags.extend(chunks.map(|chunks| format!("--chunks={chunks}")));
    let logits = arguments.value("--kl-divergence-base");
    if arguments.has("--kl-divergence") {
        let Some(logits) = logits else {
            let what = "--kl-divergence requires --kl-divergence-base FILE";
            return Err(Failure::Usage(what.to_owned()));
        };
        flags.push(format!("--reference-logits={logits}"));
        divergence::run(&parse_args(arguments.translate(flags, [model]))?)?;
        return Ok(0);
    }
    let Some(text) = shared_arguments::text(arguments) else {
        return Err(Failure::Usage("the text is missing: use -f".to_owned()));
    };
    flags.push(format!("--file={text}"));
    let context = arguments.number::<u64>("--ctx-size")?;
    flags.extend(context.map(|context| format!("--ctx-size={context}")));
    let stride = arguments.number::<u64>("--ppl-stride")?.filter(|stride| *stride > 0);
    flags.extend(stride.map(|stride| format!("--stride={stride}")));
    flags.extend(logits.map(|logits| format!("--save-logits={logits}")));
    flags.push("--force".to_owned());
    let args: Args = parse_args(arguments.translate(flags, [model]))?;
    if let Some((benchmark, count)) = args.benchmark.chosen() {
        benchmark::run(&args, benchmark, count)?;
    } else {
        let step = stride.or(context).unwrap_or(512);
        let lines = arguments.number::<u8>("--ppl-output-type")?.unwrap_or(0) != 0;
        run_text(&args, lines.then_some((step, stride.is_some())))?;
    }
    Ok(0)
}

/// Prints the running perplexity after each chunk, on one line; or one line per chunk, with the number of
/// preceding tokens and, without a stride, the mean negative log-likelihood and its error.
fn run_text(args: &Args, lines: Option<(u64, bool)>) -> Result<(), Failure> {
    let task = args.eval.task()?;
    let options = args.eval.run.options(args.eval.precision);
    let inputs = args.eval.inputs().chain(args.models.iter().map(std::path::Path::new));
    let overwrite = Overwrite::new(Existing::Replace).protecting(inputs);
    let save = args.save_logits.as_deref().map(|path| SaveLogits { path, overwrite: &overwrite });
    let model = &args.models[0];
    let found = on_threads(args.eval.run.threads, || -> Result<Perplexity, Failure> {
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
