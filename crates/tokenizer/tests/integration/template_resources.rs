//! Templates that try to use unbounded time, memory or stack end in an error of the engine, in this
//! process: the steps bound the bytes that a rendering reads and writes, and nesting is limited.

use gguf_tokenizer::template::{Context, Error, Limits, Renderer, TemplateSource};
use serde_json::json;

/// The steps of a check.
const LIMITS: fn() -> Limits = || Limits { steps: 200_000, ..Limits::default() };

fn render(template: &str) -> Result<String, Error> {
    let context = Context::new(json!([{ "role": "user", "content": "Hi" }]));
    let source = TemplateSource::new(template)?;
    Renderer::in_process().with_limits(LIMITS()).render(&source, &context)
}

/// Repeats a statement 100,000 times with a namespace `n`, whose attribute `a` begins as `start`.
fn repeated(start: &str, statement: &str) -> String {
    format!(
        "{{% set n = namespace(a={start}) %}}{{% for i in range(100000) %}}{statement}{{% endfor %}}"
    )
}

/// Repeats `{% set n.a = value %}`.
fn grown(start: &str, value: &str) -> String {
    repeated(start, &format!("{{% set n.a = {value} %}}"))
}

#[test]
fn work_costs_steps() {
    for template in [
        // Texts and lists that double or repeat.
        grown("'x'", "n.a ~ n.a"),
        grown("'x'", "n.a + n.a"),
        grown("'x'", "n.a * 2"),
        grown("'x'", "n.a | replace('x', 'xx')"),
        grown("'x'", "[n.a, n.a] | string"),
        grown("'x'", "[n.a, n.a] | tojson"),
        grown("'x'", "[n.a, n.a] | join(n.a)"),
        grown("'x'", "'%s%s' % (n.a, n.a)"),
        grown("'x'", "'{0}{0}'.format(n.a)"),
        grown("'é'", "(n.a | urlencode) * 2"),
        grown("[1]", "n.a + n.a"),
        grown("[1]", "n.a * 2"),
        grown("(1,)", "n.a + n.a"),
        grown("'<'", "(n.a | e | string) ~ n.a"),
        "{{ 'x' * 10**9 }}".into(),
        "{{ ('x' * 10**7) | list | length }}".into(),
        "{% for c in 'x' * 10**7 %}{% endfor %}".into(),
        "{% for a in range(10**5) %}{% for b in range(10**5) %}{% endfor %}{% endfor %}".into(),
        // Values that share their parts have more parts than memory holds.
        grown("[1]", "[n.a, n.a]") + "{{ n.a }}",
        "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}".into(),
        "{% set n = namespace(a=(1,)) %}{% for i in range(60) %}{% set n.a = (n.a, n.a) %}{% endfor %}{{ {n.a: 1} }}".into(),
        "{% set n = namespace(a=(1,)) %}{% for i in range(60) %}{% set n.a = (n.a, n.a) %}{% endfor %}{{ [n.a] | unique | list }}".into(),
        "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a | pprint }}".into(),
        // Long arguments that are read for each item, and long texts that are read in each step.
        repeated("'ab' * 10**5", "{{ n.a.strip('cdab' * 10**4) | length }}"),
        repeated("'ab' * 10**5", "{{ n.a.startswith((n.a ~ 'c',) * 1000) }}"),
        repeated("'1' * 10**6", "{{ n.a | int }}"),
        repeated("'1' * 10**6", "{{ n.a[-1] }}"),
        repeated("'1' * 10**6", "{{ {n.a: 1} | length }}"),
        repeated("'1' * 10**6", "{{ {}[n.a] }}"),
        repeated("'1' * 10**6", "{{ n.a in {'a': 1} }}"),
        repeated("'1' * 10**6", "{{ n.a is lower }}"),
        "{{ [1] | map(attribute='.' * 10**7) | list }}".into(),
        "{{ [1] | sort(attribute=',' * 10**7) }}".into(),
        "{{ ('a,' * 10**6).split(',') | length }}".into(),
        "{{ ('a ' * 10**6).split() | length }}".into(),
        "{{ ('a\\n' * 10**6).splitlines() | length }}".into(),
        "{{ ([1] * 10**4) | tojson(separators=('x' * 10**5, ':')) }}".into(),
        "{{ ([1] * 10**4) | tojson(indent='x' * 10**5) }}".into(),
        "{{ {'k' * 10**5: [1] * 10**4} | pprint }}".into(),
        "{{ strftime_now('%1000Y' * 10**5) | length }}".into(),
        "{{ ('http://a.b ' * 10**4) | urlize(rel='x' * 10**5) }}".into(),
        "{{ ('a ' * 10**4) | urlize(extra_schemes=['tel:'] * 10**4) }}".into(),
        "{{ ('{0}' * 10**4).format('x' * 10**4) }}".into(),
        "{{ [namespace(**{'x' * 10**5: 1})] * 10**4 }}".into(),
        format!("{{% macro {0}() %}}{{% endmacro %}}{{{{ [{0}] * 10**6 }}}}", "m".repeat(900)),
        "{{ ('x-y ' * 10**5) | wordwrap(3, wrapstring='x' * 10**5) }}".into(),
        "{{ '%999999999d' % 1 }}".into(),
        "{{ '{:>999999999}'.format(1) }}".into(),
        "{{ 'a'.replace('', 'b' * 10**8) }}".into(),
    ] {
        let result = render(&template);
        let is_limit = matches!(&result, Err(Error::Limit { limit, .. }) if limit == "200000 steps");
        let start = &template[..template.floor_char_boundary(150)];
        assert!(is_limit, "{start}: {:?}", result.map(|text| text.len()));
    }
}

