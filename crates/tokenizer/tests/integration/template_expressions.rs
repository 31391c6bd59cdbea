//! Templates of one line, over every filter, test, function, method and operator, render as with
//! jinja2 and the settings of transformers.
//!
//! `data/expressions.py` printed the expected texts.

use std::path::Path;
use std::time::{Duration, SystemTime};

use gguf_tokenizer::template::{Context, Error, Limits, Renderer, TemplateSource};
use serde_json::{Value as Json, json};

fn context(variables: &Json) -> Context {
    let mut context = Context::new(Json::Null);
    // 2026-02-03 14:05:09
    context.now = SystemTime::UNIX_EPOCH + Duration::from_secs(1770127509);
    context.add_generation_prompt = false;
    context.variables = variables.as_object().unwrap().clone();
    context
}

/// Where jinja2 fails, the template fails here too.
#[test]
fn expressions_match_jinja2() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/expressions.json");
    let data: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let context = context(&data["variables"]);
    let renderer = Renderer::in_process();
    let mut differences = Vec::new();
    for (template, expected) in data["templates"].as_object().unwrap() {
        let text = TemplateSource::new(template)
            .and_then(|source| renderer.render(&source, &context))
            .map_err(|error| error.to_string());
        if text.as_deref().ok() != expected.as_str() {
            differences.push(format!("{template}\n  expected {expected}\n  {text:?}"));
        }
    }
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
}

/// Widths, counts and repetitions cost steps before memory is allocated.
#[test]
fn large_results_exceed_the_steps() {
    let renderer =
        Renderer::in_process().with_limits(Limits { steps: 10_000, ..Limits::default() });
    for template in [
        "{{ 'a'.center(10**9) }}",
        "{{ 'a'.ljust(10**18) }}",
        "{{ 'a'.rjust(10**30, 'é') }}",
        "{{ '7'.zfill(10**9) }}",
        "{{ '\\t'.expandtabs(10**9) }}",
        "{{ 'a' | center(10**9) }}",
        "{{ 'a' | indent(10**9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*s' % (10**9, 'a') }}",
        "{{ '%0*d' % (10**9, 1) }}",
        "{{ '%1000000000s' | format('a') }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:>1000000000}'.format('a') }}",
        "{{ '{:01000000000,}'.format(1) }}",
        "{{ '{:{}}'.format(1.5, 10**9) }}",
        "{{ 'ab' * 10**9 }}",
        "{{ 10**18 * 'ab' }}",
        "{{ [1] * 10**9 }}",
        "{{ (1,) * 10**18 }}",
        "{{ [1] | batch(10**9, 0) | list }}",
        "{{ [1] | slice(10**9) | list }}",
        "{{ [1] | tojson(indent=10**9) }}",
        "{{ ('a' * 1000).replace('', 'b' * 10000) }}",
        "{{ ('a' * 1000) | replace('a', 'b' * 10000) }}",
        "{{ ('b' * 10000).join('a' * 1000) }}",
        "{{ (['a'] * 1000) | join('b' * 10000) }}",
    ] {
        let source = TemplateSource::new(template).unwrap();
        let error = renderer.render(&source, &context(&json!({}))).unwrap_err();
        let is_limit = matches!(&error, Error::Limit { limit, .. } if limit == "10000 steps");
        assert!(is_limit, "{template}: {error}");
    }
}

/// Refused for another reason than the steps.
#[test]
fn extreme_numbers_are_refused() {
    let renderer = Renderer::in_process();
    for (template, cause) in [
        ("{{ '%.1000000000f' % 1.5 }}", "the precision exceeds 10000"),
        ("{{ '%.1000000000d' % 1 }}", "the precision exceeds 10000"),
        ("{{ '{:.1000000000f}'.format(1.5) }}", "the precision exceeds 10000"),
        ("{{ '%99999999999d' % 1 }}", "width too big"),
        ("{{ range(10**9) }}", "Range too big"),
        ("{{ 10**99 }}", "more than 127 bits"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "maximum recursion depth"),
        ("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}", "maximum recursion depth"),
        ("{% set n = namespace() %}{% set n.n = n %}{{ n }}", "maximum recursion depth"),
    ] {
        let source = TemplateSource::new(template).unwrap();
        let error = renderer.render(&source, &context(&json!({}))).unwrap_err().to_string();
        assert!(error.contains(cause), "{template}: {error}");
    }
    for nested in ["(", "[", "-", "not ", "{% if 1 %}"] {
        let source = TemplateSource::new(&format!("{{{{ {} }}}}", nested.repeat(5000))).unwrap();
        assert!(matches!(renderer.parse(&source), Err(Error::Syntax { .. })), "{nested}");
    }
}
