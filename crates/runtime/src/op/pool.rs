//! `pool`

use gguf_graph::{Pool, Pooling};

use super::Kernel;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Pool {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let x = run.value(self.x);
        let has_all_tokens = x.rows == run.tokens().len();
        for ((_, rows), out) in run.groups.iter().zip(out.data.chunks_exact_mut(x.width)) {
            let row_of = |row: &usize| {
                if has_all_tokens { Some(*row) } else { run.outputs.binary_search(row).ok() }
            };
            let rows: Vec<usize> = rows.iter().filter_map(row_of).collect();
            let selected = match self.kind {
                Pooling::Cls => rows.first(),
                Pooling::Last => rows.last(),
                Pooling::Mean => None,
            };
            if let Some(row) = selected {
                out.copy_from_slice(x.row(*row));
                continue;
            }
            for row in &rows {
                out.iter_mut().zip(x.row(*row)).for_each(|(out, x)| *out += x);
            }
            out.iter_mut().for_each(|out| *out /= rows.len().max(1) as f32);
        }
    }
}
