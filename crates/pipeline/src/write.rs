//! The threads that write jobs.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use gguf::{Error, Header, write_header};
use gguf_store::{AtomicFile, Overwrite, Progress, require_space};

use crate::chunk::{Buffers, Chunk};
use crate::job::Job;
use crate::journal::{Journal, Work};
use crate::parallel;
use crate::task::tasks;

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
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        write_all(&[(self, path)], Interruption::StartAnew, overwrite, progress)
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
/// a finite number or does not fit the target type, or `progress` ended the work. What was under the
/// paths before is then as it was, and beside it is nothing, or what [`Interruption::Journal`] lets
/// the next run go on with.
pub fn write_all(
    jobs: &[(&Job, &Path)],
    interruption: Interruption,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let headers = jobs.iter().map(|(job, _)| job.header()).collect::<Result<Vec<_>, _>>()?;
    let starts = headers.iter().map(write_header).collect::<Result<Vec<_>, _>>()?;
    let sizes = headers.iter().zip(&starts).map(|(header, start)| header.file_len(start.len()));
    let sizes = sizes.collect::<Result<Vec<u64>, _>>()?;
    let tasks = tasks(jobs, &headers, &starts);
    let chunks: Vec<Chunk> = tasks.iter().flat_map(Chunk::all_of).collect();

    let mut outputs: Vec<AtomicFile> = Vec::with_capacity(jobs.len());
    for (_, path) in jobs {
        // Before it is asked for its lock, which the first of two has.
        if outputs.iter().any(|output| output.is_for(path)) {
            let what = format!("{} is named twice", path.display());
            return Err(Error::request("output-twice", what, "name each output once"));
        }
        outputs.push(match interruption {
            Interruption::StartAnew => AtomicFile::create(path, overwrite)?,
            Interruption::Journal { resume, .. } => AtomicFile::resumable(path, resume, overwrite)?,
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
            let work = Work { starts: &starts, jobs, input, chunks: chunks.len() };
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
    progress.begin("writing", headers.iter().map(Header::data_len).sum());
    let result = flushing(&outputs, || {
        parallel::map_with(chunks.len(), Buffers::default, |buffers, i| {
            let chunk = &chunks[i];
            let written =
                if is_done(i) { chunk.byte_len() } else { chunk.process(buffers, &outputs)? };
            if let Some(journal) = &journal {
                journal.done(i)?;
            }
            progress.step(written)
        })
        .map(drop)
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

/// How long what is written may wait before it goes to the disk.
const FLUSH: Duration = Duration::from_millis(50);

/// Lets the disk write while `work` goes on, so that in the end there is little to wait for.
///
/// # Errors
/// Of the work; if it succeeds, of the disk, which tells each of its errors only once.
fn flushing(outputs: &[AtomicFile], work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let flusher = scope.spawn(move || {
            while ended.recv_timeout(FLUSH) == Err(RecvTimeoutError::Timeout) {
                outputs.iter().try_for_each(AtomicFile::sync)?;
            }
            Ok::<_, Error>(())
        });
        let result = work();
        drop(end);
        let flushed = flusher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.and(flushed)
    })
}
