//! Operations that move rows, or parts of them.

use gguf::Error;
use gguf_graph::{Index, Pooling};

use super::{each_row, numbered};
use crate::run::{Inputs, Run};
use crate::value::Value;
use crate::weight::Matrix;

pub(super) fn features(run: &Run<'_>, out: &mut Value) {
    if let Inputs::Features(features) = run.inputs {
        out.data.copy_from_slice(&features.data);
    }
}

pub(super) fn embed(
    run: &Run<'_>,
    table: &Matrix,
    index: &Index,
    out: &mut Value,
) -> Result<(), Error> {
    let tokens = run.tokens();
    let of = |row: usize| match index {
        Index::Token => tokens[row].id as usize,
        Index::MappedToken(others) => {
            numbered::of_token(others, tokens[row].id, tokens[row].id) as usize
        }
        Index::Position => run.positions[row],
        Index::Row => row,
        Index::Zero => 0,
    };
    if let Some(number) = (0..out.rows).map(of).find(|number| *number >= table.rows) {
        let what = format!("{} has {} rows, and none for {number}", table.name, table.rows);
        let help = "the model knows no more positions: make the text shorter";
        return Err(Error::request("context-full", what, help));
    }
    each_row(out, |row, out| table.decode(of(row), out));
    Ok(())
}

pub(super) fn scale_by_position(
    run: &Run<'_>,
    x: &Value,
    offset: u32,
    length: u32,
    scale: f32,
    out: &mut Value,
) {
    each_row(out, |row, out| {
        let steps = ((run.positions[row] + offset as usize) / length as usize) as f32;
        let factor = (steps + 1.0).ln() * scale + 1.0;
        out.iter_mut().zip(x.row(row)).for_each(|(out, x)| *out = x * factor);
    });
}

pub(super) fn slice(x: &Value, groups: u32, start: u32, len: u32, out: &mut Value) {
    let (part, start, len) = (x.width / groups as usize, start as usize, len as usize);
    each_row(out, |row, out| {
        for (out, x) in out.chunks_exact_mut(len).zip(x.row(row).chunks_exact(part)) {
            out.copy_from_slice(&x[start..start + len]);
        }
    });
}

pub(super) fn join(a: &Value, b: &Value, groups: u32, shared: bool, out: &mut Value) {
    let groups = groups as usize;
    let first = a.width / groups;
    let second = if shared { b.width } else { b.width / groups };
    each_row(out, |row, out| {
        let (a, b) = (a.row(row), b.row(row));
        for (group, out) in out.chunks_exact_mut(first + second).enumerate() {
            let b = if shared { b } else { &b[group * second..(group + 1) * second] };
            out[..first].copy_from_slice(&a[group * first..(group + 1) * first]);
            out[first..].copy_from_slice(b);
        }
    });
}

pub(super) fn sum(x: &Value, out: &mut Value) {
    let len = x.width / out.width;
    each_row(out, |row, out| {
        for (out, part) in out.iter_mut().zip(x.row(row).chunks_exact(len)) {
            *out = part.iter().sum();
        }
    });
}

pub(super) fn select(run: &Run<'_>, x: &Value, out: &mut Value) {
    each_row(out, |row, out| out.copy_from_slice(x.row(run.outputs[row])));
}

pub(super) fn pool(run: &Run<'_>, x: &Value, kind: Pooling, out: &mut Value) {
    let has_all = x.rows == run.tokens().len();
    for ((_, rows), out) in run.groups.iter().zip(out.data.chunks_exact_mut(x.width)) {
        let place =
            |row: &usize| if has_all { Some(*row) } else { run.outputs.binary_search(row).ok() };
        let rows: Vec<usize> = rows.iter().filter_map(place).collect();
        let picked = match kind {
            Pooling::Cls => rows.first(),
            Pooling::Last => rows.last(),
            Pooling::Mean => None,
        };
        if let Some(row) = picked {
            out.copy_from_slice(x.row(*row));
            continue;
        }
        for row in &rows {
            out.iter_mut().zip(x.row(*row)).for_each(|(out, x)| *out += x);
        }
        out.iter_mut().for_each(|out| *out /= rows.len().max(1) as f32);
    }
}
