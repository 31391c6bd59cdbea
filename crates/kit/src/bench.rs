//! Throughput of a model on this machine.

pub use gguf_runtime::benchmark::{BenchmarkOptions, BenchmarkReport, Rates, Throughput, Trial};
pub use gguf_runtime::machine::Machine;
use gguf_store::Progress;

use crate::run::{ExecutorOptions, adapters, executor, model_graph};
use crate::{Error, open};

/// Measures the model that `source` names.
///
/// # Errors
/// As [`crate::run::load`] and [`BenchmarkReport::measure`].
pub fn bench(
    source: &str,
    executor_options: &ExecutorOptions,
    options: &BenchmarkOptions,
    progress: &dyn Progress,
) -> Result<BenchmarkReport, Error> {
    let model = open(source)?.into_model();
    let graph = model_graph(&model, executor_options.graph);
    let graph = graph.map_err(|error| error.in_file(source.as_ref()))?;
    let adapters = adapters(executor_options)?;
    let executor = executor(source, &model, graph, executor_options, &adapters)?;
    BenchmarkReport::measure(&model, &executor, options, progress)
}
