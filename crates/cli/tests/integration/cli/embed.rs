//! `gguf embed`.

use serde_json::Value;

use crate::cli::support::{Dir, fails, json, succeeds};

/// Parses lines such as `{"embedding":[...]}`.
fn vectors(lines: &str) -> Vec<Vec<f64>> {
    let vector = |line: &str| numbers(&json(line)["embedding"]);
    lines.lines().map(vector).collect()
}

fn numbers(array: &Value) -> Vec<f64> {
    array.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn a_line_for_each_text() {
    let dir = Dir::new();
    let (model, file) = (dir.f16(), dir.path("texts"));
    std::fs::write(&file, "And God said\n\nIn the beginning\n").unwrap();
    let way = ["--pooling", "mean", "-p", "In the beginning", "-f", &file];
    let embed = |more: &[&str]| succeeds(&[&["embed", &model], &way[..], more].concat());
    let result = vectors(&embed(&[]));
    let [first, second, third] = &result[..] else { panic!("{result:?}") };
    assert!(first == third && first != second, "the empty line is no text");
    assert_eq!(first.len(), 256);
    assert!((dot(first, first) - 1.0).abs() < 1e-5, "{}", dot(first, first));
    let long = &vectors(&embed(&["--no-normalize"]))[0];
    let length = dot(long, long).sqrt();
    assert!((length - 1.0).abs() > 0.1, "{length}");
    assert!((dot(long, first) / length - 1.0).abs() < 1e-5);
    let path = dir.path("embeddings.npy");
    assert_eq!(embed(&["--output", &path]), "");
    let bytes = std::fs::read(&path).unwrap();
    let data: Vec<f64> = bytes[bytes.len() - 3 * 256 * 4..]
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes).into())
        .collect();
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-7;
    assert!(data.iter().zip(result.iter().flatten()).all(near));
    fails(&["embed", &model, "-p", "a", "--output", &path, "--pooling", "cls"], 2, &["--force"]);
}

#[test]
fn a_vector_for_each_token() {
    let dir = Dir::new();
    let model = dir.f16();
    let embed = |pooling: &str| {
        let args = ["embed", &model, "-p", "In the beginning", "--no-normalize"];
        json(&succeeds(&[&args[..], &["--pooling", pooling]].concat()))["embedding"].clone()
    };
    let tokens = embed("none");
    let tokens: Vec<Vec<f64>> = tokens.as_array().unwrap().iter().map(numbers).collect();
    assert_eq!(tokens.len(), 5);
    assert_eq!(numbers(&embed("cls")), tokens[0]);
    assert_eq!(numbers(&embed("last")), tokens[4]);
}

#[test]
fn refusals_have_advice() {
    let dir = Dir::new();
    let model = dir.f16();
    let parts = ["the model has no pooling type", "--pooling mean, cls or last"];
    fails(&["embed", &model, "-p", "In the beginning"], 2, &parts);
    fails(&["embed", &model, "--pooling", "mean"], 2, &["the input has no text"]);
}
