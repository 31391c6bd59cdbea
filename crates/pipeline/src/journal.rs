//! The journal of completed chunks, at the end of the first unfinished output.
//!
//! The journal starts where the file will end and is truncated before the file is renamed to its
//! final name. So no separate file can be lost or mixed up.
//!
//! ```text
//! "GGUFWORK"  fingerprint u64  then per completed chunk of rows: number u32  check u32
//!
//! check = CRC-32 of the fingerprint and the number
//! ```
//!
//! The other outputs end with the first 16 bytes of the journal, which reveals that a different job
//! has overwritten one of them since.
//!
//! The fingerprint protects against mistakes and the checksum against torn records. Neither proves
//! that the rows are intact: anyone with write access to an unfinished file can change it, as with
//! any file.
//!
//! A record is written only after its rows are on the disk. Chunks that are complete but not
//! recorded are processed again, which gives the same bytes.

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

/// Interval between records: the amount of work that a crash can lose.
const INTERVAL: Duration = Duration::from_secs(3);

/// Journal of a set of outputs.
pub(super) struct Journal<'o> {
    outputs: &'o [&'o AtomicFile],
    /// Final sizes of the outputs; the journal begins at that offset in the first.
    ends: &'o [u64],
    /// Digest of everything that determines the bytes.
    fingerprint: u64,
    /// Whether an earlier run has completed each chunk.
    done_before: Vec<bool>,
    state: Mutex<State>,
}

struct State {
    /// Chunks that are complete but not recorded.
    pending: Vec<u32>,
    /// Offset of the next record.
    end: u64,
    saved: Instant,
}

impl<'o> Journal<'o> {
    /// Reads the journal of an earlier run if its fingerprint matches; otherwise starts a new one,
    /// and calls `on_restart` if that discards the progress of a different job. Afterwards the outputs
    /// have their final sizes plus the journal.
    pub fn open(
        outputs: &'o [&'o AtomicFile],
        ends: &'o [u64],
        fingerprint: u64,
        chunks: usize,
        on_restart: &dyn Fn(),
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
            on_restart();
        }
        for (output, &end) in outputs.iter().zip(ends) {
            // Removes the data of a different job.
            output.set_len(0)?;
            output.set_len(end)?;
            output.write_at(&journal.head(), end)?;
        }
        Ok(journal)
    }

    /// Bytes behind the end of each output.
    fn head(&self) -> [u8; HEAD as usize] {
        let mut head = [0; HEAD as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..].copy_from_slice(&self.fingerprint.to_le_bytes());
        head
    }

    /// Whether an earlier run has completed this chunk.
    pub fn is_done(&self, chunk: usize) -> bool {
        self.done_before.get(chunk).copied().unwrap_or(false)
    }

    /// Records that a chunk is in all outputs.
    pub fn done(&self, chunk: usize) -> Result<(), Error> {
        if self.is_done(chunk) {
            return Ok(());
        }
        // A poisoned lock means that a thread panicked, which aborts the job.
        let Ok(mut state) = self.state.lock() else { return Ok(()) };
        state.pending.push(chunk as u32);
        if state.saved.elapsed() < INTERVAL {
            return Ok(());
        }
        self.save(&mut state)
    }

    /// Records all completed chunks after a failed job. A failure to do so only costs the next run
    /// some work.
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

    /// Truncates the journal: the outputs are complete.
    pub fn remove(self) -> Result<(), Error> {
        for (output, &end) in self.outputs.iter().zip(self.ends) {
            output.set_len(end)?;
        }
        Ok(())
    }

    /// Reads the records of an earlier run.
    fn read(&mut self) -> Result<(), Error> {
        let (Some(first), Ok(state)) = (self.outputs.first(), self.state.get_mut()) else {
            return Ok(());
        };
        let len = first.byte_len()?.saturating_sub(state.end);
        // A journal has at most one record per chunk.
        let most = self.done_before.len() as u64 * RECORD;
        let mut bytes = vec![0; len.min(most) as usize];
        let n = first.read_at(&mut bytes, state.end)?;
        for bytes in bytes[..n].as_chunks::<{ RECORD as usize }>().0 {
            let [a, b, c, d, ..] = *bytes;
            let chunk = u32::from_le_bytes([a, b, c, d]);
            // The last records may be torn.
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

/// Everything that determines the bytes of the outputs and the numbering of their chunks.
pub(super) struct Work<'w> {
    /// Encoded headers of the outputs.
    pub starts: &'w [Vec<u8>],
    /// Jobs with their importance weights, and their paths.
    pub jobs: &'w [(&'w Job, &'w Path)],
    /// Identifies the content of the inputs and the selection of tensors.
    pub input: &'w str,
    /// Number of chunks.
    pub chunks: usize,
}

impl Work<'_> {
    /// Returns a digest of all fields.
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
