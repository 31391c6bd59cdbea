//! Outputs that go to a bucket, in parts, while they are made.
//!
//! An object is a multipart upload: it does not exist before the last request, and is whole then. Bytes
//! are kept in memory until those of a part are all there; nothing is written to this machine's disk.
//! Beside the target stands a [`Record`] of the upload until it is complete.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gguf_store::{Existing, FarOutput, Layout, Progress, Unfinished};
use object_store::multipart::PartId;
use object_store::{ObjectStoreExt, PutPayload};

use super::object::Object;
use super::record::Record;
use super::store::{explain, runtime};

/// Bytes of a part. S3 wants 5 MiB or more.
const PART: u64 = 16 << 20;

/// The most parts that an object can have, in S3 and Google's store; Azure takes five times as many.
const MOST_PARTS: u64 = 10_000;

/// Parts on their way at a time.
const ON_THEIR_WAY: usize = 4;

/// How often somebody who waits looks whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// How much work can be lost.
const INTERVAL: Duration = Duration::from_secs(3);

/// Bytes of each part of an object of so many.
pub(super) fn part_len(len: u64) -> u64 {
    len.div_ceil(MOST_PARTS).next_multiple_of(1 << 20).max(PART)
}

/// An object on its way.
#[derive(Debug)]
pub(super) struct Upload {
    shared: Arc<Shared>,
    existing: Existing,
    /// What is done stays if the work is interrupted.
    keep: bool,
    named: bool,
}

/// What the threads that bring parts know.
#[derive(Debug)]
struct Shared {
    object: Object,
    gaps: Vec<Range<u64>>,
    state: Mutex<State>,
    /// Told whenever a part has arrived, or could not.
    arrived: Condvar,
}

#[derive(Debug)]
struct State {
    record: Record,
    /// Parts of which not all bytes have come.
    open: HashMap<usize, Part>,
    on_their_way: usize,
    /// What went wrong first.
    failed: Option<String>,
    saved: Instant,
}

/// The bytes of a part.
#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    missing: u64,
}

impl Upload {
    /// Begins an object, or goes on with what an earlier run has brought. Nothing is there yet that is not to be
    /// replaced.
    pub fn begin(
        object: Object,
        existing: Existing,
        layout: Layout,
        part_len: u64,
        unfinished: &Unfinished,
    ) -> Result<Self, gguf::Error> {
        let count = layout.len.div_ceil(part_len) as usize;
        let mut record = Record {
            upload: String::new(),
            work: unfinished.work,
            len: layout.len,
            part_len,
            parts: vec![None; count],
        };
        let earlier = object.ask(Record::read(&object.store, &object.record))?;
        match earlier {
            Some(earlier) if unfinished.resume && earlier.is_same_work(&record) => record = earlier,
            earlier => {
                if let Some(earlier) = earlier {
                    if unfinished.resume {
                        (unfinished.anew)();
                    }
                    object.give_up(&earlier.upload);
                }
                record.upload = object.ask(object.store.uploads.create_multipart(&object.key))?;
                let written = object.ask(record.write(&object.store, &object.record));
                if let Err(error) = written {
                    object.give_up(&record.upload);
                    return Err(error);
                }
            }
        }
        let state = State {
            record,
            open: HashMap::new(),
            on_their_way: 0,
            failed: None,
            saved: Instant::now(),
        };
        let shared =
            Shared { object, gaps: layout.gaps, state: Mutex::new(state), arrived: Condvar::new() };
        let keep = unfinished.resume;
        Ok(Self { shared: Arc::new(shared), existing, keep, named: false })
    }
}

