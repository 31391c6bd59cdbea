//! Pictures of divergence: over size, and by the place in the window.
//!
//! Colours are classes, which the page gives colours in the light and in the dark.

use svg::Document;
use svg::node::element::{Circle, Group, Line, Path, Text, Title, path::Data};

use super::numbers::{significant, tidy};
use super::scale::Scale;
use crate::quality::report::{Mix, Report};
use gguf::units::bytes;

/// Width of a letter of a label, about: bold ones are the widest.
const LETTER: f64 = 7.6;

/// How far letters reach above and below the line that they stand on, about.
const RISE: f64 = 9.5;
const DROP: f64 = 3.5;

/// Room around a label.
const GAP: f64 = 2.0;

/// A picture with a title that screen readers say.
pub(super) fn picture(width: f64, height: f64, id: &str, title: &str) -> Document {
    Document::new()
        .set("viewBox", (0.0, 0.0, width, height))
        .set("role", "img")
        .set("aria-labelledby", id)
        .add(Title::new(title).set("id", id))
}

pub(super) fn text(x: f64, y: f64, class: &str, content: impl Into<String>) -> Text {
    Text::new(content.into()).set("x", tidy(x)).set("y", tidy(y)).set("class", class)
}

/// The frame of a plot: room on the left, on the right, above and below the field.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn across(&self) -> [f64; 2] {
        [self.left, self.width - self.right]
    }

    fn upwards(&self) -> [f64; 2] {
        [self.height - self.bottom, self.top]
    }

    /// Lines and numbers of both axes.
    fn axes(
        &self,
        (x, x_name, said_x): (&Scale, &str, &dyn Fn(f64) -> String),
        (y, y_name): (&Scale, &str),
    ) -> Group {
        let ([left, right], [low, high]) = (self.across(), self.upwards());
        let mut group = Group::new().set("aria-hidden", "true");
        for number in y.ticks(((low - high) / 42.0) as usize) {
            let at = y.place(number);
            group = group.add(line([left, at], [right, at], "grid")).add(text(
                left - 8.0,
                at + 4.0,
                "tick end",
                significant(number, 1),
            ));
        }
        for number in x.ticks(((right - left) / 74.0) as usize) {
            let at = x.place(number);
            group = group.add(line([at, low], [at, low + 5.0], "axis")).add(text(
                at,
                low + 19.0,
                "tick middle",
                said_x(number),
            ));
        }
        group
            .add(line([left, low], [right, low], "axis"))
            .add(text(right, low + 38.0, "name end", x_name))
            .add(text(left - 8.0, high - 14.0, "name", y_name).set("x", 4))
    }
}

fn line(from: [f64; 2], to: [f64; 2], class: &str) -> Line {
    Line::new()
        .set("x1", tidy(from[0]))
        .set("y1", tidy(from[1]))
        .set("x2", tidy(to[0]))
        .set("y2", tidy(to[1]))
        .set("class", class)
}

/// A path through places.
fn path(places: impl IntoIterator<Item = [f64; 2]>) -> Data {
    let mut data = Data::new();
    for (number, [x, y]) in places.into_iter().enumerate() {
        let place = (tidy(x), tidy(y));
        data = if number == 0 { data.move_to(place) } else { data.line_to(place) };
    }
    data
}

