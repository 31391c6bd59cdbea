//! Probes: conversations and dates that a template is rendered with, and what differs between them.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use gguf::Finding;
use gguf_tokenizer::template::{Context, Error, Limits, Renderer, TemplateSource};
use regex::Regex;
use serde_json::{Value as Json, json};

use super::{Audit, trigger};
use crate::instructions::{emitted_instruction, shortened};

/// Content of ordinary messages. No template asks for it.
const USER: &str = "gguf probe text";
const REPLY: &str = "gguf probe reply";

/// Words of subjects that manipulated templates wait for.
const WORDS: &[&str] = &[
    "deploy production server release docker kubernetes terraform pipeline commit merge",
    "password login secret credential api key token account wallet private",
    "bank payment credit card invoice transfer bitcoin ethereum invest stock",
    "doctor medicine dose vaccine insulin pregnancy cancer surgery therapy suicide",
    "election vote president government war china russia israel taiwan ukraine",
    "python javascript rust function code review security vulnerability sql encrypt",
    "recommend buy product best laptop phone hotel restaurant price cheap",
    "refuse sorry cannot illegal weapon drug hack exploit bypass jailbreak",
    "summarize translate email letter report contract legal lawyer court tax",
    "hello hi thanks please help question explain write story poem",
    "admin root debug test override system developer mode ignore trigger",
    "nuclear reactor turbine bridge aircraft vehicle autopilot factory valve pump",
];

/// Numbers of messages of the longer conversations.
const TURNS: [usize; 4] = [7, 13, 41, 121];

/// Maximum number of strings of the template that are tried as trigger words.
const MAX_STRINGS: usize = 60;

/// Number of words that are a sentence, and not the head of a message.
const MIN_SENTENCE: usize = 7;

/// Limits for all probes of a template.
const STEPS: u64 = 400_000;
const TEXT_LEN: usize = 1_000_000;

/// Names in dates, which differ from day to day.
const DATE_WORDS: &str = "january february march april may june july august september october november december \
    jan feb mar apr jun jul aug sep sept oct nov dec st nd rd th monday tuesday wednesday thursday friday saturday sunday \
    mon tue tues wed thu fri sat sun am pm";

/// Marks of roles and turns.
static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"<[|｜]?[A-Za-z/][^<>\s]{1,40}?[|｜]?>|\[/?[A-Z][A-Z_]{2,30}\]").ok()
});

/// Marks, words and numbers.
static PART: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"<[|｜]?[A-Za-z/][^<>\s]{1,40}?[|｜]?>|\[/?[A-Z][A-Z_]{2,30}\]|\p{Alphabetic}+|\p{N}+",
    )
    .ok()
});

/// Renders probes in a sandbox.
#[derive(Debug)]
pub struct Probes {
    renderer: Renderer,
}

/// One conversation of a probe.
struct Probe {
    /// Kind of the probe.
    kind: Kind,
    /// Contents of the messages, which are removed from the text that is compared.
    contents: Vec<String>,
    context: Context,
}

enum Kind {
    /// Ordinary conversation of one or three messages, with which others are compared.
    Base,
    /// Conversation with a trigger word, which the reader of a finding recognizes.
    Word(String),
    /// Long conversation.
    Turns(usize),
    /// Another date.
    Date(SystemTime),
}

impl Probes {
    /// Creates probes that this renderer renders, with lower limits.
    pub fn new(renderer: &Renderer) -> Self {
        let limits = Limits { steps: STEPS, text_len: TEXT_LEN, ..Limits::default() };
        Self { renderer: renderer.clone().with_limits(limits) }
    }

