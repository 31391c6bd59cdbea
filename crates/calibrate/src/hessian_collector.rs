//! Hessians collected while the caller runs the model, for example as an encoder.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gguf::Error;
use gguf_graph::RawGraph;
use gguf_runtime::{Observer, Value};

use crate::hessian::Hessian;
use crate::stage::{StageInput, program_stages};

/// Observer that accumulates the Hessians of a model. Keeps all sums in memory, so it suits small
/// models.
pub struct HessianCollector {
    /// Names of tensors that share an input.
    groups: Vec<Vec<String>>,
    /// Hessian by the first name of each group.
    sums: HashMap<String, Mutex<Hessian>>,
}

impl HessianCollector {
    /// Starts with empty sums. Ignores matrices of experts and of single heads.
    pub fn new(raw: &RawGraph) -> Self {
        let programs = raw.encoder.iter().chain([&raw.main]);
        let stages = programs.flat_map(|program| program_stages(program, raw, |_| true));
        let whole =
            stages.filter(|stage| matches!(stage.input, StageInput::Value { parts: 1, .. }));
        let groups: Vec<_> = whole.map(|stage| stage.tensors).collect();
        let width = |name: &str| {
            let weight = raw.weights.iter().find(|weight| weight.name == name);
            weight.and_then(|weight| weight.shape.first()).map_or(0, |n| *n as usize)
        };
        let first = |group: &Vec<String>| {
            (group[0].clone(), Mutex::new(Hessian::new(width(&group[0]), false)))
        };
        let sums = groups.iter().map(first).collect();
        Self { groups, sums }
    }

    /// Returns the names of tensors that share an input, with their Hessian.
    ///
    /// # Errors
    /// Returns `weights-unusable` if a sum is NaN or infinite.
    pub fn finish(mut self) -> Result<Vec<(Vec<String>, Hessian)>, Error> {
        let mut found = Vec::with_capacity(self.groups.len());
        for group in self.groups {
            let Some(hessian) = self.sums.remove(&group[0]) else { continue };
            let mut hessian = hessian.into_inner().unwrap_or_else(PoisonError::into_inner);
            hessian.symmetrize();
            hessian.require_finite(&group[0])?;
            found.push((group, hessian));
        }
        Ok(found)
    }
}

impl Observer for HessianCollector {
    fn matmul(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if let (Some(sums), None) = (self.sums.get(tensor), expert) {
            let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            if sums.n == x.width {
                sums.add(&x.data, None);
            }
        }
    }
}
