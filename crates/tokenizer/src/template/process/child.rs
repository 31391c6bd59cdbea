//! The side that renders, and may die of it.

use std::io::{self, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;

use super::{Frame, Request, write_frame};
use crate::template::bounds::{PANICKED, on_own_stack};
use crate::template::{Error, Limits, Template};

/// Stack of the engine; a template that is too deep for it ends the process. A conversation is
/// some dozens of levels, each of a few hundred bytes.
const STACK: usize = 64 << 20;

/// As [`Renderer::serve`](crate::Renderer::serve).
pub fn serve(mut input: impl Read, output: impl Write + Send) -> io::Result<()> {
    let mut request = Vec::new();
    input.read_to_end(&mut request)?;
    on_own_stack(STACK, || answer(&request, BufWriter::new(output))).map_err(io::Error::other)?
}

fn answer(request: &[u8], mut output: impl Write) -> io::Result<()> {
    // Whoever asks has parsed the conversation before, at no greater depth than fits the stack.
    let mut json = serde_json::Deserializer::from_slice(request);
    json.disable_recursion_limit();
    let Request { limits, source, contexts } = Request::deserialize(&mut json)?;
    impose(&limits)?;
    let template = match contained(|| Template::parse(&source, &limits)) {
        Ok(template) => template,
        Err(error) => return write_frame(output, &Err(error)),
    };
    write_frame(&mut output, &Ok(String::new()))?;
    for context in contexts.iter() {
        let frame: Frame = contained(|| template.render_here(context));
        write_frame(&mut output, &frame)?;
        if let Err(Error::Limit { .. }) = frame {
            break;
        }
    }
    Ok(())
}

/// Makes an error of a panic of the engine.
fn contained<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Error::engine(PANICKED)))
}

/// Limits this process, for good.
#[cfg(unix)]
fn impose(limits: &Limits) -> io::Result<()> {
    use rustix::process::Resource;

    limit(Resource::Core, 0, 0)?;
    // The first of the two sends a signal that says why, the second kills.
    let seconds = limits.cpu.as_secs().max(1);
    limit(Resource::Cpu, seconds, seconds + 1)?;
    #[cfg(target_os = "linux")]
    {
        let memory = limits.memory.saturating_add(private_memory());
        limit(Resource::Data, memory, memory)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn impose(_: &Limits) -> io::Result<()> {
    Ok(())
}

/// Lowers a limit of this process; what the system allows already cannot be raised.
#[cfg(unix)]
fn limit(resource: rustix::process::Resource, soft: u64, hard: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};

    let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let (current, maximum) = (Some(soft.min(allowed)), Some(hard.min(allowed)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// Bytes of memory that this process may write and shares with nobody, which is what Linux limits.
#[cfg(target_os = "linux")]
fn private_memory() -> u64 {
    /// Where the system does not say: the stack of the engine, and as much again.
    const UNKNOWN: u64 = 2 * STACK as u64;
    let data = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?.trim();
        line.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
    };
    std::fs::read_to_string("/proc/self/status").ok().and_then(data).unwrap_or(UNKNOWN)
}
