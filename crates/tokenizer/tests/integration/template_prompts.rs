//! Findings about prompts: what templates of published models render with the vocabulary of a file.

use gguf::{Array, Finding, Metadata, Severity};
use gguf_tokenizer::template::{Linter, Renderer};

const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n\
                      {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
const LLAMA_2: &str = "{% for m in messages %}{% if m.role == 'user' %}{{ bos_token }}[INST] {{ m.content }} \
                       [/INST]{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}";
const LLAMA_3: &str = "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n\
                       {{ m.content }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}\
                       <|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";
const ZEPHYR: &str = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n{% endfor %}\
                      {% if add_generation_prompt %}<|assistant|>\n{% endif %}";

/// Special tokens of a vocabulary after some words, with the roles of some.
fn vocabulary(special: &[&str], roles: &[(&str, &str)], template: &str) -> Metadata {
    let words = ["user", "assistant", "system"];
    let tokens: Vec<&str> = words.iter().chain(special).copied().collect();
    let types: Vec<i32> =
        (0..tokens.len()).map(|id| if id < words.len() { 1 } else { 3 }).collect();
    let mut metadata = Metadata::new();
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(&tokens));
    metadata.set("tokenizer.ggml.token_type", Array::from(&types[..]));
    for (role, text) in roles {
        let id = tokens.iter().position(|token| token == text).unwrap();
        metadata.set(format!("tokenizer.ggml.{role}_token_id"), id as u32);
    }
    metadata.set("tokenizer.chat_template", template);
    metadata
}

fn chatml(template: &str) -> Metadata {
    vocabulary(
        &["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        &[("bos", "<|im_start|>"), ("eos", "<|im_end|>"), ("padding", "<|im_end|>")],
        template,
    )
}

fn llama_2(template: &str) -> Metadata {
    vocabulary(
        &["<unk>", "<s>", "</s>"],
        &[("unknown", "<unk>"), ("bos", "<s>"), ("eos", "</s>")],
        template,
    )
}

fn llama_3(template: &str) -> Metadata {
    let special = [
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|python_tag|>",
    ];
    vocabulary(&special, &[("bos", "<|begin_of_text|>"), ("eos", "<|eot_id|>")], template)
}

fn lint(metadata: &Metadata) -> Vec<Finding> {
    Linter::new(Renderer::in_process()).lint(metadata).unwrap()
}

fn wrong_end(metadata: &Metadata) -> Option<u32> {
    Linter::new(Renderer::in_process()).wrong_end(metadata).unwrap()
}

fn warnings(metadata: &Metadata) -> Vec<&'static str> {
    let findings = lint(metadata).into_iter();
    findings.filter(|one| one.severity != Severity::Note).map(|one| one.code).collect()
}

fn severity(metadata: &Metadata, code: &str) -> Option<Severity> {
    lint(metadata).iter().find(|one| one.code == code).map(|one| one.severity)
}

#[test]
fn templates_of_their_own_vocabulary_have_no_warning() {
    for metadata in [chatml(CHATML), llama_2(LLAMA_2), llama_2(ZEPHYR), llama_3(LLAMA_3)] {
        assert_eq!(warnings(&metadata), [""; 0], "{metadata:?}");
        assert_eq!(wrong_end(&metadata), None);
    }
    // Zephyr was trained with markers of ordinary text.
    assert_eq!(severity(&llama_2(ZEPHYR), "template-token-missing"), Some(Severity::Note));
}

