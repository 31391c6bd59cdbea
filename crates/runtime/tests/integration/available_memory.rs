//! Weights that do not fit into memory. `batches.rs` shows that results are the same.

use gguf::TensorInfo;
use gguf_models::schema::architecture;
use gguf_runtime::{Executor, Precision};

use crate::batches::write;
use crate::schema_models::{metadata, tensors};

#[test]
fn most_of_the_memory_keeps_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let of = architecture("llama").unwrap();
    let metadata = metadata(of, &[("block_count", 20u32.into())]);
    let tensors = tensors(of, &metadata, true);
    // Vectors are copied, and single rows of the embedding are looked up.
    let is_read =
        |tensor: &TensorInfo| tensor.shape.len() == 2 && tensor.name != "token_embd.weight";
    let read: u64 = tensors
        .iter()
        .filter(|tensor| is_read(tensor))
        .map(|tensor| tensor.byte_len().unwrap())
        .sum();
    write(&metadata, tensors, &path);
    let model = gguf_store::Model::open(&path).unwrap();
    let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
    let executor = Executor::new(&model, graph, Precision::Exact).unwrap();
    assert!(!executor.exceeds_memory() && executor.evicted_bytes() == 0);
    let all = executor.matrix_bytes();
    let fits = executor.clone().with_available_memory(all);
    assert!(!fits.exceeds_memory() && fits.evicted_bytes() == 0);
    for share in [2, 4, 10] {
        let available = all / share;
        let executor = executor.clone().with_available_memory(available);
        let staying = read - executor.evicted_bytes();
        // Three quarters, up to the size of a tensor.
        let most = 3 * available / 4;
        assert!(staying <= most && staying + read / 50 >= most, "{staying} of {available}");
        assert!(executor.exceeds_memory());
    }
    assert_eq!(executor.with_available_memory(0).evicted_bytes(), read);
}
