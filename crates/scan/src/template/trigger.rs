//! Branches on what a message says, or on the date, instead of on the form of the conversation.

use std::collections::HashSet;

use gguf::Finding;

use super::line_finding;
use super::taint::Taint;
use crate::instructions::{emitted_instruction, shortened};
use crate::jinja::{Constants, Expr, Kind, Parsed, Statement, for_each, for_each_expr};

/// Words of formats: a comparison with one of them asks for the form of a message.
const FORMAT_WORDS: &[&str] = &[
    "user",
    "assistant",
    "system",
    "tool",
    "tools",
    "tool_response",
    "tool_responses",
    "tool_call",
    "tool_calls",
    "function",
    "functions",
    "ipython",
    "model",
    "think",
    "thinking",
    "no_think",
    "nothink",
    "channel",
    "message",
    "observation",
    "developer",
    "human",
    "ai",
    "role",
    "name",
    "type",
    "image",
    "audio",
    "video",
    "text",
    "content",
    "image_url",
    "audio_url",
    "video_url",
    "input_audio",
    "input_image",
    "failed to",
    "error",
    "final",
    "analysis",
    "commentary",
    "reasoning",
    "json",
    "tool_result",
    "output",
    "result",
    "none",
    "null",
];

/// Words that a chat template has no reason to ask for.
const SENSITIVE: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "login",
    "secret",
    "seed",
    "apikey",
    "api_key",
    "credential",
    "credentials",
    "token",
    "private_key",
    "privatekey",
    "mnemonic",
    "wallet",
];

/// Number of words that a branch must emit to be more than a format.
const MIN_WORDS: usize = 4;

/// Separator of the pieces of text that a branch emits.
const PIECE: char = '\u{0}';

/// Reports branches on content and dates.
pub fn check(parsed: &Parsed, constants: &Constants, taint: &Taint) -> Vec<Finding> {
    let mut rules = Rules { constants, taint, findings: Vec::new(), seen: HashSet::new() };
    for_each(&parsed.statements, &mut |statement| {
        if let Statement::If { arms, otherwise } = statement {
            let mut tests: Vec<&Expr> = Vec::new();
            for (test, body) in arms {
                tests.push(test);
                rules.branch(test, &rules.emitted(body));
            }
            // The last branch is taken if no test holds.
            let last = rules.emitted(otherwise);
            tests.iter().for_each(|test| rules.branch(test, &last));
        }
        for expr in statement.expressions() {
            for_each_expr(expr, &mut |part| rules.expression(part));
        }
    });
    rules.findings
}

/// Returns true if a literal is a mark of a format, such as `<tool_call>` or `/think`, and not a word of a language.
pub fn is_structural(literal: &str) -> bool {
    let is_mark = |c: char| "<>|[]{}｜".contains(c);
    let inner = literal.trim().trim_matches(is_mark).trim();
    let is_wrapped = literal.contains(is_mark);
    inner.chars().filter(|c| c.is_alphabetic()).count() < 2
        || FORMAT_WORDS
            .contains(&inner.to_lowercase().trim_start_matches('/').trim_end_matches(':'))
        || inner.contains(is_mark)
        || is_wrapped && (inner.contains(['_', '=']) || inner.to_uppercase() == inner)
}

/// Counts the words of a text; marks such as `<think>` are none.
pub fn words(text: &str) -> usize {
    let is_word = |word: &&str| {
        !word.contains(['<', '>', '{', '}', '[', ']'])
            && word.chars().filter(|c| c.is_alphabetic()).count() >= 2
    };
    text.split_whitespace().filter(is_word).count()
}

struct Rules<'a> {
    constants: &'a Constants,
    taint: &'a Taint,
    findings: Vec<Finding>,
    seen: HashSet<(u32, &'static str, String)>,
}

