//! Opening a model allocates the same memory regardless of the size of its vocabulary.

use allocation_counter::{AllocationInfo, measure};
use gguf::{Array, Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_store::{LocalFile, Model};

/// Returns a model with this many tokens and merges.
fn model(n_strings: usize) -> Vec<u8> {
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "llama");
    draft.metadata.set("llama.block_count", 1u32);
    let strings = |prefix| Array::from_strings((0..n_strings).map(|i| format!("{prefix}{i}")));
    draft.metadata.set("tokenizer.ggml.model", "gpt2");
    draft.metadata.set("tokenizer.ggml.tokens", strings("Ġ"));
    draft.metadata.set("tokenizer.ggml.token_type", Array::from(&vec![1i32; n_strings][..]));
    draft.metadata.set("tokenizer.ggml.merges", strings("Ġ a"));
    draft.tensors.push(TensorInfo {
        name: "output_norm.weight".into(),
        shape: Shape::new(&[8]).unwrap(),
        tensor_type: TensorType::F32,
        offset: 0,
        opaque_len: None,
    });
    let data_len = draft.lay_out().unwrap() as usize;
    let mut bytes = write_header(&Header::new(draft).unwrap()).unwrap();
    bytes.resize(bytes.len() + data_len, 0);
    bytes
}

/// Measures the allocations of `open` for a model with this many strings.
fn allocated(n_strings: usize, open: impl Fn(&std::path::Path)) -> AllocationInfo {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.gguf");
    std::fs::write(&path, model(n_strings)).unwrap();
    let info = measure(|| open(&path));
    assert!(info.count_total > 0, "nothing was counted");
    assert_eq!(info.bytes_current, 0);
    info
}

#[test]
fn allocations_do_not_depend_on_the_number_of_strings() {
    let read = |path: &_| {
        let map = LocalFile::open(path).unwrap();
        assert_eq!(gguf::Gguf::read(map.mapped()).unwrap().tensors().len(), 1);
    };
    let open = |path: &_| {
        let files = Model::open(path).unwrap();
        assert_eq!(files.tensors().len(), 1);
    };
    let few = [allocated(1_000, read), allocated(1_000, open)];
    let many = [allocated(100_000, read), allocated(100_000, open)];
    assert_eq!(few, many);
    // Metadata, tensor directory and paths take some kilobytes.
    assert!(many.iter().all(|info| info.bytes_max < 16 << 10), "{many:?}");
}

#[test]
fn strings_are_views() {
    let bytes = model(100_000).into();
    let gguf = gguf::Gguf::read(&bytes).unwrap();
    let tokens = gguf.metadata().array("tokenizer.ggml.tokens").unwrap();
    let info = measure(|| assert_eq!(tokens.strings().unwrap().count(), 100_000));
    assert_eq!(info.count_total, 0);
}
