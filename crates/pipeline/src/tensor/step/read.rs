//! Partial reads of transformed tensors.

use super::{Step, integers};
use crate::tensor::Tensor;

impl Step {
    /// Maps a row after this step to its row before, for steps that move whole rows.
    fn source_row(self, row: u64, rows_before: u64) -> u64 {
        match self {
            Self::InterleaveHalves { heads } => {
                let per_head = rows_before / heads;
                let (head, within) = (row / per_head, row % per_head);
                head * per_head + (within % 2) * (per_head / 2) + within / 2
            }
            Self::Regroup { groups, kinds } => {
                let (mut within_kinds, mut start, mut kind) = (row, 0, 0);
                while kind < 2 && within_kinds >= groups * kinds[kind] {
                    within_kinds -= groups * kinds[kind];
                    start += kinds[kind];
                    kind += 1;
                }
                let group = within_kinds / kinds[kind];
                group * (rows_before / groups) + start + within_kinds % kinds[kind]
            }
            Self::SeparatePairs { heads } => {
                let per_head = rows_before / heads;
                let (head, within) = (row / per_head, row % per_head);
                let half = per_head / 2;
                head * per_head + (within % half) * 2 + within / half
            }
            Self::Ungroup { groups, kinds } => {
                let size = rows_before / groups;
                let (group, mut within) = (row / size, row % size);
                let (mut start, mut kind) = (0, 0);
                while kind < 2 && within >= kinds[kind] {
                    within -= kinds[kind];
                    start += groups * kinds[kind];
                    kind += 1;
                }
                start + group * kinds[kind] + within
            }
            Self::Exchange { groups, start, outer, inner, len } => {
                let size = rows_before / groups;
                let (group, within) = (row / size, row % size);
                if !(start..start + outer * inner * len).contains(&within) {
                    return row;
                }
                let (block, rest) = ((within - start) / len, (within - start) % len);
                let before = block % outer * inner + block / outer;
                group * size + start + before * len + rest
            }
            Self::ExchangeColumns { outer, inner, .. } => {
                let (whole, block) = (row / (outer * inner), row % (outer * inner));
                whole * outer * inner + block % outer * inner + block / outer
            }
            Self::Pick { groups, start, len } => {
                row / len * (rows_before / groups) + start + row % len
            }
            Self::Transpose
            | Self::Reshape { .. }
            | Self::Map(_)
            | Self::MapRows { .. }
            | Self::Pad { .. }
            | Self::ZeroFirst
            | Self::WithoutFirst
            | Self::Whole
            | Self::Decode => row,
        }
    }

    /// Fills `buffer` with the bytes of `to` starting at `offset`, where `to` is `from` after this
    /// step.
    pub(crate) fn read_at(
        self,
        from: &Tensor,
        to: &Tensor,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), gguf::Error> {
        match self {
            Self::Transpose => read_transposed(from, to, buffer, offset),
            Self::Reshape { .. } => from.read_at(buffer, offset),
            Self::Map(function) => read_mapped(|_, x| function.of(x), from, buffer, offset),
            Self::MapRows { groups, start, len, function } => {
                let (rows, unit) = from.units();
                let (group, changed) = (rows / groups, start..start + len);
                let is_changed = |at| changed.contains(&(at / unit % group));
                let of = |at, x| if is_changed(at) { function.of(x) } else { x };
                read_mapped(of, from, buffer, offset)
            }
            Self::Decode => read_mapped(|_, x| x, from, buffer, offset),
            Self::Whole => integers::read(from, buffer, offset),
            Self::ZeroFirst => {
                let part = first_slice(to);
                let zeros = part.saturating_sub(offset).min(buffer.len() as u64);
                let (zeros, stored) = buffer.split_at_mut(zeros as usize);
                zeros.fill(0);
                let behind = offset.saturating_sub(part);
                if stored.is_empty() { Ok(()) } else { from.read_at(stored, behind) }
            }
            Self::WithoutFirst => from.read_at(buffer, first_slice(from) + offset),
            Self::Pad { .. } => {
                let end = from.bytes_of(from.shape.iter().product());
                let stored = end.saturating_sub(offset).min(buffer.len() as u64);
                let (stored, zeros) = buffer.split_at_mut(stored as usize);
                zeros.fill(0);
                if stored.is_empty() { Ok(()) } else { from.read_at(stored, offset) }
            }
            _ => self.read_moved(from, buffer, offset),
        }
    }

