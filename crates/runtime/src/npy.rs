//! Matrices as NumPy `.npy` files.

use std::path::Path;

use gguf::{Error, Finding};
use npyz::{NpyFile, Order, WriterBuilder};

use crate::Value;

/// Returns a matrix as the bytes of a `.npy` file of F32, `[rows, width]`.
pub fn to_bytes(matrix: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let shape = [matrix.rows as u64, matrix.width as u64];
    let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
    // Writing to memory does not fail.
    if let Ok(mut writer) = options.writer(&mut bytes).begin_nd() {
        let _ = writer.extend(matrix.data.iter().copied());
        let _ = writer.finish();
    }
    bytes
}

/// Reads a matrix from a `.npy` file of F32 or F64. Leading dimensions of 1 are dropped.
///
/// # Errors
/// `npy-invalid` if the file does not hold such a matrix; if it cannot be read.
pub fn read(path: &Path) -> Result<Value, Error> {
    let invalid = |what: String| {
        let finding = Finding::error("npy-invalid", what);
        Error::from(finding.help("save it with numpy.save as float32")).in_file(path)
    };
    let bytes = std::fs::read(path).map_err(|fault| Error::read(path, fault))?;
    let file = NpyFile::new(&bytes[..]).map_err(|fault| invalid(fault.to_string()))?;
    let shape = file.shape().to_vec();
    let [leading @ .., rows, width] = &shape[..] else {
        return Err(invalid(format!("has the shape {shape:?}; expected at least two dimensions")));
    };
    let column_major = file.order() == Order::Fortran;
    if leading.iter().any(|extent| *extent != 1) || column_major {
        return Err(invalid(format!("has the shape {shape:?}; expected one row-major matrix")));
    }
    let (rows, width) = (*rows as usize, *width as usize);
    let data: Vec<f32> = match file.try_data::<f32>() {
        Ok(data) => data.collect::<Result<_, _>>(),
        Err(file) => match file.try_data::<f64>() {
            Ok(data) => data.map(|x| x.map(|x| x as f32)).collect::<Result<_, _>>(),
            Err(_) => {
                return Err(invalid("has another element type than float32 or float64".to_owned()));
            }
        },
    }
    .map_err(|fault| invalid(fault.to_string()))?;
    if rows.checked_mul(width) != Some(data.len()) {
        return Err(invalid(format!(
            "has {} elements, which do not match the shape {shape:?}",
            data.len()
        )));
    }
    Ok(Value { rows, width, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npy");
        let matrix = Value { rows: 2, width: 3, data: vec![1.0, 2.0, 3.0, 4.0, 5.0, -0.5] };
        let bytes = to_bytes(&matrix);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), matrix);
        std::fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
        assert_eq!(read(&path).unwrap_err().code(), "npy-invalid");
        std::fs::write(&path, b"PK").unwrap();
        assert_eq!(read(&path).unwrap_err().code(), "npy-invalid");
    }
}
