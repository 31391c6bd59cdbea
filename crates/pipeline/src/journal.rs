//! What of the work is done: a journal at the end of the first unfinished output.
//!
//! The journal is written behind the place where the file will end, and cut off before the file gets
//! its name. So there is nothing beside an unfinished file that could be lost or go with another.
//!
//! ```text
//! "GGUFWORK"  fingerprint u64  then per chunk of rows that is done: number u32  check u32
//!
//! check = CRC-32 of the fingerprint and the number
//! ```
//!
//! The other outputs end with the first 16 bytes of it: other work may have begun one of them anew
//! since.
//!
//! The fingerprint is there against mistakes, and the check against a record that is torn. Neither
//! says that the rows are what was written: who can write to an unfinished file decides what
//! becomes of it, as with any file.
//!
//! A record is written only after the rows that it speaks of are on the disk. Rows that are done
//! but not recorded are done again, which gives the same bytes.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gguf::Error;
use gguf_store::AtomicFile;
use sha2::{Digest, Sha256};

use crate::fingerprint;
use crate::job::Job;

const MAGIC: &[u8; 8] = b"GGUFWORK";
const HEAD: u64 = 16;
const RECORD: u64 = 8;

/// How much work can be lost.
const INTERVAL: Duration = Duration::from_secs(3);

/// The journal of a set of outputs.
pub(super) struct Journal<'o> {
    outputs: &'o [&'o AtomicFile],
    /// Where the outputs will end; in the first of them the journal begins there.
    ends: &'o [u64],
    /// Changes with everything that the bytes depend on.
    fingerprint: u64,
    /// Which chunks an earlier run has done.
    done_before: Vec<bool>,
    state: Mutex<State>,
}

struct State {
    /// Chunks that are done and not recorded.
    pending: Vec<u32>,
    /// Where the next record goes.
    end: u64,
    saved: Instant,
}

impl<'o> Journal<'o> {
    /// Reads the journal of an earlier run if it was about the same work, as its fingerprint says; begins a new one
    /// otherwise, and calls `anew` if other work is thrown away for it. The outputs have their
    /// final sizes afterwards, and more: see the top of this file.
    pub fn open(
        outputs: &'o [&'o AtomicFile],
        ends: &'o [u64],
        fingerprint: u64,
        chunks: usize,
        anew: &dyn Fn(),
    ) -> Result<Self, Error> {
        let end = ends.first().copied().unwrap_or(0) + HEAD;
        let state = State { pending: Vec::new(), end, saved: Instant::now() };
        let mut journal = Self {
            outputs,
            ends,
            fingerprint,
            done_before: vec![false; chunks],
            state: Mutex::new(state),
        };
        let (mut whole, mut empty) = (true, true);
        for (output, &end) in outputs.iter().zip(ends) {
            let mut head = [0; HEAD as usize];
            let n = output.read_at(&mut head, end)?;
            whole &= head[..n] == journal.head();
            empty &= output.byte_len()? == 0;
        }
        if whole {
            journal.read()?;
            return Ok(journal);
        }
        if !empty {
            anew();
        }
        for (output, &end) in outputs.iter().zip(ends) {
            // What an earlier run of other work left must not show through.
            output.set_len(0)?;
            output.set_len(end)?;
            output.write_at(&journal.head(), end)?;
        }
        Ok(journal)
    }

    /// What stands behind each output.
    fn head(&self) -> [u8; HEAD as usize] {
        let mut head = [0; HEAD as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..].copy_from_slice(&self.fingerprint.to_le_bytes());
        head
    }

    /// Whether an earlier run has done this chunk.
    pub fn is_done(&self, chunk: usize) -> bool {
        self.done_before.get(chunk).copied().unwrap_or(false)
    }

    /// Takes down that this chunk is in all outputs.
    pub fn done(&self, chunk: usize) -> Result<(), Error> {
        if self.is_done(chunk) {
            return Ok(());
        }
        // A poisoned lock means that a thread has panicked, which ends the work.
        let Ok(mut state) = self.state.lock() else { return Ok(()) };
        state.pending.push(chunk as u32);
        if state.saved.elapsed() < INTERVAL {
            return Ok(());
        }
        self.save(&mut state)
    }

    /// Takes down all that is done, at the end of work that failed. Failing at that too costs the
    /// next run some work, nothing else.
    pub fn save_rest(&self) {
        if let Ok(mut state) = self.state.lock() {
            let _ = self.save(&mut state);
        }
    }

    fn save(&self, state: &mut State) -> Result<(), Error> {
        for output in self.outputs {
            output.sync()?;
        }
        let records: Vec<u8> =
            state.pending.iter().flat_map(|&chunk| record(self.fingerprint, chunk)).collect();
        if let Some(first) = self.outputs.first() {
            first.write_at(&records, state.end)?;
        }
        state.end += records.len() as u64;
        state.pending.clear();
        state.saved = Instant::now();
        Ok(())
    }

    /// Cuts the journal off: the outputs are complete.
    pub fn remove(self) -> Result<(), Error> {
        for (output, &end) in self.outputs.iter().zip(self.ends) {
            output.set_len(end)?;
        }
        Ok(())
    }

    /// Reads what an earlier run has done.
    fn read(&mut self) -> Result<(), Error> {
        let (Some(first), Ok(state)) = (self.outputs.first(), self.state.get_mut()) else {
            return Ok(());
        };
        let len = first.byte_len()?.saturating_sub(state.end);
        // No more than one record per chunk is ever written.
        let most = self.done_before.len() as u64 * RECORD;
        let mut bytes = vec![0; len.min(most) as usize];
        let n = first.read_at(&mut bytes, state.end)?;
        for bytes in bytes[..n].as_chunks::<{ RECORD as usize }>().0 {
            let [a, b, c, d, ..] = *bytes;
            let chunk = u32::from_le_bytes([a, b, c, d]);
            // The last ones may be torn.
            let Some(done) = self.done_before.get_mut(chunk as usize) else { break };
            if record(self.fingerprint, chunk) != *bytes {
                break;
            }
            *done = true;
            state.end += RECORD;
        }
        Ok(())
    }
}

fn record(fingerprint: u64, chunk: u32) -> [u8; RECORD as usize] {
    let mut check = crc32fast::Hasher::new();
    check.update(&fingerprint.to_le_bytes());
    check.update(&chunk.to_le_bytes());
    let mut record = [0; RECORD as usize];
    record[..4].copy_from_slice(&chunk.to_le_bytes());
    record[4..].copy_from_slice(&check.finalize().to_le_bytes());
    record
}

/// Everything that the bytes of the outputs, and the numbers of their chunks, depend on.
pub(super) struct Work<'w> {
    /// The encoded headers of the outputs.
    pub starts: &'w [Vec<u8>],
    /// What the outputs are made of, with the weights that guide their encoders.
    pub jobs: &'w [(&'w Job, &'w Path)],
    /// Changes with the content of the inputs, and with which of their tensors are taken.
    pub input: &'w str,
    /// How many chunks there are.
    pub chunks: usize,
}

impl Work<'_> {
    /// Changes with each of them.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = Sha256::new();
        hasher.update((self.input.len() as u64).to_le_bytes());
        hasher.update(self.input);
        hasher.update((self.chunks as u64).to_le_bytes());
        for (start, (job, _)) in self.starts.iter().zip(self.jobs) {
            fingerprint::plan(&mut hasher, start, &job.items);
        }
        let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hasher.finalize());
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}
