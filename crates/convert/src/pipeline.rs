//! Source to transform to quantizer to writer, in one streaming pass.
//!
//! The size of every output tensor follows from its shape and type, so the header is written
//! first. Worker threads then take chunks of rows in file order; each chunk is read once, decoded,
//! encoded and written at its final offset. Memory is a few buffers per thread, whatever the size
//! of the model, and the bytes do not depend on the number of threads.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gguf::{Draft, Header, Metadata, Model, Output, TensorInfo, TensorType, write_header};

use crate::Error;
use crate::tensor::Tensor;

/// A tensor and the type that it is to have.
#[derive(Clone)]
pub struct Item<'a> {
    /// Where it comes from.
    pub tensor: Tensor<'a>,
    /// The type in the output.
    pub target: TensorType,
}

/// Everything that one output file is to hold.
#[derive(Clone)]
pub struct Job<'a> {
    /// Keys and values.
    pub metadata: Metadata<'static>,
    /// The tensors, in file order.
    pub items: Vec<Item<'a>>,
    /// Refuse weights that are no finite numbers, also in tensors that are only copied.
    pub check_finite: bool,
}

/// Elements that a worker takes at a time, if a row has no more: small enough for the buffers to
/// stay in a core's cache, large enough to read in long runs.
const CHUNK: u64 = 128 * 1024;

impl Job<'_> {
    /// The model's tensors, unchanged, under the same names.
    pub fn copy<'a>(model: &Model<'a>) -> Job<'a> {
        let items = model.tensors().iter().map(|tensor| Item {
            target: tensor.info.tensor_type,
            tensor: Tensor::of_model(tensor),
        });
        Job {
            metadata: model.metadata().clone().into_owned(),
            items: items.collect(),
            check_finite: false,
        }
    }

    /// The header of the output, offsets laid out.
    ///
    /// # Errors
    /// If it breaks a rule of the format: a tensor name twice, a row that is no whole number of
    /// blocks.
    pub fn header(&self) -> Result<Header<'_>, Error> {
        let tensors = self.items.iter().map(|item| TensorInfo {
            name: item.tensor.name.as_str().into(),
            shape: item.tensor.shape,
            tensor_type: item.target,
            offset: 0,
        });
        let mut draft = Draft {
            metadata: self.metadata.clone(),
            tensors: tensors.collect(),
            ..Draft::default()
        };
        draft.lay_out()?;
        Ok(Header::new(draft)?)
    }

    /// Writes the file at `path`; it appears there only when it is complete.
    ///
    /// `progress` is called from many threads with the number of bytes just written; `Break` from
    /// it ends the work.
    ///
    /// # Errors
    /// If a source cannot be read, a weight is not a finite number or does not fit the target
    /// type, the output cannot be written, or `progress` ended the work. Nothing is then left under `path` that was not
    /// there before.
    pub fn write(
        &self,
        path: &Path,
        threads: NonZeroUsize,
        progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    ) -> Result<(), Error> {
        let header = self.header()?;
        let start = write_header(&header)?;
        let output = Output::create(path)?;
        let data_start = start.len() as u64;
        let end = header.alignment().align_up(header.data_len()).unwrap_or(header.data_len());
        output.set_len(data_start + end)?;
        output.write_at(&start, 0)?;
        let offsets = header.tensors().iter().map(|tensor| data_start + tensor.offset);
        let chunks: Vec<Chunk> = self
            .items
            .iter()
            .zip(offsets)
            .flat_map(|(item, offset)| Chunk::all_of(item, offset))
            .collect();
        run(&chunks, threads, |chunk, buffers| {
            let written = chunk.process(buffers, &output, self.check_finite)?;
            if progress(written).is_break() {
                return Err(gguf::Error::Interrupted.into());
            }
            Ok(())
        })?;
        output.commit()?;
        Ok(())
    }
}

