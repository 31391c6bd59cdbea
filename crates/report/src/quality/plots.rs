//! Plots of the KL divergence over file size and over the position in the chunk.
//!
//! Elements have classes whose colors the page defines.

use gguf::units::bytes;
use gguf_eval::quality::{PositionRange, QualityReport, TypeQuality};
use svg::Document;
use svg::node::element::{Circle, Group, Line, Path, Text, Title, path::Data};

use super::axis::Axis;
use crate::figures::{rounded, significant};

/// Approximate width of a bold letter of a label.
const LETTER_WIDTH: f64 = 7.6;

/// Approximate ascent of letters.
const ASCENT: f64 = 9.5;
/// Approximate descent of letters.
const DESCENT: f64 = 3.5;

/// Margin around a label.
const MARGIN: f64 = 2.0;

/// Creates a picture with a title for screen readers.
pub(super) fn picture(width: f64, height: f64, id: &str, title: &str) -> Document {
    Document::new()
        .set("viewBox", (0.0, 0.0, width, height))
        .set("role", "img")
        .set("aria-labelledby", id)
        .add(Title::new(title).set("id", id))
}

pub(super) fn text(x: f64, y: f64, class: &str, content: impl Into<String>) -> Text {
    Text::new(content.into()).set("x", rounded(x)).set("y", rounded(y)).set("class", class)
}

