//! Measures the time to load a vocabulary and to encode with it, on one thread.
//!
//! `cargo bench -p gguf-tokenizer --bench encode -- MODEL.gguf... [TEXT.txt] [--no-special]`
//!
//! Without a text, a random one is generated. `--no-special` does not parse special tokens. Besides
//! the text, the benchmark encodes adversarial ones of one megabyte: one letter, one space, one
//! Chinese character, repeated, and random lower-case letters. `cold` is the first run of a
//! tokenizer on the text, `warm` the minimum of the later runs.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

use gguf::Gguf;
use gguf_store::LocalFile;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

const ROUNDS: usize = 5;
const MEGABYTE: usize = 1_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (texts, models): (Vec<_>, Vec<_>) =
        arguments.iter().filter(|a| !a.starts_with('-')).partition(|a| a.ends_with(".txt"));
    if models.is_empty() {
        println!("no MODEL.gguf given: nothing to measure");
    }
    let special = !arguments.iter().any(|a| a == "--no-special");
    let options = EncodeOptions { add_special: special, parse_special: special };
    let mut random = Random(1);
    let text = match texts.first() {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => (0..MEGABYTE).map(|_| random.word()).collect(),
    };
    let hostile = [
        ("one letter", "a".repeat(MEGABYTE)),
        ("spaces", " ".repeat(MEGABYTE)),
        ("one character", "中".repeat(MEGABYTE / 3)),
        ("no spaces", (0..MEGABYTE).map(|_| random.letter()).collect()),
    ];
    for model in models {
        let map = LocalFile::open(model.as_ref()).unwrap();
        let gguf = Gguf::read(map.mapped()).unwrap();
        let load =
            || Tokenizer::from_metadata(gguf.metadata(), TokenizerOptions::default()).unwrap();
        // Wall-clock time: loading uses several threads.
        let load_time = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                drop(black_box(load()));
                start.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        let tokenizer = load();
        println!("{model}: {} tokens, loaded in {:.1} ms", tokenizer.len(), load_time * 1e3);
        println!("  {:<14} {:>10} {:>10} {:>12}", "", "cold MB/s", "warm MB/s", "tokens");
        for (name, text) in
            std::iter::once(("text", &text)).chain(hostile.iter().map(|(name, text)| (*name, text)))
        {
            let tokens = std::cell::Cell::new(0);
            let encode = || tokens.set(black_box(tokenizer.encode(text, options)).len());
            let (cold, warm) = cold_and_warm(encode);
            let speed = |seconds: f64| text.len() as f64 / 1e6 / seconds;
            println!(
                "  {name:<14} {:>10.1} {:>10.1} {:>12}",
                speed(cold),
                speed(warm),
                tokens.get()
            );
        }
    }
}

/// Returns the seconds of the first run, and the minimum of the later runs.
fn cold_and_warm(run: impl Fn()) -> (f64, f64) {
    let time = || {
        let start = now();
        run();
        now() - start
    };
    let first = time();
    (first, (1..ROUNDS).map(|_| time()).fold(f64::INFINITY, f64::min))
}

/// Returns the CPU time of this thread in seconds, so that other processes do not count; the
/// wall-clock time if the system does not report it.
fn now() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = used.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |n| n / 1e9)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn letter(&mut self) -> char {
        (b'a' + self.below(26) as u8) as char
    }

    fn word(&mut self) -> String {
        let len = 1 + self.below(8);
        (0..len).map(|_| self.letter()).chain([' ']).collect()
    }
}
