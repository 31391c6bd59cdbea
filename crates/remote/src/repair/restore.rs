//! Repair of a local file: fetches what is missing or wrong until the digest is right.

use std::ops::Range;

use gguf_store::Progress;

use super::copy::{Copy, PAGE, Scan, blocks};
use super::original::{Compared, Original};
use crate::error::Error;

/// Maximum number of bytes between two ranges that are fetched as one: a request takes as long as these bytes.
const GAP: u64 = 1 << 20;

impl Original {
    /// Fetches the missing end, then runs of zeros, then the rest, until the copy has the digest of this file. Without a
    /// digest, everything is fetched and compared.
    ///
    /// # Errors
    /// `download-damaged` if the digest is wrong in the end; the file then has its old bytes.
    pub fn restore(
        &self,
        copy: &mut Copy<'_>,
        compared: &mut Compared,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let (len, local_len) = (self.len(), compared.report.local_len);
        let present = local_len.min(len);
        let repaired = &mut compared.report.repaired;
        let is_right =
            self.restore_ranges(copy, present, compared.scan.take(), repaired, progress)?;
        repaired.sort_by_key(|range| range.start);
        if !is_right {
            copy.undo(local_len)?;
            let what = format!(
                "the bytes of {} do not have the digest that the server states",
                self.location()
            );
            let help = "the file was left as it was; try again, or report it to the publisher";
            return Err(gguf::Error::request("download-damaged", what, help).into());
        }
        if copy.byte_len()? > len {
            copy.set_len(len)?;
        }
        Ok(())
    }

    /// Repairs the first `present` bytes and adds the missing ones. Returns whether the digest is right.
    fn restore_ranges(
        &self,
        copy: &mut Copy<'_>,
        present: u64,
        scan: Option<Scan>,
        repaired: &mut Vec<Range<u64>>,
        progress: &dyn Progress,
    ) -> Result<bool, Error> {
        let len = self.len();
        if present < len {
            self.append(copy, present..len, progress)?;
            repaired.push(present..len);
        }
        let Some(digest) = self.digest() else {
            self.replace(copy, std::slice::from_ref(&(0..present)), repaired, progress)?;
            return Ok(true);
        };
        let scan = match scan {
            Some(scan) => scan,
            None => copy.scan(digest, len, progress)?,
        };
        if scan.digest == *digest {
            return Ok(true);
        }
        let holes = holes(&scan.zeros, present);
        if !holes.is_empty() {
            self.replace(copy, &holes, repaired, progress)?;
            if copy.scan(digest, len, progress)?.digest == *digest {
                return Ok(true);
            }
        }
        self.replace(copy, &others(&holes, present), repaired, progress)?;
        Ok(copy.scan(digest, len, progress)?.digest == *digest)
    }

    /// Fetches the end of the file.
    fn append(
        &self,
        copy: &Copy<'_>,
        missing: Range<u64>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        progress.begin("fetching", missing.end - missing.start);
        let mut bytes = Vec::new();
        for block in blocks(missing) {
            bytes.resize((block.end - block.start) as usize, 0);
            self.source().read_at(&mut bytes, block.start)?;
            copy.write(&bytes, block.start)?;
            progress.step(bytes.len() as u64)?;
        }
        Ok(())
    }

    /// Fetches ranges, and replaces the bytes that differ.
    fn replace(
        &self,
        copy: &mut Copy<'_>,
        ranges: &[Range<u64>],
        repaired: &mut Vec<Range<u64>>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        progress.begin("fetching", ranges.iter().map(|range| range.end - range.start).sum());
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        let mut found: Vec<Range<u64>> = Vec::new();
        for block in ranges.iter().cloned().flat_map(blocks) {
            let count = (block.end - block.start) as usize;
            theirs.resize(count, 0);
            ours.resize(count, 0);
            self.source().read_at(&mut theirs, block.start)?;
            copy.read(&mut ours, block.start)?;
            let differs = |(ours, theirs): (&u8, &u8)| ours != theirs;
            if let Some(first) = ours.iter().zip(&theirs).position(differs)
                && let Some(last) = ours.iter().zip(&theirs).rposition(differs)
            {
                let at = block.start + first as u64;
                copy.replace(&ours[first..=last], &theirs[first..=last], at)?;
                let end = block.start + last as u64 + 1;
                match found.last_mut() {
                    Some(before) if at - before.end < PAGE => before.end = end,
                    _ => found.push(at..end),
                }
            }
            progress.step(count as u64)?;
        }
        repaired.append(&mut found);
        Ok(())
    }
}

/// Returns the ranges below `end` that contain the runs of zeros: a page more on both sides, since a hole can begin within a
/// page, and those with small gaps as one.
fn holes(zeros: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let mut holes: Vec<Range<u64>> = Vec::new();
    for run in zeros.iter().filter(|run| run.start < end) {
        let hole = run.start.saturating_sub(PAGE)..(run.end + PAGE).min(end);
        match holes.last_mut() {
            Some(last) if hole.start <= last.end + GAP => last.end = hole.end,
            _ => holes.push(hole),
        }
    }
    holes
}

/// Returns the ranges below `end` outside of `holes`.
fn others(holes: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let starts = std::iter::once(0).chain(holes.iter().map(|hole| hole.end));
    let ends = holes.iter().map(|hole| hole.start).chain(std::iter::once(end));
    starts.zip(ends).map(|(start, end)| start..end).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_cover_partial_pages_and_small_gaps() {
        let runs = [PAGE..2 * PAGE, 8 * PAGE..9 * PAGE, 2000 * PAGE..2001 * PAGE];
        let end = 2000 * PAGE + 10;
        let found = holes(&runs, end);
        assert_eq!(found, [0..10 * PAGE, 1999 * PAGE..end]);
        let only = |range: Range<u64>| vec![range];
        assert_eq!(others(&found, end), only(10 * PAGE..1999 * PAGE));
        assert_eq!(holes(&runs, PAGE), []);
        assert_eq!(others(&[], 5), only(0..5));
        assert_eq!(others(&[], 0), []);
    }
}
