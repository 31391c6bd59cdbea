//! Tasks: the destinations of each source tensor.

use std::collections::HashMap;
use std::path::Path;

use gguf::{ByteOrder, Header};

use crate::job::{Item, Job};
use crate::tensor::Tensor;

/// A source tensor with all its destinations.
pub struct Task<'j> {
    pub tensor: &'j Tensor,
    pub check_finite: bool,
    pub destinations: Vec<Destination<'j>>,
}

/// Destination of a tensor.
pub struct Destination<'j> {
    pub item: &'j Item,
    /// Index of the output.
    pub output: usize,
    /// Byte offset of the data in the output.
    pub offset: u64,
    /// Byte order of the output.
    pub order: ByteOrder,
}

/// Groups the tensors of all jobs by source.
pub fn tasks<'j>(
    jobs: &[(&'j Job, &Path)],
    headers: &[Header],
    starts: &[Vec<u8>],
) -> Vec<Task<'j>> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (output, (((job, _), header), start)) in jobs.iter().zip(headers).zip(starts).enumerate() {
        for (item, tensor) in job.items.iter().zip(header.tensors()) {
            let (offset, order) = (start.len() as u64 + tensor.offset, header.order());
            let destination = Destination { item, output, offset, order };
            let known = by_name.entry(&item.tensor.name).or_default();
            match known.iter().find(|&&task| tasks[task].tensor.has_source_of(&item.tensor)) {
                Some(&task) => {
                    tasks[task].destinations.push(destination);
                    tasks[task].check_finite |= job.check_finite;
                }
                None => {
                    known.push(tasks.len());
                    tasks.push(Task {
                        tensor: &item.tensor,
                        check_finite: job.check_finite,
                        destinations: vec![destination],
                    });
                }
            }
        }
    }
    tasks
}
