//! Logits of a model for some ids, as `.npy`, F32 [tokens, vocabulary]:
//! `logits MODEL.gguf "1 2 3" OUT.npy`. Nothing is rounded. The context is as long as the text.

use std::error::Error;
use std::fs::File;
use std::sync::Arc;

use gguf_graph::OutputKind;
use gguf_runtime::{Arithmetic, Batch, CacheType, Context, ContextOptions, Executor};
use npyz::WriterBuilder;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, ids, out] = &arguments[..] else {
        return Err("usage: logits MODEL.gguf \"1 2 3\" OUT.npy".into());
    };
    let ids: Vec<u32> = ids.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let model = gguf_store::Model::open(model.as_ref())?;
    let graph = gguf_graph::build(model.metadata(), Executor::tensors(&model))
        .map_err(|finding| finding.to_string())?;
    let executor = Arc::new(Executor::new(&model, graph, Arithmetic::Exact)?);
    let options = ContextOptions {
        tokens: ids.len(),
        cache_type: CacheType::F32,
        ..ContextOptions::default()
    };
    let mut context = Context::new(executor, options)?;
    let logits = context.run(&Batch::of_all(&ids), OutputKind::Logits, &())?;
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&[logits.rows as u64, logits.width as u64])
        .writer(File::create(out)?)
        .begin_nd()?;
    writer.extend(logits.data)?;
    writer.finish()?;
    Ok(())
}
