//! Rules on the prompts that a template renders, and the vocabulary that encodes them.

use gguf::{Finding, Metadata, Severity};
use serde_json::{Value as Json, json};

use super::super::{Context, Error};
use super::special::{SpecialTokens, marker_at_start, markers};
use super::{USER_TEXT, tool};

const ANSWER: &str = "gguf sample answer";
const QUESTION: &str = "gguf sample question";

/// Pairs of EOS and of the token that ends answers in published models, which know both.
const KNOWN_ENDS: &[(&str, &str)] = &[
    ("<|endoftext|>", "<|end|>"),
    ("<|return|>", "<|end|>"),
    ("<eos>", "<end_of_turn>"),
    ("<eos>", "<turn|>"),
    ("<|end_of_text|>", "<|im_end|>"),
];
/// EOS of the base models of Qwen, whose template is that of the instruct models.
const QWEN_BASE: (usize, &str, &str) = (151_643, "<|endoftext|>", "<|im_end|>");

/// Words in names of models that were trained on conversations.
const CHAT_WORDS: &[&str] = &["instruct", "chat", "-it", " it ", "assistant"];

/// Conversations of the rules, in the order of [`Prompts`].
pub(super) fn contexts() -> [Context; 10] {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let user = || Context::new(json!([said("user", USER_TEXT)]));
    let turns = json!([said("user", USER_TEXT), said("assistant", ANSWER), said("user", QUESTION)]);
    let call = json!({
        "id": "call_0001",
        "type": "function",
        "function": {"name": "clock", "arguments": {}},
    });
    let round_trip = |content: Json| {
        json!([
            said("user", USER_TEXT),
            {"role": "assistant", "content": content, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0001", "name": "clock", "content": "12:00"},
        ])
    };
    let thinking = |value: bool| Context {
        variables: [("enable_thinking".to_owned(), value.into())].into_iter().collect(),
        ..user()
    };
    let parts = json!([{"role": "user", "content": [
        {"type": "text", "text": USER_TEXT},
        {"type": "text", "text": QUESTION},
    ]}]);
    let with_tools = |messages: Json| Context { tools: json!([tool()]), ..Context::new(messages) };
    [
        user(),
        Context { add_generation_prompt: false, ..user() },
        Context::new(turns),
        with_tools(json!([said("user", USER_TEXT)])),
        with_tools(round_trip(Json::Null)),
        Context::new(parts),
        thinking(true),
        thinking(false),
        Context::new(json!([said("system", "Be brief."), said("user", USER_TEXT)])),
        with_tools(round_trip("".into())),
    ]
}

/// Prompts of [`contexts`].
pub(super) struct Prompts<'p> {
    user: Option<&'p str>,
    without_generation: Option<&'p str>,
    turns: Option<&'p str>,
    tools: Option<&'p str>,
    call: Option<&'p str>,
    thinking: Option<&'p str>,
    no_thinking: Option<&'p str>,
    system: Option<&'p str>,
    call_with_text: Option<&'p str>,
    texts: &'p [Result<String, Error>],
}

impl<'p> Prompts<'p> {
    pub fn new(texts: &'p [Result<String, Error>]) -> Self {
        let text = |i: usize| texts.get(i).and_then(|text| text.as_deref().ok());
        Self {
            user: text(0),
            without_generation: text(1),
            turns: text(2),
            tools: text(3),
            call: text(4),
            thinking: text(6),
            no_thinking: text(7),
            system: text(8),
            call_with_text: text(9),
            texts,
        }
    }

    /// Returns the findings about a template of a file.
    pub fn findings(&self, metadata: &Metadata) -> Vec<Finding> {
        let mut found = Vec::new();
        found.extend(self.empty());
        found.extend(self.generation_prompt());
        found.extend(self.conversations());
        found.extend(self.null_content());
        found.extend(self.thinking());
        if let Some(special) = SpecialTokens::read(metadata) {
            let missing = self.missing(&special);
            found.extend(self.undelimited(&special).filter(|_| missing.is_none()));
            found.extend(missing);
            found.extend(self.end(metadata, &special));
            found.extend(self.bos(metadata, &special));
            found.extend(self.tools(&special));
        }
        found
    }