/// Divergence over size: a dot per mix, and a line along those that no other one makes pointless.
pub(super) fn over_size(report: &Report, width: f64, id: &str) -> String {
    let narrow = width < 500.0;
    let frame = Frame {
        width,
        height: if narrow { 420.0 } else { 520.0 },
        left: if narrow { 50.0 } else { 62.0 },
        right: if narrow { 14.0 } else { 26.0 },
        top: 34.0,
        bottom: 50.0,
    };
    let shown: Vec<&Mix> = report.by_size().into_iter().filter(|mix| mix.mean_kld > 0.0).collect();
    let size = |mix: &Mix| mix.cost.file_bytes as f64;
    let x = Scale::linear(shown.iter().map(|mix| size(mix)), frame.across());
    let y = Scale::logarithmic(shown.iter().map(|mix| mix.mean_kld), frame.upwards());
    let said = |number: f64| bytes(number.round() as u64);
    let at = |mix: &Mix| [x.place(size(mix)), y.place(mix.mean_kld)];
    let title = "Mean divergence of each type over the size of its file";
    let mut picture = picture(width, frame.height, id, title).add(
        frame.axes((&x, "size of the file", &said), (&y, "mean divergence, nats (log scale)")),
    );

    let front: Vec<&Mix> = report.front().into_iter().filter(|mix| mix.mean_kld > 0.0).collect();
    picture = picture
        .add(Path::new().set("d", path(front.iter().map(|mix| at(mix)))).set("class", "front"));
    let mut labels = Labels::new(&frame);
    // The largest dots reach so far.
    shown.iter().for_each(|mix| labels.keep_free(at(mix), 7.0));
    for ends in front.windows(2) {
        let ([x, y], [to_x, to_y]) = (at(ends[0]), at(ends[1]));
        let steps = ((to_x - x).hypot(to_y - y) / 6.0).ceil().max(1.0);
        for step in 1..steps as usize {
            let share = step as f64 / steps;
            labels.keep_free([x + share * (to_x - x), y + share * (to_y - y)], 1.5);
        }
    }
    // Those on the line first: the others are named where there is room.
    let (on_line, others): (Vec<&Mix>, Vec<&Mix>) =
        shown.into_iter().partition(|mix| mix.dominated_by.is_none());
    let chosen = report.choices();
    for mix in others.iter().chain(&on_line).copied() {
        let [cx, cy] = at(mix);
        let is_chosen = chosen.iter().any(|(_, chosen)| chosen.name == mix.name);
        let (class, radius) = match &mix.dominated_by {
            Some(_) => ("dot pointless", 4.0),
            None if is_chosen => ("dot chosen", 7.0),
            None => ("dot", 5.0),
        };
        let instead = match &mix.dominated_by {
            Some(other) => format!("; {other} is no larger and no worse"),
            None => String::new(),
        };
        let about = format!(
            "{}: {}, divergence {}, same top token {:.1} %{instead}",
            mix.name,
            bytes(mix.cost.file_bytes),
            significant(mix.mean_kld, 3),
            mix.same_top,
        );
        picture = picture.add(
            Group::new()
                .set("class", class)
                .add(Title::new(about))
                .add(Circle::new().set("cx", tidy(cx)).set("cy", tidy(cy)).set("r", radius)),
        );
    }
    for mix in on_line.into_iter().chain(others) {
        let class = match &mix.dominated_by {
            Some(_) => "label pointless",
            None if chosen.iter().any(|(_, chosen)| chosen.name == mix.name) => "label chosen",
            None => "label",
        };
        if let Some((place, end)) = labels.find(at(mix), &mix.name) {
            let class = format!("{class} {end}");
            picture = picture.add(text(place[0], place[1], &class, mix.name.as_str()));
        }
    }
    picture.to_string()
}

/// Boxes that labels must not cover: left, top, right, bottom.
struct Labels {
    taken: Vec<[f64; 4]>,
    field: [f64; 4],
}

impl Labels {
    fn new(frame: &Frame) -> Self {
        let field = [frame.left, 0.0, frame.width, frame.height - frame.bottom];
        Self { taken: Vec::new(), field }
    }

    /// A place with so much around it.
    fn keep_free(&mut self, [x, y]: [f64; 2], around: f64) {
        self.taken.push([x - around, y - around, x + around, y + around]);
    }

    /// Where the label of a dot can stand, and which end of it is there.
    fn find(&mut self, [x, y]: [f64; 2], label: &str) -> Option<([f64; 2], &'static str)> {
        let width = LETTER * label.len() as f64;
        let tries = [
            ([x + 10.0, y - 7.5], "start"),
            ([x - 10.0, y + 13.5], "end"),
            ([x + 10.0, y + 4.0], "start"),
            ([x - 10.0, y + 4.0], "end"),
            ([x, y - 13.0], "middle"),
            ([x, y + 19.0], "middle"),
            ([x + 10.0, y + 15.0], "start"),
            ([x - 10.0, y - 7.5], "end"),
            ([x + 6.0, y - 13.0], "start"),
            ([x - 6.0, y + 19.0], "end"),
            ([x + 10.0, y - 22.0], "start"),
            ([x - 10.0, y + 28.0], "end"),
            ([x + 10.0, y + 24.0], "start"),
            ([x - 10.0, y - 22.0], "end"),
        ];
        tries.into_iter().find_map(|(place, end)| {
            let left = match end {
                "start" => place[0],
                "end" => place[0] - width,
                _ => place[0] - width / 2.0,
            };
            let (top, bottom) = (place[1] - RISE - GAP, place[1] + DROP + GAP);
            let wanted = [left - GAP, top, left + width + GAP, bottom];
            let inside = wanted[0] >= self.field[0]
                && wanted[1] >= self.field[1]
                && wanted[2] <= self.field[2]
                && wanted[3] <= self.field[3];
            let free = |other: &[f64; 4]| {
                wanted[2] <= other[0]
                    || other[2] <= wanted[0]
                    || wanted[3] <= other[1]
                    || other[3] <= wanted[1]
            };
            (inside && self.taken.iter().all(free)).then(|| {
                self.taken.push(wanted);
                (place, end)
            })
        })
    }
}

