//! Memory needed to run a model.

use gguf_kit::memory::{DeviceMemory, Devices, MemoryEstimate, MemoryOptions, estimate};
use gguf_runtime::CacheType;
use gguf_store::Model;

use crate::failure::Failure;
use crate::model_args::cache_types;
use crate::{listing, terminal};

/// Runtime parameters.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Flags {
    /// Estimate the memory to run the model: weights, KV cache, compute buffer.
    #[arg(id = "memory", long)]
    pub is_set: bool,
    /// Context size in tokens [default: as trained].
    #[arg(long, value_name = "N", requires = "memory", value_parser = clap::value_parser!(u64).range(1..))]
    context: Option<u64>,
    /// Data type of the KV cache.
    #[arg(long, value_name = "TYPE", requires = "memory", default_value = "f16", value_parser = cache_types())]
    kv_type: CacheType,
    /// Batch size in tokens.
    #[arg(long, value_name = "N", requires = "memory", default_value = "512", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Devices to distribute layers over: the number of equal devices, or the layers of each, as in 20,12.
    #[arg(long, value_name = "N|LAYERS", requires = "memory", value_parser = devices, default_value = "1")]
    devices: Devices,
}

fn devices(text: &str) -> Result<Devices, String> {
    let numbers = text.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>();
    match numbers.map_err(|_| {
        format!("`{text}` is neither a number of devices nor a list of layer counts")
    })?[..]
    {
        [0] => Err("expected at least one device".into()),
        [count] => Ok(Devices::Equal(count)),
        ref layers => Ok(Devices::Layers(layers.to_vec())),
    }
}

impl Flags {
    pub fn of(&self, model: &Model) -> Result<MemoryEstimate, Failure> {
        let options = MemoryOptions {
            context: self.context,
            cache_type: self.kv_type,
            batch: self.batch,
            devices: self.devices.clone(),
        };
        Ok(estimate(model, &options)?)
    }
}

pub fn text(report: &MemoryEstimate) -> String {
    let MemoryEstimate { context, batch, .. } = report;
    let title = terminal::strong(format!("{} to run", listing::bytes(report.total())));
    let title = terminal::wrap(&format!("{title}, with a context of {context} tokens"), "");
    let mut text = title + "\n\n";
    let per_token = listing::bytes(report.cache_per_token);
    let parts = [
        ("weights", report.weights, "mapped from the file".to_owned()),
        ("KV cache", report.cache, format!("{per_token} per token")),
        ("compute", report.compute_buffer, format!("buffer for a batch of {batch}")),
    ];
    for (name, bytes, about) in parts {
        let line = format!("  {name:<8} {:>9}  {}", listing::bytes(bytes), terminal::faint(about));
        text += &(terminal::fit(&line) + "\n");
    }
    if let [_, _, ..] = &report.devices[..] {
        text += &devices_text(report);
    }
    text
}

fn devices_text(report: &MemoryEstimate) -> String {
    let head = format!(
        "  {:<9} {:<16} {:>9} {:>9} {:>9} {:>9}",
        "device", "layers", "weights", "KV cache", "compute", "total"
    );
    let mut text = format!("\n{}\n", terminal::fit(&terminal::faint(head)));
    for (number, device) in report.devices.iter().enumerate() {
        let bytes = [device.weights, device.cache, device.compute_buffer, device.total()];
        let bytes = bytes.map(|bytes| format!(" {:>9}", listing::bytes(bytes))).concat();
        let line = format!("  {number:<9} {:<16}{bytes}", layers(device));
        text += &(terminal::fit(&line) + "\n");
    }
    let input = listing::bytes(report.host);
    text + &terminal::fit(&format!("  {:<9} {:<16} {input:>9}", "host", "embedding")) + "\n"
}

fn layers(device: &DeviceMemory) -> String {
    let (first, end) = device.layers;
    let layers = match end - first {
        0 => None,
        1 => Some(first.to_string()),
        _ => Some(format!("{first} to {}", end - 1)),
    };
    let parts = [layers, device.has_output.then(|| "output".to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
