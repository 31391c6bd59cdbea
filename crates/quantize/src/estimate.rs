//! Time estimates of jobs, from encoding a sample of each type on this machine.

use std::collections::HashMap;
use std::time::Instant;

use gguf::TensorType;
use gguf_pipeline::{Item, Job};

/// Minimum number of elements to encode for a throughput measurement.
const SAMPLE: usize = 64 * 1024;

/// Estimates the encoding time on all threads of the current rayon pool in seconds, to within about
/// 50%. Excludes reading, writing and other load of the machine.
pub fn seconds<'j>(jobs: impl Iterator<Item = &'j Job>) -> f64 {
    let mut speeds = HashMap::new();
    let mut total = 0.0;
    for item in jobs.flat_map(|job| &job.items) {
        if item.target == item.tensor.stored_type {
            continue;
        }
        let elements = item.tensor.shape.elements().unwrap_or(0) as f64;
        let key = (item.target, item.importance.is_some());
        total += elements * *speeds.entry(key).or_insert_with(|| seconds_per_element(item, key.0));
    }
    total / rayon::current_num_threads() as f64
}

/// Measures with random weights that are approximately normal.
fn seconds_per_element(item: &Item, ty: TensorType) -> f64 {
    let Some((block, _)) = ty.block() else { return 0.0 };
    let row_len = (block as usize).max(4096 / block as usize * block as usize);
    let mut state = 1u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    let row: Vec<f32> = (0..row_len).map(|_| uniform() + uniform() + uniform()).collect();
    let weights = item.importance.is_some().then(|| vec![1.0; row_len]);
    let mut out = vec![0; ty.byte_len(&[row_len as u64]).unwrap_or(0) as usize];
    let mut encode = || gguf_quant::encode_row(ty, &row, weights.as_deref(), &mut out);
    // Warm-up: some types build tables at first use.
    if encode().is_err() {
        return 0.0;
    }
    let (start, mut done) = (Instant::now(), 0);
    while done < SAMPLE && encode().is_ok() {
        done += row_len;
    }
    start.elapsed().as_secs_f64() / done as f64
}
