//! Tensor values against the codecs.

use gguf::TensorType;
use gguf_kit::open;
use gguf_kit::values::values;
use gguf_quant::decode_row;
use serde_json::Value as Json;

use crate::viewer::{Viewer, all_types, demo, path_str, percent_encoded};

/// Decodes all weights of a tensor.
fn decoded(path: &str, name: &str) -> (Vec<f32>, u64) {
    let opened = open(path).unwrap();
    let index = opened.model().index();
    let tensor = index[name];
    let mut out = vec![0.0; tensor.info.shape.elements().unwrap() as usize];
    decode_row(tensor.info.tensor_type, tensor.data().unwrap(), &mut out).unwrap();
    (out, tensor.info.shape.row_len())
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Compares a JSON number with an F32; null stands for NaN and infinity.
fn json_same(json: &Json, number: f32) -> bool {
    match json.as_f64() {
        Some(found) => found as f32 == number,
        None => json.is_null() && !number.is_finite(),
    }
}

/// Tests every type, with tensor names that are not valid paths.
#[test]
fn rows_tiles_and_blocks_equal_the_codec() {
    let dir = tempfile::tempdir().unwrap();
    let (path, types) = all_types(dir.path());
    let viewer = Viewer::open(&[path_str(&path)]);
    assert_eq!(types.len(), 35);
    for (n, (name, ty)) in types.iter().enumerate() {
        let (expected, columns) = decoded(path_str(&path), name);
        let query = percent_encoded(name);
        let rows =
            viewer.get(&format!("models/0/tensor/rows?name={query}&count=4&format=f32")).floats();
        assert!(
            rows.iter().zip(&expected).all(|(a, b)| same(*a, *b)) && rows.len() == expected.len(),
            "{ty}"
        );
        let some = 3.min(columns - 1);
        let json = viewer
            .json(&format!("models/0/tensor/rows?n={n}&start=1&count=2&column=1&columns={some}"));
        for (row, at) in json["rows"].as_array().unwrap().iter().zip([columns + 1, 2 * columns + 1])
        {
            let expected = &expected[at as usize..][..some as usize];
            assert!(
                row.as_array().unwrap().iter().zip(expected).all(|(a, b)| json_same(a, *b)),
                "{ty}"
            );
        }
        let tile = viewer.get(&format!("models/0/tensor/tile?n={n}"));
        let width: usize = tile.header("tile-width").parse().unwrap();
        assert_eq!((tile.header("tile-height"), tile.header("tile-planes")), ("4", "1"), "{ty}");
        assert_eq!(tile.header("tile-exact"), "true");
        for (y, line) in tile.floats().chunks(width).enumerate() {
            let row = &expected[y * columns as usize..][..width];
            assert!(line.iter().zip(row).all(|(a, b)| same(*a, *b)), "{ty}");
        }
        let facts = viewer.json(&format!("models/0/tensor?n={n}"));
        assert_eq!((&facts["blocks"], &facts["blocks_per_row"]), (&8.into(), &2.into()));
        let opened = open(path_str(&path)).unwrap();
        let data = opened.model().tensors()[n].data().unwrap();
        let (len, bytes) = ty.block().unwrap();
        for index in [0u64, 5, 7] {
            let block = viewer.json(&format!("models/0/tensor/block?n={n}&index={index}"));
            let stored = &data[(index * bytes) as usize..][..bytes as usize];
            let hex: String = stored.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(block["hex"], hex, "{ty}");
            let weights = block["weights"].as_array().unwrap();
            let expected = &expected[(index * len) as usize..][..len as usize];
            assert_eq!(weights.len() as u64, len);
            assert!(weights.iter().zip(expected).all(|(a, b)| json_same(&a["value"], *b)), "{ty}");
            let fields = block["fields"].as_array().unwrap();
            for at in weights[weights.len() - 1]["items"].as_array().unwrap() {
                let [field, item] = [0, 1].map(|i| at[i].as_u64().unwrap() as usize);
                assert!(fields[field]["items"][item]["bits"].is_array(), "{ty}");
            }
        }
        viewer.assert_error(&format!("models/0/tensor/block?n={n}&index=8"), 404, "name-not-found");
    }
    let wrong = "models/0/tensor/block?n=0&index=18446744073709551615";
    viewer.assert_error(wrong, 404, "name-not-found");
    viewer.assert_error("models/0/tensor/block?n=0", 400, "request-invalid");
}

#[test]
fn statistics_equal_inspect() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let opened = open(&path).unwrap();
    for tensor in opened.model().tensors() {
        let name = &tensor.info.name;
        let expected = values(opened.model(), name, None, &()).unwrap().figures;
        let found = viewer.json(&format!("models/0/tensor/statistics?name={name}"));
        assert_eq!(
            (&found["exact"], &found["count"]),
            (&true.into(), &expected.count.into()),
            "{name}"
        );
        for (field, number) in [("mean", expected.mean), ("stddev", expected.deviation)] {
            assert_eq!(
                found[field].as_f64().unwrap().to_bits(),
                number.to_bits(),
                "{name} {field}"
            );
        }
        for (field, number) in [("min", expected.min), ("max", expected.max)] {
            assert_eq!(found[field].as_f64().unwrap() as f32, number, "{name} {field}");
        }
        assert_eq!(found["zeros"], expected.zeros);
        // Eight bins of the viewer are one bin of `inspect`.
        let bins: Vec<u64> = found["histogram"]["counts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect();
        let wide: Vec<u64> = bins.chunks(8).map(|eight| eight.iter().sum()).collect();
        assert_eq!(wide, expected.histogram, "{name}");
        let (rows, outliers) = (&found["rows"], found["outliers"].as_array().unwrap());
        let min = rows["min"]
            .as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_f64().unwrap())
            .fold(f64::MAX, f64::min);
        assert_eq!(min as f32, expected.min);
        let first = &outliers[0];
        let (row, column) = (first["row"].as_u64().unwrap(), first["column"].as_u64().unwrap());
        let at = viewer.json(&format!(
            "models/0/tensor/rows?name={name}&start={row}&column={column}&columns=1"
        ));
        assert_eq!(at["rows"][0][0], first["value"], "{name}");
    }
}

