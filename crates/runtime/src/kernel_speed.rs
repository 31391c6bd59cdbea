//! Measured speed of matrix multiplications, from which the speed of a model is estimated.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gguf::{Error, TensorType};

use crate::instructions::InstructionSet;
use crate::matmul::{MatmulContext, Precision, matmul};
use crate::matrix::Matrix;
use crate::memory_budget::MemoryBudget;
use crate::repack::RepackBudget;
use crate::system_memory;
use crate::value::Value;
use crate::watch::Watch;

/// A matrix whose multiplication is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelShape {
    /// Tensor type.
    pub tensor_type: TensorType,
    /// Elements of a row: the width of the input.
    pub columns: u64,
    /// Number of rows: the width of the output.
    pub rows: u64,
}

/// Measured time of a matrix multiplication, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelTime {
    /// With one token.
    pub token: f64,
    /// With [`PROMPT`] tokens.
    pub prompt: f64,
}

/// Number of tokens of a measured prompt.
pub const PROMPT: usize = 512;

/// Number of passes over all copies before the measurement: enough that weights are repacked.
const WARM_UP: usize = 6;

/// Time of a measurement. The best of several repetitions counts.
const TIME: Duration = Duration::from_millis(120);

impl KernelShape {
    /// Measures the multiplication with 8-bit activations on the threads of the current rayon pool. Copies of the
    /// matrix take `working_set` bytes, so that the caches hold as much of them as of a model of this size.
    ///
    /// # Errors
    /// `tensor-shape` if no kernel multiplies the type, or a row is not a multiple of its block.
    pub fn measure(self, working_set: u64) -> Result<KernelTime, Error> {
        let shape = [self.columns, self.rows];
        let len = self.tensor_type.byte_len(&shape).unwrap_or(0);
        let count = (working_set / len.max(1)).max(1);
        let bytes = weights(len);
        let copy = || bytes.clone().into();
        let matrices =
            (0..count).map(|_| Matrix::from_bytes("measured", &shape, self.tensor_type, copy()));
        let matrices = matrices.collect::<Result<Vec<_>, Error>>()?;
        let available = system_memory::available().unwrap_or(u64::MAX);
        let memory = Arc::new(MemoryBudget::new(u64::MAX));
        let budget = RepackBudget::within(RepackBudget::share(available), memory);
        let watch = Watch::new(&());
        let simd = InstructionSet::best().require()?;
        let precision = Precision::Fast;
        let context = MatmulContext { precision, simd, repack_budget: &budget, watch: &watch };
        let input = |tokens: usize| {
            let data =
                (0..tokens * self.columns as usize).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0);
            Value { rows: tokens, width: self.columns as usize, data: data.collect() }
        };
        let measure = |tokens: usize, matrices: &[Matrix], warm_up: usize| {
            let (x, rows) = (input(tokens), self.rows as usize);
            let mut out = Value::zeros(tokens, rows, Vec::new());
            let mut pass = || {
                let start = Instant::now();
                matrices.iter().for_each(|matrix| matmul(context, matrix, (&x).into(), &mut out));
                start.elapsed()
            };
            for _ in 0..warm_up {
                pass();
            }
            let (start, mut best) = (Instant::now(), Duration::MAX);
            let mut repetitions = 0;
            while repetitions < 3 || start.elapsed() < TIME {
                best = best.min(pass());
                repetitions += 1;
            }
            best.as_secs_f64() / matrices.len() as f64
        };
        let token = measure(1, &matrices, WARM_UP);
        Ok(KernelTime { token, prompt: measure(PROMPT, &matrices[..1], 1) })
    }
}

/// Returns pseudo-random weights: the time of some kernels depends on them.
fn weights(len: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Small exponents in each half: scales are finite.
        state & 0xbfff_bfff_bfff_bfff
    };
    (0..len.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(len as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_type_is_measured() {
        for name in ["Q4_K", "Q6_K", "Q8_0", "Q4_0", "IQ3_S", "BF16", "F32"] {
            let tensor_type = name.parse().unwrap();
            let shape = KernelShape { tensor_type, columns: 256, rows: 32 };
            let time = shape.measure(1 << 16).unwrap();
            assert!(time.token > 0.0 && time.prompt > 0.0, "{name}: {time:?}");
        }
        let odd = KernelShape { tensor_type: TensorType::Q4_K, columns: 100, rows: 32 };
        assert_eq!(odd.measure(0).unwrap_err().code(), "tensor-shape");
    }
}
