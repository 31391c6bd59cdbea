//! Image tiles of a matrix of any size at several zoom levels.

use std::ops::Range;

use gguf::Error;
use rayon::prelude::*;

use super::numbers::{JOINT_READ, Numbers};

/// Maximum width and height of a tile in pixels.
pub const TILE: u64 = 256;

/// Last level without sampling.
const EXACT_LEVEL: u32 = 3;

/// Position of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Zoom level: a pixel covers `2^level` x `2^level` numbers.
    pub level: u32,
    /// Number of tiles to the left.
    pub x: u64,
    /// Number of tiles above.
    pub y: u64,
}

/// Limits of what is read for a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileBudget {
    /// Approximate number of numbers.
    pub numbers: u64,
    /// Number of places in the data, which are requests for a remote file.
    pub places: u64,
}

/// An image tile.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Mean of the finite numbers of each pixel, in row-major order; NaN without any. At level 0, the numbers.
    pub mean: Vec<f32>,
    /// Number of greatest magnitude of each pixel, or NaN if the pixel contains NaN; empty at level 0.
    pub extreme: Vec<f32>,
    /// Whether all numbers were read.
    pub exact: bool,
    /// Number of numbers read.
    pub read: u64,
}

/// Returns the number of zoom levels; the last level has one tile.
pub fn levels(numbers: &dyn Numbers) -> u32 {
    let longest = numbers.rows().max(numbers.columns()).max(1);
    longest.div_ceil(TILE).next_power_of_two().trailing_zeros() + 1
}

/// Computes a tile. At high levels, reads a deterministic, evenly spread sample of about `budget.numbers` numbers: some
/// rows of each pixel, and some blocks of very long rows. If the pixels have more rows than `budget.places`, adjacent
/// pixels take their rows from one place between them.
///
/// # Errors
/// `name-not-found` if the tile does not exist; if the data cannot be read.
pub fn tile(numbers: &dyn Numbers, place: Place, budget: TileBudget) -> Result<Tile, Error> {
    let levels = levels(numbers);
    let outside = || {
        let Place { level, x, y } = place;
        let (rows, columns) = (numbers.rows(), numbers.columns());
        let what = format!("{rows} rows of {columns} have no tile {x}, {y} at level {level}");
        Error::request("name-not-found", what, format!("levels go from 0 to {}", levels - 1))
    };
    if place.level >= levels {
        return Err(outside());
    }
    let step = 1u64 << place.level;
    let part = |at: u64, len: u64| {
        let start = at.checked_mul(TILE)?.checked_mul(step)?;
        (start < len).then(|| start..start.saturating_add(TILE.saturating_mul(step)).min(len))
    };
    let columns = part(place.x, numbers.columns()).ok_or_else(outside)?;
    let rows = part(place.y, numbers.rows()).ok_or_else(outside)?;
    let pixels = |range: &Range<u64>| (range.end - range.start).div_ceil(step);
    let (width, height) = (pixels(&columns), pixels(&rows));
    if place.level == 0 {
        let lines = rows.into_par_iter().map(|row| {
            let mut line = Vec::new();
            numbers.read(row, columns.clone(), &mut line)?;
            Ok(line)
        });
        let mean = lines.collect::<Result<Vec<_>, Error>>()?.concat();
        let (read, extreme) = (mean.len() as u64, Vec::new());
        let (width, height) = (width as usize, height as usize);
        return Ok(Tile { width, height, mean, extreme, exact: true, read });
    }
    let sample = Sample::of(numbers, &columns, (width, height), place.level, budget.numbers);
    // Number of lines of pixels that are read at one place.
    let band = match sample.runs.is_none() && sample.rows < step {
        true => height.div_ceil(budget.places.max(1)),
        false => 1,
    };
    let lines: Vec<Vec<Line>> = (0..height.div_ceil(band))
        .into_par_iter()
        .map(|number| {
            let start = rows.start + number * band * step;
            let rows = start..(start + band * step).min(rows.end);
            match band {
                1 => Ok(vec![Line::read(numbers, rows, &columns, step, &sample)?]),
                _ => Line::read_band(numbers, rows, &columns, step, sample.rows),
            }
        })
        .collect::<Result<_, Error>>()?;
    let lines = lines.concat();
    let read = lines.iter().map(|line| line.read).sum();
    let all = (rows.end - rows.start).checked_mul(columns.end - columns.start);
    let exact = sample.runs.is_none() && Some(read) == all;
    let mut tile = Tile {
        width: width as usize,
        height: height as usize,
        mean: Vec::with_capacity((width * height) as usize),
        extreme: Vec::new(),
        exact,
        read,
    };
    for line in lines {
        tile.mean.extend(line.pixels.iter().map(Pixel::mean));
        tile.extreme.extend(line.pixels.iter().map(|pixel| pixel.extreme));
    }
    Ok(tile)
}

