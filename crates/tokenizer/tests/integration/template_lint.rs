//! Findings about chat templates, and malicious templates.

use std::time::{Duration, Instant};

use gguf::{Array, Finding, Gguf, Metadata, Severity};
use gguf_store::LocalFile;
use gguf_tokenizer::template::{Context, Error, Linter, Renderer, Template};
use serde_json::json;

/// Returns the codes of the findings about one template.
fn codes(template: &str) -> Vec<&'static str> {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(["<s>", "</s>"]));
    metadata.set("tokenizer.ggml.bos_token_id", 0u32);
    metadata.set("tokenizer.ggml.eos_token_id", 1u32);
    metadata.set("tokenizer.chat_template", template);
    lint(&metadata).iter().map(|finding| finding.code).collect()
}

/// Returns the findings about the templates alone; `template_prompts` and `template_llama_cpp` test those about prompts.
fn lint(metadata: &Metadata) -> Vec<Finding> {
    const PROMPTS: [&str; 5] = [
        "template-generation-prompt",
        "template-end",
        "template-token-missing",
        "template-conversation",
        "template-llama-cpp",
    ];
    let mut findings = Linter::new(Renderer::in_process()).lint(metadata).unwrap();
    findings.retain(|finding| !PROMPTS.contains(&finding.code));
    findings
}

fn render(template: &str) -> Result<String, Error> {
    Template::new(template)?.render(&Context::new(json!([{"role": "user", "content": "Hi"}])))
}

#[test]
fn valid_templates_have_no_findings() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/templates");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        // This one exercises the language and ignores the conversation.
        if path.file_stem().unwrap() != "python" {
            assert_eq!(codes(&std::fs::read_to_string(&path).unwrap()), [""; 0], "{path:?}");
        }
    }
    assert!(lint(&Metadata::new()).is_empty());
}

#[test]
fn each_fault_has_a_code() {
    for (template, code) in [
        ("{% if %}", "template-syntax"),
        ("{% for m in messages %}{{ m.content }}", "template-syntax"),
        ("{% frobnicate %}", "template-syntax"),
        ("{{ raise_exception('never') }}", "template-render"),
        ("{{ messages[0].content | frobnicate }}", "template-render"),
        ("{{ messages[0].content + 1 }}", "template-render"),
        ("{% include 'other' %}", "template-render"),
        ("Hello.", "template-ignores-messages"),
        ("", "template-ignores-messages"),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "template-ignores-messages"),
    ] {
        assert_eq!(codes(template), [code], "{template}");
    }
}

#[test]
fn templates_may_reject_roles() {
    let only_system = "{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}\
                       {% endif %}{% for m in messages %}{{ m.content }}{% endfor %}";
    assert_eq!(codes(only_system), [""; 0]);
    let parts = "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}\
                 {% endfor %}";
    assert_eq!(codes(parts), [""; 0]);
}

#[test]
fn findings_have_key_line_and_reason() {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.chat_template", "{{ messages }}\n{{ messages[0].content }}");
    metadata.set("tokenizer.chat_template.tool_use", "a\nb\n{{ raise_exception('no ' ~ 1) }}");
    metadata.set("tokenizer.chat_templates", Array::from_strings(["tool_use", "rag"]));
    let findings = lint(&metadata);
    assert!(findings.iter().all(|finding| finding.severity == Severity::Warning));
    let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "key `tokenizer.chat_templates`: lists the template \"rag\", which is not in the file; \
             add the template, or remove its name",
            "key `tokenizer.chat_template.tool_use`: fails on every sample conversation: line 3: the \
                         template refuses the conversation: no 1; use the template of the original model",
        ]
    );
}

/// A limit exceeded by one sample is a finding even if simpler samples render.
#[test]
fn exceeded_limits_are_reported() {
    let mut metadata = Metadata::new();
    let endless = "{{ messages[0].content }}{% if tools %}{% for a in range(999) %}\
                   {% for b in range(999) %}{% endfor %}{% endfor %}{% endif %}";
    metadata.set("tokenizer.chat_template", endless);
    metadata.set("tokenizer.chat_template.long", "x".repeat(1 << 20));
    metadata.set(
        "tokenizer.chat_template.text",
        "{% for a in range(99) %}{{ a * 'a' * 999 }}x\
                                                  {% endfor %}{{ 'x' * 9999999 }}",
    );
    let findings = lint(&metadata);
    let texts: Vec<_> = findings.iter().map(ToString::to_string).collect();
    let help = "it may hang or exhaust programs that render it; use the template of the original \
                    model";
    let text = |key: &str, limit: &str| {
        format!("key `tokenizer.{key}`: needs more than {limit} to render; {help}")
    };
    assert_eq!(
        texts,
        [
            text("chat_template", "200000 steps"),
            text("chat_template.long", "64 KB of source"),
            text("chat_template.text", "1 MB of text"),
        ]
    );
    assert!(findings.iter().all(|finding| finding.code == "template-limit"));
    assert!(findings.iter().all(|finding| finding.severity == Severity::Warning));
}

