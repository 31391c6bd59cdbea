//! Runs of zero bytes: holes that a broken download leaves in a file of the right size.

use std::ops::Range;

use gguf::Finding;
use gguf::units::bytes as size;
use gguf_store::ModelTensor;

/// Shortest run that counts as a hole: a page, the smallest unit in which file systems and downloads leave holes.
const MIN_HOLE: u64 = 4096;
/// Bytes by which a run of zero rows can exceed the rows: values beside them can end or begin with zeros.
const SLACK: u64 = 64;
/// A matrix with more runs is sparse by intention.
const MAX_RUNS: usize = 8;

/// Returns the runs of zero bytes that are long enough, or that touch an end and may continue beyond it.
pub(super) fn zero_runs(bytes: &[u8]) -> Vec<Range<u64>> {
    const STEP: usize = 64;
    let is_zero = |bytes: &[u8]| bytes.iter().fold(0, |any, byte| any | byte) == 0;
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut extend = |start: usize, end: usize| match runs.last_mut() {
        Some(last) if last.end == start => last.end = end,
        _ => runs.push(start..end),
    };
    // A run that is long enough has whole steps of zeros; only its ends need a look at single bytes.
    for (i, step) in bytes.chunks(STEP).enumerate() {
        let start = i * STEP;
        if is_zero(step) {
            extend(start, start + step.len());
            continue;
        }
        let head = step.iter().take_while(|byte| **byte == 0).count();
        let tail = step.iter().rev().take_while(|byte| **byte == 0).count();
        if head > 0 {
            extend(start, start + head);
        }
        if tail > 0 {
            extend(start + step.len() - tail, start + step.len());
        }
    }
    let is_kept = |run: &Range<usize>| {
        run.start == 0 || run.end == bytes.len() || (run.end - run.start) as u64 >= MIN_HOLE
    };
    runs.into_iter().filter(is_kept).map(|run| run.start as u64..run.end as u64).collect()
}

/// Runs of zero bytes of a tensor, within its data.
pub(super) struct Zeros<'t> {
    pub tensor: &'t ModelTensor,
    runs: Vec<Range<u64>>,
}

impl<'t> Zeros<'t> {
    /// Joins the runs of consecutive parts of a tensor; each part has its start and its runs.
    pub fn new(
        tensor: &'t ModelTensor,
        parts: impl Iterator<Item = (u64, Vec<Range<u64>>)>,
    ) -> Self {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (start, part) in parts {
            for run in part {
                let run = start + run.start..start + run.end;
                match runs.last_mut() {
                    Some(last) if last.end == run.start => last.end = run.end,
                    _ => runs.push(run),
                }
            }
        }
        let len = tensor.info.byte_len().unwrap_or(0);
        runs.retain(|run| run.start == 0 || run.end == len || run.end - run.start >= MIN_HOLE);
        Self { tensor, runs }
    }

    fn len(&self) -> u64 {
        self.tensor.info.byte_len().unwrap_or(0)
    }

    fn is_matrix(&self) -> bool {
        self.tensor.info.shape.iter().filter(|dim| **dim > 1).count() > 1
    }

    /// Whether a place in the data is where a row begins or ends, or close to it.
    fn is_row_boundary(&self, at: u64) -> bool {
        let info = &self.tensor.info;
        let row = info.tensor_type.byte_len(&[info.shape.row_len()]).filter(|row| *row > 0);
        row.is_none_or(|row| at % row <= SLACK || row - at % row <= SLACK)
    }
}

/// A run of zero bytes over one or several tensors.
struct Hole<'z, 't> {
    first: &'z Zeros<'t>,
    /// Start within the first tensor.
    start: u64,
    last: &'z Zeros<'t>,
    /// End within the last tensor.
    end: u64,
    /// Number of matrices that are zero from start to end.
    matrices: usize,
}

impl Hole<'_, '_> {
    /// Bytes in the file.
    fn place(&self) -> Range<u64> {
        self.first.tensor.offset + self.start..self.last.tensor.offset + self.end
    }

    /// Whether the run does not consist of whole rows and tensors, as weights that are zero by intention do, or
    /// several matrices beside each other are zero.
    fn is_damage(&self) -> bool {
        let place = self.place();
        let is_one = std::ptr::eq(self.first, self.last);
        if place.end - place.start < MIN_HOLE
            || (is_one && (!self.first.is_matrix() || self.first.runs.len() > MAX_RUNS))
        {
            return false;
        }
        !self.first.is_row_boundary(self.start)
            || !self.last.is_row_boundary(self.end)
            || self.matrices > 1
    }

    fn finding(&self) -> Finding {
        let place = self.place();
        let names = [self.first, self.last].map(|zeros| &*zeros.tensor.info.name);
        let tensors = if names[0] == names[1] {
            format!("in {}", names[0])
        } else {
            format!("from {} to {}", names[0], names[1])
        };
        let message = format!("{} of zeros, {tensors}", size(place.end - place.start));
        Finding::error("data-hole", message)
            .tensor(names[0])
            .at(place.start)
            .help(
                "the file has a hole, as a download leaves that stopped: download it again, or repair it with `gguf check FILE \
                 --against hf:org/repo --repair`",
            )
    }
}

/// Returns a finding for each hole, and the names of the tensors that are in one. `tensors` are in any order.
pub(super) fn holes<'z>(tensors: &'z mut [Zeros]) -> (Vec<Finding>, Vec<&'z str>) {
    /// Maximum number of padding bytes between tensors.
    const MAX_PADDING: u64 = MIN_HOLE;
    tensors.sort_by_key(|zeros| (zeros.tensor.shard, zeros.tensor.offset));
    let tensors = &*tensors;
    let mut holes: Vec<(Hole, Vec<&str>)> = Vec::new();
    for zeros in tensors {
        for run in &zeros.runs {
            let name = &*zeros.tensor.info.name;
            let is_whole = run.start == 0 && run.end == zeros.len() && zeros.is_matrix();
            match holes.last_mut() {
                Some((hole, names))
                    if run.start == 0
                        && hole.end == hole.last.len()
                        && hole.last.tensor.shard == zeros.tensor.shard
                        && zeros.tensor.offset.saturating_sub(hole.place().end) < MAX_PADDING =>
                {
                    (hole.last, hole.end) = (zeros, run.end);
                    hole.matrices += usize::from(is_whole);
                    names.push(name);
                }
                _ => {
                    let matrices = usize::from(is_whole);
                    let (start, end) = (run.start, run.end);
                    holes.push((
                        Hole { first: zeros, start, last: zeros, end, matrices },
                        vec![name],
                    ));
                }
            }
        }
    }
    let damage = holes.into_iter().filter(|(hole, _)| hole.is_damage());
    let (findings, names): (Vec<_>, Vec<_>) =
        damage.map(|(hole, names)| (hole.finding(), names)).unzip();
    (findings, names.concat())
}
