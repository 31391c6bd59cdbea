//! Rendering processes that crash, hang or send invalid responses. The tests of the command line
//! cover processes that work.
#![cfg(unix)]

use std::time::{Duration, Instant};

use gguf_tokenizer::template::{Context, Error, Limits, Renderer, TemplateSource};
use serde_json::json;

fn context() -> Context {
    Context::new(json!([{"role": "user", "content": "Hi"}]))
}

fn source() -> TemplateSource {
    TemplateSource::new("{{ messages[0].content }}").unwrap()
}

/// Returns the error of a process that runs this shell script.
fn error_of(script: &str) -> Error {
    Renderer::process("sh", ["-c", script]).render(&source(), &context()).unwrap_err()
}

#[test]
fn killed_processes_exceeded_a_limit() {
    for signal in ["KILL", "ABRT", "SEGV"] {
        let error = error_of(&format!("cat > /dev/null; kill -{signal} $$"));
        assert_eq!(error.to_string(), "the template needs more than 256 MB of memory");
        assert!(matches!(error, Error::Limit { .. }));
    }
    let error = error_of("cat > /dev/null; kill -XCPU $$");
    assert_eq!(error.to_string(), "the template needs more than 2 s of CPU time");
    // Killed within a frame, and after the first.
    for beginning in [r#"printf '{"Ok":0}\n{"O'"#, r#"printf '{"Ok":0}\n{"Ok":9}\nH'"#] {
        assert!(matches!(error_of(&format!("{beginning}; kill -KILL $$")), Error::Limit { .. }));
    }
}

#[test]
fn hanging_processes_are_killed() {
    let limits = Limits { time: Duration::from_millis(200), ..Limits::default() };
    for script in ["sleep 60", "exec >&-; sleep 60", r#"printf '{"Ok":0}\n'; exec sleep 60"#] {
        let started = Instant::now();
        let renderer = Renderer::process("sh", ["-c", script]).with_limits(limits);
        let error = renderer.render(&source(), &context()).unwrap_err();
        assert_eq!(error.to_string(), "the template needs more than 0.2 s", "{script}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

/// The template is not at fault, so this is not a finding.
#[test]
fn invalid_responses_are_reported() {
    for (script, cause) in [
        ("exit 3", "it ended without a response (exit status: 3)"),
        ("kill -TERM $$", "it ended without a response (signal: 15 (SIGTERM))"),
        ("cat /dev/zero", "it sent an invalid response: expected value"),
        ("yes", "it sent an invalid response: expected value"),
        (r#"printf '{"Ok":0}\n{"Ok":99999999999}\n'; cat"#, "it sent an invalid response: "),
        (r#"printf '{"Ok":0}\n{"Ok":1}\n\377'; cat"#, "it sent an invalid response: invalid utf-8"),
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
fn in_process_rendering_stops_at_a_limit() {
    let limits = Limits { steps: 1000, ..Limits::default() };
    let renderer = Renderer::in_process().with_limits(limits);
    let source = TemplateSource::new("{% for a in range(n) %}{{ a }}{% endfor %}").unwrap();
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
    assert!(matches!(
        renderer.parse(&TemplateSource::new("{% if %}").unwrap()),
        Err(Error::Syntax { .. })
    ));
    assert!(renderer.parse(&source).is_ok());
}