#[test]
fn templates_share_a_time_limit() {
    let mut metadata = Metadata::new();
    for name in ["a", "b", "c", "d"] {
        let slow = "{% for a in range(99) %}{% set x = range(9999) | sum %}{% endfor %}";
        metadata.set(format!("tokenizer.chat_template.{name}"), slow);
    }
    let mut linter = Linter::new(Renderer::in_process()).with_time_limit(Duration::from_millis(1));
    let findings = linter.lint(&metadata).unwrap();
    assert_eq!(
        findings.last().unwrap().to_string(),
        "key `tokenizer.chat_template.b`: 3 templates from this one on were not rendered; the \
                 templates before it used up the time limit"
    );
    // The next file of the same run.
    let findings = linter.lint(&metadata).unwrap();
    assert_eq!(findings.len(), 1);
    assert!(findings[0].to_string().contains("4 templates from this one on"));
}

/// Comparing a list of names with all keys one by one would take minutes.
#[test]
fn many_names_and_keys_are_fast() {
    let mut metadata = Metadata::new();
    let names: Vec<_> = (0..600_000).map(|i| format!("a{i}")).collect();
    metadata.set("tokenizer.chat_templates", Array::from_strings(&names));
    for i in 0..30_000 {
        metadata.push(format!("tokenizer.key.{i}"), 1u32);
    }
    let started = Instant::now();
    assert_eq!(lint(&metadata).len(), names.len());
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn named_templates() {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.chat_template.short", "{{ messages[0].content }}");
    metadata.set("tokenizer.chat_template.number", 7u32);
    assert!(Template::from_metadata(&metadata, None).unwrap().is_none());
    assert!(Template::from_metadata(&metadata, Some("long")).unwrap().is_none());
    let template = Template::from_metadata(&metadata, Some("short")).unwrap().unwrap();
    let context = Context::new(json!([{"role": "user", "content": "Hi"}]));
    assert_eq!(template.render(&context).unwrap(), "Hi");
    let error = Template::from_metadata(&metadata, Some("number")).unwrap_err();
    assert_eq!(error.to_string(), "key `tokenizer.chat_template.number` is not a string in UTF-8");
}

#[test]
fn endless_templates_are_stopped() {
    let endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% set c = a %}\
                   {% endfor %}{% endfor %}";
    assert!(matches!(render(endless), Err(Error::Limit { line: 1, .. })));
    assert_eq!(codes(endless), ["template-limit"]);
    let recursion = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    assert!(matches!(render(recursion), Err(Error::Render { .. })));
    let text = "{% for a in range(9) %}{{ 'x' * 9999999 }}{% endfor %}";
    assert!(matches!(render(text), Err(Error::Limit { .. })));
}

/// The engine recurses here, or allocates what a number says; it must neither overflow the stack
/// nor abort.
#[test]
fn deep_templates_do_not_crash() {
    for operator in ["+1", "|e", ".x", "**1", " if x else 1", "[0]", "()"] {
        let chain = format!("{{{{ 1{} }}}}", operator.repeat(60_000 / operator.len()));
        let _ = render(&chain);
    }
    for prefix in ["(", "[", "-", "not ", "{% if 1 %}", "{% for a in [1] %}"] {
        let _ = render(&format!("{{{{ {}1 }}}}", prefix.repeat(60_000 / prefix.len())));
    }
    let elifs = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(5000));
    assert_eq!(render(&elifs).unwrap(), "");
    let nested = "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}\
                  {% endfor %}";
    assert_eq!(render(nested).unwrap(), "");
    for call in ["{{ ns.x | tojson }}", "{{ ns.x == [ns.x] }}", "{{ ns.x }}"] {
        let _ = render(&format!("{nested}{call}"));
    }
    for filter in [
        "[1] | batch(9999999999, 1)",
        "[1] | slice(9999999999, 1)",
        "'a\nb' | indent(999999999999)",
        "'a\nb' | indent(width=999999999999)",
        "'%999999999999d' | format(1)",
        "'%*d' | format(999999999999, 1)",
        "'{:999999999999}'.format(1)",
        "range(99999999999) | list",
        "'x' * 99999999999",
        "[1] * 99999999999",
    ] {
        let template = format!("{{{{ {filter} }}}}");
        let result = render(&template);
        let is_refused = matches!(result, Err(Error::Render { .. } | Error::Limit { .. }));
        assert!(is_refused, "{filter}");
    }
    assert!(matches!(render(&"x".repeat(1 << 20)), Err(Error::Limit { .. })));
}

#[test]
fn llama_cpp_vocabularies_have_no_findings() {
    let Some(folder) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder of reference data");
        return;
    };
    let mut templates = 0;
    for file in std::fs::read_dir(std::path::Path::new(&folder).join("vocab")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gguf") {
            continue;
        }
        let map = LocalFile::open(&path).unwrap();
        let gguf = Gguf::read(map.mapped()).unwrap();
        let mut findings = Linter::new(Renderer::in_process()).lint(gguf.metadata()).unwrap();
        findings.retain(|finding| finding.severity != Severity::Note);
        assert_eq!(findings, [], "{path:?}");
        templates += u32::from(gguf.metadata().get("tokenizer.chat_template").is_some());
    }
    assert!(templates > 0);
}
