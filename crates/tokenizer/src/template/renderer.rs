//! Where templates are rendered.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::bounds::{STACK, on_own_stack};
use super::{Context, Error, Limits, Source, Template, process};

/// Renders templates, in this process or in one of its own for each template.
///
/// A template is a program of somebody else. In this process, its steps and the length of its text
/// are limited, its memory and the work of a single filter are not: a few lines can take all there
/// is, or end the process. Templates of unknown origin want [`Renderer::process`].
#[derive(Clone, Debug)]
pub struct Renderer {
    limits: Limits,
    /// The program to start and its arguments; none to render here.
    command: Option<(PathBuf, Vec<OsString>)>,
}

impl Renderer {
    /// Renders in this process, for templates that are trusted; memory and time are not limited.
    pub fn here() -> Self {
        Self { limits: Limits::default(), command: None }
    }

    /// Renders in a process of this program for each template. With these arguments the program
    /// must call [`Renderer::serve`] on its standard input and output, and end.
    ///
    /// All limits hold on Linux. On other systems of the Unix kind those of the processor and of
    /// the clock do, elsewhere that of the clock alone, so that memory is bounded by what can be
    /// filled in that time.
    pub fn process<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { limits: Limits::default(), command: Some((program.into(), arguments)) }
    }

    /// The other side of [`Renderer::process`]: answers one request, in a process that does nothing
    /// else. Its memory and its time are limited from here on, and it may be killed for going
    /// beyond them; its last words on standard error are nothing to show.
    ///
    /// # Errors
    /// If the request cannot be read, or the answer not be written.
    pub fn serve(input: impl Read, output: impl Write + Send) -> io::Result<()> {
        process::serve(input, output)
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// What a template may take.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Tells whether a template parses.
    ///
    /// # Errors
    /// If it is no valid Jinja, or meets a limit; if the process fails.
    pub fn parse(&self, source: &Source) -> Result<(), Error> {
        self.render_each(source, &[]).map(drop)
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// If the template does not parse, refuses the conversation, fails, or meets a limit; if the
    /// process fails.
    pub fn render(&self, source: &Source, context: &Context) -> Result<String, Error> {
        let mut texts = self.render_each(source, std::slice::from_ref(context))?;
        texts.pop().unwrap_or_else(|| Err(Error::Process("it gave no text".into())))
    }

    /// The text of each conversation, or why there is none; after a limit is met, the rest is left
    /// out. All of them together have the memory and the time that the limits say.
    ///
    /// # Errors
    /// If the template does not parse, or meets a limit in that; if the process fails.
    pub fn render_each(
        &self,
        source: &Source,
        contexts: &[Context],
    ) -> Result<Vec<Result<String, Error>>, Error> {
        if let Some((program, arguments)) = &self.command {
            return process::run((program, arguments), &self.limits, source, contexts);
        }
        let render = || {
            let template = Template::parse(source, &self.limits)?;
            let mut texts = Vec::new();
            for context in contexts {
                texts.push(template.render_here(context));
                if let Some(Err(Error::Limit { .. })) = texts.last() {
                    break;
                }
            }
            Ok(texts)
        };
        on_own_stack(STACK, render).map_err(Error::engine)?
    }
}
