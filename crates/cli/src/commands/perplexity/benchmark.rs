//! How many questions models answer.

use std::io::Write;

use gguf_kit::eval::{Answered, Answers, Benchmark, BenchmarkTask, answers};
use gguf_kit::on_threads;
use serde_json::{Value, json};

use super::Args;
use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;

/// Questions instead of a text: their flags are those of llama.cpp.
#[derive(clap::Args)]
#[group(skip)]
pub struct BenchmarkArgs {
    /// The file has questions of HellaSwag, in six lines each: say how many are answered.
    #[arg(long, conflicts_with_all = ["winogrande", "multiple_choice", "chunks", "stride", "save_logits", "output"])]
    hellaswag: bool,
    /// Questions to draw; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 400, requires = "hellaswag")]
    hellaswag_tasks: usize,
    /// The file has questions of Winogrande, as values with commas: say how many are answered.
    #[arg(long, conflicts_with_all = ["multiple_choice", "chunks", "stride", "save_logits", "output"])]
    winogrande: bool,
    /// Questions to draw; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "winogrande")]
    winogrande_tasks: usize,
    /// The file has questions with any number of answers (ARC, MMLU, TruthfulQA), in llama.cpp's binary
    /// form: say how many are answered.
    #[arg(long, conflicts_with_all = ["chunks", "stride", "save_logits", "output"])]
    multiple_choice: bool,
    /// Questions to draw; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "multiple_choice")]
    multiple_choice_tasks: usize,
}

impl BenchmarkArgs {
    /// Which one, and how many questions, if not all.
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

/// A question has as much room as in llama.cpp: that of four windows.
pub const WINDOWS: usize = 4;

pub fn run(args: &Args, benchmark: Benchmark, count: Option<usize>) -> Result<(), Failure> {
    let judge = &args.judge;
    let room = judge.ctx_size.get().saturating_mul(WINDOWS);
    let Some(file) = &judge.file else { return Err(Failure::Usage("-f is missing".to_owned())) };
    let exam = BenchmarkTask::open(file, benchmark, count, room, judge.reading())?;
    let options = judge.run.options(judge.arithmetic);
    let mut out = std::io::stdout().lock();
    let mut listed = Vec::new();
    for model in &args.models {
        let found = on_threads(judge.run.threads, || -> Result<Answers, Failure> {
            let progress = Progress::of_tokens();
            let mut each = |found: &Answers| progress.say(said(found));
            let found = answers(model, &options, &exam, &mut each, &progress)?;
            progress.finish();
            Ok(found)
        })?;
        if judge.json {
            listed.push(as_json(model, benchmark, &found));
        } else {
            let (low, high) = found.interval();
            writeln!(
                out,
                "{model}: {} of {} questions; {:.4} to {:.4} % with a probability of 95 %, guessing \
                 gives {:.4} %",
                said(&found),
                found.questions.len(),
                100.0 * low,
                100.0 * high,
                100.0 * found.chance(),
            )?;
        }
    }
    if judge.json {
        document::print(&mut out, "benchmark/1", json!({ "models": listed }))?;
    }
    Ok(())
}

fn said(found: &Answers) -> String {
    format!("right answers {:.4} ± {:.4} %", 100.0 * found.share(), 100.0 * found.error())
}

fn as_json(model: &str, benchmark: Benchmark, found: &Answers) -> Value {
    let (low, high) = found.interval();
    let question = |question: &Answered| {
        json!({
            "number": question.number,
            "scores": question.scores,
            "picked": question.picked,
            "right": question.right,
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
        "interval": [100.0 * low, 100.0 * high],
        "chance": 100.0 * found.chance(),
        "questions": found.questions.iter().map(question).collect::<Vec<_>>(),
    })
}
