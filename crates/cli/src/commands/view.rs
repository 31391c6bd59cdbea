//! `gguf view`: web viewer.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gguf_kit::Files;
use gguf_kit::report::NamedFiles;
use gguf_remote::Cache;
use gguf_store::AtomicFile;
use gguf_viewer::{Server, ServerOptions};
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;
use tempfile::NamedTempFile;

use crate::commands::render_template;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{listing, terminal};

/// View models in the browser.
///
/// Starts a local web server that shows everything in the models and reads only what is displayed. The first
/// line printed is its address, which contains a secret token. Runs until Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf view model.gguf\n  \
                        gguf view model-q4_k_m.gguf --reference model-f16.gguf\n  \
                        gguf view hf:org/repo:Q4_K_M --no-open\n  \
                        gguf view model.gguf --export report.html\n  \
                        gguf view model-q4_k_m.gguf --reference model-f16.gguf --export report.html")]
pub struct Args {
    /// Files, directories, shards or remote locations (https://, hf:org/repo:file, s3://, gs://, az://).
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,
    /// Reference model, to show quantization errors.
    #[arg(long, alias = "original", value_name = "MODEL")]
    reference: Option<String>,
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
    /// Port [default: a free port].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Address to listen on. An address other than localhost exposes the models to anyone with the token;
    /// traffic is not encrypted.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into())]
    listen: IpAddr,
    /// Maximum size of the disk cache for remote files, in the user's cache directory; 0 disables it.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = cache_limit)]
    cache_limit: u64,
    /// Write a self-contained HTML report instead: summary, heat maps, sizes, memory, findings, metadata, and tensors with
    /// statistics. With --reference, the report shows the quantization error of each tensor.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_open", "port", "listen"])]
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
        original: args.reference.clone(),
        listen: args.listen,
        port: args.port,
        cache: Some(cache),
        version: env!("GGUF_VERSION"),
        ..ServerOptions::new(args.models.clone(), render_template::renderer()?)
    };
    let server = Server::bind(options)?;
    let url = server.url();
    // Flushed so that a waiting process sees the address. A closed pipe does not stop the server.
    let mut out = std::io::stdout().lock();
    writeln!(out, "{url}").and_then(|()| out.flush())?;
    drop(out);
    if !args.listen.is_loopback() {
        terminal::warning(format!(
            "anyone who can reach {} and has the token can read the models; traffic is not encrypted",
            args.listen
        ));
    }
    let page = if args.no_open { None } else { redirect_page(&url).ok() };
    let opened = page.as_ref().map(|page| open::that_detached(page.path()).is_ok());
    if !args.no_open && opened != Some(true) {
        terminal::note("cannot open a browser; open the address above");
    }
    let (stop, stopped) = Server::stop_handle();
    let signaled = Arc::new(AtomicBool::new(false));
    for signal in TERM_SIGNALS {
        // A second signal ends the process immediately.
        let _ = flag::register_conditional_default(*signal, signaled.clone());
        let _ = flag::register(*signal, signaled.clone());
    }
    std::thread::spawn(move || {
        while !signaled.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(stop);
    });
    server.run(stopped);
    Ok(())
}

/// Writes a page that only this user can read, and that leads to `url`. Arguments of a browser are visible to all users:
/// they must not contain the secret. The page is removed on drop.
fn redirect_page(url: &str) -> std::io::Result<NamedTempFile> {
    let mut page = tempfile::Builder::new().prefix("gguf-view-").suffix(".html").tempfile()?;
    writeln!(
        page,
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">gguf view</a>"
    )?;
    page.flush()?;
    Ok(page)
}

/// Writes the HTML report of the models.
fn export(args: &Args, path: &Path, cache: &Arc<Cache>) -> Result<(), Failure> {
    let open = |source: &String| Files::open(source, Some(cache));
    let models = args.models.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let reference = args.reference.as_ref().map(open).transpose()?;
    let (renderer, progress) = (render_template::renderer()?, Progress::new());
    let version = format!("gguf {}", env!("GGUF_VERSION"));
    let sources = args.models.iter().zip(&models);
    let named: Vec<_> = sources.map(|(source, files)| NamedFiles { source, files }).collect();
    let reference_source = args.reference.as_deref().unwrap_or_default();
    let original = reference.as_ref().map(|files| NamedFiles { source: reference_source, files });
    let page = gguf_kit::report::html(&named, original, &renderer, &version, &progress)?;
    progress.finish();
    // Names of remote files are not local paths.
    let local = models.iter().chain(&reference).filter(|files| !files.is_remote());
    let inputs = local.flat_map(|files| files.files().iter().map(|file| file.name()));
    let overwrite = args.force.protecting(inputs);
    AtomicFile::write(path, page.as_bytes(), &overwrite)?;
    eprintln!("wrote {}: {}", path.display(), listing::bytes(page.len() as u64));
    Ok(())
}