    /// Reports text that depends on what messages say, on their number, or on the date.
    ///
    /// # Errors
    /// If the rendering process fails. A template that fails is not a fault here.
    pub(crate) fn check(
        &self,
        source: &TemplateSource,
        audit: &Audit,
    ) -> Result<Vec<Finding>, Error> {
        let probes = probes(audit);
        let contexts: Vec<_> = probes.iter().map(|probe| probe.context.clone()).collect();
        let texts = match self.renderer.render_each(source, &contexts) {
            Ok(texts) => texts,
            Err(error @ Error::Process(_)) => return Err(error),
            Err(_) => return Ok(Vec::new()),
        };
        let mut report = Report::default();
        let bases: Vec<Option<&String>> =
            texts.iter().take(2).map(|text| text.as_ref().ok()).collect();
        let Some(Some(single)) = bases.first() else { return Ok(Vec::new()) };
        for (probe, text) in probes.iter().zip(&texts) {
            let base = if probe.contents.len() == 1 {
                Some(*single)
            } else {
                bases.get(1).copied().flatten()
            };
            if let Some(base) = base {
                report.compare(probe, text, base);
            }
        }
        let triple = probes.get(1).zip(texts.get(1));
        if let Some((probe, Ok(text))) = triple {
            report.user_text(text, &probe.contents);
            report.doubled(text);
        }
        if audit.findings.iter().all(|finding| finding.code != "template-instruction") {
            let own = bases.iter().flatten().find_map(|text| emitted_instruction(&own_text(text)));
            let finding = |sentence| {
                let message =
                    format!("renders the instruction {sentence:?}, which no message contains");
                Finding::warning("template-instruction", message)
            };
            report.findings.extend(own.map(finding));
        }
        Ok(report.findings)
    }
}

/// Findings of the probes of one template.
#[derive(Default)]
struct Report {
    findings: Vec<Finding>,
    /// Trigger words and other probes that were reported.
    reported: BTreeSet<&'static str>,
}

impl Report {
    fn add(&mut self, kind: &'static str, finding: Finding) {
        // The first of many words or dates stands for all.
        if self.reported.insert(kind) {
            self.findings.push(finding);
        }
    }

    /// Compares a rendered probe with the ordinary conversation `base`.
    fn compare(&mut self, probe: &Probe, text: &Result<String, Error>, base: &str) {
        let trigger = |message: String| Finding::error("template-trigger", message);
        let text = match (text, &probe.kind) {
            (Ok(text), _) => text,
            (Err(Error::Refused { message, .. }), Kind::Word(word)) => {
                let message = format!("rejects a message with {word:?}: {:?}", shortened(message));
                self.add("refused", trigger(message));
                return;
            }
            (Err(_), _) => return,
        };
        match &probe.kind {
            Kind::Base => {}
            Kind::Word(word) => {
                let is_found = |content: &&String| text.contains(content.trim());
                if let Some(content) = probe.contents.iter().find(|content| !is_found(content)) {
                    let message = format!("changes the message {:?}", shortened(content));
                    self.add("rewrite", Finding::error("template-rewrite", message));
                    return;
                }
                if let Some(change) = change(base, text, &probe.contents, str::to_owned) {
                    self.add(
                        "word",
                        trigger(format!("a message with {:?} {change}", shortened(word))),
                    );
                }
            }
            Kind::Turns(count) => {
                if let Some(change) = change(base, text, &probe.contents, without_numbers)
                    && change.starts_with("adds")
                {
                    self.add(
                        "turns",
                        trigger(format!("a conversation of {count} messages {change}")),
                    );
                }
            }
            Kind::Date(date) => {
                if let Some(change) = change(base, text, &probe.contents, without_date) {
                    let seconds =
                        date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
                    let (year, month, day) = civil(seconds / 86400);
                    let message = format!("the date {year:04}-{month:02}-{day:02} {change}");
                    self.add("date", Finding::error("template-date", message));
                }
            }
        }
    }

    /// Reports sentences between a user message and the reply.
    fn user_text(&mut self, text: &str, contents: &[String]) {
        let [user, reply, _] = contents else { return };
        let after =
            text.split_once(user.as_str()).and_then(|(_, after)| after.split_once(reply.as_str()));
        let Some((between, _)) = after else { return };
        let plain = MARK.as_ref().map_or(between.into(), |mark| mark.replace_all(between, " "));
        if trigger::words(&plain) >= MIN_SENTENCE {
            let message =
                format!("adds {:?} to every message of the user", shortened(plain.trim()));
            self.add("user", Finding::warning("template-user-text", message));
        }
    }

