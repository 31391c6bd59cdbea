//! Size budgets of the quantization.

use std::ops::ControlFlow;
use std::path::Path;

use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use gguf_quantize::budget::{self, Budget};
use gguf_quantize::imatrix::Imatrix;
use gguf_quantize::importance::Importance;
use gguf_store::{Existing, Model, Overwrite};

use crate::fixtures::reference_data;

fn f16(checkpoint: &Path, to: &Path) {
    let tensors = Checkpoint::open(checkpoint).unwrap();
    let options = hf::HfOptions { outtype: "F16".parse().ok(), ..Default::default() };
    let job = hf::plan(checkpoint, &tensors, &options).unwrap().job;
    job.write(to, &Overwrite::new(Existing::Replace), &()).unwrap();
}

#[test]
fn budget_has_a_smaller_error_than_the_preset_of_that_size() {
    let Some(data) = reference_data() else { return };
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("f16.gguf");
    f16(&data.join("tiny-kjv-llama/Tiny-KJV-Llama-4M"), &path);
    let model = Model::open(&path).unwrap();
    let imatrix = Imatrix::open(&data.join("tiny-kjv-llama/imatrix.gguf")).unwrap();
    let weights = |name: &String| (name.clone(), imatrix.importance(name).unwrap().into());
    let weights = imatrix.entries.keys().map(weights).collect();
    let with = gguf_quantize::QuantizeOptions {
        importance: Some(Importance { weights, ..Default::default() }),
        ..Default::default()
    };
    let without = Default::default();
    for (options, mix) in [(&with, "Q2_K"), (&without, "Q3_K_M")] {
        let official = gguf_quantize::plan(&model, mix.parse().unwrap(), options).unwrap().job;
        let lost = budget::expected_error(&official).unwrap();
        let made = out.path().join("official.gguf");
        official.write(&made, &Overwrite::new(Existing::Replace), &()).unwrap();
        let size = made.metadata().unwrap().len();

        let budget = Budget::FileBytes(size);
        let keep_going = |_| ControlFlow::Continue(());
        let ours = budget::plan(&model, budget, options, &keep_going).unwrap().job;
        let less = budget::expected_error(&ours).unwrap();
        let made = out.path().join("ours.gguf");
        ours.write(&made, &Overwrite::new(Existing::Replace), &()).unwrap();
        assert!(made.metadata().unwrap().len() <= size, "{mix}");
        eprintln!("{mix}, {size} bytes: {less:.4e} instead of {lost:.4e}");
        assert!(less < lost, "{mix}: {less} {lost}");
    }
}

#[test]
fn too_small_budget_error_names_the_minimum() {
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("f16.gguf");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    f16(&demo.join("Tiny-KJV-Llama-4M"), &path);
    let model = Model::open(&path).unwrap();
    let options = gguf_quantize::QuantizeOptions::default();
    let keep_going = |_| ControlFlow::Continue(());
    let plan = |budget| budget::plan(&model, budget, &options, &keep_going);
    let fault = plan(Budget::BitsPerWeight(1.0)).err().unwrap().to_string();
    assert!(fault.contains("the minimum is 2.65;"), "{fault}");
    assert!(plan(Budget::BitsPerWeight(2.65)).is_ok(), "what is said to be possible is");
    let fault = plan(Budget::FileBytes(1000)).err().unwrap().to_string();
    assert!(fault.contains("a file size of 1.00 kB is too small: the minimum"), "{fault}");
    for bits in [-1.0, 0.0, f64::NAN, f64::INFINITY] {
        let fault = plan(Budget::BitsPerWeight(bits)).err().unwrap().to_string();
        assert!(fault.contains("bits per weight is not a valid size"), "{fault}");
    }
    let job = plan(Budget::BitsPerWeight(4.5)).unwrap().job;
    let header = job.header().unwrap();
    let elements: u64 = header.tensors().iter().map(|t| t.shape.elements().unwrap()).sum();
    let bits: u64 = header.tensors().iter().map(|t| t.byte_len().unwrap() * 8).sum();
    let per_weight = bits as f64 / elements as f64;
    assert!((4.45..=4.5).contains(&per_weight), "{per_weight}");
}
