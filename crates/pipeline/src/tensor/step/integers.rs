//! Conversion of integers of any width to I32.

use gguf::Error;

use crate::mismatch::TensorMismatch;
use crate::tensor::Tensor;

/// Returns an error if the elements are not integers.
pub(super) fn require(tensor: &Tensor) -> Result<(), TensorMismatch> {
    match tensor.stored_type {
        ty if ty.is_integer() => Ok(()),
        other => Err(format!("is stored as {other}, not as integers").into()),
    }
}

/// Reads whole elements starting at a byte offset of the result.
pub(super) fn read(from: &Tensor, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
    let size = from.bytes_of(1) as usize;
    let (out, _) = buffer.as_chunks_mut::<{ size_of::<i32>() }>();
    let mut stored = vec![0; out.len() * size];
    from.read_at(&mut stored, offset / size_of::<i32>() as u64 * size as u64)?;
    for (out, bytes) in out.iter_mut().zip(stored.chunks_exact(size)) {
        let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if is_negative { 0xFF } else { 0 }; size_of::<i64>()];
        wide[..size].copy_from_slice(bytes);
        let number = i64::from_le_bytes(wide);
        let narrow = i32::try_from(number).map_err(|_| {
            Error::weights(&from.name, format!("contains {number}, which overflows 32 bits"))
        })?;
        *out = narrow.to_le_bytes();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gguf::{Shape, TensorType};

    use super::super::Step;
    use super::*;
    use crate::tensor::Stored;

    #[test]
    fn integers_become_i32() {
        let of = |ty, numbers: &[i64], size: usize| {
            let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()[..size].to_vec());
            let at = Stored { source: Arc::new(bytes.collect::<Vec<u8>>()), offset: 0 };
            let shape = Shape::new(&[numbers.len() as u64]).unwrap();
            Tensor::stored("t", shape, ty, at).changed(Step::Whole)
        };
        let numbers = [5, -3, 0, 127];
        for (ty, size) in
            [(TensorType::I8, 1), (TensorType::I16, 2), (TensorType::I32, 4), (TensorType::I64, 8)]
        {
            let tensor = of(ty, &numbers, size).unwrap();
            assert_eq!(tensor.stored_type, TensorType::I32);
            let (mut all, mut last) = ([0; 16], [0; 8]);
            tensor.read_at(&mut all, 0).unwrap();
            tensor.read_at(&mut last, 8).unwrap();
            let read: Vec<i32> = all.as_chunks().0.iter().map(|x| i32::from_le_bytes(*x)).collect();
            assert_eq!(read, [5, -3, 0, 127]);
            assert_eq!(last, all[8..]);
        }
        let wide = of(TensorType::I64, &[1, 1 << 31], 8).unwrap();
        let fault = wide.read_at(&mut [0; 8], 0).unwrap_err().to_string();
        assert!(fault.contains("contains 2147483648, which overflows 32 bits"), "{fault}");
        let floats = of(TensorType::F32, &[0], 4).err().unwrap().to_string();
        assert!(floats.contains("not as integers"), "{floats}");
    }
}
