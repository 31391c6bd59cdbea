//! Outputs of the reference checkpoints, and their conversion.

use std::path::Path;

use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use gguf_store::Overwrite;
use npyz::{Deserialize, NpyFile};

/// Token ids and the output of `transformers` for them.
pub struct Reference {
    pub tokens: Vec<u32>,
    pub numbers: Vec<f32>,
}

impl Reference {
    pub fn read(folder: &Path, what: &str) -> Self {
        Self { tokens: tokens(folder), numbers: array(folder, what) }
    }
}

/// Returns the token ids of the reference.
pub fn tokens(folder: &Path) -> Vec<u32> {
    array::<i32>(folder, "tokens").into_iter().map(|id| id as u32).collect()
}

/// Returns an array of the reference, row by row.
fn array<T: Deserialize>(folder: &Path, name: &str) -> Vec<T> {
    let file = std::fs::File::open(folder.join("reference.npz")).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let array = archive.by_name(&format!("{name}.npy")).unwrap();
    NpyFile::new(array).unwrap().into_vec().unwrap()
}

/// Returns the maximum difference in standard deviations of the reference.
pub fn distance(found: &[f32], reference: &[f32]) -> f32 {
    assert_eq!(found.len(), reference.len());
    let len = reference.len() as f64;
    let mean = reference.iter().map(|x| f64::from(*x)).sum::<f64>() / len;
    let variance = reference.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / len;
    let differences = found.iter().zip(reference).map(|(a, b)| (a - b).abs());
    // NaN must not count as no difference.
    differences.fold(0.0, |a: f32, b| if a > b { a } else { b }) / variance.sqrt() as f32
}

/// Converts a checkpoint to a GGUF in F32.
pub fn convert(folder: &Path, out: &Path) {
    let checkpoint = Checkpoint::open(folder).unwrap();
    let options =
        hf::HfOptions { outtype: Some("f32".parse().unwrap()), ..hf::HfOptions::default() };
    let plan = hf::plan(folder, &checkpoint, &options).unwrap();
    plan.job.write(out, &Overwrite::default(), &()).unwrap();
}
