//! `gguf graph`: shows or stores the computation graph.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_graph::{Graph, Workload, stored};
use gguf_kit::bench::Machine;
use gguf_kit::edit::{Changes, Rewritten, in_place, rewrite};
use gguf_kit::key_value::KeyValue;
use gguf_kit::open;
use gguf_kit::run::model_graph;
use gguf_remote::Location;
use gguf_runtime::graph_cost::{GraphCost, OpCost};
use gguf_store::{AtomicFile, Model};

use crate::commands::{self, render_template};
use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{listing, model_args};

/// Show the computation graph of a model.
///
/// Lists each operation with its cost. Can store the graph in the file, so that programs without support for
/// the architecture can run it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf graph model.gguf\n  \
                        gguf graph model.gguf --tokens 512 --measure\n  \
                        gguf graph model.gguf --dot | dot -Tpng > model.png\n  \
                        gguf graph model.gguf --store -o with-graph.gguf")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    /// Batch size in tokens.
    #[arg(long, value_name = "N", default_value_t = 1)]
    tokens: u64,
    /// Number of tokens already in the KV cache.
    #[arg(long, alias = "before", value_name = "N", default_value_t = 0)]
    n_past: u64,
    /// Number of encoder frames.
    #[arg(long, value_name = "N", default_value_t = 3000)]
    frames: u64,
    /// Measure memory bandwidth and compute throughput of this machine, in about a second.
    #[arg(long, conflicts_with_all = ["dot", "svg", "store"])]
    measure: bool,
    /// Computation graph: of the architecture, or stored in the file.
    #[arg(long, value_enum, default_value_t = model_args::Graph::Auto)]
    graph: model_args::Graph,
    #[command(flatten)]
    format: Format,
    /// Store the graph in the file, or in the file given with -o.
    #[arg(long, conflicts_with_all = ["json", "dot", "svg", "tokens"])]
    store: bool,
    /// Output file of --store.
    #[arg(short, long, value_name = "FILE", requires = "store")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Format {
    /// Print the graph and its cost as JSON.
    #[arg(long)]
    json: bool,
    /// Print the graph in DOT, for Graphviz.
    #[arg(long)]
    dot: bool,
    /// Write an SVG image.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.store && args.output.is_none() {
        return store_in_place(args);
    }
    let opened = open(&args.source)?;
    let graph = args.graph(opened.model())?;
    if let (true, Some(output)) = (args.store, &args.output) {
        let changes = changes(&graph)?;
        let Rewritten { job, .. } =
            rewrite(opened.model(), &changes, &render_template::renderer()?)?;
        return commands::write(&job, output, &args.force.protecting(opened.files()));
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.format.dot {
        out.write_all(graph.to_dot().as_bytes())?;
        return Ok(out.flush()?);
    }
    if let Some(path) = &args.format.svg {
        let svg = gguf_kit::report::graph_svg(&graph);
        return Ok(AtomicFile::write(
            path,
            svg.as_bytes(),
            &args.force.protecting(opened.files()),
        )?);
    }
    let load = Workload {
        tokens: args.tokens,
        outputs: args.tokens,
        past: args.n_past,
        frames: args.frames,
    };
    let report = GraphCost::new(opened.model(), &graph, load);
    let machine = args.measure.then(Machine::measure);
    if args.format.json {
        print_json(&graph, &report, machine, &mut out)
    } else {
        print(&graph, &report, machine, &mut out)
    }?;
    Ok(out.flush()?)
}

impl Args {
    fn graph(&self, model: &Model) -> Result<Graph, Failure> {
        Ok(model_graph(model, self.graph.source())
            .map_err(|error| error.in_file(self.source.as_ref()))?)
    }
}

/// Returns the edit that stores a graph.
fn changes(graph: &Graph) -> Result<Changes, Failure> {
    let (version, text) = (stored::VERSION, stored::to_text(graph));
    let set = [
        format!("{}:u32={version}", stored::VERSION_KEY),
        format!("{}:str={text}", stored::GRAPH_KEY),
    ];
    let set: Result<Vec<KeyValue>, _> = set.iter().map(|text| text.parse()).collect();
    let set = set.map_err(|fault| Failure::Usage(format!("{fault}")))?;
    Ok(Changes { set, ..Changes::default() })
}

fn store_in_place(args: &Args) -> Result<(), Failure> {
    let Location::Path(path) = Location::parse(&args.source)? else {
        return Err(Failure::Usage("a remote file cannot be edited in place: use -o".into()));
    };
    let graph = args.graph(open(&args.source)?.model())?;
    let progress = Progress::new();
    let renderer = render_template::renderer()?;
    let (path, _) = in_place(&path, &changes(&graph)?, &renderer, &progress)?;
    progress.finish();
    report_stored(&path, &graph);
    Ok(())
}

fn report_stored(path: &Path, graph: &Graph) {
    let ops =
        graph.main().0.ops.len() + graph.encoder().map_or(0, |(program, _)| program.ops.len());
    eprintln!("{}: stored a graph of {ops} operations", path.display());
}

fn print(
    graph: &Graph,
    report: &GraphCost,
    machine: Option<Machine>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(out, "{}", graph.raw().architecture)?;
    let mut encoder = false;
    for row in &report.ops {
        if row.encoder != encoder || row.number == 0 {
            encoder = row.encoder;
            writeln!(out, "{}", if encoder { "encoder" } else { "main program" })?;
        }
        let OpCost { number, op, shape, weights, bytes, multiply_adds, .. } = row;
        let read = if *bytes > 0 { listing::bytes(*bytes) } else { String::new() };
        let adds = if *multiply_adds > 0 { listing::count(*multiply_adds) } else { String::new() };
        let weights = weights.join(", ");
        writeln!(out, "{number:5}  {op:18}  {shape:22}  {read:>8}  {adds:>6}  {weights}")?;
    }
    writeln!(
        out,
        "weights read: {}, multiply-adds: {}, KV cache: {} values per token",
        listing::bytes(report.bytes),
        listing::count(report.multiply_adds),
        report.cache_width
    )?;
    if let Some(machine) = machine {
        let (memory, compute) = report.limits(machine);
        writeln!(
            out,
            "{} threads: memory bandwidth {}/s, {} multiply-adds/s; limits: {memory:.1} runs/s (memory), {compute:.1} runs/s (compute)",
            machine.threads,
            listing::bytes(machine.bytes_per_second as u64),
            listing::count(machine.multiply_adds_per_second as u64)
        )?;
    }
    Ok(())
}

fn print_json(
    graph: &Graph,
    report: &GraphCost,
    machine: Option<Machine>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let shown = gguf_kit::json::graph(graph, report, machine);
    Ok(document::print(out, "graph/2", shown)?)
}
