//! `gguf recommend`: chooses a file or type for this machine.

use std::io::Write;
use std::num::NonZeroUsize;

use gguf_kit::recommend::{
    Choice, LossOrigin, NEGLIGIBLE_LOSS, Reason, Recommendation, Request, Task, available_memory,
    recommend,
};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::threads::on_threads;
use crate::{document, listing, terminal};

/// Recommend a file or quantization type for this machine.
///
/// Compares the GGUF files of a directory or a repository, or the types of an unquantized model or checkpoint: required
/// memory, context size, expected speed, and loss of quality. Reads headers only. The first run measures the speed of
/// matrix multiplications of each tensor type on this machine, half a second per type, and keeps the result in
/// $XDG_CACHE_HOME/gguf-kit/machine.json.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf recommend hf:org/repo-GGUF\n  \
                        gguf recommend model-f16.gguf --memory 8G --context 16384\n  \
                        gguf recommend checkpoint --task code --json")]
pub struct Args {
    /// Directory or repository with GGUF files, a model, or a checkpoint.
    source: String,
    /// Memory for weights, KV cache and compute buffer, such as 8G; `auto` is the memory that is available now.
    #[arg(long, value_name = "SIZE|auto", value_parser = memory, default_value = "auto")]
    memory: Memory,
    /// Context size in tokens [default: 8192 for chat, 32768 for code, 512 for embed, less where memory is short].
    #[arg(short, long, value_name = "N", aliases = ["ctx-size"], value_parser = clap::value_parser!(u64).range(1..))]
    context: Option<u64>,
    /// Use of the model. Chat and code need 10 tokens/s, about twice the speed of reading.
    #[arg(long, value_enum, default_value_t = TaskArg::Chat)]
    task: TaskArg,
    /// Measure this machine again.
    #[arg(long)]
    measure: bool,
    /// Number of threads [default: one per core].
    #[arg(short, long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Memory that may be used.
#[derive(Clone, Copy)]
enum Memory {
    Available,
    Bytes(u64),
}

fn memory(text: &str) -> Result<Memory, String> {
    match text {
        "auto" => Ok(Memory::Available),
        _ => listing::parse_size(text).map(Memory::Bytes),
    }
}

/// Use of a model.
#[derive(Clone, Copy, clap::ValueEnum)]
enum TaskArg {
    Chat,
    Code,
    Embed,
}

impl From<TaskArg> for Task {
    fn from(task: TaskArg) -> Self {
        match task {
            TaskArg::Chat => Self::Chat,
            TaskArg::Code => Self::Code,
            TaskArg::Embed => Self::Embed,
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let memory = match args.memory {
        Memory::Bytes(bytes) => bytes,
        Memory::Available => available_memory().ok_or_else(|| {
            Failure::Usage("the system does not tell its memory: state it with --memory 8G".into())
        })?,
    };
    let request = Request { memory, context: args.context, task: args.task.into() };
    let found = on_threads(args.threads, || {
        let progress = Progress::new();
        let found = recommend(&args.source, &request, args.measure, &progress);
        progress.finish();
        found
    })?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => document::print(&mut out, "recommend/1", as_json(&found, memory))?,
        false => print(&mut out, &found, &args.source, memory)?,
    }
    Ok(())
}

fn print(
    out: &mut impl Write,
    found: &Recommendation,
    source: &str,
    memory: u64,
) -> std::io::Result<()> {
    let Recommendation { choices, best, reason } = found;
    let width = choices.iter().map(|choice| choice.name.chars().count()).max().unwrap_or(0).max(4);
    // On a narrow terminal, names are cut.
    let width = width
        .min(terminal::width().map_or(usize::MAX, |columns| columns.saturating_sub(63).max(12)));
    let head = format!(
        "  {:<width$} {:>9} {:>9} {:>8} {:>5} {:>8} {:>7} {:>8}",
        "name", "size", "memory", "context", "KV", "tokens/s", "prompt", "KLD"
    );
    writeln!(out, "{}", terminal::fit(&terminal::faint(head)))?;
    for (number, choice) in choices.iter().enumerate() {
        let name: String = choice.name.chars().take(width).collect();
        let mark = if *best == Some(number) { ">" } else { " " };
        let loss = choice.loss.as_ref().map_or("-".to_owned(), |loss| match loss.kl_divergence {
            0.0 => "0".to_owned(),
            known => format!("{known:.4}"),
        });
        let line = format!(
            "{mark} {:<width$} {:>9} {:>9} {:>8} {:>5} {:>8.1} {:>7.0} {:>8}",
            terminal::plain(&name),
            listing::bytes(choice.file_bytes),
            listing::bytes(choice.memory.total()),
            choice.context,
            choice.cache_type.tensor_type().to_string(),
            choice.speed.generation,
            choice.speed.prompt,
            loss,
        );
        let line = terminal::fit(&line);
        match choice.fits {
            true if *best == Some(number) => writeln!(out, "{}", terminal::strong(line))?,
            true => writeln!(out, "{line}")?,
            false => writeln!(out, "{}", terminal::faint(line))?,
        }
    }
    writeln!(out)?;
    for line in advice(found, source, memory, *reason) {
        writeln!(out, "{}", terminal::wrap(&line, ""))?;
    }
    Ok(())
}

/// Returns what to do, and what the numbers do not say.
fn advice(found: &Recommendation, source: &str, memory: u64, reason: Reason) -> Vec<String> {
    let of_memory = listing::bytes(memory);
    let Some(best) = found.best.and_then(|best| found.choices.get(best)) else {
        let what = format!(
            "Nothing fits {of_memory} of memory. Choose a smaller context (--context) or a smaller model."
        );
        return vec![what];
    };
    let why = match reason {
        Reason::Accurate(least) => {
            let speed = least.map(|least| format!(" and generates at least {least:.0} tokens/s"));
            format!(
                "the most accurate that fits {of_memory}{}, or a faster one that loses at most {NEGLIGIBLE_LOSS} more",
                speed.unwrap_or_default()
            )
        }
        Reason::Fastest(least) => {
            format!("the fastest that fits {of_memory}; none generates {least:.0} tokens/s here")
        }
        Reason::NoneFits => String::new(),
    };
    let mut lines = vec![format!("Use {}: {why}.", terminal::plain(&best.name))];
    lines.extend(command(best, source).map(|command| format!("  {command}")));
    let at_end = best.speed.generation_at_end;
    if at_end < 0.9 * best.speed.generation {
        lines.push(format!("With a full context it generates {at_end:.1} tokens/s."));
    }
    let others = found.choices.iter().filter_map(|choice| match &choice.loss.as_ref()?.origin {
        LossOrigin::OtherModel(name) => Some(*name),
        LossOrigin::Measured => None,
    });
    if let Some(name) = others.into_iter().next() {
        lines.push(format!(
            "KLD is the mean KL divergence of {name} with these types; smaller models usually lose more. `gguf \
             quality` measures this one. Speeds are estimates; `gguf bench` measures them."
        ));
    } else {
        lines.push("Speeds are estimates; `gguf bench` measures them.".to_owned());
    }
    lines
}

/// Returns the command that gets or makes the file; `None` if it is there.
fn command(best: &Choice, source: &str) -> Option<String> {
    let is_hub = source.starts_with("hf:");
    match (best.exists, &best.type_name) {
        (true, _) if is_hub => Some(format!("gguf pull {source}:{}", best.name)),
        (true, _) => None,
        (false, Some(name)) if gguf::is_gguf(source) => {
            Some(format!("gguf quantize {source} {name}"))
        }
        (false, Some(name)) => {
            Some(format!("gguf convert {source} --outtype {}", name.to_ascii_lowercase()))
        }
        (false, None) => None,
    }
}

fn as_json(found: &Recommendation, memory: u64) -> Json {
    let choice = |choice: &Choice| {
        let origin = choice.loss.as_ref().map(|loss| match &loss.origin {
            LossOrigin::Measured => Json::Null,
            LossOrigin::OtherModel(name) => json!(name),
        });
        json!({
            "name": choice.name,
            "type": choice.type_name,
            "exists": choice.exists,
            "file_bytes": choice.file_bytes,
            "context": choice.context,
            "cache_type": choice.cache_type.tensor_type().to_string(),
            "memory_bytes": choice.memory.total(),
            "fits": choice.fits,
            "generation_tokens_per_second": choice.speed.generation,
            "generation_tokens_per_second_at_end": choice.speed.generation_at_end,
            "prompt_tokens_per_second": choice.speed.prompt,
            "mean_kld": choice.loss.as_ref().map(|loss| loss.kl_divergence),
            "mean_kld_of": origin,
        })
    };
    json!({
        "memory_bytes": memory,
        "recommended": found.best.and_then(|best| found.choices.get(best)).map(|best| &best.name),
        "choices": found.choices.iter().map(choice).collect::<Vec<_>>(),
    })
}