/// Mixes whose divergence is drawn by place at most.
const LINES: usize = 6;

/// Divergence by the place in the window.
pub(super) fn by_position(report: &Report, width: f64, id: &str) -> String {
    let narrow = width < 500.0;
    let frame = Frame {
        width,
        height: if narrow { 320.0 } else { 360.0 },
        left: if narrow { 50.0 } else { 62.0 },
        right: 66.0,
        top: 34.0,
        bottom: 50.0,
    };
    let shown = lines(report);
    let runs = || shown.iter().flat_map(|mix| &mix.kld_by_position);
    let middle = |run: &crate::quality::Run| (run.from + run.to) as f64 / 2.0;
    let x = Scale::linear(runs().map(middle), frame.across());
    let y = Scale::logarithmic(runs().map(|run| run.mean_kld), frame.upwards());
    let said = |number: f64| format!("{number:.0}");
    let title = "Mean divergence by how many tokens came before";
    let axes = frame.axes((&x, "tokens before", &said), (&y, "mean divergence, nats (log scale)"));
    let mut picture = picture(width, frame.height, id, title).add(axes);
    let mut labels: Vec<(f64, &str, usize)> = Vec::new();
    for (number, mix) in shown.iter().enumerate() {
        let places: Vec<_> = mix
            .kld_by_position
            .iter()
            .map(|run| [x.place(middle(run)), y.place(run.mean_kld)])
            .collect();
        let Some(last) = places.last() else { continue };
        labels.push((last[1], &mix.name, number));
        let about = format!("{}: mean divergence {}", mix.name, significant(mix.mean_kld, 3));
        picture =
            picture.add(Group::new().add(Title::new(about)).add(
                Path::new().set("d", path(places)).set("class", format!("line series-{number}")),
            ));
    }
    // Labels stand at the ends of their lines, and below each other.
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = f64::NEG_INFINITY;
    for (at, name, number) in labels {
        above = at.max(above + 14.0);
        let class = format!("label series-{number}");
        picture = picture.add(text(frame.across()[1] + 6.0, above + 4.0, &class, name));
    }
    picture.to_string()
}

/// Those that the page recommends, and others from the line between them.
fn lines(report: &Report) -> Vec<&Mix> {
    let chosen = report.choices();
    let mut shown: Vec<&Mix> = chosen.into_iter().map(|(_, mix)| mix).collect();
    let front = report.front();
    let step = (front.len() / LINES).max(1);
    for mix in front.into_iter().step_by(step) {
        let is_there = shown.iter().any(|other| other.name == mix.name);
        if shown.len() < LINES && !is_there && mix.mean_kld > 0.0 {
            shown.push(mix);
        }
    }
    shown.retain(|mix| mix.kld_by_position.iter().all(|run| run.mean_kld > 0.0));
    shown.sort_by(|a, b| b.mean_kld.total_cmp(&a.mean_kld));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_dots_touch_neither_each_other_nor_dots() {
        let frame =
            Frame { left: 60.0, right: 60.0, top: 30.0, bottom: 50.0, width: 800.0, height: 460.0 };
        let dots = [[300.0, 200.0], [305.0, 203.0], [330.0, 201.0], [296.0, 212.0], [318.0, 190.0]];
        let mut labels = Labels::new(&frame);
        dots.iter().for_each(|dot| labels.keep_free(*dot, 7.0));
        let mut boxes: Vec<[f64; 4]> = Vec::new();
        for (dot, name) in dots.iter().zip(["Q4_K_S", "IQ4_NL", "NVFP4", "Q4_K_M", "Q3_K_L"]) {
            let Some(([x, y], end)) = labels.find(*dot, name) else { continue };
            let width = LETTER * name.len() as f64;
            let left = x - width
                * match end {
                    "start" => 0.0,
                    "end" => 1.0,
                    _ => 0.5,
                };
            // What letters of 12 points cover.
            boxes.push([left, y - 9.5, left + width, y + 3.5]);
        }
        assert!(boxes.len() >= 4, "most have a label");
        let dots = dots.iter().map(|[x, y]| [x - 7.0, y - 7.0, x + 7.0, y + 7.0]);
        for (number, a) in boxes.iter().enumerate() {
            for b in boxes[..number].iter().copied().chain(dots.clone()) {
                let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }
}
