//! AWQ in the GEMV format: outputs are rows.
//!
//! ```text
//! qweight  I32 [out, in / 8]    eight inputs per word, the first in the lowest four bits
//! qzeros   I32 [out, words]     a zero per group, packed likewise; padded for alignment
//! scales       [out, 8 * words] padded likewise
//!
//! w[out][in] = scales[out][g] * (q[out][in] - zero[out][g])       g = in / group_size
//! ```
//!
//! Packed as in `WQLinear_GEMV` of AutoAWQ (`awq/modules/linear/gemv.py`).

use std::sync::Arc;

use serde_json::Value;

use super::affine::{Affine, Groups, Offsets, Parameters};
use super::bit_stream::unpack;
use super::method::{Read, Unsupported};
use super::{Content, Matrix, MatrixError, TensorSet};
use crate::dtype::Dtype;
use crate::raw::Raw;

pub(super) fn read(fields: &Value) -> Result<Read, Unsupported> {
    let names = ["group_size", "q_group_size"];
    // A size of -1 means the whole row.
    let Some(size) = names.iter().find_map(|name| fields.get(name).and_then(Value::as_i64)) else {
        return Err(Unsupported(
            "the weights are packed as AWQ `gemv`, and `group_size` is missing".to_owned(),
            "use a checkpoint with the field that the quantizer writes",
        ));
    };
    Ok(Box::new(move |set, main| matrix(set, main, size)))
}

fn matrix(set: &TensorSet, main: &Raw, group_size: i64) -> Result<Option<Matrix>, MatrixError> {
    let Some(stem) = main.name.strip_suffix(".qweight") else { return Ok(None) };
    let part = |end: &str| format!("{stem}.{end}");
    set.take(&main.name);
    let (zeros, scales) = (set.need(&part("qzeros"))?, set.need(&part("scales"))?);
    let invalid = |what: &str| MatrixError::Parts(what.to_owned());
    let ([outputs, words], [zero_rows, zero_words]) = (&main.shape[..], &zeros.shape[..]) else {
        return Err(invalid("and its zeros are not matrices"));
    };
    if [main.dtype, zeros.dtype] != [Dtype::I32; 2] {
        return Err(invalid("is not packed into 32-bit words"));
    }
    let (Some(inputs), Some(room)) = (words.checked_mul(8), zero_words.checked_mul(8)) else {
        return Err(invalid("has an invalid shape"));
    };
    if zero_rows != outputs || scales.shape != [*outputs, room] {
        return Err(invalid("and its scales or zeros have different shapes, or it is not 4-bit"));
    }
    let size = if group_size == -1 { inputs } else { u64::try_from(group_size).unwrap_or(0) };
    let groups = inputs.checked_div(size).filter(|count| count * size == inputs);
    let groups = groups.filter(|count| *count <= room).and_then(|n| Groups::even(inputs, n));
    let groups = groups.ok_or_else(|| {
        let what =
            format!("has {inputs} inputs and room for {room} groups; expected groups of {size}");
        MatrixError::Parts(what)
    })?;
    let affine = Arc::new(GemvMatrix {
        weight: main.clone(),
        zeros: zeros.clone(),
        scales: scales.clone(),
        groups,
        shape: (*outputs, inputs),
    });
    let shape = vec![*outputs, inputs];
    Ok(Some(Matrix { name: part("weight"), shape, content: Content::Affine(affine) }))
}

struct GemvMatrix {
    weight: Raw,
    zeros: Raw,
    scales: Raw,
    groups: Groups,
    shape: (u64, u64),
}

impl Affine for GemvMatrix {
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
            unpack(self.zeros.words(first * words, n * words)?.into_iter(), 4).collect();
        let zeros = stored.chunks_exact(room).flat_map(|row| &row[..count]);
        let zeros = zeros.map(|zero| i16::from(*zero)).collect();
        Ok(Parameters { scales, offsets: Offsets::Zeros(zeros) })
    }

    fn quants(&self, first: u64, n: u64) -> Result<Vec<u8>, gguf::Error> {
        let words = self.weight.shape[1];
        let words = self.weight.words(first * words, n * words)?;
        Ok(unpack(words.into_iter(), 4).collect())
    }
}