#[test]
fn templates_of_other_models_are_found() {
    let undelimited = lint(&chatml(LLAMA_2));
    let finding = undelimited.iter().find(|one| one.code == "template-undelimited").unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.message.contains("[/INST]") && finding.message.contains("<|im_start|>"),
        "{finding}"
    );
    assert!(warnings(&llama_3(LLAMA_2)).contains(&"template-undelimited"));
    for (metadata, missing) in [
        (llama_3(CHATML), "`<|im_start|>` and 1 more"),
        (chatml(LLAMA_3), "`<|start_header_id|>` and 2 more"),
        // Answers do not end in a vocabulary without added tokens.
        (llama_2(CHATML), "`<|im_start|>` and 1 more"),
        (chatml(ZEPHYR), "`<|user|>` and 3 more"),
        (
            chatml(
                "{% for m in messages %}<start_of_turn>{{ m.content }}<end_of_turn>{% endfor %}",
            ),
            "`<start_of_turn>` and 1 more",
        ),
    ] {
        let findings = lint(&metadata);
        let finding = findings.iter().find(|one| one.code == "template-token-missing");
        let finding = finding.unwrap_or_else(|| panic!("{missing}: {findings:#?}"));
        assert_eq!(finding.severity, Severity::Warning, "{finding}");
        assert!(finding.message.contains(missing), "{finding}");
    }
}

/// A vocabulary without a token for the role of tools is not a fault.
#[test]
fn tokens_of_tool_results_only_are_a_note() {
    let special = ["<|system|>", "<|user|>", "<|assistant|>", "</s>"];
    let findings = lint(&vocabulary(&special, &[("eos", "</s>")], ZEPHYR));
    let finding = findings.iter().find(|one| one.code == "template-token-missing").unwrap();
    assert_eq!(finding.severity, Severity::Note, "{finding}");
    assert!(finding.message.contains("`<|tool|>`"), "{finding}");
}

#[test]
fn the_end_of_answers_is_compared_with_end_tokens() {
    const EOS: &str = "tokenizer.ggml.eos_token_id";
    let mut metadata = chatml(CHATML);
    metadata.set(EOS, 3u32);
    let findings = lint(&metadata);
    let finding = findings.iter().find(|one| one.code == "template-end").unwrap();
    assert_eq!(
        (finding.severity, &*finding.message),
        (Severity::Warning, "ends answers with `<|im_end|>`, but EOS is `<|endoftext|>`")
    );
    assert_eq!(wrong_end(&metadata), Some(5));
    metadata.remove(EOS);
    assert_eq!(severity(&metadata, "template-end"), Some(Severity::Warning));
    assert_eq!(wrong_end(&metadata), Some(5));
    // EOT and EOM are end tokens too.
    for role in ["eot", "eom"] {
        let mut metadata = metadata.clone();
        metadata.set(EOS, 3u32);
        metadata.set(format!("tokenizer.ggml.{role}_token_id"), 5u32);
        assert_eq!(warnings(&metadata), [""; 0], "{role}");
    }
    // The first files of Llama 3.
    let mut metadata = llama_3(LLAMA_3);
    metadata.set(EOS, 4u32);
    assert_eq!(warnings(&metadata), ["template-end"]);
    // Published models with two end tokens.
    for (eos, end) in [("<eos>", "<end_of_turn>"), ("<|endoftext|>", "<|end|>")] {
        let template = CHATML.replace("<|im_end|>", end);
        let metadata = vocabulary(&["<|im_start|>", eos, end], &[("eos", eos)], &template);
        assert_eq!(severity(&metadata, "template-end"), Some(Severity::Note), "{eos}");
        assert_eq!(wrong_end(&metadata), None);
    }
}

#[test]
fn answers_without_an_end_are_found() {
    let only_user = CHATML.replace("<|im_end|>", "{% if m.role == 'user' %}<|im_end|>{% endif %}");
    assert_eq!(warnings(&chatml(&only_user)), ["template-end"]);
    let none = CHATML.replace("<|im_end|>\n", "\n");
    // The next turn begins after the answer.
    assert_eq!(severity(&chatml(&none), "template-end"), Some(Severity::Warning));
}

