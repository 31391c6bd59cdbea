//! `gguf view`: a page in the browser that shows what is in models.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gguf_kit::Files;
use gguf_remote::Cache;
use gguf_store::AtomicFile;
use gguf_viewer::{Server, ServerOptions};
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;

use crate::commands::render_template;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{listing, terminal};

/// Look inside models in the browser.
///
/// A page on this machine shows everything that they hold, and reads only what is looked at. Its address is the first
/// line that is printed; it has a secret, and answers until Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf view model.gguf\n  \
                        gguf view model-q4_k_m.gguf --original model-f16.gguf\n  \
                        gguf view hf:org/repo:Q4_K_M --no-open\n  \
                        gguf view model.gguf --export report.html")]
pub struct Args {
    /// Files, directories, shards or far locations (https://, hf:org/repo:file, s3://, gs://, az://).
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    /// What the models were made from: the page shows what quantization did.
    #[arg(long, value_name = "MODEL")]
    original: Option<String>,
    /// Do not open the browser.
    #[arg(long)]
    no_open: bool,
    /// The port; a free one without.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// The address to listen at. Others than this machine can then read the models if they know the secret, which
    /// goes over the network as it is.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into())]
    listen: IpAddr,
    /// Bytes of far files that are kept on disk for another time, in the cache folder of the user; 0 for none.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = cache_limit)]
    cache_limit: u64,
    /// Write a page that needs nothing but itself, and open nothing: what the model is, findings, keys, tensors
    /// with figures of their weights.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["original", "no_open", "port", "listen"])]
    export: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

fn cache_limit(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { listing::parse_size(text) }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let cache = Arc::new(Cache::new(Cache::directory(), args.cache_limit));
    if let Some(path) = &args.export {
        return export(args, path, &cache);
    }
    let options = ServerOptions {
        original: args.original.clone(),
        listen: args.listen,
        port: args.port,
        cache: Some(cache),
        version: env!("GGUF_VERSION"),
        ..ServerOptions::new(args.models.clone(), render_template::renderer()?)
    };
    let server = Server::bind(options)?;
    let url = server.url();
    // Whoever waits for the address finds it at once, and a closed pipe is no reason to stop.
    let mut out = std::io::stdout().lock();
    writeln!(out, "{url}").and_then(|()| out.flush())?;
    drop(out);
    if !args.listen.is_loopback() {
        terminal::warning(format!(
            "whoever reaches {} and learns the secret can read the models; nothing is encrypted",
            args.listen
        ));
    }
    if !args.no_open && open::that_detached(&url).is_err() {
        terminal::note("no browser could be opened: open the address above");
    }
    let (stop, stopped) = Server::stop_handle();
    let asked = Arc::new(AtomicBool::new(false));
    for signal in TERM_SIGNALS {
        // A second one ends the process at once.
        let _ = flag::register_conditional_default(*signal, asked.clone());
        let _ = flag::register(*signal, asked.clone());
    }
    std::thread::spawn(move || {
        while !asked.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(stop);
    });
    Ok(server.run(stopped)?)
}

/// Writes the page of one model.
fn export(args: &Args, path: &Path, cache: &Arc<Cache>) -> Result<(), Failure> {
    let [source] = &args.models[..] else {
        return Err(Failure::Usage("--export writes the page of one model: name one".into()));
    };
    let files = Files::open(source, Some(cache))?;
    let (renderer, progress) = (render_template::renderer()?, Progress::new());
    let version = format!("gguf {}", env!("GGUF_VERSION"));
    let page = gguf_kit::report::html(source, &files, &renderer, &version, &progress)?;
    progress.finish();
    // Far ones have names, but no file of that name here is one of them.
    let near = files.files().iter().filter(|_| !files.is_remote());
    let overwrite = args.force.protecting(near.map(|file| file.name()));
    AtomicFile::write(path, page.as_bytes(), &overwrite)?;
    eprintln!("wrote {}: {}", path.display(), listing::bytes(page.len() as u64));
    Ok(())
}
