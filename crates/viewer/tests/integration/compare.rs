//! Comparison of two models.

use gguf::TensorType;
use gguf_inspect::{Change, diff};
use gguf_kit::open;
use serde_json::{Value as Json, json};

use crate::viewer::{Viewer, demo, file, path_str};

/// Copies the demo model and flips the sign of one weight in four.
fn changed(dir: &std::path::Path, path: &str) -> String {
    let start = open(path).unwrap().model().parts()[0].data_start as usize;
    let mut bytes = std::fs::read(path).unwrap();
    bytes[start..].iter_mut().skip(3).step_by(8).for_each(|byte| *byte ^= 0x80);
    let changed = dir.join("changed.gguf");
    std::fs::write(&changed, bytes).unwrap();
    changed.to_str().unwrap().to_owned()
}

#[test]
fn error_metrics_equal_diff() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let other = changed(dir.path(), &path);
    let mut options = crate::viewer::options(&[&other]);
    options.original = Some(path.clone());
    let viewer = Viewer::with_options(options);
    assert_eq!(viewer.json("models")["models"][0]["original"], 1);
    let (a, b) = (open(&path).unwrap(), open(&other).unwrap());
    let expected = diff(a.model(), b.model(), &()).unwrap();
    assert!(expected.tensors.len() > 5);
    for tensor in &expected.tensors {
        let Change::Data { figures: Some(figures), .. } = tensor.change else {
            panic!("{tensor:?}")
        };
        let found = viewer.json(&format!("compare/1/0/tensor?name={}", tensor.name));
        assert_eq!((&found["exact"], &found["same"]), (&true.into(), &false.into()));
        for (field, number) in [
            ("rmse", figures.rmse()),
            ("relative", figures.relative()),
            ("cosine", figures.cosine()),
            ("max", figures.max),
        ] {
            // `max` is the largest absolute difference.
            let found = found[field].as_f64().unwrap();
            assert!(
                (found - number).abs() <= 1e-12 * number.abs(),
                "{} {field}: {found} {number}",
                tensor.name
            );
        }
        assert_eq!(found["elements"], figures.elements);
    }
    let same = viewer.json("compare/1/1/tensor?n=0");
    assert_eq!(
        (&same["same"], &same["cosine"], &same["rmse"]),
        (&true.into(), &json!(1.0), &json!(0.0))
    );
    let keys = viewer.json("compare/1/0/keys");
    assert_eq!(keys["keys"], json!([]));
    assert_eq!(keys["same"], a.model().metadata().len());

    let name = &expected.tensors[0].name;
    let rows = |model: u32| {
        let address =
            format!("models/{model}/tensor/rows?name={name}&count=4&columns=100&format=f32");
        viewer.get(&address).floats()
    };
    let tile = viewer.get(&format!("compare/1/0/tile?name={name}"));
    let width: usize = tile.header("tile-width").parse().unwrap();
    let tile = tile.floats();
    for (row, (a, b)) in rows(1).chunks(100).zip(rows(0).chunks(100)).enumerate() {
        let line = &tile[row * width..][..100];
        assert!(line.iter().zip(a.iter().zip(b)).all(|(d, (a, b))| *d == b - a));
    }
}

#[test]
fn added_removed_and_reshaped_tensors_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let a = file(
        &dir.path().join("a.gguf"),
        &[
            ("x", &[32, 2], TensorType::F32),
            ("only.a", &[4], TensorType::F32),
            ("shape", &[4, 2], TensorType::F32),
        ],
    );
    let b = file(
        &dir.path().join("b.gguf"),
        &[
            ("shape", &[4, 3], TensorType::F32),
            ("x", &[32, 2], TensorType::Q8_0),
            ("only.b", &[4], TensorType::F32),
        ],
    );
    let viewer = Viewer::open(&[path_str(&a), path_str(&b)]);
    let all = viewer.json("compare/0/1/tensors");
    let shown: Vec<_> = all["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["name"].as_str().unwrap(), t["change"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [("x", "data"), ("only.a", "removed"), ("shape", "reshaped"), ("only.b", "added")]
    );
    assert_eq!((&all["tensors"][1]["b"], &all["tensors"][0]["b"]["n"]), (&Json::Null, &1.into()));
    viewer.assert_error("compare/0/1/tensor?name=shape", 422, "shapes-differ");
    viewer.assert_error("compare/0/1/tile?name=shape", 422, "shapes-differ");
    viewer.assert_error("compare/0/1/tensor?name=only.a", 404, "name-not-found");
    viewer.assert_error("compare/0/2/tensors", 404, "name-not-found");
    assert_eq!(viewer.get("compare/0/1/tile?name=x").header("tile-height"), "2");
}
