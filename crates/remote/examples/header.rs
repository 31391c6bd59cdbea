//! Reads the header of a local or remote model and prints the number of bytes transferred:
//! `cargo run -p gguf-remote --example header -- hf:org/repo:Q4_K_M [tensor]`.

use gguf::{Gguf, Limits};
use gguf_store::fetch_header;

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let word = args.next().ok_or("name a path, a URL, hf:org/repo or s3://bucket/key")?;
    let opened = gguf_remote::open(&word)?;
    let len = opened.source.byte_len();
    let bytes = fetch_header(&*opened.source, Limits::default())?;
    let model = Gguf::read_header(&bytes, len, Limits::default())?;
    println!("{}: {len} bytes", opened.name);
    println!("{} keys, {} tensors", model.metadata().len(), model.tensors().len());
    println!("{} bytes transferred", opened.transferred.bytes());
    if let Some(name) = args.next() {
        let tensor = model.header().tensor(&name).ok_or("the model has no such tensor")?;
        let range = model.data_range(tensor).ok_or("the size of the tensor is unknown")?;
        let mut data = vec![0; usize::try_from(range.end - range.start)?];
        opened.source.read_at(&mut data, range.start)?;
        let sum: u64 = data.iter().map(|&byte| u64::from(byte)).sum();
        println!("{name}: {} bytes, sum {sum}", data.len());
        println!("{} bytes transferred", opened.transferred.bytes());
    }
    Ok(())
}
