//! Chat templates as llama.cpp renders them.

use std::path::Path;

use gguf::{Array, Metadata, Severity};
use gguf_tokenizer::template::{Context, Engine, Error, Limits, Linter, Renderer, TemplateSource};
use serde_json::{Map, Value as Json, json};

/// Returns the metadata of a model with this template.
fn model(template: &str) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.model", "gpt2");
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(["<unk>", "<s>", "</s>"]));
    metadata.set("tokenizer.ggml.bos_token_id", 1u32);
    metadata.set("tokenizer.ggml.eos_token_id", 2u32);
    metadata.set("tokenizer.chat_template", template);
    metadata
}

fn render_with(metadata: &Metadata, engine: Engine, context: &Context) -> Result<String, Error> {
    let source = TemplateSource::from_metadata(metadata, None)?.unwrap();
    Renderer::in_process().render(&source.with_engine(engine, metadata), context)
}

/// Renders a conversation with llama.cpp's engine.
fn render(template: &str, messages: Json) -> Result<String, Error> {
    render_with(&model(template), Engine::LlamaCpp, &Context::new(messages))
}

fn user(text: &str) -> Json {
    json!([{"role": "user", "content": text}])
}

/// Texts that llama.cpp rendered; `interop/templates/llama_cpp.py --write` stored them. Null: it refuses the template.
#[test]
fn lines_match_llama_cpp() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/llama_cpp.json");
    let data: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut context = Context::new(Json::Null);
    context.variables = data["variables"].as_object().unwrap().clone();
    let mut differences = Vec::new();
    let templates = data["templates"].as_object().unwrap();
    for (template, expected) in templates {
        let text = render_with(&model(template), Engine::LlamaCpp, &context);
        if text.as_deref().ok() != expected.as_str() {
            differences.push(format!("{template}\n  expected {expected}\n  {text:?}"));
        }
    }
    assert!(templates.len() > 2000);
    // It derives no grammar for answers from this template, and refuses it for that reason.
    differences.retain(|difference| !difference.starts_with("{{ messages | tojson }}\n"));
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
}

/// A prompt, or the reason why the engine refuses the template.
type Prompt = Result<&'static str, &'static str>;

