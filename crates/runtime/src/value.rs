//! A matrix of floats: what an operation makes.

/// Rows of floats of one width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Value {
    /// Number of rows.
    pub rows: usize,
    /// Numbers of a row.
    pub width: usize,
    /// The rows, one after the other.
    pub data: Vec<f32>,
}

impl Value {
    /// Rows of zeros, in memory that was used before.
    pub(crate) fn zeros(rows: usize, width: usize, mut memory: Vec<f32>) -> Self {
        memory.clear();
        Self::anything(rows, width, memory)
    }

    /// Rows of anything, in memory that was used before.
    pub(crate) fn anything(rows: usize, width: usize, mut memory: Vec<f32>) -> Self {
        let len = rows * width;
        if memory.capacity() < len {
            // Zeros of the system, which nobody writes.
            return Self { rows, width, data: vec![0.0; len] };
        }
        memory.resize(len, 0.0);
        Self { rows, width, data: memory }
    }

    /// With rows for columns.
    pub fn transposed(&self) -> Self {
        let data = (0..self.width).flat_map(|column| (0..self.rows).map(move |row| (row, column)));
        let data = data.map(|(row, column)| self.row(row)[column]).collect();
        Self { rows: self.width, width: self.rows, data }
    }

    /// A row.
    pub fn row(&self, row: usize) -> &[f32] {
        self.data.get(row * self.width..(row + 1) * self.width).unwrap_or_default()
    }
}
