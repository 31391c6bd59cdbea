//! Subtitle formats.

use std::fmt::Write;

use super::Segment;

/// Formats a time as `01:02:03.456`, with `separator` before the milliseconds. Hours are omitted if they are 0 and
/// `always_hours` is not set.
pub fn time(seconds: f64, separator: char, always_hours: bool) -> String {
    let milliseconds = (seconds.max(0.0) * 1000.0).round() as u64;
    let (total, milliseconds) = (milliseconds / 1000, milliseconds % 1000);
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    let hours = if always_hours || hours > 0 { format!("{hours:02}:") } else { String::new() };
    format!("{hours}{minutes:02}:{seconds:02}{separator}{milliseconds:03}")
}

/// Formats segments as SubRip (SRT).
pub fn srt(segments: &[Segment]) -> String {
    let mut out = String::new();
    for (number, segment) in (1..).zip(segments) {
        let [start, end] = [segment.start, segment.end].map(|at| time(at, ',', true));
        let _ = write!(out, "{number}\n{start} --> {end}\n{}\n\n", line(segment));
    }
    out
}

/// Formats segments as WebVTT.
pub fn vtt(segments: &[Segment]) -> String {
    let mut out = "WEBVTT\n\n".to_owned();
    for segment in segments {
        let [start, end] = [segment.start, segment.end].map(|at| time(at, '.', false));
        let _ = write!(out, "{start} --> {end}\n{}\n\n", line(segment));
    }
    out
}

/// Returns the text of a segment without arrows, which subtitle formats reserve for times.
fn line(segment: &Segment) -> String {
    segment.text.trim().replace("-->", "->")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> [Segment; 2] {
        let segment = |start, end, text: &str| Segment {
            start,
            end,
            text: text.to_owned(),
            ids: Vec::new(),
            temperature: 0.0,
            avg_logprob: 0.0,
            compression_ratio: 1.0,
            no_speech_prob: 0.0,
        };
        [segment(0.0, 2.34, " Let there be light."), segment(3599.9996, 3661.5, " a --> b")]
    }

    #[test]
    fn subtitles_follow_their_formats() {
        assert_eq!(
            srt(&segments()),
            "1\n00:00:00,000 --> 00:00:02,340\nLet there be light.\n\n\
             2\n01:00:00,000 --> 01:01:01,500\na -> b\n\n"
        );
        assert_eq!(
            vtt(&segments()),
            "WEBVTT\n\n00:00.000 --> 00:02.340\nLet there be light.\n\n\
             01:00:00.000 --> 01:01:01.500\na -> b\n\n"
        );
    }
}