/// The differences that `docs/chat-templates.md` lists: template, prompt of jinja2, prompt of llama.cpp.
const DIFFERENCES: &[(&str, Prompt, Prompt)] = &[
    // Syntax.
    ("x {% if true %}a{% endif %}", Ok("x a"), Ok("a")),
    ("{% raw %}{{ x }}{% endraw %}", Ok("{{ x }}"), Err("line 1: unknown statement: raw")),
    ("{{ 7 // 2 }}", Ok("3"), Err("line 1: unexpected `/`")),
    ("{{ 1 if none else -1 }}", Ok("-1"), Err("line 1: unexpected `-`")),
    ("{{ '\\d' }}", Ok("\\d"), Err("line 1: unknown escape character \\d")),
    ("{{ [1 2] }}", Err("line 1: unexpected '2', expected ','"), Ok("12")),
    (
        "{{ 3 > 2 > 1 }}",
        Ok("True"),
        Err("line 1: Unknown operator \">\" between Boolean and Integer"),
    ),
    // Printed values.
    ("{{ none }}{{ {'a': 1} }}{{ [1, 'b'] }}", Ok("None{'a': 1}[1, 'b']"), Ok("1b")),
    ("{{ 1 / 3 }}", Ok("0.3333333333333333"), Ok("0.333333")),
    ("{{ 1234567.5 | tojson }}", Ok("1234567.5"), Ok("1.23457e+06")),
    // Strings are bytes.
    ("{{ 'ä' | length }}", Ok("1"), Ok("2")),
    ("{{ 'abc'[-1] }}", Ok("c"), Ok("")),
    ("{{ 'ä' | upper }}", Ok("Ä"), Ok("ä")),
    ("{{ 'a  b'.split() | length }}", Ok("2"), Ok("3")),
    ("{{ ('ab' ~ 'cd') | capitalize }}", Ok("Abcd"), Ok("AbCd")),
    (
        "{{ 'ä'[:1] }}",
        Ok("ä"),
        Err("the prompt is not UTF-8: llama.cpp counts bytes, and the template cuts a character"),
    ),
    // Operators.
    ("{{ -7 % 3 }}", Ok("2"), Ok("-1")),
    (
        "{{ 'a' < 'b' }}",
        Ok("True"),
        Err("line 1: Unknown operator \"<\" between String and String"),
    ),
    ("{{ '%s' % 'a' }}", Ok("a"), Err("line 1: Unknown operator \"%\" between String and String")),
    (
        "{{ [1] * 2 }}",
        Ok("[1, 1]"),
        Err("line 1: Unknown operator \"*\" between Array and Integer"),
    ),
    ("{{ 'a' + 1 }}", Err("line 1: unsupported operand type(s) for +: 'str' and 'int'"), Ok("a1")),
    (
        "{{ 'a' + none }}",
        Err("line 1: unsupported operand type(s) for +: 'str' and 'NoneType'"),
        Ok("a"),
    ),
    ("{{ [[1]] == [[1]] }}", Ok("True"), Ok("False")),
    // Undefined values.
    ("{{ x.y.z }}", Err("line 1: 'x' is undefined"), Ok("")),
    ("{{ x.y is defined }}", Err("line 1: 'x' is undefined"), Ok("False")),
    ("{{ none | default('d') }}", Ok("None"), Ok("d")),
    // Filters and methods by type.
    (
        "{{ 'abc' | list }}",
        Ok("['a', 'b', 'c']"),
        Err("line 1: Unknown (built-in) filter 'list' for type String"),
    ),
    (
        "{{ {} | default('d') }}",
        Ok("{}"),
        Err("line 1: Unknown (built-in) filter 'default' for type Object"),
    ),
    (
        "{{ [{'k': 1}] | selectattr('k', 'defined') | list | length }}",
        Ok("1"),
        Err("line 1: selectattr: unknown test 'k'"),
    ),
    (
        "{{ ['a'] | map('upper') | join }}",
        Ok("A"),
        Err("line 1: map with a filter is not implemented"),
    ),
    (
        "{{ '<' | e }}",
        Ok("&lt;"),
        Err("line 1: Unknown (built-in) filter 'escape' for type String"),
    ),
    (
        "{{ 'abc'.find('b') }}",
        Ok("1"),
        Err("line 1: Callee is not a function: got Undefined (hint: 'find')"),
    ),
    ("{{ {'length': 5}.length == 5 }}", Ok("True"), Ok("False")),
    // Loops.
    ("{% for k, v in {'ab': 1} %}{{ k }}{{ v }}{% endfor %}", Ok("ab"), Ok("ab1")),
    (
        "{% for c in 'ab' %}{{ c }}{% endfor %}",
        Ok("ab"),
        Err("line 1: Expected iterable or object type in for loop: got String"),
    ),
    ("{% for x in [1, 2] %}{{ y }}{% set y = x %}{% endfor %}", Ok(""), Ok("1")),
    ("{% for x in [1, 2] %}{% if true %}a{% continue %}{% endif %}{% endfor %}", Ok("aa"), Ok("")),
    (
        "{% for x in [1] %}{{ loop.cycle('a') }}{% endfor %}",
        Ok("a"),
        Err("line 1: Callee is not a function: got Undefined (hint: 'cycle')"),
    ),
    // Macros and lists.
    ("{% macro f(a, b=2) %}{{ b }}{% endmacro %}{{ f(b=3) }}", Ok("3"), Ok("2")),
    (
        "{% macro f() %}{{ x }}{% endmacro %}{% for x in [1] %}{{ f() }}{% endfor %}",
        Ok(""),
        Ok("1"),
    ),
    (
        "{% set l = [] %}{{ l.append(1) }}",
        Err("line 1: 'list object' has no attribute 'append'"),
        Ok("1"),
    ),
    (
        "{% set d = {} %}{% set d.a = 1 %}{{ d.a }}",
        Err("line 1: cannot assign attribute on non-namespace object"),
        Ok("1"),
    ),
];

