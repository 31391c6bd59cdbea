//! Rendering in this process, in a separate one, or in a separate instance of a WebAssembly module.

#[cfg(not(target_family = "wasm"))]
use std::ffi::OsString;
use std::io::{self, Read, Write};
#[cfg(not(target_family = "wasm"))]
use std::path::PathBuf;

use super::sandbox::{STACK, on_separate_stack};
use super::{Context, Error, Limits, Template, TemplateSource, process};

/// Renders templates, in this process or in a separate sandbox per template.
///
/// A template is untrusted input. In this process its steps and output are limited, which bounds its
/// memory to about a gigabyte and its time to about a minute. Use
/// [`Renderer::process`] for templates of unknown origin, and [`Renderer::instance`] in WebAssembly.
#[derive(Clone, Debug)]
pub struct Renderer {
    limits: Limits,
    place: Place,
}

/// Place where templates are rendered.
#[derive(Clone, Debug)]
enum Place {
    /// This process.
    Here,
    /// A process of this program with these arguments.
    #[cfg(not(target_family = "wasm"))]
    Process(PathBuf, Vec<OsString>),
    /// An instance that this function calls.
    Instance(process::Call),
}

impl Renderer {
    /// Renders in this process, for trusted templates; only the steps limit memory and time.
    pub fn in_process() -> Self {
        Self { limits: Limits::default(), place: Place::Here }
    }

    /// Renders each template in a process of this program. With these arguments the program must
    /// call [`Renderer::serve`] on its standard input and output, and exit.
    ///
    /// On Linux all limits apply. On other Unix systems those on CPU and wall-clock time do,
    /// elsewhere only that on wall-clock time, which also bounds the memory that can be filled.
    #[cfg(not(target_family = "wasm"))]
    pub fn process<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { limits: Limits::default(), place: Place::Process(program.into(), arguments) }
    }

    /// Renders each template by this function, which passes a request to [`Renderer::serve`] in a new instance of
    /// a WebAssembly module and returns the response, or `None` if the instance failed: its stack or its memory was
    /// exceeded, and nothing of it is used again.
    ///
    /// The engine limits steps and output. Neither CPU nor wall-clock time is limited otherwise.
    pub fn instance(call: fn(&[u8]) -> Option<Vec<u8>>) -> Self {
        Self { limits: Limits::default(), place: Place::Instance(call) }
    }

    /// Child side of [`Renderer::process`] and [`Renderer::instance`]: handles one request, in a process that does nothing
    /// else. Sets resource limits on the process, which may be killed for exceeding them; its error
    /// output should not be shown.
    ///
    /// # Errors
    /// If the request cannot be read, or the response not be written.
    pub fn serve(input: impl Read, output: impl Write + Send) -> io::Result<()> {
        process::serve(input, output)
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the limits.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Checks whether a template parses.
    ///
    /// # Errors
    /// If it is not valid Jinja, exceeds a limit, or the process fails.
    pub fn parse(&self, source: &TemplateSource) -> Result<(), Error> {
        self.render_each(source, &[]).map(drop)
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// If the template does not parse, rejects the conversation, fails, or exceeds a limit; if the
    /// process fails.
    pub fn render(&self, source: &TemplateSource, context: &Context) -> Result<String, Error> {
        let mut texts = self.render_each(source, std::slice::from_ref(context))?;
        texts.pop().unwrap_or_else(|| Err(Error::Process("it sent no text".into())))
    }

    /// Renders each conversation and returns the texts or errors; after a limit is exceeded, the
    /// rest is skipped. All of them share the limits on memory and time.
    ///
    /// # Errors
    /// If the template does not parse, or exceeds a limit while parsing; if the process fails.
    pub fn render_each(
        &self,
        source: &TemplateSource,
        contexts: &[Context],
    ) -> Result<Vec<Result<String, Error>>, Error> {
        match &self.place {
            Place::Here => {}
            #[cfg(not(target_family = "wasm"))]
            Place::Process(program, arguments) => {
                return process::run((program, arguments), &self.limits, source, contexts);
            }
            Place::Instance(call) => {
                return process::run_in_instance(*call, &self.limits, source, contexts);
            }
        }
        let render = || {
            let template = Template::parse(source, &self.limits)?;
            let mut texts = Vec::new();
            for context in contexts {
                texts.push(template.render_on_stack(context));
                if let Some(Err(Error::Limit { .. })) = texts.last() {
                    break;
                }
            }
            Ok(texts)
        };
        on_separate_stack(STACK, render).map_err(Error::engine)?
    }
}
