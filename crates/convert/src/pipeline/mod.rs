//! Source to transform to quantizer to writer, in one streaming pass.
//!
//! The size of every output tensor follows from its shape and type, so the headers are written
//! first. Worker threads then take chunks of rows in file order; each chunk is read once, decoded,
//! encoded for every output and written at its final offset. Memory is a few buffers per thread,
//! whatever the size of the model, and the bytes do not depend on the number of threads.

mod chunk;
mod fingerprint;
mod journal;
mod shards;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gguf::{
    ByteOrder, Draft, Header, Metadata, Model, Output, Overwrite, TensorInfo, TensorType,
    require_space, write_header,
};
use gguf_quant::CodecError;

use crate::Error;
use crate::tensor::Tensor;
use chunk::{Buffers, Chunk};
use journal::Journal;
pub use shards::shard_paths;

/// A tensor and the type that it is to have.
#[derive(Clone)]
pub struct Item {
    /// Where it comes from.
    pub tensor: Tensor,
    /// The type in the output.
    pub target: TensorType,
    /// How much the error of each column counts in encoding: one finite weight per column, or for
    /// tensors of experts (the third dimension) one per column of each.
    pub weights: Option<Arc<[f32]>>,
}

impl Item {
    /// A tensor that is to have a type, all columns counting alike.
    pub fn new(tensor: Tensor, target: TensorType) -> Self {
        Self { tensor, target, weights: None }
    }

    /// The weights that guide the encoder of a row: those of its expert, if there are several. And
    /// how many rows from this one on have the same.
    pub(crate) fn weights_of_row(&self, row: u64) -> (Option<&[f32]>, u64) {
        let Some(weights) = self.weights.as_deref() else { return (None, u64::MAX) };
        let shape = &self.tensor.shape;
        let rows_per_expert = shape.get(1).copied().unwrap_or(1).max(1);
        let mut experts = weights.chunks_exact((shape.row_len() as usize).max(1));
        match experts.len() {
            1 => (Some(weights), u64::MAX),
            // Too few are as none: the encoder refuses weights that are not one per column.
            _ => {
                let of_expert = experts.nth((row / rows_per_expert) as usize).unwrap_or_default();
                (Some(of_expert), rows_per_expert - row % rows_per_expert)
            }
        }
    }

    /// Encodes whole rows as `target`, the first of them row `first` of the tensor, each guided by its
    /// weights.
    ///
    /// # Errors
    /// As [`gguf_quant::Codec::encode_rows`].
    pub(crate) fn encode(
        &self,
        target: TensorType,
        first: u64,
        values: &[f32],
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let codec = gguf_quant::codec(target).ok_or(CodecError::NoCodec(target))?;
        let row_len = (self.tensor.shape.row_len() as usize).max(1);
        let rows = (values.len() / row_len) as u64;
        let row_bytes = out.len() / (rows as usize).max(1);
        let mut row = 0;
        while row < rows {
            let (weights, count) = self.weights_of_row(first + row);
            let end = rows.min(row.saturating_add(count));
            let part = |size: usize| row as usize * size..end as usize * size;
            codec.encode_rows(&values[part(row_len)], weights, &mut out[part(row_bytes)])?;
            row = end;
        }
        Ok(())
    }
}

/// Everything that one output file is to hold.
#[derive(Clone)]
pub struct Job {
    /// Keys and values.
    pub metadata: Metadata,
    /// The tensors, in file order.
    pub items: Vec<Item>,
    /// Refuse weights that are no finite numbers, also in tensors that are only copied.
    pub check_finite: bool,
    /// Order of bytes in the file, header and data. Tensors are read in little-endian order whatever
    /// that of their files is.
    pub order: ByteOrder,
}

/// What becomes of work that is interrupted.
#[derive(Clone, Copy)]
pub enum Interruption<'r> {
    /// It begins anew the next time.
    StartAnew,
    /// A journal tells the next run what is done already, even if the process was killed.
    Journal {
        /// What the inputs are, and which of their tensors are taken: a text that changes when
        /// their content or the choice does.
        input: &'r str,
        /// Go on where an earlier run of the same work was interrupted, and keep what is done if
        /// this run ends early too.
        resume: bool,
        /// Called if an earlier run left other work, which is thrown away: of other inputs, with
        /// other options, or of another version of this program.
        anew: &'r (dyn Fn() + Sync),
    },
}