#[test]
fn each_difference_has_its_prompts() {
    let context = Context::new(user("Hi"));
    for (template, transformers, llama_cpp) in DIFFERENCES {
        for (engine, expected) in
            [(Engine::Transformers, transformers), (Engine::LlamaCpp, llama_cpp)]
        {
            let text = render_with(&model(template), engine, &context);
            let text = text.map_err(|error| error.to_string());
            let text = text.as_deref().map_err(String::as_str);
            match (text, expected) {
                // The words of jinja2's errors have tests of their own.
                (Err(_), Err(_)) if engine == Engine::Transformers => {}
                _ => assert_eq!(text, *expected, "{template} {engine:?}"),
            }
        }
    }
}

#[test]
fn refusals_name_the_part_and_the_line() {
    for (template, expected) in [
        (
            "{% for m in messages %}\n{{ m.content\n  | groupby('x') }}{% endfor %}",
            "line 3: Unknown (built-in) filter 'groupby' for type String",
        ),
        ("a\n{% include 'x' %}", "line 2: unknown statement: include"),
        (
            "a\nb\n{{ messages[0].content.zfill(3) }}",
            "line 3: Callee is not a function: got Undefined (hint: 'zfill')",
        ),
        ("\n{{ raise_exception('no') }}", "line 2: the template refuses the conversation: no"),
        ("{{ 1 is\nnosuch }}", "line 1: Unknown test 'nosuch'"),
        (
            "{% if add_generation_prompt is not defined %}{{ raise_exception('no') }}{% endif %}",
            "line 1: the template refuses the conversation: no",
        ),
    ] {
        assert_eq!(render(template, user("Hi")).unwrap_err().to_string(), expected, "{template}");
    }
}

/// Prints each message as JSON.
const ECHO: &str = "{% for m in messages %}{{ m | tojson }}\n{% endfor %}";

/// Prints parts of content, as templates of multimodal models.
const PARTS: &str = "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}\
    {% for p in m.content %}<{{ p.type }}>{{ p.text }}{% endfor %}{% endif %};{% endfor %}";

/// Prints calls of tools with one of their arguments.
const CALLS: &str = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}\
    {{ c.function.name }}={{ c.function.arguments.arg }}{% endfor %}{% endfor %}";

#[test]
fn messages_have_the_form_that_llama_cpp_gives_them() {
    let call = |arguments: Json| json!([{"type": "function", "index": 0, "function": {"name": "f", "arguments": arguments}}]);
    for (messages, expected) in [
        (
            json!([{"content": "Hi", "role": "user", "weight": 1}]),
            "{\"role\": \"user\", \"content\": \"Hi\"}\n",
        ),
        (
            json!([{"role": "assistant", "content": null, "tool_calls": call(json!({"b": 1.0, "a": [true, 1e20]}))}]),
            "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": [true, 1e+20]}}}]}\n",
        ),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
            "{\"role\": \"user\", \"content\": \"a\\nb\"}\n",
        ),
        (
            json!([{"role": "developer", "content": "a", "name": "x", "reasoning_content": "r"}]),
            "{\"role\": \"system\", \"content\": \"a\", \"reasoning_content\": \"r\", \"name\": \"x\"}\n",
        ),
    ] {
        assert_eq!(render(ECHO, messages.clone()).unwrap(), expected, "{messages}");
    }
}

