//! Scalar quantization levels.

use gguf_quant::QuantGrid;

use crate::lanes::{Lanes, ROWS};

/// Scalar quantization levels of a type.
pub(crate) struct Levels {
    /// First level and step, if the levels are evenly spaced.
    even: Option<(f32, f32)>,
    /// Midpoints between neighbouring levels.
    midpoints: Vec<f32>,
    values: Vec<f32>,
}

impl Levels {
    pub fn new(grid: &QuantGrid) -> Self {
        let values = if grid.unit == 1 { grid.values.clone() } else { Vec::new() };
        let step = values.get(1).map_or(0.0, |second| second - values[0]);
        let is_even = values.windows(2).all(|pair| pair[1] - pair[0] == step);
        let midpoints = values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        Self { even: (is_even && step > 0.0).then(|| (values[0], step)), midpoints, values }
    }

    /// Returns the indices and the values of the nearest levels.
    #[inline(always)]
    pub fn nearest(&self, x: &Lanes) -> (Lanes, Lanes) {
        let (mut number, mut value) = ([0.0; ROWS], [0.0; ROWS]);
        if let Some((first, step)) = self.even {
            let top = (self.values.len() - 1) as f32;
            for ((number, value), x) in number.iter_mut().zip(&mut value).zip(x) {
                *number = ((x - first) / step + 0.5).clamp(0.0, top + 0.5).floor().min(top);
                *value = first + step * *number;
            }
            return (number, value);
        }
        for half in &self.midpoints {
            for (number, x) in number.iter_mut().zip(x) {
                *number += if x > half { 1.0 } else { 0.0 };
            }
        }
        for (value, number) in value.iter_mut().zip(&number) {
            *value = self.values[*number as usize];
        }
        (number, value)
    }
}
