//! Outputs of a conversion.

use std::path::{Path, PathBuf};

use gguf_kit::convert::OutputOptions;
use gguf_quantize::recipe::UnknownTarget;

use crate::commands::hub_outputs::HubOutputs;
use crate::failure::Failure;
use crate::outtype::Outtype;

/// Outputs, all written in one pass.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct Args {
    /// Output file, directory, or repository of the Hub (hf:me/repo) [default: a name by the GGUF naming convention, in
    /// the working directory].
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output type: a quantization type such as q4_k_m, a float type, or auto for the type of the checkpoint
    /// (16 bits where GGUF has no equivalent). Several types, separated by commas, write one file each.
    #[arg(long, default_value = "auto", value_name = "TYPE", value_delimiter = ',')]
    outtype: Vec<Outtype>,
    /// Output of this type at this path. May be repeated.
    #[arg(long, value_name = "TYPE=PATH", conflicts_with_all = ["output", "outtype"], value_parser = parse_out)]
    out: Vec<(Outtype, PathBuf)>,
}

fn parse_out(text: &str) -> Result<(Outtype, PathBuf), String> {
    let (outtype, path) = text.split_once('=').ok_or("expected TYPE=PATH")?;
    let outtype = outtype.parse().map_err(|fault: UnknownTarget| fault.to_string())?;
    Ok((outtype, path.into()))
}

impl Args {
    /// Returns the requested outputs; those for the Hub at their local paths.
    pub fn wanted(&self, hub: &mut HubOutputs) -> Result<Vec<OutputOptions>, Failure> {
        if !self.out.is_empty() {
            let named = |(outtype, path): &(Outtype, PathBuf)| {
                Ok(OutputOptions { outtype: outtype.target(), path: Some(hub.local_path(path)?) })
            };
            return self.out.iter().map(named).collect();
        }
        let path = self.output.as_deref().map(|path| hub.local_path(path)).transpose()?;
        let path = path.as_deref();
        if let Some(path) = path.filter(|path| self.outtype.len() > 1 && !path.is_dir()) {
            return Err(Failure::Usage(format!(
                "`{}` is not a directory; several types need a directory, or a path each with --out TYPE=PATH",
                path.display()
            )));
        }
        let output = |outtype: &Outtype| OutputOptions {
            outtype: outtype.target(),
            path: path.map(Path::to_owned),
        };
        Ok(self.outtype.iter().map(output).collect())
    }
}