#[test]
fn capabilities_decide_about_content_arguments_and_system_prompts() {
    let parts = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
    // The template reads parts and texts: both stay as they are.
    assert_eq!(render(PARTS, parts.clone()).unwrap(), "<text>a<text>b;");
    assert_eq!(render(PARTS, user("a")).unwrap(), "a;");
    // It reads parts only: a text becomes a part.
    let only = "{% for m in messages %}{% for p in m.content %}<{{ p.type }}>{{ p.text }}{% endfor %};{% endfor %}";
    assert_eq!(render(only, user("a")).unwrap(), "<text>a;");
    // It reads texts only.
    assert_eq!(render("{{ messages[0].content }}", parts).unwrap(), "a\nb");

    let call = |arguments: &str| {
        json!([
            {"role": "assistant", "content": "x", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": arguments}}]},
        ])
    };
    // It reads an argument: arguments are an object.
    assert_eq!(render(CALLS, call("{\"arg\": \"v\"}")).unwrap(), "xf=v");
    let error = render(CALLS, call("{")).unwrap_err().to_string();
    assert_eq!(error, "llama.cpp expects `arguments` of a tool call to be JSON");
    // It prints the arguments: they are the text.
    let printed = CALLS.replace("arguments.arg", "arguments");
    assert_eq!(render(&printed, call("{ }")).unwrap(), "xf={ }");

    // It never reads system prompts: they go into the next message.
    let no_system = "{% for m in messages if m.role != 'system' %}[{{ m.content }}]{% endfor %}";
    let system = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]);
    assert_eq!(render(no_system, system.clone()).unwrap(), "[S\nU]");
    let refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}\
        {% for m in messages %}[{{ m.content }}]{% endfor %}";
    assert_eq!(render(refuses, system).unwrap(), "[S\nU]");
}

#[test]
fn conversations_that_llama_cpp_refuses_are_refused() {
    for (messages, expected) in [
        (json!({}), "llama.cpp expects a list of messages"),
        (json!([{"content": "a"}]), "llama.cpp expects `role` in a message"),
        (json!([{"role": "user"}]), "llama.cpp expects `content` or `tool_calls` in a message"),
        (
            json!([{"role": "user", "content": 1}]),
            "llama.cpp expects content to be a string or a list of parts",
        ),
        (
            json!([{"role": "user", "content": [{"type": "image_url"}]}]),
            "llama.cpp does not know content parts of type `image_url`",
        ),
        (
            json!([{"role": "user", "content": "", "tool_calls": [{"function": {}}]}]),
            "llama.cpp expects `type` in a message",
        ),
        (
            json!([{"role": "user", "content": "", "reasoning_content": null}]),
            "llama.cpp expects `reasoning_content` of a message to be a string",
        ),
    ] {
        assert_eq!(render(ECHO, messages.clone()).unwrap_err().to_string(), expected, "{messages}");
    }
}

#[test]
fn variables_are_those_of_llama_cpp() {
    let names = "{{ enable_thinking }}|{{ tools is defined }}|{{ documents is defined }}|{{ unk_token }}|\
        {{ add_generation_prompt }}|{{ date_string is defined }}|{{ reasoning_strength }}|{{ clear_thinking }}";
    let mut context = Context::new(user("Hi"));
    context.add_generation_prompt = false;
    let text = |context: &Context| render_with(&model(names), Engine::LlamaCpp, context).unwrap();
    assert_eq!(text(&context), "True|False|False|||True||");
    let variables =
        json!({"enable_thinking": false, "reasoning_effort": "low", "preserve_reasoning": true});
    context.variables = variables.as_object().cloned().unwrap_or_else(Map::new);
    context.add_generation_prompt = true;
    assert_eq!(text(&context), "False|False|False||True|True|low|False");
}

#[test]
fn tools_have_name_description_and_parameters_only() {
    let mut context = Context::new(user("Hi"));
    context.tools = json!([{"function": {"strict": true, "parameters": {"b": 1, "a": 2}, "name": "f"}, "type": "function"}]);
    let text = render_with(&model("{{ tools | tojson }}"), Engine::LlamaCpp, &context).unwrap();
    assert_eq!(
        text,
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"\", \"parameters\": {\"b\": 1, \"a\": 2}}}]"
    );
}