/// Sampling of the numbers of a pixel.
struct Sample {
    /// Number of rows per pixel.
    rows: u64,
    /// Number and length of the runs per row of a pixel; `None` for all numbers.
    runs: Option<(u64, u64)>,
}

impl Sample {
    fn of(
        numbers: &dyn Numbers,
        columns: &Range<u64>,
        (width, height): (u64, u64),
        level: u32,
        budget: u64,
    ) -> Self {
        /// Maximum number of runs per pixel.
        const MAX_RUNS: u64 = 16;
        let step = 1u64 << level;
        if level <= EXACT_LEVEL {
            return Self { rows: step, runs: None };
        }
        let line = height.saturating_mul(columns.end - columns.start);
        let rows = (budget / line.max(1)).clamp(1, step);
        let block = numbers.block_len().max(1);
        let of_pixel = (budget / (width * height).max(1)).max(block);
        // Reading some blocks is faster than reading a whole row only for long rows.
        let runs = (line > budget.saturating_mul(4) && step >= 2 * of_pixel).then(|| {
            let runs = (of_pixel / block).clamp(1, MAX_RUNS);
            (runs, of_pixel / runs / block * block)
        });
        Self { rows, runs }
    }
}

/// A row of pixels.
#[derive(Clone)]
struct Line {
    pixels: Vec<Pixel>,
    read: u64,
}

impl Line {
    fn read(
        numbers: &dyn Numbers,
        rows: Range<u64>,
        columns: &Range<u64>,
        step: u64,
        sample: &Sample,
    ) -> Result<Self, Error> {
        let width = (columns.end - columns.start).div_ceil(step);
        let mut line = Self { pixels: vec![Pixel::default(); width as usize], read: 0 };
        let mut buffer = Vec::new();
        let there = rows.end - rows.start;
        let wanted = sample.rows.min(there);
        if let Some((runs, len)) = sample.runs {
            for i in 0..wanted {
                let row = rows.start + share(there, wanted, i, 1);
                line.read_runs(numbers, row, columns, step, (runs, len))?;
            }
            return Ok(line);
        }
        let span = columns.end - columns.start;
        let together = match span == numbers.columns() {
            true => (JOINT_READ / span).clamp(1, wanted),
            false => 1,
        };
        // All rows, or evenly spread groups.
        let groups = match wanted == there {
            true => there.div_ceil(together),
            false => (wanted / together).max(1),
        };
        for i in 0..groups {
            let start = match wanted == there {
                true => rows.start + i * together,
                false => rows.start + share(there, groups, i, together),
            };
            match (start + together).min(rows.end) - start {
                1 => numbers.read(start, columns.clone(), &mut buffer)?,
                count => numbers.read_rows(start..start + count, &mut buffer)?,
            }
            line.read += buffer.len() as u64;
            for row in buffer.chunks(span as usize) {
                for (pixel, numbers) in line.pixels.iter_mut().zip(row.chunks(step as usize)) {
                    pixel.add(numbers);
                }
            }
        }
        Ok(line)
    }

    /// Reads adjacent rows in the middle of a band of lines, `wanted` for each line.
    fn read_band(
        numbers: &dyn Numbers,
        rows: Range<u64>,
        columns: &Range<u64>,
        step: u64,
        wanted: u64,
    ) -> Result<Vec<Self>, Error> {
        let there = rows.end - rows.start;
        let count = there.div_ceil(step);
        let joint = (wanted * count).min(there);
        let start = rows.start + share(there, 1, 0, joint);
        let (span, mut buffer) = (columns.end - columns.start, Vec::new());
        if span == numbers.columns() {
            numbers.read_rows(start..start + joint, &mut buffer)?;
        } else {
            let mut row_buffer = Vec::new();
            for row in start..start + joint {
                numbers.read(row, columns.clone(), &mut row_buffer)?;
                buffer.append(&mut row_buffer);
            }
        }
        let width = span.div_ceil(step) as usize;
        let line = |i: u64| {
            let mut line = Self { pixels: vec![Pixel::default(); width], read: 0 };
            let bound = |i: u64| (joint * i / count * span) as usize;
            let part = &buffer[bound(i)..bound(i + 1)];
            line.read = part.len() as u64;
            for row in part.chunks(span as usize) {
                for (pixel, numbers) in line.pixels.iter_mut().zip(row.chunks(step as usize)) {
                    pixel.add(numbers);
                }
            }
            line
        };
        Ok((0..count).map(line).collect())
    }

