//! Moments that are summed while a model does what it is made for: those of its encoder, too.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gguf::Error;
use gguf_graph::RawGraph;
use gguf_runtime::{Observer, Value};

use crate::moments::Moments;
use crate::stage::{Entering, stages_of};

/// Sums what enters the matrices of a model. All sums are in memory, so it is for small models.
pub struct Collector {
    /// Tensors that are multiplied with the same.
    groups: Vec<Vec<String>>,
    /// By the first of them.
    sums: HashMap<String, Mutex<Moments>>,
}

impl Collector {
    /// Of nothing yet. Matrices of experts and of single heads are left out.
    pub fn new(raw: &RawGraph) -> Self {
        let programs = raw.encoder.iter().chain([&raw.main]);
        let stages = programs.flat_map(|program| stages_of(program, raw, |_| true));
        let whole =
            stages.filter(|stage| matches!(stage.entering, Entering::Value { parts: 1, .. }));
        let groups: Vec<_> = whole.map(|stage| stage.tensors).collect();
        let width = |name: &str| {
            let weight = raw.weights.iter().find(|weight| weight.name == name);
            weight.and_then(|weight| weight.shape.first()).map_or(0, |n| *n as usize)
        };
        let first = |group: &Vec<String>| {
            (group[0].clone(), Mutex::new(Moments::new(width(&group[0]), false)))
        };
        let sums = groups.iter().map(first).collect();
        Self { groups, sums }
    }

    /// The names of tensors that are multiplied with the same, and the moments of that.
    ///
    /// # Errors
    /// `weights-unusable` if a sum is no number.
    pub fn finish(mut self) -> Result<Vec<(Vec<String>, Moments)>, Error> {
        let mut found = Vec::with_capacity(self.groups.len());
        for group in self.groups {
            let Some(moments) = self.sums.remove(&group[0]) else { continue };
            let mut moments = moments.into_inner().unwrap_or_else(PoisonError::into_inner);
            moments.complete();
            moments.require_numbers(&group[0])?;
            found.push((group, moments));
        }
        Ok(found)
    }
}

impl Observer for Collector {
    fn product(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if let (Some(sums), None) = (self.sums.get(tensor), expert) {
            let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
            if sums.n == x.width {
                sums.add(&x.data, None);
            }
        }
    }
}
