//! Benchmark accuracy.

use std::io::Write;

use gguf_kit::eval::{Answered, Answers, Benchmark, BenchmarkTask, answers};
use serde_json::{Value, json};

use super::Args;
use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;

/// Benchmarks, with the flags of llama.cpp.
#[derive(clap::Args)]
#[command(next_help_heading = "Benchmarks")]
#[group(skip)]
pub struct BenchmarkArgs {
    /// Compute HellaSwag accuracy. The file has six lines per task.
    #[arg(long, conflicts_with_all = ["winogrande", "multiple_choice", "chunks", "stride", "save_logits", "output"])]
    hellaswag: bool,
    /// Number of random tasks; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 400, requires = "hellaswag")]
    hellaswag_tasks: usize,
    /// Compute WinoGrande accuracy. The file is CSV.
    #[arg(long, conflicts_with_all = ["multiple_choice", "chunks", "stride", "save_logits", "output"])]
    winogrande: bool,
    /// Number of random tasks; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "winogrande")]
    winogrande_tasks: usize,
    /// Compute accuracy on multiple-choice tasks (ARC, MMLU, TruthfulQA). The file is in llama.cpp's binary
    /// format.
    #[arg(long, conflicts_with_all = ["chunks", "stride", "save_logits", "output"])]
    multiple_choice: bool,
    /// Number of random tasks; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "multiple_choice")]
    multiple_choice_tasks: usize,
}

impl BenchmarkArgs {
    /// Returns the selected benchmark and the number of tasks, if not all.
    pub fn chosen(&self) -> Option<(Benchmark, Option<usize>)> {
        let (benchmark, count) = if self.hellaswag {
            (Benchmark::HellaSwag, self.hellaswag_tasks)
        } else if self.winogrande {
            (Benchmark::Winogrande, self.winogrande_tasks)
        } else if self.multiple_choice {
            (Benchmark::MultipleChoice, self.multiple_choice_tasks)
        } else {
            return None;
        };
        Some((benchmark, Some(count).filter(|count| *count > 0)))
    }
}

/// Maximum length of a task in chunks, as in llama.cpp.
pub const CHUNKS_PER_TASK: usize = 4;

pub fn run(args: &Args, benchmark: Benchmark, count: Option<usize>) -> Result<(), Failure> {
    let eval = &args.eval;
    let max_tokens = eval.ctx_size.get().saturating_mul(CHUNKS_PER_TASK);
    let Some(file) = &eval.file else {
        return Err(Failure::Usage("-f is missing: expected a file with tasks".to_owned()));
    };
    let exam = BenchmarkTask::open(file, benchmark, count, max_tokens, eval.run_options())?;
    let options = eval.run.options(eval.precision);
    let mut out = std::io::stdout().lock();
    let mut listed = Vec::new();
    for model in &args.models {
        let found = on_threads(eval.run.threads, || -> Result<Answers, Failure> {
            let progress = Progress::of_tokens();
            let mut each = |found: &Answers| progress.set_message(summary(found));
            let found = answers(model, &options, &exam, &mut each, &progress)?;
            progress.finish();
            Ok(found)
        })?;
        let model = gguf_kit::redact(model);
        if eval.json {
            listed.push(as_json(&model, benchmark, &found));
        } else {
            let (low, high) = found.interval();
            writeln!(
                out,
                "{model}: {} on {} tasks; 95% confidence interval {:.4} to {:.4} %, random baseline {:.4} %",
                summary(&found),
                found.questions.len(),
                100.0 * low,
                100.0 * high,
                100.0 * found.chance(),
            )?;
        }
    }
    if eval.json {
        document::print(&mut out, "benchmark/2", json!({ "models": listed }))?;
    }
    Ok(())
}

fn summary(found: &Answers) -> String {
    format!("accuracy {:.4} ± {:.4} %", 100.0 * found.share(), 100.0 * found.error())
}

fn as_json(model: &str, benchmark: Benchmark, found: &Answers) -> Value {
    let (low, high) = found.interval();
    let result = |question: &Answered| {
        json!({
            "number": question.number,
            "scores": question.scores,
            "predicted": question.picked,
            "correct": question.right,
        })
    };
    json!({
        "file": model,
        "benchmark": match benchmark {
            Benchmark::HellaSwag => "hellaswag",
            Benchmark::Winogrande => "winogrande",
            Benchmark::MultipleChoice => "multiple-choice",
        },
        "tasks": found.questions.len(),
        "correct": found.right(),
        "accuracy": 100.0 * found.share(),
        "accuracy_error": 100.0 * found.error(),
        "confidence_interval": [100.0 * low, 100.0 * high],
        "chance": 100.0 * found.chance(),
        "results": found.questions.iter().map(result).collect::<Vec<_>>(),
    })
}
