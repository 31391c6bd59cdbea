//! Child process: renders, and may be killed.

use std::io::{self, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;

use super::{Frame, Request, write_frame};
use crate::template::sandbox::{PANICKED, on_separate_stack};
use crate::template::{Error, Limits, Template};

/// Stack of the engine; exceeding it kills the process. A conversation has some dozens of levels,
/// each of a few hundred bytes.
const STACK: usize = 64 << 20;

/// As [`Renderer::serve`](crate::Renderer::serve).
pub fn serve(mut input: impl Read, output: impl Write + Send) -> io::Result<()> {
    let mut request = Vec::new();
    input.read_to_end(&mut request)?;
    on_separate_stack(STACK, || respond(&request, BufWriter::new(output)))
        .map_err(io::Error::other)?
}

fn respond(request: &[u8], mut output: impl Write) -> io::Result<()> {
    // The parent has parsed the conversation before, at a depth that fits the stack.
    let mut json = serde_json::Deserializer::from_slice(request);
    json.disable_recursion_limit();
    let Request { limits, source, contexts } = Request::deserialize(&mut json)?;
    set_limits(&limits)?;
    let template = match catch_panic(|| Template::parse(&source, &limits)) {
        Ok(template) => template,
        Err(error) => return write_frame(output, &Err(error)),
    };
    write_frame(&mut output, &Ok(String::new()))?;
    for context in contexts.iter() {
        let frame: Frame = catch_panic(|| template.render_on_stack(context));
        write_frame(&mut output, &frame)?;
        if let Err(Error::Limit { .. }) = frame {
            break;
        }
    }
    Ok(())
}

/// Converts a panic of the engine into an error.
fn catch_panic<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(Error::engine(PANICKED)))
}

/// Sets resource limits of this process, permanently.
#[cfg(unix)]
fn set_limits(limits: &Limits) -> io::Result<()> {
    use rustix::process::Resource;

    limit(Resource::Core, 0, 0)?;
    // The soft limit sends SIGXCPU, which names the reason; the hard limit kills.
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
fn set_limits(_: &Limits) -> io::Result<()> {
    Ok(())
}

/// Lowers a resource limit of this process; it cannot be raised above the present one.
#[cfg(unix)]
fn limit(resource: rustix::process::Resource, soft: u64, hard: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};

    let allowed = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let (current, maximum) = (Some(soft.min(allowed)), Some(hard.min(allowed)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// Returns the private writable memory of this process, which Linux limits.
#[cfg(target_os = "linux")]
fn private_memory() -> u64 {
    /// Estimate if the system does not report it: twice the stack of the engine.
    const UNKNOWN: u64 = 2 * STACK as u64;
    let data = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?.trim();
        line.strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
    };
    std::fs::read_to_string("/proc/self/status").ok().and_then(data).unwrap_or(UNKNOWN)
}
