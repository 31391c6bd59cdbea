//! GPTQ in the form of the Marlin kernels: `X.B` and `X.s`, four bits around 8.
//!
//! ```text
//! B  I32 [in / 16, out * 2]   of 16 inputs: tiles of 16 outputs side by side, four tiles in an order of their own
//! s      [groups, out]        of each 64 outputs (32, with one group for all inputs) in an order of its own
//!
//! w[out][in] = s[g][out] * (q[in][out] - 8)       g = in / (inputs / groups)
//! ```
//!
//! As `Layer.pack` of IST-DASLab's `marlin/__init__.py` has it; AutoGPTQ and vLLM write the same.

use std::sync::Arc;

use super::levels::{Groups, Levels, Offsets, Parameters};
use super::{Content, Matrix, Set, Wrong};
use crate::dtype::Dtype;
use crate::raw::Raw;

/// Inputs, and outputs, of a tile.
const TILE: usize = 16;

/// Outputs of the four tiles that are packed together.
const OUTPUTS: usize = 4 * TILE;

/// Words of four tiles.
const WORDS: u64 = (TILE * OUTPUTS / 8) as u64;

pub(super) fn matrix(set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
    let Some(stem) = main.name.strip_suffix(".B") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    set.take(&main.name);
    let scales = set.need(&part("s"))?;
    // Memory that the kernel works with.
    set.take(&part("workspace"));
    let wrong = |what: &str| Wrong::Parts(what.to_owned());
    let ([rows, words], [groups, outputs]) = (&main.shape[..], &scales.shape[..]) else {
        return Err(wrong("and its scales are no matrices"));
    };
    if main.dtype != Dtype::I32 {
        return Err(wrong("is not packed into words of 32 bits"));
    }
    let inputs = rows.checked_mul(TILE as u64);
    let fits = outputs.is_multiple_of(OUTPUTS as u64) && outputs.checked_mul(2) == Some(*words);
    let (Some(inputs), true) = (inputs, fits) else {
        return Err(wrong("has scales of another shape than its own, or not 4 bits"));
    };
    let groups = Groups::even(inputs, *groups)
        .ok_or_else(|| wrong("has inputs that do not divide into its groups"))?;
    let levels = Arc::new(MarlinLevels {
        weight: main.clone(),
        scales: scales.clone(),
        groups,
        outputs: *outputs,
        places: places(),
    });
    let shape = vec![*outputs, inputs];
    Ok(Some(Matrix { name: part("weight"), shape, content: Content::Levels(levels) }))
}

/// Where each number of four tiles is packed, tile by tile, input by input. A thread of the kernel gets eight
/// numbers of each tile: of two outputs eight apart those of four inputs, first every other one.
fn places() -> [u16; TILE * OUTPUTS] {
    let mut places = [0; TILE * OUTPUTS];
    for thread in 0..32 {
        for tile in 0..4 {
            for (place, number) in [0, 2, 4, 6, 1, 3, 5, 7].into_iter().enumerate() {
                let (output, of_input) = (thread / 4 + 8 * (number / 4), number % 4);
                let input = 2 * (thread % 4) + of_input % 2 + 8 * (of_input / 2);
                let at = tile * TILE * TILE + input * TILE + output;
                places[at] = (thread * 32 + tile * 8 + place) as u16;
            }
        }
    }
    places
}

/// Where the scale of an output is among those that are ordered together.
fn place_of_scale(output: usize, groups: u64) -> usize {
    match groups {
        1 => output / 32 * 32 + output % 8 / 2 * 8 + output % 32 / 8 * 2 + output % 2,
        _ => output / 64 * 64 + output % 8 * 8 + output % 64 / 8,
    }
}

struct MarlinLevels {
    weight: Raw,
    scales: Raw,
    groups: Groups,
    outputs: u64,
    places: [u16; TILE * OUTPUTS],
}

impl Levels for MarlinLevels {
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
        let (from, to) = together(first, n);
        let mut scales = vec![0.0; (n * count) as usize];
        for group in 0..count {
            let stored = self.scales.floats(group * self.outputs + from, to - from)?;
            for row in 0..n {
                let place = place_of_scale((first + row - from) as usize, count);
                scales[(row * count + group) as usize] = stored[place];
            }
        }
        let zeros = vec![8; scales.len()];
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let (rows, inputs) = (self.weight.shape[0], self.shape().1 as usize);
        let (from, to) = together(first, n);
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
                    let place = usize::from(self.places[tile + input * TILE]);
                    *q = (four[place / 8] >> (4 * (place % 8)) & 15) as u8;
                }
            }
        }
        Ok(quants)
    }
}

/// All outputs that are packed together with some.
fn together(first: u64, n: u64) -> (u64, u64) {
    let len = OUTPUTS as u64;
    (first / len * len, (first + n).next_multiple_of(len))
}
