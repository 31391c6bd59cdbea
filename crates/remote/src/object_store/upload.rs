//! Multipart uploads of outputs to an object store.
//!
//! The object does not exist before the last request and is complete then. Bytes are buffered in
//! memory until a part is complete; nothing is written to the local disk. A [`Record`] of the
//! upload is stored beside the target until the upload is complete.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gguf_store::{Existing, OutputLayout, Progress, RemoteOutput, ResumeOptions};
use object_store::multipart::PartId;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};

use super::object::Object;
use super::record::Record;
use super::store::{explain, runtime};

/// Minimum part length; S3 requires 5 MiB or more.
const PART: u64 = 16 << 20;

/// Maximum number of parts in S3 and Google Cloud Storage; Azure allows five times as many.
const MAX_PARTS: u64 = 10_000;

/// Maximum number of concurrent part uploads.
const MAX_IN_FLIGHT: usize = 4;

/// Interval at which a waiting thread checks for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Interval between updates of the record: the maximum work that a crash can lose.
const SAVE_INTERVAL: Duration = Duration::from_secs(3);

/// Returns the part length for an object of this length.
pub(super) fn part_len(len: u64) -> u64 {
    len.div_ceil(MAX_PARTS).next_multiple_of(1 << 20).max(PART)
}

/// An upload in progress.
#[derive(Debug)]
pub(super) struct Upload {
    shared: Arc<Shared>,
    existing: Existing,
    /// Whether uploaded parts stay when the upload is interrupted.
    keep: bool,
    /// Whether an earlier run has completed the object, and was stopped before it removed the record.
    finished: bool,
    /// Whether an earlier run has uploaded all parts.
    was_complete: bool,
    committed: bool,
}

/// State shared with the threads that upload parts.
#[derive(Debug)]
struct Shared {
    object: Object,
    gaps: Vec<Range<u64>>,
    state: Mutex<State>,
    /// Notified when a part upload succeeds or fails.
    part_done: Condvar,
}

#[derive(Debug)]
struct State {
    record: Record,
    /// Parts that are not completely written.
    open: HashMap<usize, PartBuffer>,
    in_flight: usize,
    /// First error.
    failed: Option<String>,
    saved: Instant,
}

/// Buffer of a part.
#[derive(Debug)]
struct PartBuffer {
    bytes: Vec<u8>,
    missing: u64,
}

impl Upload {
    /// Begins or resumes an upload.
    ///
    /// # Errors
    /// [`gguf::Error::Exists`] if an object must not be replaced, unless an earlier run of the same job has completed it.
    pub fn begin(
        object: Object,
        existing: Existing,
        layout: OutputLayout,
        part_len: u64,
        resume: &ResumeOptions,
    ) -> Result<Self, gguf::Error> {
        let count = layout.len.div_ceil(part_len) as usize;
        let mut record = Record {
            upload: String::new(),
            job: resume.job,
            len: layout.len,
            part_len,
            parts: vec![None; count],
        };
        let mut finished = false;
        if let Err(refused) = object.check(existing) {
            finished = resume.resume && object.is_result_of(&record)?;
            if !finished {
                return Err(refused);
            }
        }
        let earlier = object.request(Record::read(&object.store, &object.record))?;
        match earlier {
            Some(earlier) if resume.resume && earlier.is_same_job(&record) => record = earlier,
            earlier => {
                if let Some(earlier) = earlier {
                    if resume.resume {
                        (resume.on_restart)();
                    }
                    object.abort(&earlier.upload);
                }
                record.upload =
                    object.request(object.store.uploads.create_multipart(&object.key))?;
                let written = object.request(record.write(&object.store, &object.record));
                if let Err(error) = written {
                    object.abort(&record.upload);
                    return Err(error);
                }
            }
        }
        let was_complete = record.is_complete();
        let state = State {
            record,
            open: HashMap::new(),
            in_flight: 0,
            failed: None,
            saved: Instant::now(),
        };
        let shared = Shared {
            object,
            gaps: layout.gaps,
            state: Mutex::new(state),
            part_done: Condvar::new(),
        };
        let keep = resume.resume;
        Ok(Self {
            shared: Arc::new(shared),
            existing,
            keep,
            finished,
            was_complete,
            committed: false,
        })
    }
}

impl Shared {
    /// Locks the state. Every statement leaves it consistent, so a poisoned lock is harmless.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until at most `max` parts are in flight.
    fn wait_for<'s>(&self, mut state: MutexGuard<'s, State>, max: usize) -> MutexGuard<'s, State> {
        while state.in_flight > max {
            state = self.part_done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn error(&self, state: &State) -> Result<(), gguf::Error> {
        state.failed.as_ref().map_or(Ok(()), |why| Err(self.object.failed(why.clone())))
    }

    /// Returns the byte range of a part in the object.
    fn range(&self, record: &Record, part: usize) -> Range<u64> {
        let start = part as u64 * record.part_len;
        start..record.len.min(start + record.part_len)
    }

    /// Returns the number of bytes in a range that will be written, without gaps.
    fn expected(&self, range: &Range<u64>) -> u64 {
        let from = self.gaps.partition_point(|gap| gap.end <= range.start);
        let gaps = self.gaps[from..].iter().take_while(|gap| gap.start < range.end);
        let zero: u64 = gaps.map(|gap| gap.end.min(range.end) - gap.start.max(range.start)).sum();
        range.end - range.start - zero
    }

    /// Uploads a part in a new thread, once fewer than the maximum are in flight.
    fn send(self: &Arc<Self>, number: usize, bytes: Vec<u8>) -> Result<(), gguf::Error> {
        let mut state = self.wait_for(self.state(), MAX_IN_FLIGHT - 1);
        self.error(&state)?;
        state.in_flight += 1;
        let upload = state.record.upload.clone();
        drop(state);
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            let (object, payload) = (&shared.object, PutPayload::from(bytes));
            let request = object.store.uploads.put_part(&object.key, &upload, number, payload);
            let answer = match runtime() {
                Ok(runtime) => runtime.block_on(request).map_err(|e| explain(&e, &object.url)),
                Err(error) => Err(error.to_string()),
            };
            let mut state = shared.state();
            match answer {
                Ok(id) => state.record.parts[number] = Some(id.content_id),
                Err(why) => state.failed = state.failed.take().or(Some(why)),
            }
            state.in_flight -= 1;
            shared.part_done.notify_all();
        });
        Ok(())
    }

    /// Writes the record at intervals. Errors are ignored: they only cost a later run some work.
    fn save(&self, force: bool) {
        let mut state = self.state();
        if state.record.job.is_none() || (!force && state.saved.elapsed() < SAVE_INTERVAL) {
            return;
        }
        state.saved = Instant::now();
        let record = state.record.clone();
        drop(state);
        drop(self.object.request(record.write(&self.object.store, &self.object.record)));
    }
}