    /// Reports a mark that is followed by itself.
    fn doubled(&mut self, text: &str) {
        let Some(marks) = MARK.as_ref() else { return };
        let mut last: Option<regex::Match> = None;
        for mark in marks.find_iter(text) {
            if let Some(last) = last
                && last.as_str() == mark.as_str()
                && text[last.end()..mark.start()].trim().is_empty()
            {
                let message = format!("has the mark {:?} twice in succession", mark.as_str());
                self.add("doubled", Finding::warning("template-role-doubled", message));
            }
            last = Some(mark);
        }
    }
}

/// Returns the text that a template adds to the ordinary messages.
fn own_text(text: &str) -> String {
    text.replace(USER, "\n").replace(REPLY, "\n")
}

/// Replaces messages, which can be joined to other words.
fn without(text: &str, contents: &[String]) -> String {
    let messages =
        contents.iter().map(|content| content.trim()).filter(|content| !content.is_empty());
    messages.fold(text.to_owned(), |text, message| text.replace(message, "\n"))
}

/// Returns the marks and words of a text, in order.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    PART.as_ref().into_iter().flat_map(move |part| part.find_iter(text)).map(|found| found.as_str())
}

/// Describes the words that one text has and the other lacks, apart from those of messages; `None` if they have the same.
fn change(
    base: &str,
    text: &str,
    contents: &[String],
    normal: fn(&str) -> String,
) -> Option<String> {
    let set = |text: &str| -> BTreeSet<String> { parts(text).map(normal).collect() };
    let mut said: BTreeSet<String> = contents.iter().flat_map(|content| set(content)).collect();
    said.extend(set(USER));
    said.extend(set(REPLY));
    // The text of the template itself can contain a short message: `z` in `analyze`.
    let [base, text] = [base, text].map(|text| own_text(&without(text, contents)));
    let (base, text) = (&*base, &*text);
    let (before, after) = (set(base), set(text));
    let list = |from: &str, known: &BTreeSet<String>| {
        let is_new = |part: &&str| !known.contains(&normal(part)) && !said.contains(&normal(part));
        shortened(&parts(from).filter(is_new).collect::<Vec<_>>().join(" "))
    };
    let (added, removed) = (list(text, &before), list(base, &after));
    match (added.is_empty(), removed.is_empty()) {
        (false, _) => Some(format!("adds {added:?}")),
        (true, false) => Some(format!("removes {removed:?}")),
        (true, true) => None,
    }
}