/// A pixel is the mean, and the value of largest magnitude, of its weights.
#[test]
fn mipmap_levels_aggregate_weights() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let name = "token_embd.weight";
    let (weights, columns) = decoded(&path, name);
    let facts = viewer.json(&format!("models/0/tensor?name={name}"));
    let levels = facts["levels"].as_u64().unwrap();
    let rows = facts["rows"].as_u64().unwrap();
    assert_eq!((levels, facts["columns"].as_u64().unwrap()), (4, columns));
    for level in 1..levels {
        let tile = viewer.get(&format!("models/0/tensor/tile?name={name}&level={level}"));
        let step = 1u64 << level;
        let (width, height) = (columns.div_ceil(step), rows.div_ceil(step).min(256));
        assert_eq!(tile.header("tile-width"), width.to_string());
        assert_eq!((tile.header("tile-planes"), tile.header("tile-exact")), ("2", "true"));
        let floats = tile.floats();
        let (mean, extreme) = floats.split_at((width * height) as usize);
        for (x, y) in [(0, 0), (width - 1, height - 1), (3, 7)] {
            let indices = (y * step..((y + 1) * step).min(rows)).flat_map(|row| {
                (x * step..((x + 1) * step).min(columns)).map(move |c| row * columns + c)
            });
            let values: Vec<f32> = indices.map(|at| weights[at as usize]).collect();
            let sum: f64 = values.iter().map(|x| f64::from(*x)).sum();
            let extreme_value = values
                .iter()
                .copied()
                .fold(0f32, |extreme, x| if x.abs() > extreme.abs() { x } else { extreme });
            let at = (y * width + x) as usize;
            assert!(
                (f64::from(mean[at]) - sum / values.len() as f64).abs() < 1e-6,
                "{level} {x} {y}"
            );
            assert_eq!(extreme[at].abs(), extreme_value.abs(), "{level} {x} {y}");
        }
    }
    for wrong in [
        "level=4",
        "level=4294967295",
        "x=1",
        "y=18446744073709551615",
        "level=99999999999999999999",
    ] {
        let status = viewer.get(&format!("models/0/tensor/tile?name={name}&{wrong}")).status;
        assert!([400, 404].contains(&status), "{wrong}");
    }
}

#[test]
fn block_scales_have_tiles() {
    let dir = tempfile::tempdir().unwrap();
    let (path, types) = all_types(dir.path());
    let viewer = Viewer::open(&[path_str(&path)]);
    let n = types.iter().position(|(_, ty)| *ty == TensorType::Q4_K).unwrap();
    let facts = viewer.json(&format!("models/0/tensor?n={n}"));
    assert_eq!(facts["layout"]["scales"], serde_json::json!(["d", "dmin"]));
    let tile = viewer.get(&format!("models/0/tensor/tile?n={n}&of=dmin"));
    assert_eq!((tile.header("tile-width"), tile.header("tile-height")), ("2", "4"));
    let opened = open(path_str(&path)).unwrap();
    let data = opened.model().tensors()[n].data().unwrap();
    for (block, found) in data.chunks(144).zip(tile.floats()) {
        let items = gguf_quant::block_layout(TensorType::Q4_K).unwrap().items(block);
        assert!(same(found, items[1][0].value.unwrap() as f32));
    }
    viewer.assert_error(&format!("models/0/tensor/tile?n={n}&of=q"), 404, "name-not-found");
}

#[test]
fn invalid_parameters_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = all_types(dir.path());
    let viewer = Viewer::open(&[path_str(&path)]);
    viewer.assert_error("models/0/tensor?name=nothing", 404, "name-not-found");
    viewer.assert_error("models/0/tensor?n=35", 404, "name-not-found");
    viewer.assert_error("models/0/tensor?n=99999999999999999999", 400, "request-invalid");
    viewer.assert_error("models/0/tensor?n=-1", 400, "request-invalid");
    viewer.assert_error("models/0/tensor", 400, "request-invalid");
    viewer.assert_error("models/1/tensor?n=0", 404, "name-not-found");
    viewer.assert_error("models/x/tensor?n=0", 404, "name-not-found");
    viewer.assert_error("models/18446744073709551616/tensor?n=0", 404, "name-not-found");
    for wrong in [
        "start=4",
        "start=18446744073709551615",
        "count=5",
        "count=18446744073709551615",
        "column=3",
        "columns=18446744073709551615",
        "column=18446744073709551615&columns=1",
        "format=xml",
    ] {
        viewer.assert_error(&format!("models/0/tensor/rows?n=0&{wrong}"), 400, "request-invalid");
    }
}
