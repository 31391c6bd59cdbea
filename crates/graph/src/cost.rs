//! What running an operation costs.

use crate::graph::{Graph, Rows, Shape};
use crate::op::{LinearAttention, Mask, NumberedProduct, Op, Wkv};
use crate::raw::{Program, State, StateId, WeightId};

/// What a run is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Tokens that are computed together.
    pub tokens: u64,
    /// How many of them a result is asked for.
    pub outputs: u64,
    /// Tokens that came before them.
    pub before: u64,
    /// Frames of an encoder.
    pub frames: u64,
}

/// What one operation costs under a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Rows that it makes.
    pub rows: u64,
    /// Pairs of numbers that are multiplied and added; of operations on numbers one by one the
    /// numbers.
    pub multiply_adds: u64,
    /// Its weights, and which share of each is read.
    pub weights: Vec<(WeightId, f64)>,
}

impl Graph {
    /// The cost of each operation of the main program.
    pub fn costs(&self, load: Load) -> Vec<Cost> {
        let (program, shapes) = self.main();
        self.of_program(program, shapes, load)
    }

    /// The cost of each operation of the encoder; none if there is none.
    pub fn encoder_costs(&self, load: Load) -> Vec<Cost> {
        self.encoder()
            .map_or(Vec::new(), |(program, shapes)| self.of_program(program, shapes, load))
    }

    fn of_program(&self, program: &Program, shapes: &[Shape], load: Load) -> Vec<Cost> {
        let ops = program.ops.iter().zip(shapes);
        ops.map(|(op, shape)| self.cost(op, shapes, *shape, load)).collect()
    }

    /// Tokens that a row of a cache stands for.
    fn block_of(&self, id: StateId) -> u32 {
        match self.raw().states.get(id.0 as usize) {
            Some(State::Cache { block, .. }) => *block,
            _ => 1,
        }
    }

