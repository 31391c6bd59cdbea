//! Activations of the models between stages, in a temporary file: their size grows with the text,
//! and memory use must not.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gguf::Error;
use gguf_graph::ValueId;
use gguf_runtime::{LiveValues, Value};
use half::bf16;
use pulp::bytemuck::{cast_slice, cast_slice_mut};
use rayon::prelude::*;

/// Memory of values that are no longer needed, for those that are read next. The system would have to clear new
/// memory, page by page.
#[derive(Default)]
pub(crate) struct SpareMemory(Mutex<Vec<Vec<f32>>>);

impl SpareMemory {
    /// Takes memory for `len` numbers, which have any value.
    fn take(&self, len: usize) -> Vec<f32> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let large = (0..spare.len()).filter(|place| spare[*place].capacity() >= len);
        let best = large.min_by_key(|place| spare[*place].capacity());
        let mut memory = best.map(|place| spare.swap_remove(place)).unwrap_or_default();
        memory.resize(len, 0.0);
        memory
    }

    /// Returns a value of the shape of another, whose rows `fill` computes.
    pub fn value(&self, shape: &Value, fill: impl Fn(usize, &mut [f32]) + Sync) -> Value {
        let mut data = self.take(shape.data.len());
        let rows = data.par_chunks_mut(shape.width.max(1)).enumerate();
        rows.for_each(|(number, row)| fill(number, row));
        Value { data, ..*shape }
    }

    /// Gives the memory of values; frees it if there is enough.
    pub fn give(&self, values: impl IntoIterator<Item = Value>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = MAX_SPARE.saturating_sub(spare.len());
        spare.extend(values.into_iter().map(|value| value.data).take(wanted));
    }
}

/// Number of values that are kept: an input and a residual stream of two models.
const MAX_SPARE: usize = 4;

/// Activations of all chunks, in the order in which they were written. Only this process reads them, so
/// numbers have the byte order of the processor.
pub(crate) struct ActivationFile {
    path: PathBuf,
    writer: BufWriter<File>,
    /// Shapes of the values of each chunk: rows and width.
    shapes: Vec<Vec<(ValueId, usize, usize)>>,
    /// Values that are stored in BF16.
    halves: Arc<HashSet<ValueId>>,
    /// Memory for values in BF16.
    half_values: Vec<u16>,
}

impl ActivationFile {
    /// Creates an empty, unnamed file in a directory, which stores `halves` in BF16 and all other
    /// values in F32.
    pub fn new(directory: &Path, halves: Arc<HashSet<ValueId>>) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(directory).map_err(|fault| failed(directory, fault))?;
        let (path, writer) = (directory.to_owned(), BufWriter::new(file));
        Ok(Self { path, writer, shapes: Vec::new(), halves, half_values: Vec::new() })
    }

    /// Appends the values of the next chunk.
    pub fn write(&mut self, values: &LiveValues) -> Result<(), Error> {
        let shape = |(id, value): (&ValueId, &Value)| (*id, value.rows, value.width);
        self.shapes.push(values.iter().map(shape).collect());
        let Self { path, writer, halves, half_values, .. } = self;
        for (id, value) in values {
            let written = if halves.contains(id) {
                half_values.clear();
                half_values.extend(value.data.iter().map(|x| bf16::from_f32(*x).to_bits()));
                writer.write_all(cast_slice(half_values))
            } else {
                writer.write_all(cast_slice(&value.data))
            };
            written.map_err(|fault| failed(path, fault))?;
        }
        Ok(())
    }

    /// Reads all chunks from the start.
    pub fn read(&mut self) -> Result<Reader<'_>, Error> {
        let Self { path, writer, shapes, halves, .. } = self;
        let rewound = writer.flush().and_then(|()| writer.get_mut().rewind());
        rewound.map_err(|fault| failed(path, fault))?;
        let file = BufReader::new(writer.get_mut());
        Ok(Reader { path, file, shapes: shapes.iter(), halves, half_values: Vec::new() })
    }
}

/// Reads the values chunk by chunk.
pub(crate) struct Reader<'k> {
    path: &'k Path,
    file: BufReader<&'k mut File>,
    shapes: std::slice::Iter<'k, Vec<(ValueId, usize, usize)>>,
    halves: &'k HashSet<ValueId>,
    /// Memory for values in BF16.
    half_values: Vec<u16>,
}

impl Reader<'_> {
    /// Reads the values of the next chunk.
    pub fn next(&mut self, spare: &SpareMemory) -> Result<LiveValues, Error> {
        let shapes =
            self.shapes.next().ok_or_else(|| failed(self.path, ErrorKind::UnexpectedEof.into()))?;
        let mut values = LiveValues::new();
        for (id, rows, width) in shapes {
            let mut data = spare.take(rows * width);
            let read = if self.halves.contains(id) {
                self.half_values.resize(data.len(), 0);
                let read = self.file.read_exact(cast_slice_mut(&mut self.half_values));
                data.iter_mut()
                    .zip(&self.half_values)
                    .for_each(|(x, half)| *x = bf16::from_bits(*half).to_f32());
                read
            } else {
                self.file.read_exact(cast_slice_mut(&mut data))
            };
            read.map_err(|fault| failed(self.path, fault))?;
            values.insert(*id, Value { rows: *rows, width: *width, data });
        }
        Ok(values)
    }
}

fn failed(path: &Path, fault: std::io::Error) -> Error {
    Error::environment("store activations in", path, fault)
}