#[test]
fn a_bos_that_the_tokenizer_adds_is_no_part_of_the_prompt() {
    let mut metadata = model("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
    let context = Context::new(user("Hi"));
    let render = |metadata: &Metadata| render_with(metadata, Engine::LlamaCpp, &context).unwrap();
    assert_eq!(render(&metadata), "<s>Hi</s>");
    metadata.set("tokenizer.ggml.add_bos_token", true);
    metadata.set("tokenizer.ggml.add_eos_token", true);
    assert_eq!(render(&metadata), "Hi");
}

#[test]
fn conversations_with_tools_use_the_template_for_them() {
    let mut metadata = model("default");
    metadata.set("tokenizer.chat_template.tool_use", "with tools");
    let mut context = Context::new(user("Hi"));
    let render = |context: &Context| render_with(&metadata, Engine::LlamaCpp, context).unwrap();
    assert_eq!(render(&context), "default");
    context.tools = json!([{"type": "function", "function": {"name": "f"}}]);
    assert_eq!(render(&context), "with tools");
}

#[test]
fn families_of_templates_change_messages_and_prompts() {
    let reasoning = json!([
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "A", "reasoning_content": "R"},
    ]);
    let ministral = "{# [SYSTEM_PROMPT][TOOL_CALLS][ARGS] #}".to_owned() + ECHO;
    assert_eq!(
        render(&ministral, reasoning.clone()).unwrap(),
        "{\"role\": \"user\", \"content\": \"Q\"}\n{\"role\": \"assistant\", \"content\": [{\"type\": \"thinking\", \"thinking\": \"R\"}, {\"type\": \"text\", \"text\": \"A\"}]}\n"
    );
    let lfm2 = "{# List of tools: [ #}".to_owned() + ECHO;
    assert_eq!(
        render(&lfm2, reasoning).unwrap(),
        "{\"role\": \"user\", \"content\": \"Q\"}\n{\"role\": \"assistant\", \"content\": \"A\", \"reasoning_content\": \"R\", \"thinking\": \"R\"}\n"
    );
    let gpt_oss = "<|channel|>{% for m in messages %}{{ m.content }}<|return|>{% endfor %}";
    let mut context = Context::new(
        json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]),
    );
    context.add_generation_prompt = false;
    let text = render_with(&model(gpt_oss), Engine::LlamaCpp, &context).unwrap();
    assert_eq!(text, "<|channel|>a<|return|>b<|end|>");
}

#[test]
fn work_costs_steps() {
    let grown = |start: &str, value: &str| {
        format!(
            "{{% set n = namespace(a={start}) %}}{{% for i in range(99999) %}}{{% set n.a = {value} %}}{{% endfor %}}"
        )
    };
    for template in [
        grown("'x'", "n.a ~ n.a"),
        grown("'x'", "n.a * 2"),
        grown("'x'", "n.a | replace('x', 'xx')"),
        grown("'x'", "[n.a, n.a] | string"),
        grown("'x'", "[n.a, n.a] | tojson"),
        grown("'x'", "[n.a, n.a] | join(n.a)"),
        grown("[1]", "n.a + n.a"),
        grown("[1]", "[n.a, n.a]") + "{{ n.a }}",
        grown("(1, 2)", "(n.a, n.a)") + "{{ {n.a: 1} }}",
        grown("(1, 2)", "(n.a, n.a)") + "{{ n.a == n.a }}",
        "{{ 'x' * 1000000000 }}".into(),
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}".into(),
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}".into(),
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}".into(),
        "{% set l = [1] %}{% set _ = l.append(l) %}{{ l }}".into(),
        "{% set l = [1] %}{% set _ = l.append(l) %}{{ l | string }}".into(),
        "{% set l = [1] %}{% set _ = l.append(l) %}{{ l | tojson }}".into(),
        "{% set d = {} %}{% set d.a = d %}{{ d | tojson }}".into(),
        "{% set r = range(9999) | list %}{% for i in range(9999) %}{% set x = r | sort(reverse=true) %}{% endfor %}".into(),
        "{{ 'a' | indent(1000000000) }}".into(),
        "{{ [1] | tojson(indent=1000000000) }}".into(),
        format!("{{{{ {}1{} }}}}", "(".repeat(9000), ")".repeat(9000)),
        format!("{{{{ 1{} }}}}", " + 1".repeat(9000)),
        "{% if true %}".repeat(3000),
    ] {
        let limits = Limits { steps: 200_000, ..Limits::default() };
        let metadata = model(&template);
        let source = TemplateSource::from_metadata(&metadata, None).unwrap().unwrap();
        let source = source.with_engine(Engine::LlamaCpp, &metadata);
        let renderer = Renderer::in_process().with_limits(limits);
        let result = renderer.render(&source, &Context::new(user("Hi")));
        assert!(result.is_err(), "{template:.80}");
        let message = result.unwrap_err().to_string();
        assert!(!message.contains("panicked"), "{template:.80}: {message}");
    }
}