impl Job {
    /// The model's tensors, unchanged, under the same names, in its order of bytes.
    pub fn copy(model: &Model) -> Job {
        let items = model
            .tensors()
            .iter()
            .map(|tensor| Item::new(Tensor::of_model(tensor), tensor.info.tensor_type));
        let (metadata, order) = (model.metadata().clone(), model.order());
        Job { metadata, items: items.collect(), check_finite: false, order }
    }

    /// The header of the output, offsets laid out.
    ///
    /// # Errors
    /// If it breaks a rule of the format: a tensor name twice, a row that is no whole number of
    /// blocks.
    pub fn header(&self) -> Result<Header, Error> {
        let tensors = self.items.iter().map(|item| TensorInfo {
            name: item.tensor.name.as_str().into(),
            shape: item.tensor.shape,
            tensor_type: item.target,
            offset: 0,
        });
        let mut draft = Draft {
            order: self.order,
            metadata: self.metadata.clone(),
            tensors: tensors.collect(),
            ..Draft::default()
        };
        draft.lay_out()?;
        Ok(Header::new(draft)?)
    }

    /// Writes the file at `path`; it appears there only when it is complete, and replaces what
    /// `overwrite` lets it.
    ///
    /// `progress` is called from many threads with the number of bytes just written; `Break` from
    /// it ends the work.
    ///
    /// # Errors
    /// As [`write_all`].
    pub fn write(
        &self,
        path: &Path,
        threads: NonZeroUsize,
        overwrite: &Overwrite,
        progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
    ) -> Result<(), Error> {
        write_all(&[(self, path)], threads, Interruption::StartAnew, overwrite, progress)
    }
}

/// Writes several files in one pass over their sources: what is in more than one of them is read
/// and decoded once. None appears under its path before all are complete, and the first, by which
/// a model in shards is opened, appears last. They replace what `overwrite` lets them. The space
/// for all is reserved before the work.
///
/// `progress` is called from many threads with the number of bytes just written; `Break` from it
/// ends the work.
///
/// # Errors
/// If an output must not be written, or is named twice; if a source cannot be read, a weight is not
/// a finite number or does not fit the target type, or `progress` ended the work. What was under the paths before is then
/// as it was, and beside it is nothing, or what [`Interruption::Journal`] lets the next run go on
/// with.
pub fn write_all(
    jobs: &[(&Job, &Path)],
    threads: NonZeroUsize,
    interruption: Interruption,
    overwrite: &Overwrite,
    progress: &(dyn Fn(u64) -> ControlFlow<()> + Sync),
) -> Result<(), Error> {
    let headers = jobs.iter().map(|(job, _)| job.header()).collect::<Result<Vec<_>, _>>()?;
    let starts = headers.iter().map(write_header).collect::<Result<Vec<_>, _>>()?;
    let sizes: Vec<u64> = headers
        .iter()
        .zip(&starts)
        .map(|(header, start)| {
            let end = header.alignment().align_up(header.data_len()).unwrap_or(header.data_len());
            start.len() as u64 + end
        })
        .collect();
    let tasks = tasks(jobs, &headers, &starts);
    let chunks: Vec<Chunk> = tasks.iter().flat_map(Chunk::all_of).collect();

    let mut outputs: Vec<Output> = Vec::with_capacity(jobs.len());
    for (_, path) in jobs {
        // Before it is asked for its lock, which the first of two has.
        if outputs.iter().any(|output| output.is_for(path)) {
            return Err(Error::Request {
                what: format!("{} is named twice", path.display()),
                help: "name each output once".into(),
            });
        }
        outputs.push(match interruption {
            Interruption::StartAnew => Output::create(path, overwrite)?,
            Interruption::Journal { resume, .. } => Output::resumable(path, resume, overwrite)?,
        });
    }
    let mut missing = Vec::with_capacity(jobs.len());
    for (output, size) in outputs.iter().zip(&sizes) {
        missing.push((output.target(), size.saturating_sub(output.byte_len()?)));
    }
    require_space(missing)?;
    let journal = match interruption {
        Interruption::StartAnew => None,
        Interruption::Journal { input, anew, .. } => {
            let work = journal::Work { starts: &starts, jobs, input, chunks: chunks.len() };
            Some(Journal::open(&outputs, &sizes, &work, anew)?)
        }
    };
    let is_done = |i| journal.as_ref().is_some_and(|journal| journal.is_done(i));
    for ((output, size), start) in outputs.iter().zip(&sizes).zip(&starts) {
        if journal.is_none() {
            output.set_len(*size)?;
        }
        output.write_at(start, 0)?;
    }
    let result = flushing(&outputs, || {
        run(&chunks, threads, |i, chunk, buffers| {
            let written =
                if is_done(i) { chunk.byte_len() } else { chunk.process(buffers, &outputs)? };
            if let Some(journal) = &journal {
                journal.done(i)?;
            }
            if progress(written).is_break() {
                return Err(gguf::Error::Interrupted.into());
            }
            Ok(())
        })
    });
    if let (Err(_), Some(journal)) = (&result, &journal) {
        journal.save_rest();
    }
    result?;
    if let Some(journal) = journal {
        journal.remove()?;
    }
    for output in outputs.into_iter().rev() {
        output.commit()?;
    }
    Ok(())
}

