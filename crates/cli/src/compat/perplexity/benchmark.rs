//! `llama-perplexity` on benchmarks.

use std::io::Write;

use gguf_kit::eval::{Answered, Answers, Benchmark, BenchmarkTask, answers};

use crate::commands::perplexity::{Args, benchmark::CHUNKS_PER_TASK};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;

/// Minimum number of tasks for which the original prints statistics.
const MIN_TASKS: usize = 100;

pub fn run(args: &Args, benchmark: Benchmark, count: Option<usize>) -> Result<(), Failure> {
    let eval = &args.eval;
    let max_tokens = eval.ctx_size.get().saturating_mul(CHUNKS_PER_TASK);
    let Some(file) = &eval.file else {
        return Err(Failure::Usage("-f is missing: expected a file with tasks".to_owned()));
    };
    let exam = BenchmarkTask::open(file, benchmark, count, max_tokens, eval.run_options())?;
    let options = eval.run.options(eval.precision);
    let found = on_threads(eval.run.threads, || -> Result<Answers, Failure> {
        let progress = Progress::of_tokens();
        let mut out = std::io::stdout().lock();
        let mut written = match benchmark {
            Benchmark::HellaSwag => writeln!(out, "\ntask\tacc_norm\t95% confidence interval"),
            Benchmark::Winogrande => Ok(()),
            Benchmark::MultipleChoice => writeln!(out, "\ntask\tacc_norm"),
        };
        let (mut printed, mut correct) = (0, 0);
        let mut each = |found: &Answers| {
            for question in &found.questions[printed..] {
                printed += 1;
                correct += usize::from(question.right);
                let line = line(&mut out, benchmark, question, (correct, printed));
                if written.is_ok() {
                    written = line;
                }
            }
        };
        let found = answers(&args.models[0], &options, &exam, &mut each, &progress)?;
        each(&found);
        progress.finish();
        written?;
        writeln!(out)?;
        Ok(found)
    })?;
    let (count, share, error) =
        (found.questions.len(), 100.0 * found.share(), 100.0 * found.error());
    match benchmark {
        Benchmark::Winogrande if count >= MIN_TASKS => {
            eprintln!("Final Winogrande score({count} tasks): {share:.4} +/- {error:.4}");
        }
        Benchmark::MultipleChoice => {
            let chance = found.chance();
            let spread = (chance * (1.0 - chance) / (count.max(2) - 1) as f64).sqrt();
            eprintln!("Final result: {share:.4} +/- {error:.4}");
            eprintln!("Random chance: {:.4} +/- {:.4}", 100.0 * chance, 100.0 * spread);
        }
        _ => {}
    }
    Ok(())
}

/// Prints the running result after a task.
fn line(
    out: &mut impl Write,
    benchmark: Benchmark,
    question: &Answered,
    (correct, count): (usize, usize),
) -> std::io::Result<()> {
    let share = correct as f64 / count as f64;
    let percent = 100.0 * share;
    match benchmark {
        Benchmark::HellaSwag => {
            // 95% Wilson score interval.
            const DEVIATIONS: f64 = 1.959_963_984_54;
            let z = DEVIATIONS * DEVIATIONS / count as f64;
            let half = (z * share * (1.0 - share) + z * z / 4.0).sqrt();
            let [low, high] =
                [-half, half].map(|half| 100.0 * (share + z / 2.0 + half) / (1.0 + z));
            writeln!(out, "{count}\t{percent:3.8}%\t[{low:3.4}%, {high:3.4}%]")
        }
        Benchmark::Winogrande => {
            let score = |at: usize| question.scores.get(at).copied().unwrap_or(f64::NAN);
            let picked = question.picked + 1;
            let answer = if question.right { picked } else { 3 - picked };
            let (first, second) = (score(0), score(1));
            writeln!(out, "{count}\t{percent:.4}\t{first:10.6}  {second:10.6}  {picked}  {answer}")
        }
        Benchmark::MultipleChoice => writeln!(out, "{count}\t{percent:.8}"),
    }?;
    out.flush()
}