    /// Checks that no conversation renders to nothing. Templates that only read content in parts may ignore texts.
    fn empty(&self) -> Option<Finding> {
        let parts = self.texts[5].as_ref().ok().filter(|text| text.contains(USER_TEXT));
        let reads_texts = self.user.is_some_and(|text| text.contains(USER_TEXT));
        if parts.is_some() && !reads_texts {
            return None;
        }
        self.all().into_iter().flatten().any(|text| text.trim().is_empty()).then(|| {
            Finding::warning("template-empty", "renders a conversation as an empty text")
                .help("use the template of the original model")
        })
    }

    /// Prompts of all conversations but those in parts.
    fn all(&self) -> [Option<&'p str>; 8] {
        [
            self.user,
            self.turns,
            self.tools,
            self.system,
            self.thinking,
            self.no_thinking,
            self.call,
            self.call_with_text,
        ]
    }

    /// Reports that `null` as the content of a call of tools is written out.
    fn null_content(&self) -> Option<Finding> {
        let (null, empty) = (self.call?, self.call_with_text?);
        let word = ["None", "null"]
            .into_iter()
            .find(|word| null.matches(word).count() > empty.matches(word).count())?;
        let message = format!("writes `{word}` for a call of tools whose content is null");
        Some(Finding::note("template-conversation", message).help(
            "transformers renders it so, llama.cpp passes an empty text: pass an empty text as content",
        ))
    }

    /// Checks that `add_generation_prompt` opens the answer.
    fn generation_prompt(&self) -> Option<Finding> {
        let (with, without) = (self.user?, self.without_generation?);
        let after = with.rsplit_once(USER_TEXT)?.1;
        if with != without {
            return None;
        }
        // Llama 2 and others open the answer by the end of the user's turn.
        let opens = !after.trim().is_empty() && !ends_turn(after);
        let severity = if opens { Severity::Note } else { Severity::Warning };
        let message = "`add_generation_prompt` has no effect on the prompt";
        let finding = Finding::error("template-generation-prompt", message);
        Some(Finding { severity, ..finding }.help(match opens {
            true => "no action is needed if the user's turn ends with the start of the answer",
            false => "the model continues the user's turn: use the template of the original model",
        }))
    }

    /// Reports conversations on which the template fails, though it renders others. A template may refuse one on
    /// purpose, and older templates know neither content in parts nor calls without content.
    fn conversations(&self) -> Option<Finding> {
        const NAMES: [(usize, &str, bool); 4] = [
            (2, "several turns", true),
            (3, "tools", true),
            (4, "calls of tools with empty content", false),
            (5, "content in parts", false),
        ];
        self.user?;
        let failed = NAMES.into_iter().filter_map(|(i, name, is_ordinary)| {
            let error = self.texts.get(i)?.as_ref().err()?;
            let is_fault = match error {
                Error::Render { .. } => is_ordinary,
                Error::Refused { .. } => false,
                _ => return None,
            };
            Some((is_fault, format!("does not render {name}: {error}")))
        });
        let (is_fault, message) = failed.min_by_key(|(is_fault, _)| !is_fault)?;
        Some(match is_fault {
            true => Finding::warning("template-render", message)
                .help("use the template of the original model, if it renders them"),
            false => Finding::note("template-conversation", message)
                .help("no action is needed unless programs use such conversations"),
        })
    }

    /// Reports that the prompt depends on whether a program states the default of `enable_thinking`.
    fn thinking(&self) -> Option<Finding> {
        (self.user? != self.thinking?).then(|| {
            let message = "renders another prompt if `enable_thinking` is true than without it";
            Finding::note("template-runtime-defaults", message)
                .help("llama.cpp passes true, transformers nothing: pass it explicitly")
        })
    }

