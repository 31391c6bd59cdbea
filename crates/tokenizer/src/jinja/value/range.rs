//! `range` of Python.

use crate::jinja::error::{Result, failed};

/// Maximum length of a range, as in jinja2's sandbox.
const MAX_LEN: i128 = 100_000;

/// Bound of the numbers of a range, which leaves room for sums and differences.
const MAX_NUMBER: u128 = 1 << 100;

/// Integers from `start` to before `stop`, in steps that are not 0.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub start: i128,
    pub stop: i128,
    pub step: i128,
}

impl Range {
    pub fn new(start: i128, stop: i128, step: i128) -> Result<Self> {
        if step == 0 {
            return failed("range() arg 3 must not be zero");
        }
        let within = |value: i128| value.unsigned_abs() < MAX_NUMBER;
        let range = Self { start, stop, step };
        if !within(start) || !within(stop) || !within(step) || range.count() > MAX_LEN {
            return failed(format!(
                "Range too big. The sandbox blocks ranges larger than {MAX_LEN}."
            ));
        }
        Ok(range)
    }

    fn count(self) -> i128 {
        let distance = if self.step > 0 { self.stop - self.start } else { self.start - self.stop };
        let step = self.step.abs();
        (distance.max(0) + step - 1) / step
    }

    pub fn len(self) -> usize {
        usize::try_from(self.count()).unwrap_or(usize::MAX)
    }

    pub fn get(self, index: usize) -> i128 {
        self.start + self.step * index as i128
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = i128> {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// Returns the range of these elements; `None` if a number of it is too large.
    pub fn slice(self, start: i128, stop: i128, step: i128) -> Option<Self> {
        let place = |index: i128| self.start.checked_add(self.step.checked_mul(index)?);
        let step = self.step.checked_mul(step)?;
        let within = |value: i128| value.unsigned_abs() < MAX_NUMBER;
        let range = Self { start: place(start)?, stop: place(stop)?, step };
        (within(range.start) && within(range.stop) && within(step)).then_some(range)
    }

    /// Whether a number is an element.
    pub fn contains(self, value: i128) -> bool {
        let (low, high) = match self.step > 0 {
            true => (self.start, self.stop),
            false => (self.stop + 1, self.start + 1),
        };
        (low..high).contains(&value) && (value - self.start) % self.step == 0
    }

    /// Returns numbers that are equal for ranges of equal elements.
    pub fn identity(self) -> Vec<i128> {
        match self.len() {
            0 => vec![0],
            1 => vec![1, self.start],
            len => vec![len as i128, self.start, self.step],
        }
    }

    pub fn repr(self) -> String {
        match self.step {
            1 => format!("range({}, {})", self.start, self.stop),
            step => format!("range({}, {}, {step})", self.start, self.stop),
        }
    }
}