impl Shared {
    /// The state is whole between any two statements that change it, so a panic elsewhere spoils nothing.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no more than `most` parts are on their way.
    fn wait_for<'s>(&self, mut state: MutexGuard<'s, State>, most: usize) -> MutexGuard<'s, State> {
        while state.on_their_way > most {
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn error(&self, state: &State) -> Result<(), gguf::Error> {
        state.failed.as_ref().map_or(Ok(()), |why| Err(self.object.failed(why.clone())))
    }

    /// Where a part stands in the object.
    fn place(&self, record: &Record, part: usize) -> Range<u64> {
        let start = part as u64 * record.part_len;
        start..record.len.min(start + record.part_len)
    }

    /// Bytes of a part that somebody is to write.
    fn awaited(&self, place: &Range<u64>) -> u64 {
        let from = self.gaps.partition_point(|gap| gap.end <= place.start);
        let gaps = self.gaps[from..].iter().take_while(|gap| gap.start < place.end);
        let zero: u64 = gaps.map(|gap| gap.end.min(place.end) - gap.start.max(place.start)).sum();
        place.end - place.start - zero
    }

    /// Sends a part off, once fewer than the most are on their way.
    fn send(self: &Arc<Self>, number: usize, bytes: Vec<u8>) -> Result<(), gguf::Error> {
        let mut state = self.wait_for(self.state(), ON_THEIR_WAY - 1);
        self.error(&state)?;
        state.on_their_way += 1;
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
            state.on_their_way -= 1;
            shared.arrived.notify_all();
        });
        Ok(())
    }

    /// Takes down what is there, now and then. Failing at that costs a later run some work, nothing else.
    fn save(&self, at_once: bool) {
        let mut state = self.state();
        if state.record.work.is_none() || (!at_once && state.saved.elapsed() < INTERVAL) {
            return;
        }
        state.saved = Instant::now();
        let record = state.record.clone();
        drop(state);
        drop(self.object.ask(record.write(&self.object.store, &self.object.record)));
    }
}

impl FarOutput for Upload {
    fn target(&self) -> &Path {
        &self.shared.object.target
    }

    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> Result<(), gguf::Error> {
        while !bytes.is_empty() {
            let mut state = self.shared.state();
            self.shared.error(&state)?;
            let number = (offset / state.record.part_len) as usize;
            let place = self.shared.place(&state.record, number);
            let count = bytes.len().min((place.end.saturating_sub(offset)) as usize);
            if count == 0 {
                let what = format!("byte {offset} is beyond the end that was announced");
                return Err(gguf::Error::request("output-refused", what, ""));
            }
            let (now, rest) = bytes.split_at(count);
            let start = (offset - place.start) as usize;
            (bytes, offset) = (rest, offset + count as u64);
            if state.record.parts[number].is_some() {
                continue;
            }
            let part = state.open.entry(number).or_insert_with(|| Part {
                bytes: vec![0; (place.end - place.start) as usize],
                missing: self.shared.awaited(&place),
            });
            part.bytes[start..start + count].copy_from_slice(now);
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

    fn has(&self, bytes: Range<u64>) -> bool {
        let state = self.shared.state();
        let record = &state.record;
        let parts = bytes.start / record.part_len..bytes.end.div_ceil(record.part_len);
        parts.into_iter().all(|part| matches!(record.parts.get(part as usize), Some(Some(_))))
    }

    fn close(&mut self, progress: &dyn Progress) -> Result<(), gguf::Error> {
        // Parts that are gaps as a whole: nobody has written to them.
        let count = self.shared.state().record.parts.len();
        for number in 0..count {
            let state = self.shared.state();
            let place = self.shared.place(&state.record, number);
            let is_there = state.record.parts[number].is_some();
            drop(state);
            if !is_there && self.shared.awaited(&place) == 0 {
                self.shared.send(number, vec![0; (place.end - place.start) as usize])?;
            }
        }
        let mut state = self.shared.state();
        while state.on_their_way > 0 {
            let waited = self.shared.arrived.wait_timeout(state, LOOK);
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
        object.check(self.existing)?;
        let record = self.shared.state().record.clone();
        let parts = record.parts.into_iter().flatten();
        let parts: Vec<_> = parts.map(|content_id| PartId { content_id }).collect();
        object.ask(object.store.uploads.complete_multipart(&object.key, &record.upload, parts))?;
        self.named = true;
        let found = object.ask(object.store.objects.head(&object.key))?;
        if found.size != record.len {
            let what = format!("the object has {} bytes, not {}", found.size, record.len);
            return Err(object.failed(what));
        }
        object.ask(object.store.objects.delete(&object.record))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.named {
            return;
        }
        // Parts that arrive later than the end of their upload would stay.
        drop(self.shared.wait_for(self.shared.state(), 0));
        if self.keep {
            self.shared.save(true);
        } else {
            let upload = self.shared.state().record.upload.clone();
            self.shared.object.give_up(&upload);
        }
    }
}

#[cfg(test)]
mod tests;
