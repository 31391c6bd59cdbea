//! Converts legacy files and compares every weight with the values that the original code decodes.

mod builder;
mod fuzz_seeds;
mod generated_files;
mod malformed_files;
mod reference_data;
mod reference_files;

use std::path::{Path, PathBuf};

use gguf::{Error, Severity};
use gguf_legacy::{Change, LegacyModel, LegacyOptions};
use gguf_pipeline::Job;
use gguf_store::Model;

/// A converted model.
struct Converted {
    path: PathBuf,
    notes: Vec<String>,
    changes: Vec<Change>,
    _dir: tempfile::TempDir,
}

/// A tensor of a converted model.
#[derive(Debug, PartialEq)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    tensor_type: gguf::TensorType,
    bytes: Vec<u8>,
}

fn convert(path: &Path, options: &LegacyOptions) -> Result<Converted, Error> {
    let legacy = LegacyModel::open(path, options)?;
    let conversion = legacy.plan(options)?;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join(&conversion.file_name);
    write(&conversion.job, &out)?;
    let (notes, changes) = (conversion.notes, conversion.changes);
    Ok(Converted { path: out, notes, changes, _dir: dir })
}

fn write(job: &Job, out: &Path) -> Result<(), Error> {
    job.write(out, &gguf_store::Overwrite::new(gguf_store::Existing::Replace), &())
}

impl Converted {
    fn tensors(&self) -> Vec<Tensor> {
        tensors(&self.path)
    }

    /// The metadata of the output.
    fn keys(&self) -> gguf::Metadata {
        Model::open(&self.path).unwrap().metadata().clone()
    }

    /// Checks that `gguf check` finds nothing except what the notes state.
    fn assert_clean(&self) {
        let bytes = std::fs::read(&self.path).unwrap();
        let (findings, _) = gguf_check::check(&bytes.into());
        let no_merges = self.notes.iter().any(|note| note.contains("cannot be tokenized"));
        let is_bad = |finding: &&gguf::Finding| {
            finding.severity > Severity::Note
                && !(no_merges && finding.code == "tokenizer-merges-missing")
        };
        let bad: Vec<_> = findings.iter().filter(is_bad).collect();
        assert!(bad.is_empty(), "{}: {bad:#?}", self.path.display());
    }
}

fn tensors(path: &Path) -> Vec<Tensor> {
    let model = Model::open(path).unwrap();
    let tensor = |tensor: &gguf_store::ModelTensor| {
        let len = tensor.info.tensor_type.byte_len(&tensor.info.shape).unwrap();
        let mut bytes = vec![0; len as usize];
        tensor.read_at(&mut bytes, 0).unwrap();
        Tensor {
            name: tensor.info.name.to_string(),
            dims: tensor.info.shape.to_vec(),
            tensor_type: tensor.info.tensor_type,
            bytes,
        }
    };
    model.tensors().iter().map(tensor).collect()
}

impl Tensor {
    fn floats(&self) -> Vec<f32> {
        let mut floats = vec![0.0; self.dims.iter().product::<u64>() as usize];
        gguf_quant::decode_row(self.tensor_type, &self.bytes, &mut floats).unwrap();
        floats
    }
}
