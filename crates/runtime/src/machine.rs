//! Limits of the machine: memory bandwidth and arithmetic throughput.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m512i;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pulp::{Arch, Simd, WithSimd};
#[cfg(target_arch = "x86_64")]
use pulp::{NullaryFnOnce, cast};
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use crate::avx512::V4Vnni;
use crate::{InstructionSet, system_memory};

/// Limits of the machine with the threads of the current rayon pool.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Number of threads.
    pub threads: usize,
    /// Memory read bandwidth of all threads, in bytes per second.
    pub bytes_per_second: f64,
    /// F32 multiply-adds of all threads from registers, per second.
    pub multiply_adds_per_second: f64,
    /// INT8 multiply-adds of all threads from registers, per second; `None` if they are not measured on this processor.
    pub int8_multiply_adds_per_second: Option<f64>,
}

impl Machine {
    /// Measures the machine, which takes about a second.
    pub fn measure() -> Self {
        Self {
            threads: rayon::current_num_threads(),
            bytes_per_second: read_bandwidth(SCAN),
            multiply_adds_per_second: multiply_adds(),
            int8_multiply_adds_per_second: int8_multiply_adds(),
        }
    }
}

/// Returns a text that differs between machines, numbers of threads, and versions of this library, whose measurements
/// differ.
pub fn identity() -> String {
    let threads = rayon::current_num_threads();
    let instructions = InstructionSet::best().name();
    let processor = processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {threads} threads, {instructions}, {}", env!("CARGO_PKG_VERSION"))
}

/// Returns the name of the processor; `None` if the system does not tell it.
pub fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the memory that programs can use now, in bytes; `None` if the system does not tell it.
pub fn available_memory() -> Option<u64> {
    system_memory::available()
}

/// Bytes that a bandwidth measurement scans.
const SCAN: usize = 256 << 20;

/// Returns the memory bandwidth of the current rayon pool in bytes per second: the best of several scans over
/// `len` bytes, which should be many times the size of the caches.
pub fn read_bandwidth(len: usize) -> f64 {
    const TASK: usize = 1 << 17;
    let memory = vec![1u64; len.max(8) / 8];
    let scan = || {
        let start = Instant::now();
        memory.par_chunks(TASK).for_each(|part| Arch::new().dispatch(Scan(part)));
        start.elapsed()
    };
    let best = (0..6).map(|_| scan()).min().unwrap_or_default();
    (8 * memory.len()) as f64 / best.as_secs_f64().max(1e-9)
}

struct Scan<'m>(&'m [u64]);

impl WithSimd for Scan<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut sums = [simd.splat_u64s(0); 4];
        let (vectors, _) = S::as_simd_u64s(self.0);
        for vectors in vectors.as_chunks().0 {
            for (sum, numbers) in sums.iter_mut().zip::<&[_; 4]>(vectors) {
                *sum = simd.add_u64s(*sum, *numbers);
            }
        }
        black_box(sums);
    }
}

/// Returns the F32 multiply-adds per second of the current rayon pool, from registers: the best of several
/// trials.
pub fn multiply_adds() -> f64 {
    let trial = |_| {
        let rates = rayon::broadcast(|_| Arch::new().dispatch(MultiplyAdds));
        rates.into_iter().sum()
    };
    (0..5).map(trial).fold(0.0, f64::max)
}

struct MultiplyAdds;

impl WithSimd for MultiplyAdds {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (factor, added) = (simd.splat_f32s(black_box(0.5)), simd.splat_f32s(black_box(1.0)));
        let multiply_adds = || {
            let mut sums = [added; CHAINS];
            for _ in 0..STEPS {
                for sum in &mut sums {
                    *sum = simd.mul_add_f32s(*sum, factor, added);
                }
            }
            black_box(sums.map(|sum| simd.reduce_sum_f32s(sum)));
        };
        rate(CHAINS * STEPS * S::F32_LANES, multiply_adds)
    }
}

/// Independent sums, as many as hide the latency of an instruction.
const CHAINS: usize = 12;

/// Instructions per sum between two looks at the clock.
const STEPS: usize = 10_000;

/// Returns how many of something are done per second, if a call of `work` does `count`.
#[inline(always)]
fn rate(count: usize, work: impl Fn()) -> f64 {
    let start = Instant::now();
    let mut calls = 0;
    let mut elapsed = Duration::ZERO;
    while elapsed < Duration::from_millis(20) {
        work();
        calls += 1;
        elapsed = start.elapsed();
    }
    (calls * count) as f64 / elapsed.as_secs_f64()
}

/// Returns the INT8 multiply-adds per second of the current rayon pool, from registers: the best of several trials.
/// `None` without AVX-512 VNNI; AMX is faster, and not measured.
pub fn int8_multiply_adds() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = V4Vnni::try_new() {
        let trial = |_| {
            let rates = rayon::broadcast(|_| simd.vectorize(Int8MultiplyAdds(simd)));
            rates.into_iter().sum()
        };
        return Some((0..5).map(trial).fold(0.0, f64::max));
    }
    None
}

#[cfg(target_arch = "x86_64")]
struct Int8MultiplyAdds(V4Vnni);

#[cfg(target_arch = "x86_64")]
impl NullaryFnOnce for Int8MultiplyAdds {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        let Self(simd) = self;
        let bytes = |value: u8| cast([black_box(value); 64]);
        let (unsigned, signed): (__m512i, __m512i) = (bytes(3), bytes(1));
        let multiply_adds = || {
            let mut sums = [bytes(0); CHAINS];
            for _ in 0..STEPS {
                for sum in &mut sums {
                    *sum = simd.add_bytes(*sum, unsigned, signed);
                }
            }
            black_box(sums);
        };
        rate(CHAINS * STEPS * 64, multiply_adds)
    }
}
