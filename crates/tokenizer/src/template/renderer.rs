//! Rendering in this process or in a separate one.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::sandbox::{STACK, on_separate_stack};
use super::{Context, Error, Limits, Template, TemplateSource, process};

/// Renders templates, in this process or in a separate one per template.
///
/// A template is untrusted input. In this process its steps and output are limited, which bounds its
/// memory to about a gigabyte and its time to about a minute. Use
/// [`Renderer::process`] for templates of unknown origin.
#[derive(Clone, Debug)]
pub struct Renderer {
    limits: Limits,
    /// Program to start and its arguments; `None` to render in this process.
    command: Option<(PathBuf, Vec<OsString>)>,
}

impl Renderer {
    /// Renders in this process, for trusted templates; only the steps limit memory and time.
    pub fn in_process() -> Self {
        Self { limits: Limits::default(), command: None }
    }

    /// Renders each template in a process of this program. With these arguments the program must
    /// call [`Renderer::serve`] on its standard input and output, and exit.
    ///
    /// On Linux all limits apply. On other Unix systems those on CPU and wall-clock time do,
    /// elsewhere only that on wall-clock time, which also bounds the memory that can be filled.
    pub fn process<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { limits: Limits::default(), command: Some((program.into(), arguments)) }
    }

    /// Child side of [`Renderer::process`]: handles one request, in a process that does nothing
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
        if let Some((program, arguments)) = &self.command {
            return process::run((program, arguments), &self.limits, source, contexts);
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
