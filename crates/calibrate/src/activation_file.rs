//! Activations of the models between stages, in a temporary file: their size grows with the text,
//! and memory use must not.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use gguf::Error;
use gguf_graph::ValueId;
use gguf_runtime::{LiveValues, Value};

/// Activations of all chunks, in the order in which they were written.
pub(crate) struct ActivationFile {
    path: PathBuf,
    writer: BufWriter<File>,
    /// Shapes of the values of each chunk: rows and width.
    shapes: Vec<Vec<(ValueId, usize, usize)>>,
    /// Buffer of the bytes of one value.
    bytes: Vec<u8>,
}

impl ActivationFile {
    /// Creates an empty, unnamed file in a directory.
    pub fn new(directory: &Path) -> Result<Self, Error> {
        let file = tempfile::tempfile_in(directory).map_err(|fault| failed(directory, fault))?;
        let (path, writer) = (directory.to_owned(), BufWriter::new(file));
        Ok(Self { path, writer, shapes: Vec::new(), bytes: Vec::new() })
    }

    /// Appends the values of the next chunk.
    pub fn write(&mut self, values: &LiveValues) -> Result<(), Error> {
        let shape = |(id, value): (&ValueId, &Value)| (*id, value.rows, value.width);
        self.shapes.push(values.iter().map(shape).collect());
        let Self { path, writer, bytes, .. } = self;
        for value in values.values() {
            bytes.resize(4 * value.data.len(), 0);
            let places = bytes.as_chunks_mut().0;
            places.iter_mut().zip(&value.data).for_each(|(place, x)| *place = x.to_le_bytes());
            writer.write_all(bytes).map_err(|fault| failed(path, fault))?;
        }
        Ok(())
    }

    /// Reads all chunks from the start.
    pub fn read(&mut self) -> Result<Reader<'_>, Error> {
        let Self { path, writer, shapes, bytes } = self;
        let rewound = writer.flush().and_then(|()| writer.get_mut().rewind());
        rewound.map_err(|fault| failed(path, fault))?;
        let file = BufReader::new(writer.get_mut());
        Ok(Reader { path, file, shapes: shapes.iter(), bytes })
    }
}

/// Reads the values chunk by chunk.
pub(crate) struct Reader<'k> {
    path: &'k Path,
    file: BufReader<&'k mut File>,
    shapes: std::slice::Iter<'k, Vec<(ValueId, usize, usize)>>,
    bytes: &'k mut Vec<u8>,
}

impl Reader<'_> {
    /// Reads the values of the next chunk.
    pub fn next(&mut self) -> Result<LiveValues, Error> {
        let shapes =
            self.shapes.next().ok_or_else(|| failed(self.path, ErrorKind::UnexpectedEof.into()))?;
        let Self { bytes, .. } = self;
        let mut values = LiveValues::new();
        for (id, rows, width) in shapes {
            bytes.resize(4 * rows * width, 0);
            self.file.read_exact(bytes).map_err(|fault| failed(self.path, fault))?;
            let data = bytes.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
            values.insert(*id, Value { rows: *rows, width: *width, data });
        }
        Ok(values)
    }
}

fn failed(path: &Path, fault: std::io::Error) -> Error {
    Error::environment("store activations in", path, fault)
}