impl RemoteOutput for Upload {
    fn target(&self) -> &Path {
        &self.shared.object.target
    }

    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> Result<(), gguf::Error> {
        while !bytes.is_empty() {
            let mut state = self.shared.state();
            self.shared.error(&state)?;
            let number = (offset / state.record.part_len) as usize;
            let range = self.shared.range(&state.record, number);
            let count = bytes.len().min((range.end.saturating_sub(offset)) as usize);
            if count == 0 {
                let what = format!("byte {offset} is beyond the announced length");
                return Err(gguf::Error::request("output-refused", what, ""));
            }
            let (chunk, rest) = bytes.split_at(count);
            let start = (offset - range.start) as usize;
            (bytes, offset) = (rest, offset + count as u64);
            if state.record.parts[number].is_some() {
                continue;
            }
            let part = state.open.entry(number).or_insert_with(|| PartBuffer {
                bytes: vec![0; (range.end - range.start) as usize],
                missing: self.shared.expected(&range),
            });
            part.bytes[start..start + count].copy_from_slice(chunk);
            part.missing = part.missing.saturating_sub(count as u64);
            if part.missing == 0
                && let Some(part) = state.open.remove(&number)
            {
                drop(state);
                self.shared.send(number, part.bytes)?;
                self.shared.save(false);
            }
        }
        Ok(())
    }

    fn is_uploaded(&self, bytes: Range<u64>) -> bool {
        let state = self.shared.state();
        let record = &state.record;
        let parts = bytes.start / record.part_len..bytes.end.div_ceil(record.part_len);
        parts.into_iter().all(|part| matches!(record.parts.get(part as usize), Some(Some(_))))
    }

    fn close(&mut self, progress: &dyn Progress) -> Result<(), gguf::Error> {
        // Upload the parts that lie within gaps: they are never written.
        let count = self.shared.state().record.parts.len();
        for number in 0..count {
            let state = self.shared.state();
            let range = self.shared.range(&state.record, number);
            let uploaded = state.record.parts[number].is_some();
            drop(state);
            if !uploaded && self.shared.expected(&range) == 0 {
                self.shared.send(number, vec![0; (range.end - range.start) as usize])?;
            }
        }
        let mut state = self.shared.state();
        while state.in_flight > 0 {
            let waited = self.shared.part_done.wait_timeout(state, POLL_INTERVAL);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            progress.step(0)?;
            state = self.shared.state();
        }
        self.shared.error(&state)?;
        if let Some(part) = state.record.parts.iter().position(Option::is_none) {
            return Err(self.shared.object.failed(format!("part {} was not written", part + 1)));
        }
        drop(state);
        self.shared.save(true);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), gguf::Error> {
        let object = &self.shared.object;
        let record = self.shared.state().record.clone();
        if self.finished {
            self.committed = true;
            return object.request(object.store.objects.delete(&object.record));
        }
        object.check(self.existing)?;
        let job = record.clone();
        let parts = record.parts.into_iter().flatten();
        let parts: Vec<_> = parts.map(|content_id| PartId { content_id }).collect();
        let before = object.request(object.store.find(&object.key))?;
        let completed = object.complete(&record.upload, parts);
        let found = object.request(object.store.find(&object.key))?;
        // A request that the store has done may end with an error: its answer can be lost, and a second one finds no upload.
        let is_new = |found: &ObjectMeta| {
            before.as_ref().is_none_or(|before| {
                (&before.e_tag, before.last_modified) != (&found.e_tag, found.last_modified)
            })
        };
        let is_made = |found: &ObjectMeta| {
            matches!(completed, Ok(true))
                || (self.was_complete || is_new(found)) && job.may_have_made(found)
        };
        let Some(found) = found.filter(is_made) else {
            completed?;
            let what = "the upload is gone: another writer of the object has removed it";
            return Err(object.failed(what.into()));
        };
        self.committed = true;
        if found.size != record.len {
            let what = format!("the object has {} bytes; expected {}", found.size, record.len);
            return Err(object.failed(what));
        }
        object.request(object.store.objects.delete(&object.record))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        // A part that arrives after the abort would never be removed: wait for all parts.
        drop(self.shared.wait_for(self.shared.state(), 0));
        if self.keep {
            self.shared.save(true);
        } else {
            let upload = self.shared.state().record.upload.clone();
            self.shared.object.abort(&upload);
        }
    }
}

#[cfg(test)]
mod tests;