    /// Reads some runs of each pixel of a row.
    fn read_runs(
        &mut self,
        numbers: &dyn Numbers,
        row: u64,
        columns: &Range<u64>,
        step: u64,
        (runs, len): (u64, u64),
    ) -> Result<(), Error> {
        let mut buffer = Vec::new();
        for (at, pixel) in self.pixels.iter_mut().enumerate() {
            let start = columns.start + at as u64 * step;
            let share = (columns.end - start).min(step) / runs;
            for run in 0..runs {
                // Pixels start at block boundaries: both sizes are powers of two.
                let first = start + run * share / len.max(1) * len;
                let end = (first + len).min(columns.end);
                numbers.read(row, first..end, &mut buffer)?;
                self.read += buffer.len() as u64;
                pixel.add(&buffer);
            }
        }
        Ok(())
    }
}

/// Returns the start of the `i`-th of `groups` groups of `together` rows, each in the middle of its share of the `there`
/// rows.
fn share(there: u64, groups: u64, i: u64, together: u64) -> u64 {
    let bound = |i: u64| (u128::from(there) * u128::from(i) / u128::from(groups.max(1))) as u64;
    let (start, end) = (bound(i), bound(i + 1));
    start + (end - start).saturating_sub(together) / 2
}

/// Accumulated numbers of a pixel.
#[derive(Clone, Copy, Default)]
struct Pixel {
    sum: f64,
    finite: u32,
    extreme: f32,
}

impl Pixel {
    fn add(&mut self, numbers: &[f32]) {
        let (mut sum, mut min, mut max) = (0f64, 0f32, 0f32);
        for &x in numbers {
            sum += f64::from(x);
            min = min.min(x);
            max = max.max(x);
        }
        if sum.is_finite() && min.is_finite() && max.is_finite() {
            self.sum += sum;
            self.finite += numbers.len() as u32;
            self.see(min);
            self.see(max);
            return;
        }
        for &x in numbers {
            if x.is_finite() {
                self.sum += f64::from(x);
                self.finite += 1;
            }
            self.see(x);
        }
    }

    /// Updates the extreme; NaN takes precedence over infinity.
    fn see(&mut self, x: f32) {
        if !self.extreme.is_nan() && (x.is_nan() || x.abs() > self.extreme.abs()) {
            self.extreme = x;
        }
    }

