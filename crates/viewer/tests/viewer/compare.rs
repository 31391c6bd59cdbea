//! Two models beside each other.

use gguf::TensorType;
use gguf_compare::{Change, diff};
use gguf_kit::open;
use serde_json::{Value as Json, json};

use crate::site::{Site, demo, file, word};

/// The demo with the sign of one weight in four changed, and another name.
fn changed(dir: &std::path::Path, word: &str) -> String {
    let start = open(word).unwrap().model().parts()[0].data_start as usize;
    let mut bytes = std::fs::read(word).unwrap();
    bytes[start..].iter_mut().skip(3).step_by(8).for_each(|byte| *byte ^= 0x80);
    let path = dir.join("changed.gguf");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn figures_are_those_of_diff() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let other = changed(dir.path(), &word);
    let mut options = crate::site::options(&[&other]);
    options.original = Some(word.clone());
    let site = Site::with(options);
    assert_eq!(site.json("models")["models"][0]["original"], 1);
    let (a, b) = (open(&word).unwrap(), open(&other).unwrap());
    let expected = diff(a.model(), b.model(), &()).unwrap();
    assert!(expected.tensors.len() > 5);
    for tensor in &expected.tensors {
        let Change::Data { figures: Some(figures), .. } = tensor.change else {
            panic!("{tensor:?}")
        };
        let found = site.json(&format!("compare/1/0/tensor?name={}", tensor.name));
        assert_eq!((&found["exact"], &found["same"]), (&true.into(), &false.into()));
        for (field, number) in [
            ("rmse", figures.rmse()),
            ("relative", figures.relative()),
            ("cosine", figures.cosine()),
            ("max", figures.max),
        ] {
            // `max` is here that of the figures, not the largest difference with its sign.
            let found = found[field].as_f64().unwrap();
            assert!(
                (found - number).abs() <= 1e-12 * number.abs(),
                "{} {field}: {found} {number}",
                tensor.name
            );
        }
        assert_eq!(found["elements"], figures.elements);
    }
    let same = site.json("compare/1/1/tensor?n=0");
    assert_eq!(
        (&same["same"], &same["cosine"], &same["rmse"]),
        (&true.into(), &json!(1.0), &json!(0.0))
    );
    let keys = site.json("compare/1/0/keys");
    assert_eq!(keys["keys"], json!([]));
    assert_eq!(keys["same"], a.model().metadata().len());

    let name = &expected.tensors[0].name;
    let rows = |model: u32| {
        let address =
            format!("models/{model}/tensor/rows?name={name}&count=4&columns=100&format=f32");
        site.get(&address).floats()
    };
    let tile = site.get(&format!("compare/1/0/tile?name={name}"));
    let width: usize = tile.header("tile-width").parse().unwrap();
    let tile = tile.floats();
    for (row, (a, b)) in rows(1).chunks(100).zip(rows(0).chunks(100)).enumerate() {
        let line = &tile[row * width..][..100];
        assert!(line.iter().zip(a.iter().zip(b)).all(|(d, (a, b))| *d == b - a));
    }
}

#[test]
fn tensors_of_one_side_and_of_other_shapes_are_told() {
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
    let site = Site::of(&[word(&a), word(&b)]);
    let all = site.json("compare/0/1/tensors");
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
    site.fails("compare/0/1/tensor?name=shape", 422, "shapes-differ");
    site.fails("compare/0/1/tile?name=shape", 422, "shapes-differ");
    site.fails("compare/0/1/tensor?name=only.a", 404, "name-not-found");
    site.fails("compare/0/2/tensors", 404, "name-not-found");
    assert_eq!(site.get("compare/0/1/tile?name=x").header("tile-height"), "2");
}