#[test]
fn nesting_is_limited() {
    let deep = "maximum recursion depth exceeded";
    let nested = "more than 400 levels of nesting";
    let ifs = "{% if 1 %}".repeat(300) + "{{ f() }}" + &"{% endif %}".repeat(300);
    for (template, cause) in [
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}".to_owned(), deep),
        (format!("{{% macro f() %}}{ifs}{{% endmacro %}}{{{{ f() }}}}"), deep),
        (
            "{% macro f() %}{{ caller }}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}".into(),
            deep,
        ),
        ("{% block a %}{{ self.a() }}{% endblock %}".into(), deep),
        ("{% for a in [1] recursive %}{{ loop([1, 2]) }}{% endfor %}".into(), deep),
        ("{{ 'a' | map('map', *(['map'] * 10000)) | list }}".into(), deep),
        (grown("1", "(n.a,)").replace("100000", "9999") + "{{ n.a }}", deep),
        (grown("1", "(n.a,)").replace("100000", "9999") + "{{ {n.a: 1} }}", deep),
        (
            grown("1", "[n.a]").replace("100000", "9999") + "{{ n.a == [n.a] }}{{ n.a | pprint }}",
            deep,
        ),
        (
            grown("1", "[n.a]").replace("100000", "9999") + "{{ n.a | tojson }}",
            "more than 900 levels",
        ),
        (format!("{{{{ {}1{} }}}}", "(".repeat(9999), ")".repeat(9999)), nested),
        (format!("{{{{ {}1{} }}}}", "[".repeat(9999), "]".repeat(9999)), nested),
        (format!("{{{{ {}1 }}}}", "-".repeat(60_000)), nested),
        (format!("{{{{ {}1 }}}}", "not ".repeat(9999)), nested),
        (format!("{{{{ 1{} }}}}", "+1".repeat(9999)), nested),
        (format!("{{{{ 1{} }}}}", "|e".repeat(9999)), nested),
        (format!("{{{{ 1{} }}}}", ".a".repeat(9999)), nested),
        ("{% if 1 %}".repeat(6000), nested),
    ] {
        let error = render(&template).unwrap_err().to_string();
        let start = &template[..template.floor_char_boundary(80)];
        assert!(error.contains(cause), "{start}: {error}");
    }
}

