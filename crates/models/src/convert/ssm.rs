//! State-space (Mamba) layers of hybrid models.

use gguf::Shape;
use gguf_pipeline::{Function, Step};

use crate::convert::tensor_names::{Table, captures, filled, renamed};
use crate::convert::{Mapping, steps};

/// Matrices and norms of most checkpoints.
pub const NAMES: Table = &[
    ("model.layers.{}.mamba.in_proj", "blk.{}.ssm_in"),
    ("model.layers.{}.mamba.conv1d", "blk.{}.ssm_conv1d"),
    ("model.layers.{}.mamba.x_proj", "blk.{}.ssm_x"),
    ("model.layers.{}.mamba.dt_proj", "blk.{}.ssm_dt"),
    ("model.layers.{}.mamba.dt_layernorm", "blk.{}.ssm_dt_norm"),
    ("model.layers.{}.mamba.b_layernorm", "blk.{}.ssm_b_norm"),
    ("model.layers.{}.mamba.c_layernorm", "blk.{}.ssm_c_norm"),
    ("model.layers.{}.mamba.norm", "blk.{}.ssm_norm"),
    ("model.layers.{}.mamba.out_proj", "blk.{}.ssm_out"),
];

/// Tensors other than matrices and norms.
const PARAMETERS: [(&str, &str); 3] = [
    ("model.layers.{}.mamba.A_log", "blk.{}.ssm_a"),
    ("model.layers.{}.mamba.D", "blk.{}.ssm_d"),
    ("model.layers.{}.mamba.dt_bias", "blk.{}.ssm_dt.bias"),
];

/// Returns the checkpoint names of tensors other than matrices and norms.
pub fn parameters() -> [&'static str; 3] {
    PARAMETERS.map(|(name, _)| name)
}

/// Dimensions of a state-space layer.
pub struct Sizes {
    pub inner: u32,
    pub kernel: u32,
    pub state: u32,
    /// Heads and groups of Mamba 2; `None` for Mamba 1.
    pub heads: Option<(u32, u32)>,
}

impl Sizes {
    /// Returns the channels of the convolution, which in Mamba 2 include B and C.
    fn channels(&self) -> u64 {
        let groups = self.heads.map_or(0, |(_, groups)| groups);
        u64::from(self.inner) + 2 * u64::from(groups) * u64::from(self.state)
    }

    /// Maps a tensor of a state-space layer; `None` for other tensors.
    pub fn mapping(&self, name: &str) -> Option<Mapping> {
        for (foreign, ours) in PARAMETERS {
            let Some(numbers) = captures(foreign, name) else { continue };
            let mut steps = Vec::new();
            // One number per head, as a matrix that broadcasts over the head.
            if let Some((heads, _)) = self.heads.filter(|_| !ours.ends_with("bias")) {
                steps.push(reshape(&[heads], &[1, heads]));
            }
            if ours.ends_with("ssm_a") {
                steps.push(Step::Map(Function::MinusExp));
            }
            return Some(Mapping::one(filled(ours, &numbers), steps));
        }
        let ours = renamed(name, &[NAMES])?;
        let mut steps = Vec::new();
        if ours.ends_with(".ssm_conv1d.weight") {
            steps.push(steps::channels(self.kernel, self.channels()));
        }
        if let Some((_, groups)) = self.heads.filter(|_| ours.ends_with(".ssm_norm.weight")) {
            let of_group = self.inner / groups.max(1);
            steps.push(reshape(&[self.inner], &[of_group, groups]));
        }
        Some(Mapping::one(ours, steps))
    }
}

/// Returns the step that reshapes a tensor without moving elements.
pub fn reshape(from: &[u32], to: &[u32]) -> Step {
    let shape = |dims: &[u32]| {
        let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
        Shape::new(&dims).unwrap_or_else(|| unreachable!("no caller has more than four"))
    };
    Step::Reshape { from: shape(from), to: shape(to) }
}
