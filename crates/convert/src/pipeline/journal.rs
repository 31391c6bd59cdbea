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
//! A record is written only after the rows that it speaks of are on the disk. Rows that are done
//! but not recorded are done again, which gives the same bytes.

use std::hash::Hasher;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gguf::Output;
use twox_hash::XxHash64;

use super::Job;
use crate::Error;

const MAGIC: &[u8; 8] = b"GGUFWORK";
const HEAD: u64 = 16;
const RECORD: u64 = 8;

/// How much work can be lost.
const INTERVAL: Duration = Duration::from_secs(3);

/// The journal of a set of outputs.
pub(super) struct Journal<'o> {
    outputs: &'o [Output],
    /// Where it begins in the first output.
    start: u64,
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
    /// Reads the journal of an earlier run if it was about the same work; begins a new one
    /// otherwise. The outputs have their final sizes afterwards, the first one the journal too.
    ///
    pub fn open(outputs: &'o [Output], sizes: &[u64], work: &Work) -> Result<Self, Error> {
        let (fingerprint, chunks) = (work.fingerprint(), work.chunks);
        let start = sizes.first().copied().unwrap_or(0);
        let mut journal = Self {
            outputs,
            start,
            fingerprint,
            done_before: vec![false; chunks],
            state: Mutex::new(State {
                pending: Vec::new(),
                end: start + HEAD,
                saved: Instant::now(),
            }),
        };
        let mut whole = true;
        for (output, size) in outputs.iter().zip(sizes) {
            whole &= output.byte_len()? >= *size;
        }
        if !(whole && journal.read()?) {
            for (output, size) in outputs.iter().zip(sizes) {
                // What an earlier run of other work left must not show through.
                output.set_len(0)?;
                output.set_len(*size)?;
            }
            if let Some(first) = outputs.first() {
                first.write_at(&[*MAGIC, fingerprint.to_le_bytes()].concat(), start)?;
            }
        }
        Ok(journal)
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
        match self.outputs.first() {
            Some(first) => Ok(first.set_len(self.start)?),
            None => Ok(()),
        }
    }

    /// Reads what an earlier run has done, and says whether there was one.
    fn read(&mut self) -> Result<bool, Error> {
        let Some(first) = self.outputs.first() else { return Ok(false) };
        let len = first.byte_len()?.saturating_sub(self.start);
        // No more than one record per chunk is ever written.
        let most = HEAD + self.done_before.len() as u64 * RECORD;
        let mut bytes = vec![0; len.min(most) as usize];
        let n = first.read_at(&mut bytes, self.start)?;
        let head = [*MAGIC, self.fingerprint.to_le_bytes()].concat();
        let Some(records) = bytes[..n].strip_prefix(&*head) else { return Ok(false) };
        let mut end = self.start + HEAD;
        for bytes in records.as_chunks::<{ RECORD as usize }>().0 {
            let [a, b, c, d, ..] = *bytes;
            let chunk = u32::from_le_bytes([a, b, c, d]);
            // The last ones may be torn.
            let Some(done) = self.done_before.get_mut(chunk as usize) else { break };
            if record(self.fingerprint, chunk) != *bytes {
                break;
            }
            *done = true;
            end += RECORD;
        }
        if let Ok(state) = self.state.get_mut() {
            state.end = end;
        }
        Ok(true)
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
    /// Changes with the content of the inputs.
    pub input: &'w str,
    /// How many chunks there are.
    pub chunks: usize,
}

impl Work<'_> {
    fn fingerprint(&self) -> u64 {
        let mut hasher = XxHash64::with_seed(0);
        let mut text = |bytes: &[u8]| {
            hasher.write_u64(bytes.len() as u64);
            hasher.write(bytes);
        };
        // Another version may encode otherwise.
        text(env!("CARGO_PKG_VERSION").as_bytes());
        text(self.input.as_bytes());
        self.starts.iter().for_each(|start| text(start));
        hasher.write_u64(self.chunks as u64);
        for item in self.jobs.iter().flat_map(|(job, _)| &job.items) {
            let weights = item.weights.as_deref().unwrap_or_default();
            hasher.write_u64(weights.len() as u64);
            weights.iter().for_each(|weight| hasher.write_u32(weight.to_bits()));
        }
        hasher.finish()
    }
}
