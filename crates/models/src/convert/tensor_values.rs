//! Values of a checkpoint's tensors, for keys and computed tensors.

use std::borrow::Cow;

use gguf::{Error, TensorType};
use gguf_checkpoint::{Checkpoint, Entry};

use crate::convert::assembly::{misfit, tensor_misfit};
use crate::convert::{assembly, foreign};

/// Maximum number of elements of a list.
const MOST: u64 = 1 << 24;

/// The tensors of a checkpoint.
pub struct Values<'c> {
    checkpoint: &'c Checkpoint,
}

impl<'c> Values<'c> {
    /// Returns the values of a checkpoint's tensors.
    pub fn of(checkpoint: &'c Checkpoint) -> Self {
        Self { checkpoint }
    }

    /// Returns the elements of a tensor, by its name in the text model; `None` if it is missing.
    ///
    /// # Errors
    /// If it is too large for a list, or cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<Vec<f32>>, Error> {
        let Some(entry) = self.entry(name) else { return Ok(None) };
        self.require_few(entry)?;
        assembly::elements(self.checkpoint, entry).map(Some)
    }

    /// Returns the elements of a required tensor.
    ///
    /// # Errors
    /// Also if it is missing.
    pub fn require(&self, name: &str, meaning: &str) -> Result<Vec<f32>, Error> {
        self.find(name)?.ok_or_else(|| self.missing(name, meaning))
    }

    /// Returns the elements of an integer tensor; `None` if it is missing.
    ///
    /// # Errors
    /// If it is too large for a list, of another type, or cannot be read.
    pub fn whole(&self, name: &str) -> Result<Option<Vec<i64>>, Error> {
        let Some(entry) = self.entry(name) else { return Ok(None) };
        self.require_few(entry)?;
        let tensor = assembly::unmodified(self.checkpoint, entry)?;
        let mut bytes = Vec::new();
        tensor.read_rows(0, tensor.rows(), &mut bytes)?;
        let numbers = match tensor.stored_type {
            TensorType::I64 => bytes.as_chunks().0.iter().map(|x| i64::from_le_bytes(*x)).collect(),
            TensorType::I32 => {
                bytes.as_chunks().0.iter().map(|x| i32::from_le_bytes(*x).into()).collect()
            }
            other => {
                return Err(tensor_misfit(
                    self.checkpoint,
                    entry,
                    format!("is stored as {other}, not as I64 or I32"),
                ));
            }
        };
        Ok(Some(numbers))
    }

    /// Returns the row length of a tensor; 0 if it is missing.
    pub fn row_len(&self, name: &str) -> u64 {
        self.entry(name).and_then(|entry| entry.shape.last().copied()).unwrap_or(0)
    }

    /// Returns the indices of all-zero rows from `first` on, of a required matrix.
    ///
    /// # Errors
    /// If it is missing, or cannot be read.
    pub fn rows_of_zeros(&self, name: &str, first: u64, meaning: &str) -> Result<Vec<u64>, Error> {
        let entry = self.entry(name).ok_or_else(|| self.missing(name, meaning))?;
        let tensor = assembly::unmodified(self.checkpoint, entry)?;
        let mut zeros = Vec::new();
        for row in first..tensor.rows() {
            if tensor.decode_rows(row, 1)?.iter().all(|&x| x == 0.0) {
                zeros.push(row);
            }
        }
        Ok(zeros)
    }

    /// Returns the names of all tensors, as in a text model.
    pub fn names(&self) -> impl Iterator<Item = Cow<'c, str>> {
        self.checkpoint.entries.iter().map(|entry| foreign::text_name(&entry.name))
    }

    /// Calls `with` for every row of a tensor, if there is one of this name.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn each_row(&self, name: &str, mut with: impl FnMut(&[f32])) -> Result<(), Error> {
        let Some(entry) = self.entry(name) else { return Ok(()) };
        let tensor = assembly::unmodified(self.checkpoint, entry)?;
        (0..tensor.rows()).try_for_each(|row| {
            with(&tensor.decode_rows(row, 1)?);
            Ok(())
        })
    }

    fn entry(&self, name: &str) -> Option<&'c Entry> {
        self.checkpoint.entries.iter().find(|entry| foreign::text_name(&entry.name) == name)
    }

    fn require_few(&self, entry: &Entry) -> Result<(), Error> {
        let elements: u64 = entry.shape.iter().product();
        match elements <= MOST {
            true => Ok(()),
            false => {
                let what = format!("has {elements} elements, too many for a list");
                Err(tensor_misfit(self.checkpoint, entry, what))
            }
        }
    }

    /// Returns an error about a missing tensor.
    pub fn missing(&self, name: &str, meaning: &str) -> Error {
        misfit(&self.checkpoint.path(), format!("has no tensor `{name}` ({meaning})"))
    }
}
