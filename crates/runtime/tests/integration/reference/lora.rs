//! A LoRA adapter, applied while its base model runs.

use std::sync::Arc;

use gguf_checkpoint::Checkpoint;
use gguf_convert::lora::peft;
use gguf_graph::OutputKind;
use gguf_lora::Adapter;
use gguf_runtime::{Batch, Context, Executor, Precision};
use gguf_store::{Model, Overwrite};

use super::data::{self, Reference, distance};
use super::{TOLERANCE, options, zoo};

#[test]
fn adapters_are_applied() {
    let (Some(folder), Some(base)) = (zoo("lora-llama"), zoo("llama")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let (of_base, of_adapter) = (dir.path().join("base.gguf"), dir.path().join("lora.gguf"));
    data::convert(&base, &of_base);
    let checkpoint = Checkpoint::open_file(&peft::weights(&folder)).unwrap();
    let weights = Checkpoint::open(&base).unwrap();
    let plan =
        peft::plan(&folder, &checkpoint, &base, Some(&weights), &Default::default()).unwrap();
    plan.job.write(&of_adapter, &Overwrite::default(), &()).unwrap();
    let [model, adapter] = [of_base, of_adapter].map(|path| Model::open(&path).unwrap());
    let run = |adapters: &[(Adapter, f32)]| {
        let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model)).unwrap();
        let executor = Executor::new(&model, graph, Precision::Exact).unwrap();
        let executor = Arc::new(executor.with_adapters(&model, adapters).unwrap());
        let reference = Reference::read(&folder, "logits");
        let mut context = Context::new(executor, options(1)).unwrap();
        let made =
            context.run(&Batch::all_outputs(&reference.tokens), OutputKind::Logits, &()).unwrap();
        distance(&made.data, &reference.numbers)
    };
    let adapter = Adapter::read(&adapter).unwrap();
    let of = |scale| (adapter.clone(), scale);
    let far = run(&[of(1.0)]);
    assert!(far < TOLERANCE, "{far}");
    assert!(run(&[]) > TOLERANCE, "without it the model says something else");
    let halves = run(&[of(0.5), of(0.5)]);
    assert!(halves < TOLERANCE, "two halves are a whole: {halves}");
    assert_eq!(Adapter::read(&model).err().unwrap().code(), "adapter-none");
}