/// Size and margins of a plot.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn horizontal(&self) -> [f64; 2] {
        [self.left, self.width - self.right]
    }

    fn vertical(&self) -> [f64; 2] {
        [self.height - self.bottom, self.top]
    }

    /// Draws both axes with their ticks.
    fn axes(
        &self,
        (x, x_name, x_label): (&Axis, &str, &dyn Fn(f64) -> String),
        (y, y_name): (&Axis, &str),
    ) -> Group {
        let ([left, right], [low, high]) = (self.horizontal(), self.vertical());
        let mut group = Group::new().set("aria-hidden", "true");
        for number in y.ticks(((low - high) / 42.0) as usize) {
            let at = y.coordinate(number);
            group = group.add(line([left, at], [right, at], "grid")).add(text(
                left - 8.0,
                at + 4.0,
                "tick end",
                significant(number, 1),
            ));
        }
        for number in x.ticks(((right - left) / 74.0) as usize) {
            let at = x.coordinate(number);
            group = group.add(line([at, low], [at, low + 5.0], "axis")).add(text(
                at,
                low + 19.0,
                "tick middle",
                x_label(number),
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
        .set("x1", rounded(from[0]))
        .set("y1", rounded(from[1]))
        .set("x2", rounded(to[0]))
        .set("y2", rounded(to[1]))
        .set("class", class)
}

/// Returns a path through points.
fn path(points: impl IntoIterator<Item = [f64; 2]>) -> Data {
    let mut data = Data::new();
    for (number, [x, y]) in points.into_iter().enumerate() {
        let point = (rounded(x), rounded(y));
        data = if number == 0 { data.move_to(point) } else { data.line_to(point) };
    }
    data
}

/// Draws the KL divergence over the file size: a dot per type, and a line along the Pareto front.
pub(super) fn over_size(report: &QualityReport, width: f64, id: &str) -> String {
    let narrow = width < 500.0;
    let frame = Frame {
        width,
        height: if narrow { 420.0 } else { 520.0 },
        left: if narrow { 50.0 } else { 62.0 },
        right: if narrow { 14.0 } else { 26.0 },
        top: 34.0,
        bottom: 50.0,
    };
    let shown: Vec<&TypeQuality> =
        report.by_size().into_iter().filter(|entry| entry.mean_kld > 0.0).collect();
    let size = |entry: &TypeQuality| entry.cost.file_bytes as f64;
    let x = Axis::linear(shown.iter().map(|entry| size(entry)), frame.horizontal());
    let y = Axis::logarithmic(shown.iter().map(|entry| entry.mean_kld), frame.vertical());
    let label = |number: f64| bytes(number.round() as u64);
    let at = |entry: &TypeQuality| [x.coordinate(size(entry)), y.coordinate(entry.mean_kld)];
    let title = "Mean KL divergence of each type over file size";
    let mut picture = picture(width, frame.height, id, title)
        .add(frame.axes((&x, "file size", &label), (&y, "mean KL divergence, nats (log scale)")));

    let front: Vec<&TypeQuality> =
        report.front().into_iter().filter(|entry| entry.mean_kld > 0.0).collect();
    picture = picture
        .add(Path::new().set("d", path(front.iter().map(|entry| at(entry)))).set("class", "front"));
    let mut labels = Labels::new(&frame);
    // Radius of the largest dots.
    shown.iter().for_each(|entry| labels.reserve(at(entry), 7.0));
    for ends in front.windows(2) {
        let ([x, y], [to_x, to_y]) = (at(ends[0]), at(ends[1]));
        let steps = ((to_x - x).hypot(to_y - y) / 6.0).ceil().max(1.0);
        for step in 1..steps as usize {
            let share = step as f64 / steps;
            labels.reserve([x + share * (to_x - x), y + share * (to_y - y)], 1.5);
        }
    }
    // Types on the front are labeled first, others where space is left.
    let (on_front, others): (Vec<&TypeQuality>, Vec<&TypeQuality>) =
        shown.into_iter().partition(|entry| entry.dominated_by.is_none());
    let chosen = report.choices();
    for entry in others.iter().chain(&on_front).copied() {
        let [cx, cy] = at(entry);
        let is_chosen = chosen.iter().any(|(_, chosen)| chosen.name == entry.name);
        let (class, radius) = match &entry.dominated_by {
            Some(_) => ("dot dominated", 4.0),
            None if is_chosen => ("dot chosen", 7.0),
            None => ("dot", 5.0),
        };
        let dominated = match &entry.dominated_by {
            Some(other) => {
                format!("; dominated by {other} (no larger, lower KL divergence beyond the error)")
            }
            None => String::new(),
        };
        let tooltip = format!(
            "{}: {}, KL divergence {}, top-1 agreement {:.1}%{dominated}",
            entry.name,
            bytes(entry.cost.file_bytes),
            significant(entry.mean_kld, 3),
            entry.top1_agreement,
        );
        picture = picture.add(
            Group::new()
                .set("class", class)
                .add(Title::new(tooltip))
                .add(Circle::new().set("cx", rounded(cx)).set("cy", rounded(cy)).set("r", radius)),
        );
    }
    for entry in on_front.into_iter().chain(others) {
        let class = match &entry.dominated_by {
            Some(_) => "label dominated",
            None if chosen.iter().any(|(_, chosen)| chosen.name == entry.name) => "label chosen",
            None => "label",
        };
        if let Some((point, anchor)) = labels.place(at(entry), &entry.name) {
            let class = format!("{class} {anchor}");
            picture = picture.add(text(point[0], point[1], &class, entry.name.as_str()));
        }
    }
    picture.to_string()
}

/// Placement of labels without overlaps. Boxes are left, top, right, bottom.
struct Labels {
    taken: Vec<[f64; 4]>,
    field: [f64; 4],
}

impl Labels {
    fn new(frame: &Frame) -> Self {
        let field = [frame.left, 0.0, frame.width, frame.height - frame.bottom];
        Self { taken: Vec::new(), field }
    }

    /// Reserves the square of `radius` around a point.
    fn reserve(&mut self, [x, y]: [f64; 2], radius: f64) {
        self.taken.push([x - radius, y - radius, x + radius, y + radius]);
    }

    /// Finds a free point for the label of a dot. Returns the point and the text anchor.
    fn place(&mut self, [x, y]: [f64; 2], label: &str) -> Option<([f64; 2], &'static str)> {
        let width = LETTER_WIDTH * label.len() as f64;
        let candidates = [
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
        candidates.into_iter().find_map(|(point, anchor)| {
            let left = match anchor {
                "start" => point[0],
                "end" => point[0] - width,
                _ => point[0] - width / 2.0,
            };
            let (top, bottom) = (point[1] - ASCENT - MARGIN, point[1] + DESCENT + MARGIN);
            let label = [left - MARGIN, top, left + width + MARGIN, bottom];
            let inside = label[0] >= self.field[0]
                && label[1] >= self.field[1]
                && label[2] <= self.field[2]
                && label[3] <= self.field[3];
            let free = |other: &[f64; 4]| {
                label[2] <= other[0]
                    || other[2] <= label[0]
                    || label[3] <= other[1]
                    || other[3] <= label[1]
            };
            (inside && self.taken.iter().all(free)).then(|| {
                self.taken.push(label);
                (point, anchor)
            })
        })
    }
}

/// Maximum number of lines in the plot over positions.
const MAX_LINES: usize = 6;

/// Draws the KL divergence by position in the chunk.
pub(super) fn by_position(report: &QualityReport, width: f64, id: &str) -> String {
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
    let runs = || shown.iter().flat_map(|entry| &entry.kld_by_position);
    let middle = |run: &PositionRange| (run.from + run.to) as f64 / 2.0;
    let x = Axis::linear(runs().map(middle), frame.horizontal());
    let y = Axis::logarithmic(runs().map(|run| run.mean_kld), frame.vertical());
    let label = |number: f64| format!("{number:.0}");
    let title = "Mean KL divergence by position in the chunk";
    let axes = frame.axes((&x, "position", &label), (&y, "mean KL divergence, nats (log scale)"));
    let mut picture = picture(width, frame.height, id, title).add(axes);
    let mut labels: Vec<(f64, &str, usize)> = Vec::new();
    for (number, entry) in shown.iter().enumerate() {
        let points: Vec<_> = entry
            .kld_by_position
            .iter()
            .map(|run| [x.coordinate(middle(run)), y.coordinate(run.mean_kld)])
            .collect();
        let Some(last) = points.last() else { continue };
        labels.push((last[1], &entry.name, number));
        let tooltip =
            format!("{}: mean KL divergence {}", entry.name, significant(entry.mean_kld, 3));
        picture =
            picture.add(Group::new().add(Title::new(tooltip)).add(
                Path::new().set("d", path(points)).set("class", format!("line series-{number}")),
            ));
    }
    // Labels are at the ends of the lines, without overlaps.
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = f64::NEG_INFINITY;
    for (at, name, number) in labels {
        above = at.max(above + 14.0);
        let class = format!("label series-{number}");
        picture = picture.add(text(frame.horizontal()[1] + 6.0, above + 4.0, &class, name));
    }
    picture.to_string()
}

/// Returns the recommended types, and others from the Pareto front between them.
fn lines(report: &QualityReport) -> Vec<&TypeQuality> {
    let chosen = report.choices();
    let mut shown: Vec<&TypeQuality> = chosen.into_iter().map(|(_, entry)| entry).collect();
    let front = report.front();
    let step = (front.len() / MAX_LINES).max(1);
    for entry in front.into_iter().step_by(step) {
        let is_shown = shown.iter().any(|other| other.name == entry.name);
        if shown.len() < MAX_LINES && !is_shown && entry.mean_kld > 0.0 {
            shown.push(entry);
        }
    }
    shown.retain(|entry| entry.kld_by_position.iter().all(|run| run.mean_kld > 0.0));
    shown.sort_by(|a, b| b.mean_kld.total_cmp(&a.mean_kld));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_close_dots_do_not_overlap() {
        let frame =
            Frame { left: 60.0, right: 60.0, top: 30.0, bottom: 50.0, width: 800.0, height: 460.0 };
        let dots = [[300.0, 200.0], [305.0, 203.0], [330.0, 201.0], [296.0, 212.0], [318.0, 190.0]];
        let mut labels = Labels::new(&frame);
        dots.iter().for_each(|dot| labels.reserve(*dot, 7.0));
        let mut boxes: Vec<[f64; 4]> = Vec::new();
        for (dot, name) in dots.iter().zip(["Q4_K_S", "IQ4_NL", "NVFP4", "Q4_K_M", "Q3_K_L"]) {
            let Some(([x, y], end)) = labels.place(*dot, name) else { continue };
            let width = LETTER_WIDTH * name.len() as f64;
            let left = x - width
                * match end {
                    "start" => 0.0,
                    "end" => 1.0,
                    _ => 0.5,
                };
            // Extent of letters of 12 points.
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