    fn cost(&self, op: &Op, shapes: &[Shape], shape: Shape, load: Load) -> Cost {
        let rows = load.rows(shape.rows);
        let elements = |id: WeightId| {
            let weight = self.raw().weights.get(id.0 as usize);
            weight.map_or(0, |weight| {
                weight.shape.iter().fold(1, |all: u64, n| all.saturating_mul(*n))
            })
        };
        let width = |id: crate::raw::ValueId| {
            shapes.get(id.0 as usize).map_or(0, |shape| u64::from(shape.width))
        };
        let mut share = 1.0;
        let one_by_one = rows.saturating_mul(shape.width.into());
        let multiply_adds = match op {
            Op::Product { weight, .. } | Op::HeadProduct { weight, .. } => {
                rows.saturating_mul(elements(*weight))
            }
            Op::NumberedProduct(NumberedProduct { weight, .. }) => {
                let shape = self.raw().weights.get(weight.0 as usize).map(|weight| &weight.shape);
                let count = shape.and_then(|shape| shape.get(2)).copied().unwrap_or(1).max(1);
                share = (rows as f64 / count as f64).min(1.0);
                rows.saturating_mul(elements(*weight) / count)
            }
            Op::Convolution { weight, .. } | Op::CausalConvolution { weight, .. } => {
                rows.saturating_mul(elements(*weight))
            }
            Op::Attention(attention) => {
                let numbers = u64::from(attention.key_len) + u64::from(attention.value_len);
                let mut pairs = load.pairs(attention.mask, shape.rows, rows);
                if let Some(among) = attention.among {
                    let most = width(among.chosen) / u64::from(among.groups.max(1));
                    let most = most.saturating_add(among.tail.into());
                    let most = most.saturating_mul(among.block.into());
                    pairs = pairs.min(rows.saturating_mul(most));
                }
                if let Some(blocks) = attention.blocks {
                    let len = self.block_of(blocks.state);
                    let seen = load.pairs(Mask::Causal, shape.rows, rows) / u64::from(len.max(1));
                    let most = blocks.chosen.map_or(u64::MAX, width);
                    pairs = pairs.saturating_add(seen.min(rows.saturating_mul(most)));
                }
                pairs.saturating_mul(numbers).saturating_mul(attention.heads.into())
            }
            Op::Choose(choose) => {
                let pairs = load.pairs(Mask::Causal, shape.rows, rows);
                let kept = pairs / u64::from(self.block_of(choose.state).max(1));
                kept.saturating_mul(width(choose.query))
            }
            Op::Compress(compress) => {
                // Each number once, in one block or the other: its weight, and its product.
                rows.saturating_mul(2 * width(compress.x))
            }
            Op::Experts(experts) => {
                let count = (width(experts.scores) / u64::from(experts.share.max(1))).max(1);
                let used = u64::from(experts.used);
                share = (rows.saturating_mul(used) as f64 / count as f64).min(1.0);
                let of_all: u64 = [experts.gate, Some(experts.up), Some(experts.down)]
                    .into_iter()
                    .flatten()
                    .map(elements)
                    .fold(0, u64::saturating_add);
                rows.saturating_mul(of_all / count * used)
            }
            Op::Scan(scan) => {
                let numbers = width(scan.b) / u64::from(scan.groups.max(1));
                one_by_one.saturating_mul(3 * numbers)
            }
            Op::Wkv(Wkv::V4 { .. }) => one_by_one.saturating_mul(8),
            Op::Wkv(Wkv::V6 { head_len, .. }) => {
                one_by_one.saturating_mul(3 * u64::from(*head_len))
            }
            Op::Wkv(Wkv::V7 { head_len, .. }) => {
                one_by_one.saturating_mul(5 * u64::from(*head_len))
            }
            Op::LinearAttention(LinearAttention { key, heads, rate, .. }) => {
                let key_len = width(*key) / u64::from(*heads).max(1);
                let passes = if rate.is_some() { 4 } else { 3 };
                one_by_one.saturating_mul(passes * key_len)
            }
            Op::Sinkhorn { iterations, .. } => {
                one_by_one.saturating_mul(2 * u64::from(*iterations))
            }
            Op::Combine { parts, .. } => one_by_one.saturating_mul(u64::from(*parts)),
            Op::Embed { table, .. } => {
                let count = elements(*table) / u64::from(shape.width.max(1));
                share = (rows as f64 / count.max(1) as f64).min(1.0);
                0
            }
            Op::Ngrams(ngrams) => {
                let looked_up = rows.saturating_mul(shape.width.into());
                share = (looked_up as f64 / elements(ngrams.table).max(1) as f64).min(1.0);
                0
            }
            Op::Features { .. }
            | Op::Mark(_)
            | Op::Slice { .. }
            | Op::Join { .. }
            | Op::Store { .. }
            | Op::Shift { .. }
            | Op::Select { .. } => 0,
            _ => one_by_one,
        };
        let weights = op.weights().into_iter().map(|id| (id, share)).collect();
        Cost { rows, multiply_adds, weights }
    }
}

impl Load {
    /// Rows of a value.
    fn rows(self, rows: Rows) -> u64 {
        match rows {
            Rows::Tokens => self.tokens,
            Rows::Outputs => self.outputs,
            Rows::Sequences => 1,
            Rows::Frames { stride } => self.frames.div_ceil(stride.into()),
        }
    }

    /// Pairs of a query and a key that attention looks at.
    fn pairs(self, mask: Mask, kind: Rows, rows: u64) -> u64 {
        let all = match kind {
            Rows::Frames { .. } => rows,
            _ => self.before.saturating_add(rows),
        };
        // Of n tokens in a row, the one in the middle stands for all.
        let middle = self.before.saturating_add(rows.div_ceil(2));
        let seen = match mask {
            Mask::All => all,
            Mask::Causal => middle,
            Mask::Window(n) | Mask::Chunk(n) => middle.min(n.into()),
            Mask::Around(n) => all.min(u64::from(n) + 1),
        };
        rows.saturating_mul(seen)
    }
}
