//! GPTQ in the Marlin kernel format: `X.B` and `X.s`, 4-bit with zero point 8.
//!
//! ```text
//! B  I32 [in / 16, out * 2]   16 inputs per row: tiles of 16 outputs, permuted in groups of four
//! tiles
//! s      [groups, out]        permuted in groups of 64 outputs (32, with one group for all inputs)
//!
//! w[out][in] = s[g][out] * (q[in][out] - 8)       g = in / (inputs / groups)
//! ```
//!
//! Packed as in `Layer.pack` of IST-DASLab's `marlin/__init__.py`; AutoGPTQ and vLLM write the same
//! format.

use std::sync::Arc;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::{Content, Matrix, MatrixError, TensorSet};
use crate::dtype::Dtype;
use crate::raw::Raw;

/// Inputs, and outputs, per tile.
const TILE: usize = 16;

/// Outputs of the four tiles that are packed together.
const OUTPUTS: usize = 4 * TILE;

/// Words of four tiles.
const WORDS: u64 = (TILE * OUTPUTS / 8) as u64;

pub(super) fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix(".B") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    set.take(&main.name);
    let scales = set.need(&part("s"))?;
    // Scratch memory of the kernel.
    set.take(&part("workspace"));
    let invalid = |what: &str| MatrixError::Parts(what.to_owned());
    let ([rows, words], [groups, outputs]) = (&main.shape[..], &scales.shape[..]) else {
        return Err(invalid("and its scales are not matrices"));
    };
    if main.dtype != Dtype::I32 {
        return Err(invalid("is not packed into 32-bit words"));
    }
    let inputs = rows.checked_mul(TILE as u64);
    let fits = outputs.is_multiple_of(OUTPUTS as u64) && outputs.checked_mul(2) == Some(*words);
    let (Some(inputs), true) = (inputs, fits) else {
        return Err(invalid("and its scales have different shapes, or it is not 4-bit"));
    };
    let groups = Groups::even(inputs, *groups)
        .ok_or_else(|| invalid("has a number of inputs that is not divisible by its groups"))?;
    let affine = Arc::new(MarlinMatrix {
        weight: main.clone(),
        scales: scales.clone(),
        groups,
        outputs: *outputs,
        positions: positions(),
    });
    let shape = vec![*outputs, inputs];
    Ok(Some(Matrix { name: part("weight"), shape, content: Content::Affine(affine) }))
}

/// Returns the packed position of each weight of four tiles, tile by tile, input by input. A thread
/// of the kernel gets eight weights of each tile: four inputs of two outputs that are eight apart,
/// even positions first.
fn positions() -> [u16; TILE * OUTPUTS] {
    let mut positions = [0; TILE * OUTPUTS];
    for thread in 0..32 {
        for tile in 0..4 {
            for (position, number) in [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate() {
                let (output, input_index) = (thread / 4 + 8 * (number / 4), number % 4);
                let input = 2 * (thread % 4) + input_index % 2 + 8 * (input_index / 2);
                let at = tile * TILE * TILE + input * TILE + output;
                positions[at] = (thread * 32 + tile * 8 + position) as u16;
            }
        }
    }
    positions
}

/// Returns the position of an output's scale in its permuted group.
fn scale_position(output: usize, groups: u64) -> usize {
    match groups {
        1 => output / 32 * 32 + output % 8 / 2 * 8 + output % 32 / 8 * 2 + output % 2,
        _ => output / 64 * 64 + output % 8 * 8 + output % 64 / 8,
    }
}

struct MarlinMatrix {
    weight: Raw,
    scales: Raw,
    groups: Groups,
    outputs: u64,
    positions: [u16; TILE * OUTPUTS],
}

impl Affine for MarlinMatrix {
    fn shape(&self) -> (u64, u64) {
        (self.outputs, self.weight.shape[0] * TILE as u64)
    }

    fn bits(&self) -> u32 {
        4
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn is_transposed(&self) -> bool {
        true
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let count = self.groups.count();
        let (from, to) = packed_range(first, n);
        let mut scales = vec![0.0; (n * count) as usize];
        for group in 0..count {
            let stored = self.scales.floats(group * self.outputs + from, to - from)?;
            for row in 0..n {
                let position = scale_position((first + row - from) as usize, count);
                scales[(row * count + group) as usize] = stored[position];
            }
        }
        let zeros = vec![8; scales.len()];
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let (rows, inputs) = (self.weight.shape[0], self.shape().1 as usize);
        let (from, to) = packed_range(first, n);
        let mut quants = vec![0; n as usize * inputs];
        for row in 0..rows {
            let begin = row * self.weight.shape[1] + from / OUTPUTS as u64 * WORDS;
            let words = self.weight.words(begin, (to - from) / OUTPUTS as u64 * WORDS)?;
            for output in 0..n as usize {
                let stored = (first - from) as usize + output;
                let four = &words[stored / OUTPUTS * WORDS as usize..];
                let tile = stored % OUTPUTS / TILE * TILE * TILE + stored % TILE;
                let out = &mut quants[output * inputs + row as usize * TILE..][..TILE];
                for (input, q) in out.iter_mut().enumerate() {
                    let position = usize::from(self.positions[tile + input * TILE]);
                    *q = (four[position / 8] >> (4 * (position % 8)) & 15) as u8;
                }
            }
        }
        Ok(quants)
    }
}

/// Returns the range of all outputs that are packed together with these.
fn packed_range(first: u64, n: u64) -> (u64, u64) {
    let len = OUTPUTS as u64;
    (first / len * len, (first + n).next_multiple_of(len))
}
