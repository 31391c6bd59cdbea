//! Reading of weights before operations need them, and models that are larger than memory.
//!
//! Memory-mapped weights are read when they are accessed, a few pages at a time. So the first run tells the system which
//! weights it needs next. If the weights do not fit into memory, plain paging would read all of them for each token: it
//! evicts the page that was used least recently, which is the next one to be needed. So as many weights as fit stay in memory,
//! and the others are evicted right after their use.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use gguf_graph::{Graph, Op, Program, WeightId};
use gguf_store::Advice;

use crate::weights::Weights;

/// Parts of the available memory: weights that stay, and weights that are read ahead. The rest is for values, caches and the program.
const STAYING: f64 = 0.75;
const AHEAD: f64 = 0.1;

/// Bytes that are read ahead, if all weights fit.
const FIRST_AHEAD: u64 = 64 << 20;

/// Which weights of a model are read ahead.
pub(crate) struct ReadAhead {
    /// Weights that do not stay in memory.
    evicted: HashSet<u32>,
    /// Maximum number of bytes that are read ahead.
    window: u64,
    /// Whether the weights do not fit into memory.
    pub exceeds_memory: bool,
    /// Whether a run has read all weights.
    is_warm: AtomicBool,
}

impl ReadAhead {
    /// Returns the plan for memory of which `available` bytes are left.
    pub fn plan(graph: &Graph, weights: &Weights, available: u64) -> Self {
        let bytes = |id: &u32| weights.mapped_bytes(WeightId(*id));
        let ids = 0..graph.raw().weights.len() as u32;
        let exceeds_memory = ids.clone().map(|id| bytes(&id)).sum::<u64>() > available;
        let mut plan = Self {
            evicted: HashSet::new(),
            window: FIRST_AHEAD,
            exceeds_memory,
            is_warm: AtomicBool::new(false),
        };
        if !exceeds_memory {
            return plan;
        }
        plan.window = (AHEAD * available as f64) as u64;
        // Evenly distributed, so that the disk is busy while those that stay are multiplied.
        let mut read: Vec<u32> =
            read_whole(graph.main().0, 0..graph.main().0.ops.len()).map(|(_, id)| id.0).collect();
        let mut seen = HashSet::new();
        read.retain(|id| seen.insert(*id));
        let total: u64 = read.iter().map(bytes).sum();
        let share = STAYING * available as f64 / total.max(1) as f64;
        let (mut passed, mut staying) = (0, 0);
        for id in read {
            passed += bytes(&id);
            if (staying + bytes(&id)) as f64 <= share * passed as f64 {
                staying += bytes(&id);
            } else {
                plan.evicted.insert(id);
            }
        }
        plan
    }

    /// Returns the bytes of the weights that do not stay in memory.
    pub fn evicted_bytes(&self, weights: &Weights) -> u64 {
        self.evicted.iter().map(|id| weights.mapped_bytes(WeightId(*id))).sum()
    }

    /// Begins a run of some operations of a program; `None` if there is nothing to read ahead.
    pub fn begin<'r>(
        &'r self,
        weights: &'r Weights,
        program: &Program,
        ops: impl Iterator<Item = usize>,
    ) -> Option<RunAhead<'r>> {
        let is_warm = self.is_warm.load(Ordering::Relaxed);
        if is_warm && !self.exceeds_memory {
            return None;
        }
        let reads = read_whole(program, ops);
        let reads = reads.filter(|(_, id)| !is_warm || self.evicted.contains(&id.0)).collect();
        Some(RunAhead { plan: self, weights, reads, advised: 0, done: 0, ahead: 0 })
    }
}

/// Returns the operations that read all of a weight, with the weight, in order.
fn read_whole(
    program: &Program,
    ops: impl IntoIterator<Item = usize>,
) -> impl Iterator<Item = (usize, WeightId)> {
    let of_op = |number: usize| {
        let op = &program.ops[number];
        let by_part =
            matches!(op, Op::Embedding(_) | Op::NgramEmbedding(_) | Op::Moe(_) | Op::MatmulId(_));
        let ids = if by_part { Vec::new() } else { op.matrices() };
        ids.into_iter().map(move |id| (number, id))
    };
    ops.into_iter().flat_map(of_op)
}

/// A run that reads weights ahead.
pub(crate) struct RunAhead<'r> {
    plan: &'r ReadAhead,
    weights: &'r Weights,
    /// Operations and weights that they read.
    reads: Vec<(usize, WeightId)>,
    /// Number of reads that the system knows.
    advised: usize,
    /// Number of reads that were done.
    done: usize,
    /// Bytes of the reads in between.
    ahead: u64,
}

impl RunAhead<'_> {
    /// Reads ahead, before an operation. After the last read come the first ones, of the next run.
    pub fn before(&mut self, op: usize) {
        let count = self.reads.len();
        while self.advised < self.done + count {
            let (number, id) = self.reads[self.advised % count];
            let is_of_next_run = self.advised >= count;
            let is_due = !is_of_next_run && number <= op;
            if self.ahead >= self.plan.window && !is_due {
                break;
            }
            if !is_of_next_run || self.plan.evicted.contains(&id.0) {
                self.weights.advise(id, Advice::WillNeed);
            }
            self.ahead += self.weights.mapped_bytes(id);
            self.advised += 1;
        }
    }

    /// Evicts what an operation has read and does not stay in memory.
    pub fn after(&mut self, op: usize) {
        while let Some((_, id)) = self.reads.get(self.done).filter(|(number, _)| *number <= op) {
            if self.plan.evicted.contains(&id.0) {
                self.weights.advise(*id, Advice::Evict);
            }
            self.ahead -= self.weights.mapped_bytes(*id);
            self.done += 1;
        }
        if self.done == self.reads.len() {
            self.plan.is_warm.store(true, Ordering::Relaxed);
        }
    }
}