    /// Reads moved rows or column blocks in runs as long as possible.
    fn read_moved(
        self,
        from: &Tensor,
        mut buffer: &mut [u8],
        mut offset: u64,
    ) -> Result<(), gguf::Error> {
        let (rows_before, unit_len) = match self {
            Self::ExchangeColumns { len, .. } => (from.shape.iter().product::<u64>() / len, len),
            _ => from.units(),
        };
        let unit_bytes = from.bytes_of(unit_len);
        while !buffer.is_empty() {
            let (unit, within) = (offset / unit_bytes, offset % unit_bytes);
            let start = self.source_row(unit, rows_before);
            let mut units = 1;
            while units * unit_bytes < within + buffer.len() as u64
                && self.source_row(unit + units, rows_before) == start + units
            {
                units += 1;
            }
            let len = (units * unit_bytes - within).min(buffer.len() as u64);
            let (run, rest) = buffer.split_at_mut(len as usize);
            from.read_at(run, start * unit_bytes + within)?;
            buffer = rest;
            offset += len;
        }
        Ok(())
    }
}

/// Number of bytes of the first slice along the slowest dimension.
fn first_slice(tensor: &Tensor) -> u64 {
    tensor.bytes_of(tensor.shape.iter().rev().skip(1).product())
}

/// Reads rows of a transposed tensor: reads a strip of columns of `from`, then transposes it.
fn read_transposed(
    from: &Tensor,
    to: &Tensor,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), gguf::Error> {
    let element = from.bytes_of(1);
    let (columns, rows) = (from.shape.row_len(), to.shape.row_len());
    let row_bytes = rows * element;
    let mut strip = Vec::new();
    let (mut at, end) = (offset, offset + buffer.len() as u64);
    while at < end {
        let (matrix, column) = (at / row_bytes / columns, at / row_bytes % columns);
        let last = (end.div_ceil(row_bytes) - matrix * columns).min(columns);
        from.read_columns(column..last, matrix * rows, rows, &mut strip)?;
        let width = ((last - column) * element) as usize;
        let until = end.min((matrix * columns + last) * row_bytes);
        let turned = buffer[(at - offset) as usize..(until - offset) as usize]
            .chunks_exact_mut(element as usize);
        for (out, place) in turned.zip(at % row_bytes / element..) {
            let (column, row) = ((place / rows) as usize, (place % rows) as usize);
            let start = row * width + column * element as usize;
            out.copy_from_slice(&strip[start..start + element as usize]);
        }
        at = until;
    }
    Ok(())
}

/// Decodes elements and maps each to F32; `change` also gets the index of the element.
fn read_mapped(
    function: impl Fn(u64, f32) -> f32,
    from: &Tensor,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), gguf::Error> {
    let first = offset / size_of::<f32>() as u64;
    let end = first + (buffer.len() / size_of::<f32>()) as u64;
    // Blocks are decoded whole; the shape is a multiple of the block length.
    let block = from.stored_type.block().map_or(1, |(elements, _)| elements);
    let start = first - first % block;
    let elements = end.next_multiple_of(block) - start;
    let mut stored = vec![0; from.bytes_of(elements) as usize];
    from.read_at(&mut stored, from.bytes_of(start))?;
    let mut values = vec![0.0; elements as usize];
    gguf_quant::decode_row(from.stored_type, &stored, &mut values)
        .map_err(|fault| gguf::Error::weights(&from.name, fault.to_string()))?;
    let values = &values[(first - start) as usize..];
    for ((out, x), at) in buffer.chunks_exact_mut(size_of::<f32>()).zip(values).zip(first..) {
        out.copy_from_slice(&function(at, *x).to_le_bytes());
    }
    Ok(())
}
