//! Speed of a model, estimated from its header and from measured kernels.
//!
//! A token takes the time of its matrix multiplications, in proportion to the measured matrix of each tensor type; the
//! time of reading the KV cache; and a measured time for starting every other operation. In a prompt, other operations
//! take the time of their arithmetic (attention) and of their values (norms, activations, RoPE).

use std::collections::{BTreeMap, HashMap};

use gguf::{Error, Shape, TensorInfo, TensorType};
use gguf_graph::{Graph, Op, Workload};
use gguf_runtime::kernel_speed::{KernelShape, KernelTime, PROMPT};
use gguf_runtime::machine::{multiply_adds, read_bandwidth};
use gguf_store::{Model, Progress};
use serde::{Deserialize, Serialize};

/// Largest memory of the copies of a measured matrix, in bytes: several times the size of common caches.
const WORKING_SET: u64 = 192 << 20;

/// Smallest matrix whose time counts as that of starting an operation.
const SMALL: u64 = 32;

/// Share of the F32 multiply-adds of the processor that attention reaches in a prompt.
const ATTENTION_SHARE: f64 = 0.5;

/// Bytes that an operation reads and writes per number of its output: two inputs and the output in F32.
const VALUE_BYTES: f64 = 12.0;

/// Estimated tokens per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Prompt processing, in batches of [`PROMPT`] tokens at the start of a context.
    pub prompt: f64,
    /// Generation at the start of a context.
    pub generation: f64,
    /// Generation at the end of the context.
    pub generation_at_end: f64,
}

/// Measured speed of this machine, of what was needed so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSpeed {
    /// Memory read bandwidth of all threads, in bytes per second.
    bytes_per_second: Option<f64>,
    /// F32 multiply-adds per second of all threads.
    multiply_adds_per_second: Option<f64>,
    /// Time of starting an operation, in seconds.
    start: Option<f64>,
    /// Seconds of matrix multiplications, by type, columns, rows and working set.
    kernels: BTreeMap<String, KernelSeconds>,
}

/// Times of a matrix multiplication, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct KernelSeconds {
    token: f64,
    prompt: f64,
}

impl From<KernelTime> for KernelSeconds {
    fn from(time: KernelTime) -> Self {
        Self { token: time.token, prompt: time.prompt }
    }
}

/// Work of a run.
#[derive(Default)]
struct Work {
    /// Matrix multiplications by type.
    matrices: BTreeMap<TensorType, TypeWork>,
    /// Number of other operations.
    others: usize,
    /// Multiply-adds of other operations that are more than element-wise.
    other_multiply_adds: f64,
    /// Numbers that other operations write.
    other_values: f64,
}

/// Matrix multiplications of a type in a run.
#[derive(Default)]
struct TypeWork {
    /// Multiply-adds by columns and rows.
    multiply_adds: BTreeMap<(u64, u64), f64>,
    /// Bytes that are read.
    bytes: f64,
}

impl TypeWork {
    /// Returns columns and rows of the matrices with most of the work.
    fn typical(&self) -> (u64, u64) {
        let largest = self.multiply_adds.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        largest.map_or((SMALL, SMALL), |(shape, _)| *shape)
    }

    fn sum(&self) -> f64 {
        self.multiply_adds.values().sum()
    }
}

impl MachineSpeed {
    /// Estimates the speed of `model` with this graph. `cache_per_token` is the growth of the KV cache per token in bytes.
    /// Measures what was not measured before on the threads of the current rayon pool, about half a second per tensor
    /// type.
    ///
    /// # Errors
    /// If no kernel multiplies a type of the model, or `progress` stopped the work.
    pub fn estimate(
        &mut self,
        model: &Model,
        graph: &Graph,
        context: u64,
        cache_per_token: u64,
        progress: &dyn Progress,
    ) -> Result<Speed, Error> {
        let of = |tokens: u64| Workload { tokens, outputs: 1, past: 0, frames: 0 };
        let work = Work::new(model, graph, of(1));
        let batch = Work::new(model, graph, of(PROMPT as u64));
        let all: f64 = work.matrices.values().map(|work| work.bytes).sum();
        let working_set = (all as u64).min(WORKING_SET);
        let (mut token, mut prompt) = (0.0, 0.0);
        for (tensor_type, work) in &work.matrices {
            let (columns, rows) = work.typical();
            let time = self.kernel(*tensor_type, columns, rows, working_set, progress)?;
            let measured = (columns * rows) as f64;
            token += time.token * work.sum() / measured;
            let sum = batch.matrices.get(tensor_type).map_or(0.0, TypeWork::sum);
            prompt += time.prompt / PROMPT as f64 * sum / (measured * PROMPT as f64);
        }
        token += work.others as f64 * self.start()?;
        let arithmetic = batch.other_multiply_adds / (ATTENTION_SHARE * self.multiply_adds());
        let values = VALUE_BYTES * batch.other_values / self.bandwidth();
        prompt += (arithmetic + values) / PROMPT as f64;
        let at_end = token + context as f64 * cache_per_token as f64 / self.bandwidth();
        Ok(Speed { prompt: 1.0 / prompt, generation: 1.0 / token, generation_at_end: 1.0 / at_end })
    }

