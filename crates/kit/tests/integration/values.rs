//! Values of tensors, and what they are like.

use gguf::{Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_kit::open;
use gguf_kit::values::values;

/// Three rows of four: 0 to 11, with NaN and an infinity in the last.
fn model(dir: &std::path::Path) -> String {
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "llama");
    draft.tensors.push(TensorInfo {
        name: "a.weight".into(),
        shape: Shape::new(&[4, 3]).unwrap(),
        tensor_type: TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
    draft.lay_out().unwrap();
    let mut file = write_header(&Header::new(draft).unwrap()).unwrap();
    let mut numbers: Vec<f32> = (0..12).map(|i| i as f32).collect();
    (numbers[9], numbers[10]) = (f32::NAN, f32::INFINITY);
    file.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    let path = dir.join("m.gguf");
    std::fs::write(&path, file).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn rows_and_figures() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(&model(dir.path())).unwrap();
    let of = |rows| values(opened.model(), "a.weight", rows, &()).unwrap();
    let two = of(Some(0..2));
    assert_eq!(two.data, [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]);
    let figures = two.figures;
    assert_eq!((figures.count, figures.zeros, figures.min, figures.max), (8, 1, 0.0, 7.0));
    assert_eq!(figures.mean, 3.5);
    // The mean of the squares of 0.5, 1.5, 2.5 and 3.5.
    assert_eq!(figures.deviation, 5.25f64.sqrt());
    assert_eq!(figures.histogram, [1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1]);
    let all = of(None).figures;
    assert_eq!((all.count, all.nan, all.infinite, all.max), (12, 1, 1, 11.0));
    assert_eq!(all.histogram.iter().sum::<u64>(), 10);
}

#[test]
fn what_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(&model(dir.path())).unwrap();
    let refused = |name, rows| values(opened.model(), name, rows, &()).unwrap_err().to_string();
    assert_eq!(refused("a.wieght", None), "there is no tensor `a.wieght`; did you mean a.weight?");
    let rows = refused("a.weight", Some(2..4));
    assert_eq!(rows, "`a.weight` has the rows 0..3, not 2..4; select existing rows");
}