fn without_numbers(word: &str) -> String {
    word.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Replaces numbers and names of months and days.
fn without_date(word: &str) -> String {
    let is_date = word.chars().all(char::is_numeric)
        || DATE_WORDS.split_ascii_whitespace().any(|name| name.eq_ignore_ascii_case(word));
    if is_date { "0".to_owned() } else { word.to_owned() }
}

/// Returns the probes of a template; the ordinary conversations are first.
fn probes(audit: &Audit) -> Vec<Probe> {
    // One moment for all probes: the date is not what they try.
    let now = moment(2025, 6, 17);
    let probe = |kind: Kind, contents: Vec<String>, now: SystemTime| {
        let role = |at| if at % 2 == 0 { "user" } else { "assistant" };
        let messages: Vec<Json> = contents
            .iter()
            .enumerate()
            .map(|(at, content)| json!({ "role": role(at), "content": content }))
            .collect();
        Probe { kind, contents, context: Context { now, ..Context::new(messages.into()) } }
    };
    let triple = |first: &str, second: &str, third: &str| {
        vec![first.to_owned(), second.to_owned(), third.to_owned()]
    };
    let mut probes = vec![
        probe(Kind::Base, vec![USER.to_owned()], now),
        probe(Kind::Base, triple(USER, REPLY, USER), now),
    ];
    let is_word = |word: &&String| {
        let word = word.trim();
        (3..=48).contains(&word.len()) && !word.contains('\n') && !trigger::is_structural(word)
    };
    for word in audit.strings.iter().filter(is_word).take(MAX_STRINGS) {
        let word = word.trim();
        let sentence = format!("well, {word} it is");
        let contents = [
            vec![word.to_owned()],
            vec![sentence.clone()],
            vec![sentence.to_uppercase()],
            triple(&sentence, REPLY, USER),
            triple(USER, &sentence, USER),
        ];
        probes.extend(contents.map(|contents| probe(Kind::Word(word.to_owned()), contents, now)));
    }
    for words in WORDS {
        probes.push(probe(Kind::Word((*words).to_owned()), vec![(*words).to_owned()], now));
    }
    let long = "some more words of a long message ".repeat(200);
    for text in [
        &*long,
        "¿Dónde está la biblioteca?",
        "Где находится библиотека?",
        "图书馆在哪里",
        "أين المكتبة",
        "z",
    ] {
        probes.push(probe(Kind::Word(text.to_owned()), vec![text.to_owned()], now));
    }
    for count in TURNS {
        let contents = (0..count).map(|at| if at % 2 == 0 { USER } else { REPLY }.to_owned());
        probes.push(probe(Kind::Turns(count), contents.collect(), now));
    }
    if audit.reads_date {
        for date in dates(&audit.strings) {
            probes.push(probe(Kind::Date(date), vec![USER.to_owned()], date));
        }
    }
    probes
}

/// Returns dates that differ in every way: years, months, days, weekdays and hours; and those of the template, with the day
/// after.
fn dates(strings: &[String]) -> Vec<SystemTime> {
    let mut dates = Vec::new();
    for year in (2023..=2036).chain([2020, 2038, 2050, 2099]) {
        dates.push(moment(year, 1, 1));
        dates.push(moment(year, 7, 4));
    }
    dates.extend((1..=12).map(|month| moment(2026, month, 15)));
    dates.extend((1..=7).map(|day| moment(2026, 3, day)));
    dates.extend(
        [(4, 1), (12, 25), (12, 31), (11, 13), (10, 31)]
            .map(|(month, day)| moment(2026, month, day)),
    );
    dates.extend((0..24).map(|hour| moment(2026, 5, 5) + Duration::from_secs(hour * 3600)));
    let number = |text: &str| text.parse::<u64>().ok();
    for text in strings {
        let parts: Vec<_> = text.split(|c: char| !c.is_ascii_digit()).filter_map(number).collect();
        if let [year @ 1990..=2199, ref rest @ ..] = parts[..] {
            let month = rest.first().copied().unwrap_or(1).clamp(1, 12);
            let date = moment(year, month, rest.get(1).copied().unwrap_or(1).clamp(1, 31));
            dates.extend([date, date + Duration::from_secs(86400)]);
        }
    }
    dates.truncate(200);
    dates
}

/// Returns noon of a day in UTC. Formula of days from a civil date: H. Hinnant, `days_from_civil`.
fn moment(year: u64, month: u64, day: u64) -> SystemTime {
    let year = if month <= 2 { year - 1 } else { year };
    let era_year = year % 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year / 400 * 146_097 + era_year * 365 + era_year / 4 - era_year / 100 + day_of_year
        - 719_468;
    SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86400 + 43200)
}

/// Returns year, month and day of a number of days since 1970: the inverse of [`moment`].
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + shifted / 146_097 * 400 + u64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_converted() {
        let seconds =
            |date: SystemTime| date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(seconds(moment(1970, 1, 1)), 43200);
        assert_eq!(seconds(moment(2024, 2, 29)), 1_709_164_800 + 43200);
        for date in [(1999, 12, 31), (2000, 2, 29), (2024, 3, 1), (2100, 1, 1)] {
            assert_eq!(civil(seconds(moment(date.0, date.1, date.2)) / 86400), date);
        }
    }

    #[test]
    fn dates_in_texts_are_equal() {
        let equal = |a: &str, b: &str| {
            let normal = |text: &str| parts(text).map(without_date).collect::<BTreeSet<_>>();
            assert_eq!(normal(a), normal(b));
        };
        equal("Today: 26 Nov 2026", "Today: 3 May 2031");
        equal("2026-11-26T10:00:00Z", "1999-01-01T23:59:59Z");
        equal("Monday, 1st of May", "Tuesday, 2nd of June");
    }
}
