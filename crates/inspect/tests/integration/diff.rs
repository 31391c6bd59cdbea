//! Differences between two models whose relation is known.

use std::fs;
use std::path::{Path, PathBuf};

use gguf::{Array, Header, RawHeader, Shape, TensorInfo, TensorType, Value, write_header};
use gguf_inspect::{Change, Detail, Diff, ElementChange, Verdict, diff};
use gguf_store::{Model, Overwrite, SplitLimit, SplitOptions, SplitPlan};

/// A small model, to be changed before it is written.
#[derive(Clone)]
struct Small {
    keys: Vec<(&'static str, Value)>,
    tensors: Vec<(&'static str, Vec<u64>, TensorType, Vec<f32>)>,
}

/// Values between -1 and 1 that look like noise.
fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

impl Small {
    fn new() -> Self {
        let tokens = Array::from_strings(["<s>", "a", "b", "ab"]);
        Self {
            keys: vec![
                ("general.architecture", "llama".into()),
                ("tokenizer.ggml.tokens", tokens.into()),
                ("tokenizer.chat_template", "{{ bos }}\n{{ text }}\n".into()),
            ],
            tensors: vec![
                ("token_embd.weight", vec![256, 8], TensorType::F32, noise(1, 256 * 8)),
                ("blk.0.attn_q.weight", vec![512, 2000], TensorType::F32, noise(2, 512 * 2000)),
                ("output_norm.weight", vec![256], TensorType::F32, noise(3, 256)),
            ],
        }
    }

    /// With the matrices in another type.
    fn quantized(mut self, ty: TensorType) -> Self {
        for tensor in self.tensors.iter_mut().filter(|tensor| tensor.1.len() > 1) {
            tensor.2 = ty;
        }
        self
    }

    fn write(&self, path: &Path) {
        let mut draft = RawHeader::default();
        for (key, value) in &self.keys {
            draft.metadata.push(*key, value.clone());
        }
        for (name, dims, ty, _) in &self.tensors {
            let shape = Shape::new(dims).unwrap();
            let tensor_type = *ty;
            draft.tensors.push(TensorInfo {
                name: (*name).into(),
                shape,
                tensor_type,
                offset: 0,
                opaque_len: None,
            });
        }
        draft.lay_out().unwrap();
        let header = Header::new(draft).unwrap();
        let mut bytes = write_header(&header).unwrap();
        let start = bytes.len();
        for (info, (_, dims, ty, values)) in header.tensors().iter().zip(&self.tensors) {
            let at = start + info.offset as usize;
            bytes.resize(at + info.byte_len().unwrap() as usize, 0);
            let row_bytes = ty.byte_len(&dims[..1]).unwrap() as usize;
            let rows = values.chunks(dims[0] as usize);
            for (row, out) in rows.zip(bytes[at..].chunks_mut(row_bytes)) {
                gguf_quant::encode_row(*ty, row, None, out).unwrap();
            }
        }
        fs::write(path, bytes).unwrap();
    }
}

fn compare(a: &Small, b: &Small) -> Diff {
    let directory = tempfile::tempdir().unwrap();
    let (path_a, path_b) = (directory.path().join("a.gguf"), directory.path().join("b.gguf"));
    a.write(&path_a);
    b.write(&path_b);
    compare_files(&path_a, &path_b)
}

fn compare_files(a: &Path, b: &Path) -> Diff {
    let (a, b) = (Model::open(a).unwrap(), Model::open(b).unwrap());
    diff(&a, &b, &()).unwrap()
}

#[test]
fn a_split_model_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let whole: PathBuf = directory.path().join("whole.gguf");
    Small::new().write(&whole);
    let model = Model::open(&whole).unwrap();
    let options = SplitOptions { limit: SplitLimit::Bytes(4096), no_tensor_first_split: true };
    let plan = SplitPlan::new(&model, options).unwrap();
    let shards = plan.write(&directory.path().join("s"), &Overwrite::default(), &()).unwrap();
    let found = compare_files(&whole, &shards[1]);
    assert_eq!((found.verdict, found.same), (Verdict::Same, 3));
}

#[test]
fn keys_tokens_and_templates_are_told() {
    let mut b = Small::new();
    b.keys[1].1 = Array::from_strings(["<s>", "a", "c", "ab", "x"]).into();
    b.keys[2].1 = "{{ bos }}\n{{ other }}\n".into();
    b.keys.push(("general.name", "B".into()));
    let found = compare(&Small::new(), &b);
    assert_eq!(found.verdict, Verdict::SameWeights);
    let keys: Vec<&str> = found.keys.iter().map(|change| change.key.as_str()).collect();
    assert_eq!(keys, ["tokenizer.ggml.tokens", "tokenizer.chat_template", "general.name"]);
    let text = |text: &str| Some(Value::from(text));
    let first = vec![
        ElementChange { index: 2, a: text("b"), b: text("c") },
        ElementChange { index: 4, a: None, b: text("x") },
    ];
    let expected = Detail::Elements { lengths: (4, 5), differing: 2, first };
    assert_eq!(found.keys[0].detail, expected);
    let expected = Detail::Line { number: 2, a: "{{ text }}".into(), b: "{{ other }}".into() };
    assert_eq!(found.keys[1].detail, expected);
    assert_eq!((found.keys[2].a.clone(), found.keys[2].b.clone()), (None, text("B")));
}

#[test]
fn quantizations_are_told_with_their_errors() {
    let full = Small::new();
    let mut q4 = full.clone().quantized(TensorType::Q4_K);
    q4.keys.push(("general.file_type", 15u32.into()));
    let found = compare(&full, &q4);
    assert_eq!(found.verdict, Verdict::Quantized { to: "Q4_K_M".into() });
    assert_eq!((found.same, found.tensors.len()), (1, 2));
    let Change::Data { a, b, figures: Some(figures) } = found.tensors[1].change else {
        panic!("{:?}", found.tensors[1]);
    };
    assert_eq!((a, b, figures.elements), (TensorType::F32, TensorType::Q4_K, 512 * 2000));
    // 16 levels over a range of 2 in steps of 2/15: the error is uniform in a step, whose
    // deviation is step/sqrt(12), relative to 1/sqrt(3) of the values. The 32 values of a scale
    // span less than the whole range, and the encoder looks for better than evenly spread steps.
    let expected = (2.0 / 15.0 / 12f64.sqrt()) * 3f64.sqrt();
    let ratio = figures.relative() / expected;
    assert!((0.75..1.0).contains(&ratio), "{ratio}");
    assert_eq!(compare(&q4, &full).verdict, Verdict::Dequantized { from: "Q4_K_M".into() });
    // Without its own word, the type of most tensors.
    let q8 = full.clone().quantized(TensorType::Q8_0);
    assert_eq!(compare(&full, &q8).verdict, Verdict::Quantized { to: "Q8_0".into() });
    assert_eq!(compare(&q4, &q8).verdict, Verdict::TwoQuantizations);
    let half = full.clone().quantized(TensorType::F16);
    assert_eq!(compare(&full, &half).verdict, Verdict::Quantized { to: "F16".into() });
    // Half precision holds back in single precision what it holds.
    let mut back = half.clone().quantized(TensorType::F32);
    let mut exact = half;
    for small in [&mut back, &mut exact] {
        for value in small.tensors.iter_mut().flat_map(|tensor| &mut tensor.3) {
            *value = (*value * 64.0).round() / 64.0;
        }
    }
    assert_eq!(compare(&exact, &back).verdict, Verdict::SameValues);
}

#[test]
fn training_is_told_from_quantizing() {
    let a = Small::new();
    let mut tuned = a.clone();
    for (i, value) in tuned.tensors.iter_mut().flat_map(|tensor| &mut tensor.3).enumerate() {
        *value += if i % 2 == 0 { 0.01 } else { -0.01 };
    }
    assert_eq!(compare(&a, &tuned).verdict, Verdict::Finetune);
    assert_eq!(compare(&a, &tuned.quantized(TensorType::Q8_0)).verdict, Verdict::Finetune);
    let mut apart = a.clone();
    for (i, tensor) in apart.tensors.iter_mut().enumerate() {
        tensor.3 = noise(100 + i as u64, tensor.3.len());
    }
    assert_eq!(compare(&a, &apart).verdict, Verdict::SameShapes);
}

#[test]
fn tensors_added_removed_and_reshaped_are_told() {
    let a = Small::new();
    let mut b = a.clone();
    b.tensors[0].1 = vec![256, 9];
    b.tensors[0].3 = noise(1, 256 * 9);
    b.tensors.push(("extra", vec![1], TensorType::F32, vec![1.0]));
    let found = compare(&a, &b);
    assert_eq!(found.verdict, Verdict::Related { common: 2, same: 2 });
    let shape = |dims: &[u64]| Shape::new(dims).unwrap();
    let expected = Change::Reshaped {
        a: (TensorType::F32, shape(&[256, 8])),
        b: (TensorType::F32, shape(&[256, 9])),
    };
    assert_eq!(found.tensors[0].change, expected);
    assert_eq!(found.tensors[1].change, Change::Added(TensorType::F32, shape(&[1])));
    let back = compare(&b, &a);
    assert_eq!(back.tensors[1].change, Change::Removed(TensorType::F32, shape(&[1])));
    b.tensors = vec![("extra", vec![1], TensorType::F32, vec![1.0])];
    assert_eq!(compare(&a, &b).verdict, Verdict::Different);
}

/// The figures are sums over chunks, in their order.
#[test]
fn figures_do_not_depend_on_threads() {
    let (a, b) = (Small::new(), Small::new().quantized(TensorType::Q5_0));
    let with = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| compare(&a, &b).total)
    };
    assert_eq!(with(1), with(3));
}
