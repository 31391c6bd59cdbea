//! The threads that write jobs.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use gguf::{Error, Header, write_header};
use gguf_store::{
    AtomicFile, ClosedOutput, Output, OutputLayout, Overwrite, Progress, ResumeOptions,
    require_space,
};

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
    let tasks = tasks(jobs, &headers, &starts);
    let chunks: Vec<Chunk> = tasks.iter().flat_map(Chunk::all_of).collect();
    let resume_options = match interruption {
        Interruption::StartAnew => ResumeOptions::NEVER,
        Interruption::Journal { input, resume, anew } => {
            let work = Work { starts: &starts, jobs, input, chunks: chunks.len() };
            ResumeOptions { job: Some(work.fingerprint()), resume, on_restart: anew }
        }
    };

    let mut outputs: Vec<Output> = Vec::with_capacity(jobs.len());
    let mut sizes = Vec::with_capacity(jobs.len());
    for (((_, path), header), start) in jobs.iter().zip(&headers).zip(&starts) {
        // Before it is asked for its lock, which the first of two has.
        if outputs.iter().any(|output| output.is_for(path)) {
            let what = format!("{} is named twice", path.display());
            return Err(Error::request("output-twice", what, "name each output once"));
        }
        let layout = OutputLayout::new(header, start.len())?;
        sizes.push(layout.len);
        outputs.push(Output::begin(path, layout, &resume_options, overwrite)?);
    }
    let near = outputs.iter().zip(sizes).filter_map(|(output, size)| Some((output.local()?, size)));
    let (near, ends): (Vec<&AtomicFile>, Vec<u64>) = near.unzip();
    let mut missing = Vec::with_capacity(near.len());
    for (file, end) in near.iter().zip(&ends) {
        missing.push((file.target(), end.saturating_sub(file.byte_len()?)));
    }
    require_space(missing)?;
    let journal = match resume_options.job {
        Some(work) if !near.is_empty() => {
            Some(Journal::open(&near, &ends, work, chunks.len(), resume_options.on_restart)?)
        }
        _ => {
            near.iter().zip(&ends).try_for_each(|(file, end)| file.set_len(*end))?;
            None
        }
    };
    // Without files here only the other places tell what is done.
    let is_here = |i| match &journal {
        Some(journal) => journal.is_done(i),
        None => near.is_empty(),
    };
    outputs.iter().zip(&starts).try_for_each(|(output, start)| output.write_at(start, 0))?;
    progress.begin("writing", headers.iter().map(Header::data_len).sum());
    let result = flushing(&near, || {
        parallel::map_with(chunks.len(), Buffers::default, |buffers, i| {
            let chunk = &chunks[i];
            let done = is_here(i) && chunk.is_uploaded(&outputs);
            let written = if done { chunk.byte_len() } else { chunk.process(buffers, &outputs)? };
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
    drop(near);
    let complete = outputs.into_iter().map(|output| output.close(progress));
    let complete = complete.collect::<Result<Vec<_>, _>>()?;
    complete.into_iter().rev().try_for_each(ClosedOutput::commit)
}

/// How long what is written may wait before it goes to the disk.
const FLUSH: Duration = Duration::from_millis(50);

/// Lets the disk write while `work` goes on, so that in the end there is little to wait for.
///
/// # Errors
/// Of the work; if it succeeds, of the disk, which tells each of its errors only once.
fn flushing(
    outputs: &[&AtomicFile],
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let flusher = scope.spawn(move || {
            while ended.recv_timeout(FLUSH) == Err(RecvTimeoutError::Timeout) {
                outputs.iter().try_for_each(|output| output.sync())?;
            }
            Ok::<_, Error>(())
        });
        let result = work();
        drop(end);
        let flushed = flusher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.and(flushed)
    })
}
