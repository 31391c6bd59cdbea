//! Values: matrices of floats.

use gguf::Error;

/// A matrix of floats, stored row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// Number of rows.
    pub rows: usize,
    /// Number of elements in a row.
    pub width: usize,
    /// Elements, row by row.
    pub data: Vec<f32>,
}

impl Value {
    /// Returns zeros, in reused memory.
    pub(crate) fn zeros(rows: usize, width: usize, mut memory: Vec<f32>) -> Self {
        memory.clear();
        Self::uninitialized(rows, width, memory)
    }

    /// Returns unspecified elements, in reused memory.
    pub(crate) fn uninitialized(rows: usize, width: usize, mut memory: Vec<f32>) -> Self {
        let len = rows * width;
        if memory.capacity() < len {
            // The system returns zeroed pages, which costs nothing here.
            return Self { rows, width, data: vec![0.0; len] };
        }
        memory.resize(len, 0.0);
        Self { rows, width, data: memory }
    }

    /// Checks an output that is used or written. Negative infinity is the logit of an impossible token.
    ///
    /// # Errors
    /// `weights-unusable` with the first row that contains NaN or positive infinity.
    pub fn require_finite(&self) -> Result<(), Error> {
        let is_unusable = |x: &f32| x.is_nan() || *x == f32::INFINITY;
        let Some(place) = self.data.iter().position(is_unusable) else { return Ok(()) };
        let number = if self.data[place].is_nan() { "NaN" } else { "infinity" };
        let row = place.checked_div(self.width).unwrap_or(0);
        Err(Error::weights("output", format!("the output contains {number}, first in row {row}")))
    }

    /// Returns the transpose.
    pub fn transposed(&self) -> Self {
        let data = (0..self.width).flat_map(|column| (0..self.rows).map(move |row| (row, column)));
        let data = data.map(|(row, column)| self.row(row)[column]).collect();
        Self { rows: self.width, width: self.rows, data }
    }

    /// Returns a row.
    pub fn row(&self, row: usize) -> &[f32] {
        self.data.get(row * self.width..(row + 1) * self.width).unwrap_or_default()
    }
}
