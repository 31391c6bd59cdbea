//! Which files a conversion is to make.

use std::path::{Path, PathBuf};

use gguf_kit::convert::OutputOptions;
use gguf_quantize::recipe::UnknownTarget;

use crate::failure::Failure;
use crate::target::Outtype;

/// Outputs, all of one pass.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct Args {
    /// File to write, or directory; without it, a name by the naming convention, in the source
    /// directory, or here if the source is not on this machine.
    #[arg(short, long, visible_alias = "outfile", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Type of the output: a mix such as q4_k_m, a float type, or auto for what the checkpoint
    /// has, in 16 bits where GGUF cannot hold it as it is (--help lists all). Several with commas
    /// between them make a file each, named by type.
    #[arg(long, default_value = "auto", value_name = "TYPE", value_delimiter = ',')]
    outtype: Vec<Outtype>,
    /// An output of this type by this name; may be repeated.
    #[arg(long, value_name = "TYPE=PATH", conflicts_with_all = ["output", "outtype"], value_parser = parse_out)]
    out: Vec<(Outtype, PathBuf)>,
}

fn parse_out(text: &str) -> Result<(Outtype, PathBuf), String> {
    let (outtype, path) = text.split_once('=').ok_or("expected TYPE=PATH")?;
    let outtype = outtype.parse().map_err(|fault: UnknownTarget| fault.to_string())?;
    Ok((outtype, path.into()))
}

impl Args {
    /// The outputs that are asked for.
    pub fn wanted(&self) -> Result<Vec<OutputOptions>, Failure> {
        if !self.out.is_empty() {
            let named = |(outtype, path): &(Outtype, PathBuf)| OutputOptions {
                outtype: outtype.target(),
                path: Some(path.clone()),
            };
            return Ok(self.out.iter().map(named).collect());
        }
        let path = self.output.as_deref();
        if let Some(path) = path.filter(|path| self.outtype.len() > 1 && !path.is_dir()) {
            return Err(Failure::Usage(format!(
                "`{}` is no directory: several types need one, or a name each with --out TYPE=PATH",
                path.display()
            )));
        }
        let of_type = |outtype: &Outtype| OutputOptions {
            outtype: outtype.target(),
            path: path.map(Path::to_owned),
        };
        Ok(self.outtype.iter().map(of_type).collect())
    }
}