/// Does the work on every chunk, in order, on several threads, up to the first failure.
///
/// # Errors
/// Of those that occur, the one of the earliest chunk.
fn run<'c, 'a>(
    chunks: &'c [Chunk<'c, 'a>],
    threads: NonZeroUsize,
    work: impl Fn(&Chunk<'c, 'a>, &mut Buffers) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failure: Mutex<Option<(usize, Error)>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads.get().min(chunks.len()) {
            scope.spawn(|| {
                let mut buffers = Buffers::default();
                while !stop.load(Ordering::Relaxed) {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(chunk) = chunks.get(i) else { return };
                    let Err(error) = work(chunk, &mut buffers) else { continue };
                    stop.store(true, Ordering::Relaxed);
                    // A poisoned lock means that a thread has panicked, which the scope passes on.
                    let Ok(mut failure) = failure.lock() else { return };
                    if failure.as_ref().is_none_or(|(earliest, _)| i < *earliest) {
                        *failure = Some((i, error));
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(Some((_, error))) => Err(error),
        _ => Ok(()),
    }
}

/// What a worker holds on to between chunks.
#[derive(Default)]
struct Buffers {
    stored: Vec<u8>,
    floats: Vec<f32>,
    encoded: Vec<u8>,
}

/// Some rows of one tensor.
struct Chunk<'i, 'a> {
    item: &'i Item<'a>,
    first_row: u64,
    rows: u64,
    /// Where its bytes begin in the output.
    offset: u64,
}

impl<'i, 'a> Chunk<'i, 'a> {
    /// The chunks of a tensor whose data begin at `offset`.
    fn all_of(item: &'i Item<'a>, offset: u64) -> impl Iterator<Item = Self> {
        let row_len = item.tensor.shape.row_len();
        let rows = item.tensor.rows();
        let rows_per_chunk = CHUNK.checked_div(row_len).unwrap_or(rows).max(1);
        // The header has been checked: rows are whole blocks, and sizes fit.
        let row_bytes = item.target.byte_len(&[row_len]).unwrap_or(0);
        let has_data = row_len > 0;
        (0..if has_data { rows } else { 0 }).step_by(rows_per_chunk as usize).map(
            move |first_row| Self {
                item,
                first_row,
                rows: rows_per_chunk.min(rows - first_row),
                offset: offset + first_row * row_bytes,
            },
        )
    }

    /// Reads, converts and writes the rows, and returns the number of bytes written.
    fn process(
        &self,
        buffers: &mut Buffers,
        output: &Output,
        check_finite: bool,
    ) -> Result<u64, Error> {
        let Item { tensor, target } = self.item;
        let Buffers { stored, floats, encoded } = buffers;
        tensor.read_rows(self.first_row, self.rows, stored)?;
        if check_finite {
            self.check_finite(tensor.stored_type, stored)?;
        }
        if tensor.stored_type == *target {
            output.write_at(stored, self.offset)?;
            return Ok(stored.len() as u64);
        }
        let elements = (self.rows * tensor.shape.row_len()) as usize;
        floats.resize(elements, 0.0);
        gguf_quant::decode_row(tensor.stored_type, stored, floats)
            .map_err(|fault| Error::weights(&tensor.name, fault.to_string()))?;
        // Rows are whole blocks, so that without weights per column all of them encode as one.
        encoded.resize(target.byte_len(&[elements as u64]).unwrap_or(0) as usize, 0);
        gguf_quant::encode_row(*target, floats, None, encoded)
            .map_err(|fault| Error::weights(&tensor.name, fault.to_string()))?;
        if *target == TensorType::F16 {
            self.check_range(encoded)?;
        }
        output.write_at(encoded, self.offset)?;
        Ok(encoded.len() as u64)
    }

    /// A weight that is no number spoils the model: better to say so than to pass it on.
    fn check_finite(&self, stored_type: TensorType, stored: &[u8]) -> Result<(), Error> {
        match gguf_quant::find_bad_block(stored_type, stored) {
            Ok(Some(bad)) => Err(Error::Weights {
                tensor: self.item.tensor.name.clone(),
                what: format!("{} in {}", bad.value, self.place(bad.element as u64)),
                help: "the checkpoint is damaged: download it again".into(),
            }),
            // A type without a codec is copied as it is.
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// F16 ends at 65504; beyond that an infinity would stand in the file.
    fn check_range(&self, encoded: &[u8]) -> Result<(), Error> {
        match gguf_quant::find_bad_block(TensorType::F16, encoded) {
            Ok(Some(bad)) => Err(Error::Weights {
                tensor: self.item.tensor.name.clone(),
                what: format!("{} is too large for F16", self.place(bad.element as u64)),
                help: "choose bf16 or f32".into(),
            }),
            _ => Ok(()),
        }
    }

    /// An element of this chunk, for people.
    fn place(&self, element: u64) -> String {
        let row_len = self.item.tensor.shape.row_len();
        format!("row {}, column {}", self.first_row + element / row_len, element % row_len)
    }
}
