//! Runs of zeros in tensor data: holes of broken downloads, and weights that are zero by intention.

use std::ops::Range;

use gguf::{Finding, Header, RawHeader, Severity, Shape, TensorInfo, TensorType, write_header};
use gguf_inspect::scan;
use gguf_store::Model;

/// A list of one range.
fn one(range: Range<usize>) -> [Range<usize>; 1] {
    std::array::from_fn(|_| range.clone())
}

/// Scans a file of these tensors whose elements are 1, except for the bytes of the data section in `zeros`.
fn scanned(tensors: &[(&str, &[u64], TensorType)], zeros: &[Range<usize>]) -> Vec<Finding> {
    let mut draft = RawHeader::default();
    let mut data = Vec::new();
    for (name, dims, tensor_type) in tensors {
        data.resize(data.len().next_multiple_of(32), 0);
        draft.tensors.push(TensorInfo {
            name: (*name).to_owned(),
            shape: Shape::new(dims).unwrap(),
            tensor_type: *tensor_type,
            offset: data.len() as u64,
            opaque_len: None,
        });
        let block: &[u8] = match *tensor_type {
            TensorType::F32 => &[0, 0, 0x80, 0x3f],
            TensorType::F16 => &[0, 0x3c],
            // Scale 1/16, levels 1.
            _ => &[
                0x00, 0x2c, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                1, 1, 1, 1, 1, 1, 1, 1,
            ],
        };
        let len = tensor_type.byte_len(dims).unwrap() as usize;
        data.extend(block.iter().copied().cycle().take(len));
    }
    data.resize(data.len().next_multiple_of(32), 0);
    for range in zeros {
        data[range.clone()].fill(0);
    }
    let mut file = write_header(&Header::new(draft).unwrap()).unwrap();
    file.extend(data);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gguf");
    std::fs::write(&path, file).unwrap();
    scan(&Model::open(&path).unwrap(), &()).unwrap()
}

/// Code, severity and tensor of each finding.
fn codes(findings: &[Finding]) -> Vec<(&str, Severity, &str)> {
    findings.iter().map(|one| (one.code, one.severity, one.tensor.as_deref().unwrap())).collect()
}

const F16_ROW: usize = 2 * 3000;

#[test]
fn holes_are_errors() {
    let matrices: &[(&str, &[u64], TensorType)] = &[
        ("a.weight", &[3008, 100], TensorType::Q8_0),
        ("b_norm.weight", &[64], TensorType::F32),
        ("c.weight", &[3008, 100], TensorType::F32),
    ];
    let a = 3008 * 100 / 32 * 34;
    let c = (a + 256usize).next_multiple_of(32);
    let end = c + 3008 * 100 * 4;
    for (zeros, message, tensor) in [
        // Within a matrix.
        (10_000..20_000, "in a.weight", "a.weight"),
        // From within a row to the end of the file.
        (end - 100_000..end, "in c.weight", "c.weight"),
        // Over several tensors.
        (a - 10_000..c + 10_000, "from a.weight to c.weight", "a.weight"),
        (0..end, "from a.weight to c.weight", "a.weight"),
        // Whole rows at one end only.
        (0..5000, "in a.weight", "a.weight"),
    ] {
        let findings = scanned(matrices, std::slice::from_ref(&zeros));
        let holes: Vec<_> = findings.iter().filter(|one| one.code == "data-hole").collect();
        assert_eq!(holes.len(), 1, "{zeros:?}: {findings:#?}");
        assert!(holes[0].message.ends_with(message), "{zeros:?}: {}", holes[0]);
        assert_eq!(codes(&[holes[0].clone()]), [("data-hole", Severity::Error, tensor)]);
        // No further finding about the tensors of the hole.
        assert_eq!(findings.len(), 1, "{findings:#?}");
    }
}

#[test]
fn several_holes_are_several_findings() {
    let tensors: &[(&str, &[u64], TensorType)] = &[("a.weight", &[3000, 700], TensorType::F16)];
    // The second hole crosses a chunk of the scan.
    let findings = scanned(tensors, &[10_000..20_000, 500_000..600_001]);
    assert_eq!(codes(&findings), [("data-hole", Severity::Error, "a.weight"); 2]);
    assert!(findings[1].message.starts_with("100.0 kB of zeros"), "{}", findings[1]);
}

#[test]
fn weights_that_are_zero_by_intention_are_no_holes() {
    let rows = |first: usize, end: usize| first * F16_ROW..end * F16_ROW;
    let matrix: &[(&str, &[u64], TensorType)] =
        &[("token_embd.weight", &[3000, 100], TensorType::F16)];
    // Rows of unused tokens, a short run, and zeros beside the rows.
    for zeros in [rows(90, 100), rows(10, 20), 100..4000, 10 * F16_ROW - 8..20 * F16_ROW + 6] {
        assert_eq!(scanned(matrix, std::slice::from_ref(&zeros)), [], "{zeros:?}");
    }
    // A bias, and columns that were pruned.
    let bias: &[(&str, &[u64], TensorType)] = &[("a.bias", &[9000], TensorType::F32)];
    assert_eq!(scanned(bias, &one(4000..20_000)), []);
    let columns: Vec<_> = (0..100).map(|row| row * F16_ROW + 1000..row * F16_ROW + 5100).collect();
    assert_eq!(scanned(matrix, &columns), []);
    // Projections of added layers that pass their input through.
    let layer: &[(&str, &[u64], TensorType)] = &[
        ("blk.0.attn_output.weight", &[3000, 10], TensorType::F16),
        ("blk.0.ffn_up.weight", &[3000, 10], TensorType::F16),
    ];
    let findings = scanned(layer, &[rows(0, 10)]);
    assert_eq!(codes(&findings), [("data-zero", Severity::Note, "blk.0.attn_output.weight")]);
}

#[test]
fn tensors_that_cannot_be_zero_are_errors() {
    for name in ["output.weight", "token_embd.weight", "blk.0.attn_norm.weight"] {
        let tensor: &[(&str, &[u64], TensorType)] = &[(name, &[320, 100], TensorType::F16)];
        let findings = scanned(tensor, &one(0..320 * 100 * 2));
        assert_eq!(codes(&findings), [("data-zero", Severity::Error, name)]);
        assert!(!findings[0].help.is_empty());
    }
}

#[test]
fn overflow_of_f16_names_its_cause() {
    let mut draft = RawHeader::default();
    draft.tensors.push(TensorInfo {
        name: "output_norm.weight".into(),
        shape: Shape::new(&[16]).unwrap(),
        tensor_type: TensorType::F16,
        offset: 0,
        opaque_len: None,
    });
    let mut file = write_header(&Header::new(draft).unwrap()).unwrap();
    file.extend([0x00, 0x7c].repeat(16));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gguf");
    std::fs::write(&path, file).unwrap();
    let findings = scan(&Model::open(&path).unwrap(), &()).unwrap();
    assert_eq!(codes(&findings), [("data-not-finite", Severity::Error, "output_norm.weight")]);
    assert!(findings[0].help.contains("65504"), "{}", findings[0]);
}