    fn mean(&self) -> f32 {
        // 0 / 0 is NaN without finite numbers.
        (self.sum / f64::from(self.finite)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A matrix whose elements are 1000 times the row plus the column.
    struct Table {
        rows: u64,
        columns: u64,
        block: u64,
    }

    impl Numbers for Table {
        fn rows(&self) -> u64 {
            self.rows
        }

        fn columns(&self) -> u64 {
            self.columns
        }

        fn block_len(&self) -> u64 {
            self.block
        }

        fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
            assert!(row < self.rows && columns.end <= self.columns && columns.start <= columns.end);
            *out = columns.map(|column| (row * 1000 + column) as f32).collect();
            Ok(())
        }
    }

    const BUDGET: u64 = 1 << 22;
    const LOCAL: TileBudget = TileBudget { numbers: BUDGET, places: u64::MAX };

    fn at(numbers: &Table, level: u32, x: u64, y: u64) -> Tile {
        tile(numbers, Place { level, x, y }, LOCAL).unwrap()
    }

    #[test]
    fn level_0_has_the_numbers() {
        let table = Table { rows: 300, columns: 400, block: 32 };
        let tile = at(&table, 0, 1, 1);
        assert_eq!((tile.width, tile.height, tile.exact, tile.read), (144, 44, true, 144 * 44));
        assert_eq!((tile.mean[0], tile.mean[144]), (256_256.0, 257_256.0));
        assert!(tile.extreme.is_empty());
    }

    #[test]
    fn pixels_have_mean_and_extreme() {
        let table = Table { rows: 300, columns: 402, block: 32 };
        assert_eq!(levels(&table), 2);
        let tile = at(&table, 1, 0, 0);
        assert_eq!((tile.width, tile.height), (201, 150));
        assert_eq!((tile.mean[0], tile.extreme[0]), (500.5, 1001.0));
        // Row 2 and 3, columns 4 and 5.
        assert_eq!((tile.mean[201 + 2], tile.extreme[201 + 2]), (2504.5, 3005.0));
        assert_eq!(tile.read, 300 * 402);
    }

    #[test]
    fn pixels_with_nan_and_infinity() {
        let mut pixel = Pixel::default();
        pixel.add(&[1.0, -4.0, 3.0]);
        assert_eq!((pixel.mean(), pixel.extreme), (0.0, -4.0));
        pixel.add(&[f32::INFINITY, 2.0]);
        assert_eq!((pixel.mean(), pixel.extreme), (0.5, f32::INFINITY));
        pixel.add(&[f32::NAN]);
        pixel.add(&[9.0]);
        assert!(pixel.mean() == 2.2 && pixel.extreme.is_nan());
        let mut pixel = Pixel::default();
        pixel.add(&[f32::NAN]);
        assert!(pixel.mean().is_nan());
    }

    /// The cost of a tile is bounded for any matrix size.
    #[test]
    fn cost_of_a_tile_is_bounded() {
        for (rows, columns, block) in [
            (14_336, 4096, 256),
            (1 << 24, 1 << 12, 256),
            (1 << 20, 1 << 20, 256),
            (1, 1 << 34, 32),
            (1 << 34, 1, 1),
            (1 << 34, 32, 32),
            (262_144, 4096, 1),
        ] {
            let table = Table { rows, columns, block };
            for level in 0..levels(&table) {
                let tile = at(&table, level, 0, 0);
                assert!(tile.read <= 5 * BUDGET, "{rows} x {columns} {level}: {}", tile.read);
                assert!(tile.exact || level > 3, "{rows} x {columns} {level}");
                let side = 256u64 << level;
                let all = side.min(rows) * side.min(columns);
                assert_eq!(tile.exact, tile.read == all, "{rows} x {columns} {level}");
            }
            let last = at(&table, levels(&table) - 1, 0, 0);
            assert!(last.width <= 256 && last.height <= 256);
        }
    }

    /// Counts the places that rows are read from.
    struct Places(Table, std::sync::atomic::AtomicU64);

    impl Numbers for Places {
        fn rows(&self) -> u64 {
            self.0.rows
        }

        fn columns(&self) -> u64 {
            self.0.columns
        }

        fn block_len(&self) -> u64 {
            self.0.block
        }

        fn read(&self, row: u64, columns: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.read(row, columns, out)
        }

        fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<(), Error> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.read_rows(rows, out)
        }
    }

    /// A tile of a remote file reads adjacent rows at few places, each within the rows of its band of pixels.
    #[test]
    fn tiles_read_few_places() {
        let numbers = Places(Table { rows: 262_144, columns: 640, block: 32 }, 0.into());
        let budget = TileBudget { numbers: 1 << 20, places: 32 };
        let tile = tile(&numbers, Place { level: 10, x: 0, y: 0 }, budget).unwrap();
        assert_eq!((tile.width, tile.height, tile.exact), (1, 256, false));
        assert_eq!(numbers.1.into_inner(), 32);
        // 6 of the 1024 rows of each of 256 pixels.
        assert_eq!(tile.read, 6 * 256 * 640);
        for (line, mean) in tile.mean.iter().enumerate() {
            let band = (line / 8 * 8 * 1024) as f32;
            let row = mean / 1000.0;
            assert!((band..band + 8.0 * 1024.0).contains(&row), "{line}: {row}");
        }
        // Every row is read where all fit: the tile is exact.
        let small = Table { rows: 300, columns: 400, block: 32 };
        let exact = super::tile(&small, Place { level: 1, x: 0, y: 0 }, budget).unwrap();
        assert_eq!((exact.exact, exact.mean), (true, at(&small, 1, 0, 0).mean));
    }

    #[test]
    fn tiles_outside_the_image_are_rejected() {
        let table = Table { rows: 300, columns: 400, block: 32 };
        for (level, x, y) in [(2, 0, 0), (u32::MAX, 0, 0), (0, 2, 0), (0, 0, u64::MAX), (1, 1, 0)] {
            let error = tile(&table, Place { level, x, y }, LOCAL).unwrap_err();
            assert_eq!(error.code(), "name-not-found");
        }
        assert!(
            tile(&Table { rows: 0, columns: 4, block: 1 }, Place { level: 0, x: 0, y: 0 }, LOCAL)
                .is_err()
        );
    }
}