    /// Checks that the vocabulary has the special tokens that the template writes.
    fn missing(&self, special: &SpecialTokens) -> Option<Finding> {
        let texts = self.all().into_iter().flatten();
        let mut missing: Vec<&str> = Vec::new();
        for marker in texts.flat_map(markers) {
            if !special.contains(marker) && !missing.contains(&marker) {
                missing.push(marker);
            }
        }
        let first = *missing.first()?;
        // A template that writes any role as a marker also writes that of tools.
        let calls = [self.call, self.call_with_text];
        let others = self.all().into_iter().filter(|text| !calls.contains(text)).flatten();
        let only_in_calls = !others.flat_map(markers).any(|marker| missing.contains(&marker));
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        // A model without further control tokens was trained with markers of ordinary text, if its answers end.
        let ends = self.after_answer().and_then(marker_at_start);
        let stops = ends.is_none_or(|end| special.contains(end));
        let severity = match only_in_calls || stops && !special.has_more_than_roles() {
            true => Severity::Note,
            false => Severity::Warning,
        };
        let message = format!(
            "writes `{first}`{more}, which the vocabulary does not have as a special token"
        );
        let finding = Finding::error("template-token-missing", message);
        Some(Finding { severity, ..finding }.help(
            "it is split into ordinary text; the template may belong to another model: use that of the original model",
        ))
    }

    /// Checks that control tokens delimit the turns if the vocabulary has them.
    fn undelimited(&self, special: &SpecialTokens) -> Option<Finding> {
        let token = special.turn_token()?;
        let between = self.between_turns()?;
        if special.occur_in(between) {
            return None;
        }
        let message = format!(
            "separates the turns by {:?}, which is ordinary text; the vocabulary has `{token}`",
            between.trim()
        );
        Some(Finding::warning("template-undelimited", message).help(
            "the template belongs to another model: use that of the original model with `gguf edit --chat-template-file`",
        ))
    }

