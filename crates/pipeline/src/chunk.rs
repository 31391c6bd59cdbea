//! A chunk: the rows of a tensor that a worker processes at a time.

use std::ops::Range;

use gguf::endian::swap_blocks;
use gguf::{ByteOrder, Error, Finding, TensorType};
use gguf_store::Output;

use crate::task::{Destination, Task};

/// Maximum number of elements per chunk, unless one row has more: small enough for the buffers to
/// stay in the core's cache, large enough for long sequential reads.
const CHUNK: u64 = 128 * 1024;

/// Buffers that a worker reuses between chunks.
#[derive(Default)]
pub(super) struct Buffers {
    stored: Vec<u8>,
    floats: Vec<f32>,
    encoded: Vec<u8>,
}

/// Some rows of one tensor.
pub(super) struct Chunk<'t, 'j> {
    task: &'t Task<'j>,
    first_row: u64,
    rows: u64,
}

impl<'t, 'j> Chunk<'t, 'j> {
    /// Splits a tensor into chunks.
    pub fn split(task: &'t Task<'j>) -> impl Iterator<Item = Self> {
        let (rows, row_len) = task.tensor.copied_rows();
        let rows_per_chunk = CHUNK.checked_div(row_len).unwrap_or(rows).max(1);
        let has_data = row_len > 0;
        (0..if has_data { rows } else { 0 }).step_by(rows_per_chunk as usize).map(
            move |first_row| Self { task, first_row, rows: rows_per_chunk.min(rows - first_row) },
        )
    }

    /// Number of bytes of the chunk in all outputs together.
    pub fn byte_len(&self) -> u64 {
        let ranges = self.task.destinations.iter().map(|to| self.range(to));
        ranges.map(|range| range.end - range.start).sum()
    }

    /// Whether an earlier run has uploaded the chunk to every remote output.
    pub fn is_uploaded(&self, outputs: &[Output]) -> bool {
        self.task.destinations.iter().all(|to| outputs[to.output].is_uploaded(self.range(to)))
    }

    /// Byte range of the chunk in an output.
    fn range(&self, to: &Destination) -> Range<u64> {
        let row_bytes = self.row_bytes(to);
        let first = to.offset + self.first_row * row_bytes;
        first..first + self.rows * row_bytes
    }

    /// Number of bytes per row in an output. The headers were checked: rows are whole blocks.
    fn row_bytes(&self, to: &Destination) -> u64 {
        let tensor = self.task.tensor;
        match tensor.opaque_len() {
            Some(_) => 1,
            None => to.item.target.byte_len(&[tensor.shape.row_len()]).unwrap_or(0),
        }
    }

    /// Reads, converts and writes the rows for every output, and returns the number of bytes
    /// written. Errors about the data name the source file.
    pub fn process(&self, buffers: &mut Buffers, outputs: &[Output]) -> Result<u64, Error> {
        self.pass_on(buffers, outputs).map_err(|error| self.task.tensor.at_fault(error))
    }

    fn pass_on(&self, buffers: &mut Buffers, outputs: &[Output]) -> Result<u64, Error> {
        let Task { tensor, check_finite, destinations } = self.task;
        let Buffers { stored, floats, encoded } = buffers;
        tensor.read_rows(self.first_row, self.rows, stored)?;
        let stays = |to: &Destination| to.item.target == tensor.stored_type;
        let without_loss = |to: &Destination| {
            gguf_quant::lossless::is_possible(tensor.stored_type, to.item.target)
        };
        // Encoders of block types reject NaN and infinity themselves.
        let is_encoded =
            |to: &Destination| to.item.target.is_quantized() && !stays(to) && !without_loss(to);
        let check_stored = || match check_finite {
            true => self.check_finite(tensor.stored_type, stored),
            false => Ok(()),
        };
        if !destinations.iter().any(is_encoded) {
            check_stored()?;
        }
        if !destinations.iter().all(|to| stays(to) || without_loss(to)) {
            floats.resize((self.rows * tensor.shape.row_len()) as usize, 0.0);
            gguf_quant::decode_row(tensor.stored_type, stored, floats)
                .map_err(|fault| Error::weights(&tensor.name, fault.to_string()))?;
        }
        for to in destinations {
            let bytes = if stays(to) {
                &*stored
            } else if without_loss(to) {
                encoded.resize((self.rows * self.row_bytes(to)) as usize, 0);
                gguf_quant::lossless::convert(tensor.stored_type, stored, to.item.target, encoded)
                    .map_err(|fault| Error::weights(&tensor.name, fault.to_string()))?;
                &*encoded
            } else {
                // For NaN and infinity the check of the source gives the better message.
                self.encode(to, floats, encoded).or_else(|fault| check_stored().and(Err(fault)))?;
                &*encoded
            };
            let offset = self.range(to).start;
            if to.order == ByteOrder::Big {
                let mut turned = bytes.to_vec();
                if !swap_blocks(to.item.target, &mut turned) {
                    let what = format!("{} cannot be converted to big-endian", to.item.target);
                    return Err(Error::weights(&tensor.name, what));
                }
                outputs[to.output].write_at(&turned, offset)?;
                continue;
            }
            outputs[to.output].write_at(bytes, offset)?;
        }
        Ok(self.byte_len())
    }

    fn encode(&self, to: &Destination, floats: &[f32], encoded: &mut Vec<u8>) -> Result<(), Error> {
        let target = to.item.target;
        let tensor = self.task.tensor;
        encoded.resize((self.rows * self.row_bytes(to)) as usize, 0);
        to.item
            .encode(target, self.first_row, floats, encoded)
            .map_err(|fault| Error::weights(&tensor.name, fault.to_string()))?;
        self.check_range(target, encoded)
    }

    /// Rejects NaN and infinity in the source: one such weight spoils the model.
    fn check_finite(&self, stored_type: TensorType, stored: &[u8]) -> Result<(), Error> {
        match gguf_quant::find_bad_block(stored_type, stored) {
            Ok(Some(bad)) => {
                let what = format!("{} in {}", bad.value, self.place(bad.element as u64));
                let finding = Finding::error("weights-not-finite", what)
                    .tensor(&*self.task.tensor.name)
                    .help("the checkpoint is damaged: download it again");
                Err(finding.into())
            }
            // A type without a codec is copied unchanged.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Rejects values that overflow the target type: F16 elements beyond 65504, or scales of blocks.
    fn check_range(&self, target: TensorType, encoded: &[u8]) -> Result<(), Error> {
        match gguf_quant::find_bad_block(target, encoded) {
            Ok(Some(bad)) => {
                let what = format!("{} is too large for {target}", self.place(bad.element as u64));
                let finding = Finding::error("weights-too-large", what)
                    .tensor(&*self.task.tensor.name)
                    .help("choose bf16 or f32 for this tensor");
                Err(finding.into())
            }
            _ => Ok(()),
        }
    }

    /// Describes the position of an element of the chunk.
    fn place(&self, element: u64) -> String {
        let row_len = self.task.tensor.shape.row_len();
        format!("row {}, column {}", self.first_row + element / row_len, element % row_len)
    }
}