impl Rules<'_> {
    fn report(&mut self, finding: Finding, line: u32, message: String) {
        if self.seen.insert((line, finding.code, message.clone())) {
            self.findings.push(line_finding(finding, line, &message));
        }
    }

    /// Returns the text that statements emit or assign, without messages of errors.
    fn emitted(&self, statements: &[Statement]) -> String {
        let mut text = String::new();
        for_each(statements, &mut |statement| match statement {
            Statement::Data { text: data, .. } => {
                text.push_str(data);
                text.push(PIECE);
            }
            Statement::Output(value) | Statement::Set { value, .. } => {
                self.emitted_by(value, &mut text)
            }
            _ => {}
        });
        text
    }

    fn emitted_by(&self, expr: &Expr, text: &mut String) {
        match &expr.kind {
            Kind::Call(function, _) if matches!(&function.kind, Kind::Name(name) if name == "raise_exception") =>
                {}
            // Operands of comparisons are not emitted.
            Kind::Chain(_, operators) if is_comparison(operators) => {}
            Kind::Test(..) => {}
            Kind::Item(object, key) => {
                self.emitted_by(object, text);
                self.constants.texts(key);
            }
            _ => {
                let constants = self.constants.texts(expr);
                for constant in &constants {
                    text.push_str(constant);
                    text.push(PIECE);
                }
                if constants.is_empty() {
                    expr.parts().iter().for_each(|part| self.emitted_by(part, text));
                }
            }
        }
    }

    fn branch(&mut self, test: &Expr, emitted: &str) {
        if emitted.split(PIECE).all(|piece| piece.trim().is_empty()) {
            return;
        }
        let compared = self.compared(test);
        if compared.is_empty() {
            return;
        }
        let is_sentence = emitted.split(PIECE).any(|piece| words(piece) >= MIN_WORDS);
        let natural = compared.iter().find(|literal| !is_structural(literal));
        let emitted = &*emitted.replace(PIECE, " ");
        let instruction = emitted_instruction(emitted);
        let trigger = shortened(natural.unwrap_or(&compared[0]));
        if let Some(instruction) = instruction {
            let message =
                format!("a branch on the word {trigger:?} of a message adds {instruction:?}");
            self.report(Finding::error("template-trigger", ""), test.line, message);
        } else if natural.is_some() && is_sentence {
            let text = shortened(emitted.trim());
            let message = format!("a branch on the word {trigger:?} of a message adds {text:?}");
            self.report(Finding::error("template-trigger", ""), test.line, message);
        }
    }

    fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Conditional(parts) => {
                for part in &parts[1..] {
                    let mut text = String::new();
                    self.emitted_by(part, &mut text);
                    self.branch(&parts[0], &text);
                }
            }
            Kind::Chain(operands, operators) if is_comparison(operators) => {
                for operand in operands {
                    for literal in self.literals(operand) {
                        if SENSITIVE.contains(&&*literal.trim().to_lowercase()) {
                            let message = format!("compares with the word {literal:?}");
                            self.report(
                                Finding::warning("template-trigger", ""),
                                expr.line,
                                message,
                            );
                        }
                    }
                }
                // Whether a date is given is no comparison.
                if operands.iter().any(|operand| self.taint.is_date(operand))
                    && operands
                        .iter()
                        .any(|operand| !self.literals(operand).is_empty() || is_number(operand))
                {
                    let message = "compares the present date".to_owned();
                    self.report(Finding::warning("template-date", ""), expr.line, message);
                }
            }
            // `{'word': 'text'}[content]` is a branch too.
            Kind::Item(object, key) if self.taint.is_content(key) => self.lookup(object),
            Kind::Call(function, arguments) => {
                if let Kind::Attribute(object, name) = &function.kind {
                    let first = arguments.positional.first();
                    if name == "get" && first.is_some_and(|key| self.taint.is_content(key)) {
                        self.lookup(object);
                    }
                    if name == "replace" {
                        self.replacement(object, &arguments.positional);
                    }
                }
            }
            Kind::Filter(Some(value), name, arguments) if name == "replace" => {
                self.replacement(value, &arguments.positional);
            }
            _ => {}
        }
    }

    /// Reports a dictionary whose keys are words and whose values are texts.
    fn lookup(&mut self, object: &Expr) {
        let Kind::Dict(items) = &object.kind else { return };
        for pair in items.chunks_exact(2) {
            let word = self.constants.texts(&pair[0]).into_iter().find(|word| !is_structural(word));
            let text = self.constants.texts(&pair[1]).into_iter().next();
            if let (Some(word), Some(text)) = (word, text)
                && words(&text) >= MIN_WORDS
            {
                let message = format!(
                    "looks up the text {:?} by the word {word:?} of a message",
                    shortened(&text)
                );
                self.report(Finding::error("template-trigger", ""), object.line, message);
            }
        }
    }

    /// Reports the replacement of words of a message.
    fn replacement(&mut self, value: &Expr, arguments: &[Expr]) {
        if !self.taint.is_content(value) || arguments.len() < 2 {
            return;
        }
        for word in self.constants.texts(&arguments[0]) {
            if !is_structural(&word) {
                let message = format!("replaces the word {word:?} of a message");
                // Rendering shows whether a message of the user or of the model changes.
                self.report(Finding::note("template-rewrite", ""), value.line, message);
            }
        }
    }

    /// Returns the literals that content is compared with in a test.
    fn compared(&self, test: &Expr) -> Vec<String> {
        let mut found = Vec::new();
        for_each_expr(test, &mut |part| match &part.kind {
            Kind::Chain(operands, operators)
                if is_comparison(operators)
                    && operands.iter().any(|operand| self.taint.is_content(operand)) =>
            {
                for operand in operands.iter().filter(|operand| !self.taint.is_content(operand)) {
                    found.extend(self.literals(operand));
                }
            }
            Kind::Call(function, arguments) => {
                if let Kind::Attribute(object, name) = &function.kind
                    && matches!(
                        &**name,
                        "startswith"
                            | "endswith"
                            | "find"
                            | "rfind"
                            | "index"
                            | "rindex"
                            | "count"
                            | "__contains__"
                            | "partition"
                            | "rpartition"
                            | "split"
                    )
                    && self.taint.is_content(object)
                {
                    let all = arguments.positional.iter();
                    found.extend(all.flat_map(|argument| self.literals(argument)));
                }
            }
            Kind::Test(value, arguments) if self.taint.is_content(value) => {
                let all = arguments.positional.iter();
                found.extend(all.flat_map(|argument| self.literals(argument)));
            }
            Kind::Filter(_, name, arguments)
                if matches!(&**name, "selectattr" | "rejectattr" | "select" | "reject")
                    && self.taint.is_content(part) =>
            {
                let skipped = if name.ends_with("attr") { 2 } else { 1 };
                let values = arguments.positional.iter().skip(skipped);
                found.extend(values.flat_map(|value| self.literals(value)));
            }
            _ => {}
        });
        found.retain(|literal| {
            !literal.trim().is_empty() && !matches!(&**literal, "content" | "text")
        });
        found
    }

    /// Returns the texts that an operand can be, also those of a list.
    fn literals(&self, operand: &Expr) -> Vec<String> {
        match &operand.kind {
            Kind::List(items) => items.iter().flat_map(|item| self.constants.texts(item)).collect(),
            _ => self.constants.texts(operand),
        }
    }
}

fn is_comparison(operators: &[&str]) -> bool {
    matches!(operators[0], "==" | "!=" | ">=" | "<=" | ">" | "<" | "in" | "not in")
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr.kind, Kind::Number(_))
}