#[test]
fn bos_is_written_once() {
    const ADD: &str = "tokenizer.ggml.add_bos_token";
    let doubled = format!("{{{{ bos_token }}}}{LLAMA_3}");
    assert_eq!(warnings(&llama_3(&doubled)), ["template-bos"]);
    let mut metadata = llama_3(LLAMA_3);
    metadata.set(ADD, true);
    assert_eq!(severity(&metadata, "template-bos"), Some(Severity::Note));
    metadata.set(ADD, false);
    assert_eq!(severity(&metadata, "template-bos"), None);
    // The token that begins turns is BOS here.
    let mut metadata = chatml(CHATML);
    metadata.set(ADD, true);
    assert_eq!(severity(&metadata, "template-bos"), None);
}

#[test]
fn prompts_open_the_answer() {
    let never = CHATML.split("{% if add").next().unwrap();
    assert_eq!(warnings(&chatml(never)), ["template-generation-prompt"]);
    let always = format!("{never}<|im_start|>assistant\n");
    assert_eq!(severity(&chatml(&always), "template-generation-prompt"), Some(Severity::Note));
    assert_eq!(severity(&llama_2(LLAMA_2), "template-generation-prompt"), Some(Severity::Note));
}

#[test]
fn conversations_that_render_to_nothing_or_fail_are_found() {
    let empty = format!("{{% if messages | length < 3 %}}{CHATML}{{% endif %}}");
    assert!(warnings(&chatml(&empty)).contains(&"template-empty"));
    let no_tools = "{% for m in messages %}<|im_start|>{{ m.role + '\n' + m.content }}<|im_end|>\n{% endfor %}\
                    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let metadata = chatml(no_tools);
    assert_eq!(warnings(&metadata), [""; 0]);
    assert_eq!(severity(&metadata, "template-conversation"), Some(Severity::Note));
    // jinja2 cannot write a generator as JSON, llama.cpp can.
    let tools = format!(
        "{{% if tools %}}{{{{ tools | map(attribute='function') | tojson }}}}{{% endif %}}{CHATML}"
    );
    assert_eq!(warnings(&chatml(&tools)), ["template-render"]);
    let refused =
        format!("{{% if tools %}}{{{{ raise_exception('no tools') }}}}{{% endif %}}{CHATML}");
    let metadata = chatml(&refused);
    assert_eq!(warnings(&metadata), [""; 0]);
    assert_eq!(severity(&metadata, "template-conversation"), Some(Severity::Note));
}

#[test]
fn tools_and_runtime_defaults_are_noted() {
    assert_eq!(severity(&llama_3(LLAMA_3), "template-no-tools"), Some(Severity::Note));
    assert_eq!(severity(&chatml(CHATML), "template-no-tools"), None);
    let thinking = format!("{CHATML}{{% if enable_thinking %}}<think>{{% endif %}}");
    assert_eq!(severity(&chatml(&thinking), "template-runtime-defaults"), Some(Severity::Note));
}

#[test]
fn chat_models_have_a_template() {
    let mut metadata = chatml(CHATML);
    metadata.set("general.name", "Some Model 1B Instruct");
    assert_eq!(severity(&metadata, "template-missing"), None);
    metadata.remove("tokenizer.chat_template");
    assert_eq!(warnings(&metadata), ["template-missing"]);
    metadata.set("general.name", "Some Model 1B");
    assert_eq!(warnings(&metadata), [""; 0]);
}

/// Only some conversations have a system prompt or tools.
#[test]
fn all_conversations_are_looked_at() {
    let system = CHATML
        .replace("{{ m.content }}", "{% if m.role == 'system' %}<|sys|>{% endif %}{{ m.content }}");
    let found = warnings(&chatml(&system));
    assert!(found.contains(&"template-token-missing"), "{found:?}");
    let null = CHATML.replace("{{ m.content }}", "{{ m.content | string }}");
    let found = lint(&chatml(&null));
    assert!(found.iter().any(|one| one.message.contains("writes `None`")), "{found:?}");
    let twice = LLAMA_3.replacen(
        "{{ bos_token }}",
        "{{ bos_token }}{% if messages[0].role == 'system' %}{{ bos_token }}{% endif %}",
        1,
    );
    let found = warnings(&llama_3(&twice));
    assert!(found.contains(&"template-bos"), "{found:?}");
}