    /// Text between the user's turn and the answer.
    fn between_turns(&self) -> Option<&'p str> {
        let rest = self.turns?.split_once(USER_TEXT)?.1;
        Some(rest.split_once(ANSWER)?.0)
    }

    /// Text after the answer, without white space at its start.
    fn after_answer(&self) -> Option<&'p str> {
        Some(self.turns?.split_once(ANSWER)?.1.trim_start())
    }

    /// Checks that the token by which the template ends an answer is one of the end tokens.
    fn end(&self, metadata: &Metadata, special: &SpecialTokens) -> Option<Finding> {
        let after = self.after_answer()?;
        let is_end =
            |text: &str| ["eos", "eot", "eom"].iter().any(|role| special.role(role) == Some(text));
        let Some(end) = special.at_start(after) else {
            return self.no_end(special, after, is_end);
        };
        if is_end(end) {
            return None;
        }
        let eos = special.role("eos");
        let stated = match eos {
            Some(eos) => format!("EOS is `{eos}`"),
            None => "the file has no EOS".to_owned(),
        };
        let message = format!("ends answers with `{end}`, but {stated}");
        let severity = match is_known_pair(metadata, special, eos, end) {
            true => Severity::Note,
            false => Severity::Warning,
        };
        let finding = Finding::error("template-end", message);
        Some(Finding { severity, ..finding }.help(
            "answers never end in programs that stop at EOS only: make it an end token with \
             `gguf edit --special-token` or `gguf check --fix`",
        ))
    }

    /// Reports a template that ends answers with no token.
    fn no_end(
        &self,
        special: &SpecialTokens,
        after: &str,
        is_end: impl Fn(&str) -> bool,
    ) -> Option<Finding> {
        // Another rule reports a token that the vocabulary lacks.
        if marker_at_start(after).is_some_and(|marker| !special.contains(marker)) {
            return None;
        }
        let between = self.between_turns()?.trim_start();
        let user_end = special.at_start(between).filter(|token| is_end(token));
        let (severity, message) = match user_end {
            Some(token) => (
                Severity::Warning,
                format!("ends the user's turn with `{token}`, but answers with no token"),
            ),
            None => (Severity::Note, "ends answers with no token".to_owned()),
        };
        let finding = Finding::error("template-end", message);
        Some(Finding { severity, ..finding }.help(
            "the model does not see in earlier turns how answers end: use the template of the original model",
        ))
    }

    /// Checks that BOS is not doubled.
    fn bos(&self, metadata: &Metadata, special: &SpecialTokens) -> Option<Finding> {
        let (user, bos) = (self.user?, special.role("bos")?);
        let after_bos = |text: &'p str| text.strip_prefix(bos);
        if self.all().into_iter().flatten().filter_map(after_bos).any(|rest| rest.starts_with(bos))
        {
            let message = format!("writes BOS, `{bos}`, twice");
            return Some(Finding::warning("template-bos", message).help(
                "answers are worse with a doubled BOS: use the template of the original model",
            ));
        }
        after_bos(user)?;
        // The token that begins each turn can be BOS too.
        let is_turn = special.turn_token() == Some(bos);
        let adds = metadata.bool("tokenizer.ggml.add_bos_token") == Some(true);
        (adds && !is_turn).then(|| {
            let message = format!("writes BOS, `{bos}`, which the tokenizer adds too");
            Finding::note("template-bos", message).help(
                "llama.cpp removes one; encode a prompt that you rendered yourself without special tokens",
            )
        })
    }

    /// Reports a template that ignores tools in a vocabulary that has tokens for them.
    fn tools(&self, special: &SpecialTokens) -> Option<Finding> {
        const TOOL_TOKENS: &[&str] = &[
            "<tool_call>",
            "<|tool_call|>",
            "<|python_tag|>",
            "[TOOL_CALLS]",
            "[AVAILABLE_TOOLS]",
            "<|tool_calls_section_begin|>",
            "<|tool_call_start|>",
        ];
        let token = TOOL_TOKENS.iter().find(|token| special.contains(token))?;
        (self.user? == self.tools?).then(|| {
            let message = format!("ignores tools, but the vocabulary has `{token}`");
            Finding::note("template-no-tools", message)
                .help("if the model calls tools, use the template of the original model")
        })
    }

    /// Id of the token by which the template ends answers, if it is none of the end tokens and no published model
    /// has both.
    pub fn wrong_end(&self, metadata: &Metadata) -> Option<u32> {
        let special = SpecialTokens::read(metadata)?;
        let finding = self.end(metadata, &special)?;
        let end = special.at_start(self.after_answer()?)?;
        special.id(end).filter(|_| finding.severity == Severity::Warning)
    }
}

/// Whether a text ends with a token that ends turns.
fn ends_turn(text: &str) -> bool {
    const ENDS: &[&str] =
        &["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "</s>", "<|END_OF_TURN_TOKEN|>"];
    ENDS.iter().any(|end| text.trim_end().ends_with(end))
}

/// Whether published models have this EOS and end answers with this token.
fn is_known_pair(
    metadata: &Metadata,
    special: &SpecialTokens,
    eos: Option<&str>,
    end: &str,
) -> bool {
    let Some(eos) = eos else { return false };
    let (id, base_eos, base_end) = QWEN_BASE;
    let is_base = (eos, end) == (base_eos, base_end)
        && metadata.u64("tokenizer.ggml.eos_token_id") == Some(id as u64)
        && special.role("pad") != Some(end)
        && !is_chat_model(metadata);
    is_base || KNOWN_ENDS.contains(&(eos, end))
}

/// Whether the metadata call the model one that was trained on conversations.
pub(super) fn is_chat_model(metadata: &Metadata) -> bool {
    ["general.name", "general.finetune", "general.basename"].iter().any(|key| {
        let text = metadata.str(key).unwrap_or_default().to_lowercase() + " ";
        CHAT_WORDS.iter().any(|word| text.contains(word))
    })
}
