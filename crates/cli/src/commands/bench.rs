//! `gguf bench`: measures speed.

use std::io::Write;
use std::num::NonZeroUsize;

use gguf_kit::bench::{BenchmarkOptions, BenchmarkReport, Machine, Throughput, bench};
use serde_json::{Value, json};

use crate::document;
use crate::failure::Failure;
use crate::listing;
use crate::model_args::{PrecisionArg, RunArgs};
use crate::progress::Progress;
use crate::terminal;
use crate::threads::on_threads;

/// Benchmark prompt processing and token generation.
///
/// Also measures memory bandwidth and compute throughput of this machine, and relates the speeds to them.
#[derive(clap::Args)]
#[command(
    after_help = "The memory limit assumes that every weight is read from memory once per run; a model whose \
                  weights stay in the CPU cache is not bound by it. The compute limit counts multiply-adds from registers: in \
                  INT8 where the precision `fast` multiplies integers and the CPU has AVX-512 VNNI, else in F32.\n\n\
                  Examples:\n  gguf bench model.gguf\n  \
                  gguf bench model.gguf -p 512 -n 128 -t 4 --json\n  \
                  gguf bench model.gguf -p 0 -n 32 -d 4096 --precision exact"
)]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    /// Number of prompt tokens, processed in batches of 512; 0 to skip.
    #[arg(short, long, value_name = "N", default_value_t = 512)]
    prompt: usize,
    /// Number of tokens to generate; 0 to skip.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// Number of tokens in the context before each test; they are not timed.
    #[arg(short, long, value_name = "N", default_value_t = 0, alias = "n-depth")]
    depth: usize,
    /// Number of repetitions, after one warm-up run.
    #[arg(short, long, value_name = "N", default_value = "5")]
    repetitions: NonZeroUsize,
    /// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
    #[arg(long, value_enum, default_value_t = PrecisionArg::Fast, alias = "arithmetic")]
    precision: PrecisionArg,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let trial = BenchmarkOptions {
        prompt: args.prompt,
        generated: args.tokens,
        depth: args.depth,
        repetitions: args.repetitions.get(),
        cache_type: args.run.cache_type(args.precision),
    };
    let report = on_threads(args.run.threads, || -> Result<BenchmarkReport, Failure> {
        let progress = Progress::new();
        let options = args.run.options(args.precision);
        let report = bench(&args.source, &options, &trial, &progress)?;
        progress.finish();
        Ok(report)
    })?;
    let mut out = std::io::stdout().lock();
    if args.json {
        document::print(&mut out, "bench/2", as_json(&report))?;
    } else {
        print(&mut out, &report)?;
    }
    Ok(())
}

fn print(out: &mut impl Write, report: &BenchmarkReport) -> std::io::Result<()> {
    let BenchmarkReport {
        machine,
        prompt,
        generation,
        model_bytes,
        repacked_bytes,
        peak_memory,
        instructions,
    } = report;
    let int8 = machine.int8_multiply_adds_per_second;
    let int8 = int8.map_or_else(String::new, |rate| format!(", {:.0} billion INT8", rate / 1e9));
    // Wrapped lines are indented below the value.
    let mut line = |name: &str, text: String| {
        let text = terminal::wrap(&text, &" ".repeat(12));
        writeln!(out, "{:<12}{}", format!("{name}:"), text.trim_start())
    };
    line(
        "machine",
        format!(
            "{} threads ({}): memory bandwidth {:.1} GB/s, {:.1} billion F32 multiply-adds/s{int8}",
            machine.threads,
            instructions.name(),
            machine.bytes_per_second / 1e9,
            machine.multiply_adds_per_second / 1e9
        ),
    )?;
    for (name, speed) in [("prompt", prompt), ("generation", generation)] {
        let Some(speed) = speed else { continue };
        let (mean, deviation) = (speed.mean(), speed.deviation());
        let share = |limit: f64| 100.0 * mean / limit;
        let memory = match share(speed.memory_limit(*machine)) {
            _ if cache_bytes().is_some_and(|cache| speed.bytes <= cache) => {
                "the weights fit the CPU cache".to_owned()
            }
            share if share <= 100.0 => format!("{share:.0}% of the memory limit"),
            _ => "at the memory limit".to_owned(),
        };
        let compute = match speed.int8_limit(*machine) {
            Some(limit) => format!("{:.0}% of the INT8 compute limit", share(limit)),
            None => match share(speed.float_limit(*machine)) {
                share if share <= 100.0 => format!("{share:.0}% of the F32 compute limit"),
                _ => "faster than F32 multiply-adds".to_owned(),
            },
        };
        line(name, format!("{mean:.2} ± {deviation:.2} tokens/s: {memory}, {compute}"))?;
    }
    let peak = match peak_memory {
        Some(peak) => format!(", peak {} including the mapped file", listing::bytes(*peak)),
        None => String::new(),
    };
    let repacked = match repacked_bytes {
        0 => String::new(),
        bytes => format!(", {} of them repacked", listing::bytes(*bytes)),
    };
    line("memory", format!("{} of tensors{repacked}{peak}", listing::bytes(*model_bytes)))
}

/// Returns the size of the largest CPU cache in bytes; `None` where the system does not report it.
fn cache_bytes() -> Option<u64> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |cache: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(cache.ok()?.path().join("size")).ok()?;
        Some(text.trim().strip_suffix('K')?.parse::<u64>().ok()? << 10)
    };
    caches.filter_map(size).max()
}

fn as_json(report: &BenchmarkReport) -> Value {
    let BenchmarkReport {
        machine,
        prompt,
        generation,
        model_bytes,
        repacked_bytes,
        peak_memory,
        instructions,
    } = report;
    let speed =
        |speed: &Option<Throughput>| speed.as_ref().map(|speed| speed_json(speed, *machine));
    json!({
        "prompt_tokens_per_second": prompt.as_ref().map(Throughput::mean),
        "generation_tokens_per_second": generation.as_ref().map(Throughput::mean),
        "prompt": speed(prompt),
        "generation": speed(generation),
        "model_bytes": model_bytes,
        "repacked_bytes": repacked_bytes,
        "peak_memory_bytes": peak_memory,
        "threads": machine.threads,
        "instructions": instructions.name(),
        "memory_bytes_per_second": machine.bytes_per_second,
        "float_multiply_adds_per_second": machine.multiply_adds_per_second,
        "int8_multiply_adds_per_second": machine.int8_multiply_adds_per_second,
    })
}

fn speed_json(speed: &Throughput, machine: Machine) -> Value {
    json!({
        "tokens_per_second": speed.tokens_per_second,
        "mean": speed.mean(),
        "stddev": speed.deviation(),
        "memory_limit_tokens_per_second": speed.memory_limit(machine),
        "float_limit_tokens_per_second": speed.float_limit(machine),
        "int8_limit_tokens_per_second": speed.int8_limit(machine),
    })
}
