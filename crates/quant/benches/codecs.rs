//! Measures the throughput of every codec on one thread, in million weights per second.
//!
//! `cargo bench -p gguf-quant --bench codecs [-- NAME] [--isa SET]` measures all types, or those
//! whose name contains NAME, with the widest instruction set or with SET: scalar, avx2, avx512,
//! neon.

use std::hint::black_box;
use std::time::{Duration, Instant};

use gguf::TensorType;
use gguf_quant::{InstructionSet, codec};

const COLUMNS: usize = 4096;
const TIME: Duration = Duration::from_millis(100);

/// Runs `f` on rows for about `TIME` and returns the throughput of the fastest run in million
/// weights per second.
fn speed(mut f: impl FnMut()) -> f64 {
    // Warm-up: some types build tables at first use.
    f();
    let (start, mut best) = (Instant::now(), Duration::MAX);
    while start.elapsed() < TIME {
        let run = Instant::now();
        f();
        best = best.min(run.elapsed());
    }
    COLUMNS as f64 / best.as_secs_f64() / 1e6
}

fn main() {
    let (mut wanted, mut instructions) = (String::new(), InstructionSet::widest());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--isa" {
            let name = arguments.next().expect("--isa is followed by a name");
            let mut sets = InstructionSet::available().into_iter();
            let set = sets.find(|set| set.to_string() == name);
            instructions = set.unwrap_or_else(|| panic!("this processor does not support {name}"));
        } else if !argument.starts_with('-') {
            // Cargo passes `--bench`, which is not a type name.
            wanted = argument;
        }
    }
    // Approximately normal: sums of four uniform numbers.
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    };
    let row: Vec<f32> = (0..COLUMNS).map(|_| (0..4).map(|_| uniform()).sum()).collect();
    let integers: Vec<f32> = row.iter().map(|x| (x * 64.0).trunc()).collect();
    let weights: Vec<f32> = (0..COLUMNS).map(|_| uniform() + 1.0).collect();

    println!(
        "{:<9} {:>10} {:>10} {:>10}   million weights/s by {instructions}",
        "type", "encode", "imatrix", "decode"
    );
    for ty in TensorType::all().filter(|ty| ty.name().contains(&wanted)) {
        let Some(codec) = codec(ty) else { continue };
        // Integer types accept integers only.
        let row = if ty.is_integer() { &integers } else { &row };
        let mut bytes = vec![0; ty.byte_len(&[COLUMNS as u64]).unwrap() as usize];
        let mut out = vec![0.0; COLUMNS];
        let weighted = speed(|| {
            codec.encode_row_with(instructions, black_box(row), Some(&weights), &mut bytes).unwrap()
        });
        let plain = match codec.requires_importance() {
            true => f64::NAN,
            false => speed(|| {
                codec.encode_row_with(instructions, black_box(row), None, &mut bytes).unwrap()
            }),
        };
        let decode =
            speed(|| codec.decode_row_with(instructions, black_box(&bytes), &mut out).unwrap());
        println!("{ty:<9} {plain:>10.1} {weighted:>10.1} {decode:>10.0}");
    }
}
