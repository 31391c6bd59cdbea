//! Multi-threaded writing of jobs.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use gguf::{Error, Header, write_header};
use gguf_store::{
    AtomicFile, ClosedOutput, Model, Output, OutputLayout, Overwrite, Progress, ResumeOptions,
    require_space, scratch,
};
use tempfile::TempDir;

use crate::chunk::{Buffers, Chunk};
use crate::job::Job;
use crate::journal::{Journal, Work};
use crate::parallel;
use crate::task::tasks;

/// Behaviour on interruption.
#[derive(Clone, Copy)]
pub enum Interruption<'r> {
    /// The next run starts over.
    Restart,
    /// A journal records completed chunks, so that the next run can resume, even after the process
    /// was killed.
    Journal {
        /// Identifies the content of the inputs and the selection of tensors.
        input: &'r str,
        /// Whether to resume an interrupted run of the same job, and to keep the progress if this
        /// run is interrupted too.
        resume: bool,
        /// Called if the progress of a different job (other inputs, options or program version) is
        /// discarded.
        on_restart: &'r (dyn Fn() + Sync),
    },
}

impl Job {
    /// Writes the file at `path`. It appears there only when it is complete, and replaces an
    /// existing file if `overwrite` permits.
    ///
    /// `progress` is called from many threads with the number of bytes just written; it cancels the
    /// job by returning `Break`.
    ///
    /// # Errors
    /// See [`write_all`].
    pub fn write(
        &self,
        path: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        write_all(&[(self, path)], Interruption::Restart, overwrite, progress)
    }

    /// Replaces a file that the job reads: its sources are closed before, because Windows replaces no
    /// open file.
    ///
    /// # Errors
    /// See [`write_all`].
    pub fn replace(
        self,
        path: &Path,
        overwrite: &Overwrite,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let outputs = fill_all(&[(&self, path)], Interruption::Restart, overwrite, progress)?;
        drop(self);
        commit_all(outputs)
    }

    /// Writes the model to a new temporary directory and opens it. Dropping the directory removes
    /// the file; the model stays readable while it is open.
    ///
    /// # Errors
    /// See [`write_all`]; or if there is no temporary directory.
    pub fn write_temporary(&self, progress: &dyn Progress) -> Result<(Model, TempDir), Error> {
        let directory = scratch::directory()?;
        let path = directory.path().join("model.gguf");
        let written = self.write(&path, &Overwrite::default(), progress);
        let model = written.and_then(|()| Model::open(&path));
        Ok((model.map_err(|error| scratch::outside(error, directory.path()))?, directory))
    }
}

/// Writes several files in one pass over their sources: shared source tensors are read and decoded
/// once. No file appears under its path before all are complete. The first, which opens a sharded
/// model, appears last. Existing files are replaced if `overwrite` permits. Disk space for all is
/// reserved in advance.
///
/// `progress` is called from many threads with the number of bytes just written; it cancels the job
/// by returning `Break`.
///
/// # Errors
/// Returns an error if an output may not be written or is listed twice, if a source cannot be read,
/// if a weight is not finite or does not fit the target type, or if `progress` cancels the job.
/// Existing files are then unchanged, and nothing is left beside them except what
/// [`Interruption::Journal`] needs to resume.
pub fn write_all(
    jobs: &[(&Job, &Path)],
    interruption: Interruption,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<(), Error> {
    commit_all(fill_all(jobs, interruption, overwrite, progress)?)
}

/// Writes the outputs of several jobs without making them visible.
fn fill_all(
    jobs: &[(&Job, &Path)],
    interruption: Interruption,
    overwrite: &Overwrite,
    progress: &dyn Progress,
) -> Result<Vec<ClosedOutput>, Error> {
    let headers = jobs.iter().map(|(job, _)| job.header()).collect::<Result<Vec<_>, _>>()?;
    let starts = headers.iter().map(write_header).collect::<Result<Vec<_>, _>>()?;
    let tasks = tasks(jobs, &headers, &starts);
    let chunks: Vec<Chunk> = tasks.iter().flat_map(Chunk::split).collect();
    let resume_options = match interruption {
        Interruption::Restart => ResumeOptions::NEVER,
        Interruption::Journal { input, resume, on_restart } => {
            let work = Work { starts: &starts, jobs, input, chunks: chunks.len() };
            ResumeOptions { job: Some(work.fingerprint()), resume, on_restart }
        }
    };

    let mut outputs: Vec<Output> = Vec::with_capacity(jobs.len());
    let mut sizes = Vec::with_capacity(jobs.len());
    for (((_, path), header), start) in jobs.iter().zip(&headers).zip(&starts) {
        // Checked before locking, because the first of two equal paths holds the lock.
        if outputs.iter().any(|output| output.is_for(path)) {
            let what = format!("{} is named twice", path.display());
            return Err(Error::request("output-twice", what, "name each output once"));
        }
        let layout = OutputLayout::new(header, start.len())?;
        sizes.push(layout.len);
        outputs.push(Output::begin(path, layout, &resume_options, overwrite)?);
    }
    let local =
        outputs.iter().zip(sizes).filter_map(|(output, size)| Some((output.local()?, size)));
    let (local, ends): (Vec<&AtomicFile>, Vec<u64>) = local.unzip();
    let mut missing = Vec::with_capacity(local.len());
    for (file, end) in local.iter().zip(&ends) {
        missing.push((file.target(), end.saturating_sub(file.byte_len()?)));
    }
    require_space(missing)?;
    let journal = match resume_options.job {
        Some(work) if !local.is_empty() => {
            Some(Journal::open(&local, &ends, work, chunks.len(), resume_options.on_restart)?)
        }
        _ => {
            local.iter().zip(&ends).try_for_each(|(file, end)| file.set_len(*end))?;
            None
        }
    };
    // If all outputs are remote, only they know which chunks are complete.
    let is_here = |i| match &journal {
        Some(journal) => journal.is_done(i),
        None => local.is_empty(),
    };
    outputs.iter().zip(&starts).try_for_each(|(output, start)| output.write_at(start, 0))?;
    progress.begin("writing", headers.iter().map(Header::data_len).sum());
    let result = flushing(&local, || {
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
    drop(local);
    outputs.into_iter().map(|output| output.close(progress)).collect()
}

/// Makes outputs visible, the first one last.
fn commit_all(outputs: Vec<ClosedOutput>) -> Result<(), Error> {
    outputs.into_iter().rev().try_for_each(ClosedOutput::commit)
}

/// Maximum delay before written data is flushed to the disk.
const FLUSH: Duration = Duration::from_millis(50);

/// Flushes written data to the disk while `work` runs, so that little remains at the end.
///
/// # Errors
/// Returns the error of the work; if it succeeds, that of the disk, which reports each error only
/// once.
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
