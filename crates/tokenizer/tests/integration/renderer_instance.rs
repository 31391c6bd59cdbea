//! Rendering in another instance, which here is a function of this process.

use std::time::Duration;

use gguf_tokenizer::template::{Context, Error, Limits, Linter, Renderer, TemplateSource};
use serde_json::json;

fn serve(request: &[u8]) -> Option<Vec<u8>> {
    let mut response = Vec::new();
    Renderer::serve(request, &mut response).ok()?;
    Some(response)
}

fn context() -> Context {
    Context::new(json!([{"role": "user", "content": "Hi"}]))
}

fn render(renderer: &Renderer, template: &str) -> Result<String, Error> {
    renderer.render(&TemplateSource::new(template).unwrap(), &context())
}

#[test]
fn prompts_and_errors_are_those_of_this_process() {
    // Serving a request limits this process for good, far above what the other tests take.
    let (memory, cpu) = (1 << 40, Duration::from_secs(1 << 30));
    let limits = Limits { steps: 1000, memory, cpu, ..Limits::default() };
    let there = Renderer::instance(serve).with_limits(limits);
    let here = Renderer::in_process().with_limits(limits);
    for template in [
        "{{ messages[0].content }}!",
        "{% if %}",
        "{{ raise_exception('no') }}",
        "{{ 1 + 'a' }}",
        "{% for a in range(2000) %}{{ a }}{% endfor %}",
    ] {
        let text = |renderer| render(renderer, template).map_err(|error| error.to_string());
        assert_eq!(text(&there), text(&here), "{template}");
    }
    let source = TemplateSource::new("{% for a in range(n) %}{{ a }}{% endfor %}").unwrap();
    let contexts = [2u64, 5000, 3].map(|n| {
        let mut context = context();
        context.variables.insert("n".into(), n.into());
        context
    });
    let texts = there.render_each(&source, &contexts).unwrap();
    assert!(
        matches!(&texts[..], [Ok(text), Err(Error::Limit { .. })] if text == "01"),
        "{texts:?}"
    );
}

#[test]
fn failed_instances_exceeded_a_limit() {
    let renderer = Renderer::instance(|_| None);
    let error = render(&renderer, "a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the template needs more than the stack or memory of its sandbox"
    );
    let mut metadata = gguf::Metadata::new();
    metadata.set("tokenizer.chat_template", "{{ messages[0].content }}");
    let findings = Linter::new(renderer).lint(&metadata).unwrap();
    assert!(findings.iter().any(|finding| finding.code == "template-limit"), "{findings:?}");
}

/// The template is not at fault, so this is not a finding.
#[test]
fn invalid_responses_are_reported() {
    for call in
        [|_: &[u8]| Some(Vec::new()), |_: &[u8]| Some(b"{\"Ok\":0}\n{\"Ok\":9}\nH".to_vec())]
    {
        let error = render(&Renderer::instance(call), "a").unwrap_err();
        assert!(matches!(error, Error::Process(_)), "{error}");
    }
}
