//! Rendering in another process: what becomes of processes that do not answer. That good ones do
//! is shown where the program is, in the tests of the command line.
#![cfg(unix)]

use std::time::{Duration, Instant};

use gguf_tokenizer::template::{Context, Error, Limits, Renderer, Source};
use serde_json::json;

fn context() -> Context {
    Context::new(json!([{"role": "user", "content": "Hi"}]))
}

fn source() -> Source {
    Source::new("{{ messages[0].content }}").unwrap()
}

/// The error that a process of this shell script gives.
fn error_of(script: &str) -> Error {
    Renderer::process("sh", ["-c", script]).render(&source(), &context()).unwrap_err()
}

#[test]
fn a_process_that_dies_has_met_a_limit() {
    for signal in ["KILL", "ABRT", "SEGV"] {
        let error = error_of(&format!("cat > /dev/null; kill -{signal} $$"));
        assert_eq!(error.to_string(), "the template needs more than 256 MB of memory");
        assert!(matches!(error, Error::Limit { .. }));
    }
    let error = error_of("cat > /dev/null; kill -XCPU $$");
    assert_eq!(error.to_string(), "the template needs more than 2 s of the processor");
    // In the middle of a frame, and after the first.
    for beginning in [r#"printf '{"Ok":0}\n{"O'"#, r#"printf '{"Ok":0}\n{"Ok":9}\nH'"#] {
        assert!(matches!(error_of(&format!("{beginning}; kill -KILL $$")), Error::Limit { .. }));
    }
}

#[test]
fn a_process_that_hangs_is_ended() {
    let limits = Limits { time: Duration::from_millis(200), ..Limits::default() };
    for script in ["sleep 60", "exec >&-; sleep 60", r#"printf '{"Ok":0}\n'; exec sleep 60"#] {
        let started = Instant::now();
        let renderer = Renderer::process("sh", ["-c", script]).with_limits(limits);
        let error = renderer.render(&source(), &context()).unwrap_err();
        assert_eq!(error.to_string(), "the template needs more than 0.2 s", "{script}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

/// The template is not to blame, and no finding is made of it.
#[test]
fn a_program_that_renders_nothing_is_told() {
    for (script, cause) in [
        ("exit 3", "it ended without an answer (exit status: 3)"),
        ("kill -TERM $$", "it ended without an answer (signal: 15 (SIGTERM))"),
        ("cat /dev/zero", "it answers in another way: expected value"),
        ("yes", "it answers in another way: expected value"),
        (r#"printf '{"Ok":0}\n{"Ok":99999999999}\n'; cat"#, "it answers in another way: "),
        (r#"printf '{"Ok":0}\n{"Ok":1}\n\377'; cat"#, "it answers in another way: invalid utf-8"),
    ] {
        let error = error_of(script).to_string();
        let expected = format!("the process that renders chat templates: {cause}");
        assert!(error.starts_with(&expected), "{error}");
    }
    let renderer = Renderer::process("/nowhere/gguf", [""; 0]);
    let error = renderer.render(&source(), &context()).unwrap_err().to_string();
    assert!(error.contains("cannot start /nowhere/gguf: "), "{error}");
}

#[test]
fn in_this_process_results_end_after_a_limit() {
    let limits = Limits { steps: 1000, ..Limits::default() };
    let renderer = Renderer::here().with_limits(limits);
    let source = Source::new("{% for a in range(n) %}{{ a }}{% endfor %}").unwrap();
    let with = |n: u64| {
        let mut context = context();
        context.variables.insert("n".into(), n.into());
        context
    };
    let texts = renderer.render_each(&source, &[with(2), with(1000), with(3)]).unwrap();
    assert_eq!(texts.len(), 2);
    assert_eq!(texts[0].as_ref().unwrap(), "01");
    let error = texts[1].as_ref().unwrap_err().to_string();
    assert_eq!(error, "line 1: the template needs more than 1000 steps");
    assert!(matches!(renderer.parse(&Source::new("{% if %}").unwrap()), Err(Error::Syntax { .. })));
    assert!(renderer.parse(&source).is_ok());
}
