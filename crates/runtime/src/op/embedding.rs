//! `embedding`

use gguf::Error;
use gguf_graph::{Embedding, Index};

use super::Kernel;
use super::parallel::each_row;
use super::token_constant::by_token;
use crate::run::Run;
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Embedding {
    fn check(&self, run: &Run<'_>, rows: usize) -> Result<(), Error> {
        let table = run.executor.weights.matrix(self.table);
        let mut indices = (0..rows).map(|row| index(&self.index, run, row));
        let Some(index) = indices.find(|index| *index >= table.rows) else { return Ok(()) };
        let what = format!("{} has {} rows, and none for {index}", table.name, table.rows);
        let help = "the model knows no more positions: make the text shorter";
        Err(Error::request("context-full", what, help))
    }

    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        let table = run.executor.weights.matrix(self.table);
        let index = |row| index(&self.index, run, row);
        each_row(out, |row, out| table.decode(index(row), out));
        run.executor.adapters.add_rows(run.watch, self.table, index, out);
    }
}

/// Returns the row of the table for a row of the output.
fn index(index: &Index, run: &Run<'_>, row: usize) -> usize {
    match index {
        Index::Token => run.tokens()[row].id as usize,
        Index::MappedToken(map) => {
            let id = run.tokens()[row].id;
            by_token(map, id, id) as usize
        }
        Index::Position => run.positions[row],
        Index::Row => row,
        Index::Zero => 0,
    }
}