    fn kernel(
        &mut self,
        tensor_type: TensorType,
        columns: u64,
        rows: u64,
        working_set: u64,
        progress: &dyn Progress,
    ) -> Result<KernelSeconds, Error> {
        // Models of almost the same size share a measurement.
        let working_set = working_set.next_power_of_two();
        let key = format!("{tensor_type} {columns}x{rows} {working_set}");
        if let Some(known) = self.kernels.get(&key) {
            return Ok(*known);
        }
        progress.step(0)?;
        let time = KernelShape { tensor_type, columns, rows }.measure(working_set)?;
        self.kernels.insert(key, time.into());
        Ok(time.into())
    }

    fn start(&mut self) -> Result<f64, Error> {
        if let Some(known) = self.start {
            return Ok(known);
        }
        let small = KernelShape { tensor_type: TensorType::F32, columns: SMALL, rows: SMALL };
        let seconds = small.measure(0)?.token;
        self.start = Some(seconds);
        Ok(seconds)
    }

    fn multiply_adds(&mut self) -> f64 {
        *self.multiply_adds_per_second.get_or_insert_with(multiply_adds)
    }

    fn bandwidth(&mut self) -> f64 {
        *self.bytes_per_second.get_or_insert_with(|| read_bandwidth(WORKING_SET as usize))
    }
}

impl Work {
    fn new(model: &Model, graph: &Graph, workload: Workload) -> Self {
        let index = model.index();
        let tensors: HashMap<&str, &TensorInfo> =
            index.iter().map(|(name, tensor)| (*name, &tensor.info)).collect();
        let mut result = Self::default();
        let (program, shapes) = graph.main();
        for ((op, shape), cost) in program.ops.iter().zip(shapes).zip(graph.costs(workload)) {
            let multiplies =
                matches!(op, Op::Matmul(_) | Op::MatmulId(_) | Op::BatchedMatmul(_) | Op::Moe(_));
            if !multiplies {
                let values = cost.rows as f64 * f64::from(shape.width);
                let multiply_adds = cost.multiply_adds as f64;
                result.others += 1;
                result.other_values += values;
                result.other_multiply_adds +=
                    if multiply_adds > values { multiply_adds } else { 0.0 };
                continue;
            }
            let weights = cost.weights.iter().filter_map(|(id, share)| {
                let info = tensors.get(graph.raw().weights.get(id.0 as usize)?.name.as_str())?;
                Some((*info, matrix(&info.shape)?, info.shape.elements()? as f64 * share))
            });
            let weights: Vec<_> = weights.collect();
            // Weights of one operation share its work by their sizes.
            let elements: f64 = weights.iter().map(|(_, _, elements)| elements).sum();
            for (info, shape, part) in weights {
                let of_type = result.matrices.entry(info.tensor_type).or_default();
                let multiply_adds = cost.multiply_adds as f64 * part / elements.max(1.0);
                *of_type.multiply_adds.entry(shape).or_default() += multiply_adds;
                let whole = info.shape.elements().unwrap_or(1) as f64;
                of_type.bytes += info.byte_len().unwrap_or(0) as f64 * part / whole;
            }
        }
        result
    }
}

/// Returns columns and rows of a matrix, or of one of several; `None` for vectors.
fn matrix(shape: &Shape) -> Option<(u64, u64)> {
    Some((shape.row_len(), *shape.get(1)?)).filter(|(_, rows)| *rows > 1)
}
