//! AWQ in its GEMV form: outputs are rows.
//!
//! ```text
//! qweight  I32 [out, in / 8]    eight inputs in a word, the first in the lowest four bits
//! qzeros   I32 [out, words]     a zero of each group, likewise; more of them than groups, for alignment
//! scales       [out, 8 * words] likewise
//!
//! w[out][in] = scales[out][g] * (q[out][in] - zero[out][g])       g = in / group_size
//! ```
//!
//! As `WQLinear_GEMV` of AutoAWQ (`awq/modules/linear/gemv.py`) packs it.

use std::sync::Arc;

use serde_json::Value;

use super::levels::{Groups, Levels, Offsets, Parameters};
use super::method::{Read, Unsupported};
use super::stream::unpacked;
use super::{Content, Matrix, Set, Wrong};
use crate::dtype::Dtype;
use crate::raw::Raw;

pub(super) fn read(fields: &Value) -> Result<Read, Unsupported> {
    let names = ["group_size", "q_group_size"];
    // A size of -1 is that of the whole row.
    let Some(size) = names.iter().find_map(|name| fields.get(name).and_then(Value::as_i64)) else {
        return Err(Unsupported(
            "the weights are packed as AWQ `gemv`, and no `group_size` says by how many".to_owned(),
            "take the checkpoint with the field that the quantizer writes",
        ));
    };
    Ok(Box::new(move |set, main| matrix(set, main, size)))
}

fn matrix(set: &Set, main: &Raw, group_size: i64) -> Result<Option<Matrix>, Wrong> {
    let Some(stem) = main.name.strip_suffix(".qweight") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    set.take(&main.name);
    let (zeros, scales) = (set.need(&part("qzeros"))?, set.need(&part("scales"))?);
    let wrong = |what: &str| Wrong::Parts(what.to_owned());
    let ([outputs, words], [zero_rows, zero_words]) = (&main.shape[..], &zeros.shape[..]) else {
        return Err(wrong("and its zeros are no matrices"));
    };
    if [main.dtype, zeros.dtype] != [Dtype::I32; 2] {
        return Err(wrong("is not packed into words of 32 bits"));
    }
    let (Some(inputs), Some(room)) = (words.checked_mul(8), zero_words.checked_mul(8)) else {
        return Err(wrong("has a shape that nothing has"));
    };
    if zero_rows != outputs || scales.shape != [*outputs, room] {
        return Err(wrong("has scales or zeros of another shape than its own, or not 4 bits"));
    }
    let size = if group_size == -1 { inputs } else { u64::try_from(group_size).unwrap_or(0) };
    let groups = inputs.checked_div(size).filter(|count| count * size == inputs);
    let groups = groups.filter(|count| *count <= room).and_then(|n| Groups::even(inputs, n));
    let groups = groups.ok_or_else(|| {
        let what =
            format!("has {inputs} inputs and room for {room} groups, which are to have {size}");
        Wrong::Parts(what)
    })?;
    let levels = Arc::new(GemvLevels {
        weight: main.clone(),
        zeros: zeros.clone(),
        scales: scales.clone(),
        groups,
        shape: (*outputs, inputs),
    });
    let shape = vec![*outputs, inputs];
    Ok(Some(Matrix { name: part("weight"), shape, content: Content::Levels(levels) }))
}

struct GemvLevels {
    weight: Raw,
    zeros: Raw,
    scales: Raw,
    groups: Groups,
    shape: (u64, u64),
}

impl Levels for GemvLevels {
    fn shape(&self) -> (u64, u64) {
        self.shape
    }

    fn bits(&self) -> u32 {
        4
    }

    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn parameters(&self, first: u64, n: u64) -> Result<Parameters, gguf::Error> {
        let (words, count) = (self.zeros.shape[1], self.groups.count() as usize);
        let room = 8 * words as usize;
        let stored = self.scales.floats(first * 8 * words, n * 8 * words)?;
        let scales = stored.chunks_exact(room).flat_map(|row| &row[..count]).copied().collect();
        let stored: Vec<_> =
            unpacked(self.zeros.words(first * words, n * words)?.into_iter(), 4).collect();
        let zeros = stored.chunks_exact(room).flat_map(|row| &row[..count]);
        let zeros = zeros.map(|zero| i16::from(*zero)).collect();
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let words = self.weight.shape[1];
        let words = self.weight.words(first * words, n * words)?;
        Ok(unpacked(words.into_iter(), 4).collect())
    }
}