/// Chains of values of every kind, as deep as the steps allow, are freed without a crash.
#[test]
fn deep_values_are_freed() {
    for value in [
        "[n.a]",
        "(n.a,)",
        "{1: n.a}",
        "{1: n.a}.items()",
        "[n.a] | reverse",
        "[n.a] | map('first')",
        "[(1, n.a)] | groupby(0) | first",
        "namespace(a=n.a)",
        "joiner(n.a)",
        "cycler(n.a)",
        "cycler(n.a).next",
        "[n.a.count]",
    ] {
        let result = render(&grown("[1]", value));
        let is_fine = matches!(&result, Ok(_) | Err(Error::Limit { .. }));
        assert!(is_fine, "{value}: {result:?}");
    }
    for statement in [
        "{% set n.a = [[[[[[[[[[[[[[[[[[[[n.a]]]]]]]]]]]]]]]]]]]] %}",
        "{% for a in [n.a] %}{% set n.a = loop %}{% endfor %}",
        "{% with l = n.a %}{% for a in [1] %}{% set n.a = loop %}{% endfor %}{% endwith %}",
        "{% with l = n.a %}{% macro f() %}{% endmacro %}{% set n.a = f %}{% endwith %}",
    ] {
        let result = render(&repeated("1", statement));
        assert!(matches!(&result, Err(Error::Limit { .. })), "{statement}: {result:?}");
    }
    assert_eq!(
        render("{% set n = namespace() %}{% set n.n = n %}{{ n is defined }}").unwrap(),
        "True"
    );
}

/// The largest and smallest integers, infinities and values without an order.
#[test]
fn extreme_numbers_do_not_panic() {
    let large = "127 bits";
    for (template, expected) in [
        ("{{ (-2)**127 // -1 }}", Err(large)),
        ("{{ (-2)**127 % -1 }}", Err(large)),
        ("{{ -((-2)**127) }}", Err(large)),
        ("{{ (-2)**127 - 1 }}", Err(large)),
        ("{{ 9**99999999 }}", Err(large)),
        ("{{ 2**(2**100) }}", Err(large)),
        ("{{ 10**30 * 10**30 }}", Err(large)),
        ("{{ (-1)**(10**30) }}", Ok("1")),
        ("{{ ((-2)**127) is divisibleby(-1) }}", Ok("True")),
        ("{{ 1 | round((-2)**127) }}", Ok("0")),
        ("{{ (2**126) | round(-38) }}", Ok("100000000000000000000000000000000000000")),
        ("{{ (2**126 + (2**126 - 1)) | round(-38) }}", Err(large)),
        ("{{ range(0, 10, 2)[::10**38] | list }}", Err("Range too big")),
        ("{{ range(9)[::(-2)**127] | list }}", Err("Range too big")),
        ("{{ range(-10**35, 10**35) }}", Err("Range too big")),
        ("{{ [1][-10**30:10**30:-10**30] }}", Ok("[]")),
        ("{{ 'a'[::10**30] }}", Ok("a")),
        ("{{ 'aé'.find('', -(10**30)) }}", Ok("0")),
        ("{{ 'a' | truncate(10**30, leeway=10**30) }}", Ok("a")),
        ("{{ ('%.50d' % ((-2)**127)) | length }}", Ok("51")),
        ("{{ (['nan' | float, 2, 'nan' | float, 0, 1] * 999) | sort | length }}", Ok("4995")),
        ("{{ ('inf' | float) | int }}", Err("infinity")),
        ("{{ 1e999 }}", Ok("inf")),
        ("{{ 2.0**9999 }}", Err("out of range")),
    ] {
        let result = render(template).map_err(|error| error.to_string());
        match (&result, expected) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected, "{template}"),
            (Err(error), Err(cause)) => assert!(error.contains(cause), "{template}: {error}"),
            _ => panic!("{template}: {result:?}"),
        }
    }
}
