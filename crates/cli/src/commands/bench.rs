//! `gguf bench`: how fast a model runs here.

use std::io::Write;
use std::num::NonZeroUsize;

use gguf_kit::bench::{BenchmarkOptions, BenchmarkReport, Machine, Throughput, bench};
use gguf_kit::on_threads;
use serde_json::{Value, json};

use crate::document;
use crate::failure::Failure;
use crate::listing;
use crate::progress::Progress;
use crate::running::{RunArgs, Sums};
use crate::terminal;

/// Measure how fast a model runs here.
///
/// How fast it reads a prompt and makes tokens, and how near that is to what the memory and the arithmetic
/// of this machine allow, which are measured too.
#[derive(clap::Args)]
#[command(
    after_help = "The limit of memory is reached when every weight comes from memory once for each \
                  run, as fast as all threads can read. That of arithmetic counts products of F32 \
                  numbers; `fast` multiplies integers, so it can be beyond.\n\n\
                  Examples:\n  gguf bench model.gguf\n  \
                  gguf bench model.gguf -p 512 -n 128 -t 4 --json\n  \
                  gguf bench model.gguf -p 0 -n 32 --arithmetic exact"
)]
pub struct Args {
    /// File, directory, shard or far location of the model.
    source: String,
    /// Tokens of the prompt, read at once; 0 to leave it out.
    #[arg(short, long, value_name = "N", default_value_t = 512)]
    prompt: usize,
    /// Tokens to make, one after the other; 0 to leave it out.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// How often each is measured, after one time that does not count.
    #[arg(short, long, value_name = "N", default_value = "5")]
    repetitions: NonZeroUsize,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Fast)]
    arithmetic: Sums,
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
        repetitions: args.repetitions.get(),
        cache_type: args.run.cache_type(),
    };
    let report = on_threads(args.run.threads, || -> Result<BenchmarkReport, Failure> {
        let progress = Progress::new();
        let options = args.run.options(args.arithmetic);
        let report = bench(&args.source, &options, &trial, &progress)?;
        progress.finish();
        Ok(report)
    })?;
    let mut out = std::io::stdout().lock();
    if args.json {
        document::print(&mut out, "bench/1", as_json(&report))?;
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
    // What does not fit the terminal goes on below what it is about.
    let mut line = |name: &str, text: String| {
        let text = terminal::wrap(&text, &" ".repeat(12));
        writeln!(out, "{:<12}{}", format!("{name}:"), text.trim_start())
    };
    line(
        "machine",
        format!(
            "{} threads by {} read {:.1} GB/s, multiply and add {:.1} billion F32 pairs/s",
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
        let text = format!(
            "{mean:.2} ± {deviation:.2} tokens/s: {:.0}% of what memory allows, {:.0}% of what F32 \
             arithmetic allows",
            share(speed.memory_limit(*machine)),
            share(speed.float_limit(*machine)),
        );
        line(name, text)?;
    }
    let peak = match peak_memory {
        Some(peak) => format!(", at most {} in memory with the mapped file", listing::bytes(*peak)),
        None => String::new(),
    };
    let repacked = match repacked_bytes {
        0 => String::new(),
        bytes => format!(", {} of them once more for generating", listing::bytes(*bytes)),
    };
    line("memory", format!("{} of tensors{repacked}{peak}", listing::bytes(*model_bytes)))
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
    let speed = |speed: &Option<Throughput>| speed.as_ref().map(|speed| of_speed(speed, *machine));
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
    })
}

fn of_speed(speed: &Throughput, machine: Machine) -> Value {
    json!({
        "tokens_per_second": speed.tokens_per_second,
        "mean": speed.mean(),
        "deviation": speed.deviation(),
        "memory_limit_tokens_per_second": speed.memory_limit(machine),
        "float_limit_tokens_per_second": speed.float_limit(machine),
    })
}