/// Returns severities and messages of the findings about llama.cpp's engine.
fn lint(template: &str) -> Vec<(Severity, String)> {
    let findings = Linter::new(Renderer::in_process()).lint(&model(template)).unwrap();
    let findings = findings.into_iter().filter(|finding| finding.code == "template-llama-cpp");
    findings.map(|finding| (finding.severity, finding.message.into_string())).collect()
}

const LOOP: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";

#[test]
fn equal_prompts_have_no_finding() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/templates");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let found = lint(&std::fs::read_to_string(&path).unwrap());
        let expected: &[Severity] = match path.file_stem().unwrap().to_str().unwrap() {
            // It exercises the language of jinja2.
            "python" => continue,
            // llama.cpp loses the text before `continue`.
            "headers" => &[Severity::Note],
            // It passes arguments as text, which has no keys.
            "tools" => &[Severity::Warning],
            _ => &[],
        };
        let severities: Vec<_> = found.iter().map(|(severity, _)| *severity).collect();
        assert_eq!(severities, expected, "{path:?}: {found:?}");
    }
    for template in [
        // The prompt depends on what llama.cpp sets, which another rule reports.
        LOOP.to_owned()
            + "{% if enable_thinking is defined and enable_thinking %}<think>{% endif %}",
        LOOP.to_owned() + "{{ date_string }}",
        // llama.cpp renders what jinja2 refuses.
        "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}".to_owned()
            + LOOP,
        // The tokenizer adds BOS.
        "{{ bos_token }}".to_owned() + LOOP,
    ] {
        assert_eq!(lint(&template), [], "{template}");
    }
}

#[test]
fn different_prompts_have_a_finding_with_the_difference() {
    let upper = LOOP.replace("m.content", "(m.role ~ 'said') | capitalize ~ m.content");
    assert_eq!(
        lint(&upper),
        [(
            Severity::Warning,
            "for a message jinja2 renders \"[user]Users\", llama.cpp \"[user]UserS\"".to_owned()
        )]
    );
    let tools = LOOP.to_owned() + "{% if tools %}{{ tools | length / 3 }}{% endif %}";
    assert_eq!(
        lint(&tools),
        [(
            Severity::Note,
            "for tools jinja2 renders \" it?0.3333333333333333\", llama.cpp \" it?0.333333\""
                .to_owned()
        )]
    );
}

#[test]
fn a_system_prompt_that_llama_cpp_adds_is_a_note() {
    let silent =
        "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}";
    assert_eq!(
        lint(silent),
        [(
            Severity::Note,
            "for a system prompt jinja2 renders \"[user]\", llama.cpp \"[user]Be brief.\\n\""
                .to_owned()
        )]
    );
}

#[test]
fn a_refusal_of_llama_cpp_is_a_warning() {
    let template = LOOP.to_owned() + "\n{% if messages | length > 1 %}{{ 7 // 2 }}{% endif %}";
    assert_eq!(
        lint(&template),
        [(
            Severity::Warning,
            "llama.cpp refuses a message, which jinja2 renders: line 2: unexpected `/`".to_owned()
        )]
    );
    let template = LOOP.to_owned() + "{% if messages | length > 2 %}{{ 'a' | e }}{% endif %}";
    assert_eq!(
        lint(&template),
        [(
            Severity::Warning,
            "llama.cpp refuses several turns, which jinja2 renders: line 1: Unknown (built-in) filter 'escape' for type String".to_owned()
        )]
    );
}