/// A tensor of the source, and all that is made of it.
struct Task<'j> {
    tensor: &'j Tensor,
    check_finite: bool,
    destinations: Vec<Destination<'j>>,
}

/// Where a tensor goes.
struct Destination<'j> {
    item: &'j Item,
    /// Number of the output.
    output: usize,
    /// Where its data begin in the output.
    offset: u64,
    /// Order of bytes in the output.
    order: ByteOrder,
}

/// The tensors of all jobs, those that come from the same place in one task.
fn tasks<'j>(jobs: &[(&'j Job, &Path)], headers: &[Header], starts: &[Vec<u8>]) -> Vec<Task<'j>> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (output, (((job, _), header), start)) in jobs.iter().zip(headers).zip(starts).enumerate() {
        for (item, tensor) in job.items.iter().zip(header.tensors()) {
            let (offset, order) = (start.len() as u64 + tensor.offset, header.order());
            let destination = Destination { item, output, offset, order };
            let known = by_name.entry(&item.tensor.name).or_default();
            match known.iter().find(|&&task| tasks[task].tensor.has_source_of(&item.tensor)) {
                Some(&task) => {
                    tasks[task].destinations.push(destination);
                    tasks[task].check_finite |= job.check_finite;
                }
                None => {
                    known.push(tasks.len());
                    tasks.push(Task {
                        tensor: &item.tensor,
                        check_finite: job.check_finite,
                        destinations: vec![destination],
                    });
                }
            }
        }
    }
    tasks
}

/// How long what is written may wait before it goes to the disk.
const FLUSH: Duration = Duration::from_millis(50);

/// Lets the disk write while `work` goes on, so that in the end there is little to wait for.
///
/// # Errors
/// Of the work; if it succeeds, of the disk, which tells each of its errors only once.
fn flushing(outputs: &[Output], work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let flusher = scope.spawn(move || {
            while ended.recv_timeout(FLUSH) == Err(RecvTimeoutError::Timeout) {
                outputs.iter().try_for_each(Output::sync)?;
            }
            Ok::<_, gguf::Error>(())
        });
        let result = work();
        drop(end);
        let flushed = flusher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.and(flushed.map_err(Error::from))
    })
}

/// Does the work on every chunk, in order, on several threads, up to the first failure.
///
/// # Errors
/// Of those that occur, the one of the earliest chunk.
fn run<'c, 'j>(
    chunks: &'c [Chunk<'c, 'j>],
    threads: NonZeroUsize,
    work: impl Fn(usize, &Chunk<'c, 'j>, &mut Buffers) -> Result<(), Error> + Sync,
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
                    let Err(error) = work(i, chunk, &mut buffers) else { continue };
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
