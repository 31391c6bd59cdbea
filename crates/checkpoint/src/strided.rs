//! Strided views: transposed and sliced tensors, as PyTorch saves them.

use std::ops::Range;

use super::dtype::Dtype;
use super::raw::Raw;
use super::rows::Rows;

/// Elements per tile: enough for long contiguous runs.
const TILE: u64 = 128 * 1024;

/// A view of a storage. Its rows are the slices along the slowest dimension.
pub(crate) struct Strided {
    /// The storage as one dimension.
    storage: Raw,
    /// First element in the storage.
    start: u64,
    /// Length and stride of each dimension, slowest first.
    dims: Vec<(u64, u64)>,
}

impl Strided {
    /// Creates the view of `storage` that begins at element `start`; `None` if it exceeds the
    /// storage.
    pub fn new(storage: Raw, start: u64, dims: Vec<(u64, u64)>) -> Option<Self> {
        let empty = dims.iter().any(|(len, _)| *len == 0);
        let last = dims.iter().try_fold(start, |at, (len, stride)| {
            at.checked_add(len.saturating_sub(1).checked_mul(*stride)?)
        })?;
        let fits = empty || last < storage.elements();
        fits.then_some(Self { storage, start, dims })
    }

    /// Whether the elements are in order without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.dims.iter().rev().all(|&(len, stride)| {
            let fits = len == 1 || stride == expected;
            expected *= len;
            fits
        })
    }

    fn dtype(&self) -> Dtype {
        self.storage.dtype
    }

    /// Reads rows in runs along the contiguous dimension, if there is one.
    ///
    fn gather(&self, rows: Range<u64>, out: &mut [u8]) -> Result<(), gguf::Error> {
        let mut dims = self.dims.clone();
        let Some(slowest) = dims.first_mut() else {
            return self.storage.read(self.start, out);
        };
        let start = self.start + rows.start * slowest.1;
        slowest.0 = rows.end - rows.start;
        // Output strides.
        let mut strides = vec![1; dims.len()];
        for i in (1..dims.len()).rev() {
            strides[i - 1] = strides[i] * dims[i].0;
        }
        let contiguous = dims.iter().position(|(len, stride)| *stride == 1 && *len > 1);
        let (run, run_stride) = match contiguous {
            Some(at) => (dims.remove(at).0, strides.remove(at)),
            None => (1, 1),
        };
        let width = self.dtype().bytes() as usize;
        let mut bytes = vec![0; run as usize * width];
        let runs: u64 = dims.iter().map(|(len, _)| len).product();
        for number in 0..runs {
            let (mut rest, mut from, mut to) = (number, start, 0);
            for (&(len, stride), out_stride) in dims.iter().zip(&strides).rev() {
                from += rest % len * stride;
                to += rest % len * out_stride;
                rest /= len;
            }
            self.storage.read(from, &mut bytes)?;
            for (element, at) in bytes.chunks_exact(width).zip(0u64..) {
                let at = (to + at * run_stride) as usize * width;
                out[at..at + width].copy_from_slice(element);
            }
        }
        Ok(())
    }
}

impl Rows for Strided {
    fn count(&self) -> u64 {
        if self.dims.iter().any(|(len, _)| *len == 0) {
            return 0;
        }
        self.dims.first().map_or(1, |(len, _)| *len)
    }

    fn row_bytes(&self) -> u64 {
        self.dims.iter().skip(1).map(|(len, _)| len).product::<u64>() * self.dtype().bytes()
    }

    fn tile(&self) -> u64 {
        (TILE * self.dtype().bytes() / self.row_bytes().max(1)).max(1)
    }

    fn read(&self, first: u64, out: &mut [u8]) -> Result<(), gguf::Error> {
        let n = out.len() as u64 / self.row_bytes().max(1);
        self.gather(first..first + n, out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn view(start: u64, dims: &[(u64, u64)]) -> Option<Strided> {
        let source = Arc::new((0..24).collect::<Vec<u8>>());
        let storage =
            Raw { name: "t".into(), shape: vec![24], dtype: Dtype::U8, file: 0, source, offset: 0 };
        Strided::new(storage, start, dims.to_vec())
    }

    fn rows(view: &Strided, first: u64, n: u64) -> Vec<u8> {
        let mut out = vec![0; (n * view.row_bytes()) as usize];
        view.read(first, &mut out).unwrap();
        out
    }

    #[test]
    fn strided_views_are_read() {
        let transposed = view(0, &[(4, 1), (6, 4)]).unwrap();
        assert!(!transposed.is_contiguous());
        assert_eq!(rows(&transposed, 1, 2), [1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22]);
        let sliced = view(5, &[(2, 8), (3, 1)]).unwrap();
        assert_eq!(rows(&sliced, 0, 2), [5, 6, 7, 13, 14, 15]);
        let permuted = view(0, &[(2, 4), (3, 8), (4, 1)]).unwrap();
        assert_eq!(rows(&permuted, 1, 1), [4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23]);
        let apart = view(1, &[(3, 2), (2, 12)]).unwrap();
        assert_eq!(rows(&apart, 0, 3), [1, 13, 3, 15, 5, 17]);
        let scalar = view(7, &[]).unwrap();
        assert_eq!((scalar.count(), rows(&scalar, 0, 1)), (1, vec![7]));
        assert!(view(0, &[(4, 6), (6, 1)]).unwrap().is_contiguous());
    }

    #[test]
    fn views_must_fit_their_storage() {
        assert!(view(1, &[(4, 6), (6, 1)]).is_none());
        assert!(view(23, &[(1, 100)]).is_some());
        assert!(view(0, &[(u64::MAX, u64::MAX)]).is_none());
        assert!(view(100, &[(0, 1)]).is_some());
    }
}
