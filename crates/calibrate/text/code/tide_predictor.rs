// tidetool -- print high and low waters for a harbour from its harmonic constants.
//
// Usage:  tidetool STATION.tide 2021-03-14 [--days N] [--step MINUTES] [--csv]
//
// A station file looks like this; amplitudes in metres, phases in degrees
// relative to Greenwich (kappa-prime), blank lines and '#' comments ignored:
//
//     name   Skerry Haven
//     datum  2.41
//     M2     1.523   187.4
//     S2     0.488   221.0
//     ...
//
// The program keeps to the handful of constituents that matter for a yachtsman
// and treats nodal corrections as constant over the printed span, which is
// good to a few centimetres over a month. It is no substitute for the official tables.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::ExitCode;

/// Speeds in degrees per mean solar hour, with the multipliers of the
/// astronomical arguments T, s, h, p (hour angle, moon, sun, lunar perigee)
/// and a constant offset in degrees.
struct Constituent {
    symbol: &'static str,
    speed: f64,
    args: [i32; 4],
    offset: f64,
    node: Node,
}

/// How the 18.6-year lunar node modulates a constituent.
#[derive(Clone, Copy)]
enum Node {
    None,
    M2,
    K1,
    O1,
    K2,
}

#[rustfmt::skip]
const CONSTITUENTS: &[Constituent] = &[
    Constituent { symbol: "M2", speed: 28.984_104_2, args: [2, -2,  2,  0], offset:   0.0, node: Node::M2 },
    Constituent { symbol: "S2", speed: 30.000_000_0, args: [2,  0,  0,  0], offset:   0.0, node: Node::None },
    Constituent { symbol: "N2", speed: 28.439_729_5, args: [2, -3,  2,  1], offset:   0.0, node: Node::M2 },
    Constituent { symbol: "K2", speed: 30.082_137_3, args: [2,  0,  2,  0], offset:   0.0, node: Node::K2 },
    Constituent { symbol: "K1", speed: 15.041_068_6, args: [1,  0,  1,  0], offset: -90.0, node: Node::K1 },
    Constituent { symbol: "O1", speed: 13.943_035_6, args: [1, -2,  1,  0], offset:  90.0, node: Node::O1 },
    Constituent { symbol: "P1", speed: 14.958_931_4, args: [1,  0, -1,  0], offset:  90.0, node: Node::None },
    Constituent { symbol: "M4", speed: 57.968_208_4, args: [4, -4,  4,  0], offset:   0.0, node: Node::M2 },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Date {
    year: i32,
    month: u32,
    day: u32,
}

impl Date {
    fn parse(s: &str) -> Option<Date> {
        let mut fields = s.splitn(3, '-');
        let year = fields.next()?.parse().ok()?;
        let month: u32 = fields.next()?.parse().ok()?;
        let day: u32 = fields.next()?.parse().ok()?;
        let date = Date { year, month, day };
        ((1..=12).contains(&month) && day >= 1 && day <= date.month_length()).then_some(date)
    }

    fn leap(self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    fn month_length(self) -> u32 {
        match self.month {
            2 if self.leap() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn next(self) -> Date {
        if self.day < self.month_length() {
            Date { day: self.day + 1, ..self }
        } else if self.month < 12 {
            Date { month: self.month + 1, day: 1, ..self }
        } else {
            Date { year: self.year + 1, month: 1, day: 1 }
        }
    }

    /// Julian day number at noon, by the usual integer formula.
    fn julian(self) -> i64 {
        let a = (14 - self.month as i64) / 12;
        let y = self.year as i64 + 4800 - a;
        let m = self.month as i64 + 12 * a - 3;
        self.day as i64 + (153 * m + 2) / 5 + 365 * y + y / 4 - y / 100 + y / 400 - 32_045
    }
}

/// Mean longitudes in degrees at 0h UT of a date.
struct Astro {
    s: f64,
    h: f64,
    p: f64,
    n: f64,
}

impl Astro {
    fn at(date: Date) -> Astro {
        // Julian centuries since 2000 January 1.5; the linear terms suffice here.
        let t = (date.julian() as f64 - 0.5 - 2_451_545.0) / 36_525.0;
        Astro {
            s: (218.3165 + 481_267.8813 * t).rem_euclid(360.0),
            h: (280.4661 + 36_000.7698 * t).rem_euclid(360.0),
            p: (83.3532 + 4_069.0137 * t).rem_euclid(360.0),
            n: (125.0445 - 1_934.1363 * t).rem_euclid(360.0),
        }
    }
}

impl Node {
    /// Amplitude factor f and phase correction u (degrees).
    fn correction(self, longitude: f64) -> (f64, f64) {
        let n = longitude.to_radians();
        match self {
            Node::None => (1.0, 0.0),
            Node::M2 => (1.0 - 0.037 * n.cos(), -2.1 * n.sin()),
            Node::K1 => (1.006 + 0.115 * n.cos(), -8.9 * n.sin()),
            Node::O1 => (1.009 + 0.187 * n.cos(), 10.8 * n.sin()),
            Node::K2 => (1.024 + 0.286 * n.cos(), -17.7 * n.sin()),
        }
    }
}

struct Station {
    name: String,
    datum: f64,
    harmonics: BTreeMap<String, (f64, f64)>,
}

fn parse_station(text: &str) -> Result<Station, String> {
    let mut station = Station { name: String::from("(unnamed)"), datum: 0.0, harmonics: BTreeMap::new() };
    for (number, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let at = |what: &str| format!("line {}: {what}", number + 1);
        let (key, rest) = line.split_once(char::is_whitespace).ok_or_else(|| at("value missing"))?;
        let rest = rest.trim();
        match key {
            "name" => station.name = rest.to_owned(),
            "datum" => station.datum = rest.parse().map_err(|_| at("datum is not a number"))?,
            symbol => {
                if !CONSTITUENTS.iter().any(|c| c.symbol == symbol) {
                    eprintln!("note: constituent {symbol} is not supported and will be left out");
                    continue;
                }
                let numbers: Vec<f64> = rest
                    .split_whitespace()
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map_err(|e| at(&format!("{symbol}: {e}")))?;
                let [amplitude, phase] = numbers[..] else {
                    return Err(at("expected an amplitude and a phase"));
                };
                if station.harmonics.insert(symbol.to_owned(), (amplitude, phase)).is_some() {
                    return Err(at("constituent given twice"));
                }
            }
        }
    }
    if station.harmonics.is_empty() {
        return Err("no harmonic constants found".into());
    }
    Ok(station)
}

/// One cosine, everything folded in: height = amplitude * cos(speed * hours + phase).
struct Wave {
    amplitude: f64,
    speed: f64,
    phase: f64,
}

struct Curve {
    mean: f64,
    waves: Vec<Wave>,
}

impl Curve {
    fn new(station: &Station, epoch: Date) -> Curve {
        let astro = Astro::at(epoch);
        let waves = CONSTITUENTS
            .iter()
            .filter_map(|c| {
                let &(amplitude, lag) = station.harmonics.get(c.symbol)?;
                let (f, u) = c.node.correction(astro.n);
                // M4 is the first overtide of M2, so its factor is squared and its shift doubled.
                let (f, u) = if c.symbol == "M4" { (f * f, 2.0 * u) } else { (f, u) };
                let [t, s, h, p] = c.args.map(f64::from);
                // At 0h UT the mean sun stands on the lower meridian: T = 180 degrees.
                let v = t * 180.0 + s * astro.s + h * astro.h + p * astro.p + c.offset;
                Some(Wave {
                    amplitude: amplitude * f,
                    speed: c.speed.to_radians(),
                    phase: (v + u - lag).rem_euclid(360.0).to_radians(),
                })
            })
            .collect();
        Curve { mean: station.datum, waves }
    }

    fn height(&self, hours: f64) -> f64 {
        self.mean + self.waves.iter().map(|w| w.amplitude * (w.speed * hours + w.phase).cos()).sum::<f64>()
    }

    fn slope(&self, hours: f64) -> f64 {
        -self.waves.iter().map(|w| w.amplitude * w.speed * (w.speed * hours + w.phase).sin()).sum::<f64>()
    }

    /// Turning points in [from, to): scan for sign changes of the slope, then
    /// bisect. Twenty halvings of ten minutes land well below a second.
    fn extremes(&self, from: f64, to: f64) -> Vec<(f64, f64, bool)> {
        const SCAN: f64 = 1.0 / 6.0;
        let mut found = Vec::new();
        let mut left = from;
        while left < to {
            let right = (left + SCAN).min(to);
            let rising = self.slope(left) > 0.0;
            if rising != (self.slope(right) > 0.0) {
                let (mut lo, mut hi) = (left, right);
                for _ in 0..20 {
                    let mid = 0.5 * (lo + hi);
                    if (self.slope(mid) > 0.0) == rising {
                        lo = mid;
                    } else {
                        hi = mid;
                    }
                }
                found.push((lo, self.height(lo), rising));
            }
            left = right;
        }
        found
    }
}

fn clock(hours: f64) -> String {
    let minutes = (hours * 60.0).round() as i64;
    format!("{:02}:{:02}", minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60))
}

struct Options {
    path: String,
    start: Date,
    days: u32,
    step: Option<u32>,
    csv: bool,
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let (mut positional, mut days, mut step, mut csv) = (Vec::new(), 1, None, false);
    while let Some(arg) = args.next() {
        let mut number = |name: &str| -> Result<u32, String> {
            let value = args.next().ok_or(format!("{name} needs a value"))?;
            value.parse().ok().filter(|&n| n > 0).ok_or(format!("{name}: '{value}' is not a positive number"))
        };
        match arg.as_str() {
            "--days" => days = number("--days")?,
            "--step" => step = Some(number("--step")?),
            "--csv" => csv = true,
            other if other.starts_with('-') => return Err(format!("unknown option {other}")),
            _ => positional.push(arg),
        }
    }
    let [path, date] = <[String; 2]>::try_from(positional).map_err(|_| "need a station file and a date".to_string())?;
    let start = Date::parse(&date).ok_or(format!("'{date}' is not a date of the form YYYY-MM-DD"))?;
    Ok(Options { path, start, days, step, csv })
}

fn run() -> Result<(), String> {
    let options = options(env::args().skip(1))?;
    let text = fs::read_to_string(&options.path).map_err(|e| format!("{}: {e}", options.path))?;
    let station = parse_station(&text).map_err(|e| format!("{}: {e}", options.path))?;
    let curve = Curve::new(&station, options.start);

    if options.csv {
        println!("date,time_ut,height_m,kind");
    } else {
        println!("{}  (times in UT, heights in metres above datum)", station.name);
    }
    let mut date = options.start;
    for day in 0..options.days {
        let midnight = f64::from(day) * 24.0;
        let stamp = format!("{:04}-{:02}-{:02}", date.year, date.month, date.day);
        let rows: Vec<(f64, f64, &str)> = match options.step {
            Some(step) => (0..24 * 60)
                .step_by(step as usize)
                .map(|m| midnight + f64::from(m) / 60.0)
                .map(|t| (t, curve.height(t), ""))
                .collect(),
            None => curve
                .extremes(midnight, midnight + 24.0)
                .into_iter()
                .map(|(t, z, high)| (t, z, if high { "HW" } else { "LW" }))
                .collect(),
        };
        for (i, (t, z, kind)) in rows.iter().enumerate() {
            if options.csv {
                println!("{stamp},{},{z:.2},{kind}", clock(*t));
            } else {
                let label = if i == 0 { stamp.as_str() } else { "" };
                println!("{label:10}  {}  {z:6.2}  {kind}", clock(*t));
            }
        }
        date = date.next();
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("tidetool: {message}");
            ExitCode::from(2)
        }
    }
}
