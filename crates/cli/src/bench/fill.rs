//! Many znodes, created as fast as the server takes them.

use super::{
    counted,
    error::{BenchError, Result},
    fleet::{Driver, Fleet},
    meter::Meter,
    ops::multi_error,
    process::Process,
    progress::Progress,
    report::Report,
    session::Target,
    tally::Tally,
    template::{self, Build, Path, Template},
    tree,
};
use clap::Args;
use ostler_proto::{op::Op, reply::ReplyHeader};
use std::{collections::VecDeque, time::Duration};

const TURN: Duration = Duration::from_millis(100);

/// Create many znodes as fast as the server allows, and keep them.
///
/// An operation is a create, or with --batch a multi of creates.
#[derive(Args)]
#[command(after_help = "Example: ostler bench fill --nodes 100000 --batch 100 --root /full")]
pub(crate) struct Options {
    /// Number of znodes to create.
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    nodes: u32,
    /// Number of znodes below each parent; the parents are not counted in --nodes.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    children_per_node: u32,
    /// Bytes of data in each znode.
    #[arg(long, default_value_t = 100, value_name = "BYTES")]
    value_size: usize,
    /// Number of clients, each with its own connection and session.
    #[arg(long, default_value_t = 4, value_name = "N")]
    sessions: usize,
    /// Number of requests that each session keeps unanswered at a time.
    #[arg(long, default_value_t = 200, value_name = "N")]
    outstanding: usize,
    /// Number of creates in one multi; 1 sends creates without a multi.
    #[arg(long, default_value_t = 1, value_name = "N")]
    batch: u32,
    /// Parent of all znodes of the run; must not have znodes of an earlier run below it.
    #[arg(long, default_value = "/fill", value_name = "PATH")]
    root: String,
}

pub(crate) fn run(options: &Options, target: Target, process: Option<Process>) -> Result<Report> {
    if [options.nodes, options.children_per_node, options.batch].contains(&0)
        || options.sessions == 0
        || options.outstanding == 0
    {
        return Err(BenchError::Usage("--nodes and all other counts must be at least 1".into()));
    }
    let shape = Shape::of(options);
    let mut session = target.open()?;
    tree::make_parents(&mut session, &options.root)?;
    tree::make_keys(&mut session, &shape.parent(), shape.parents, b"")?;
    session.close();

    let mut progress = Progress::new("fill");
    let mut fleet = Fleet::new(target.open_many(options.sessions, |_| {})?)?;
    let mut filler = Filler::new(options, &shape);
    let meter = Meter::start(process);
    fleet.refill_all(&mut filler)?;
    while filler.answered < options.nodes {
        fleet.turn(&mut filler, TURN)?;
        progress.show(filler.answered.into(), "znodes");
    }
    let metered = meter.stop(options.nodes.into());
    drop(progress);

    let seconds = metered.seconds;
    let settings = format!(
        "{} znodes of {} bytes, {} x {} outstanding, batches of {}",
        options.nodes,
        options.value_size,
        counted(options.sessions, "session"),
        options.outstanding,
        options.batch
    );
    let mut report = Report::new("fill", target.server, settings, &filler.tally, metered);
    report.figure("znodes", "per_second", f64::from(options.nodes) / seconds);
    fleet.close()?;
    Ok(report)
}

/// Which znode is where.
struct Shape {
    root: String,
    parents: u32,
    parent_width: usize,
    child_width: usize,
    children_per_node: u32,
}

impl Shape {
    fn of(options: &Options) -> Shape {
        let parents = options.nodes.div_ceil(options.children_per_node);
        let digits = |number: u32| number.to_string().len();
        Shape {
            root: options.root.clone(),
            parents,
            parent_width: digits(parents - 1).max(4),
            child_width: digits(options.children_per_node - 1).max(6),
            children_per_node: options.children_per_node,
        }
    }

    fn parent(&self) -> Path {
        Path::numbered(format!("{}/", self.root), 0, self.parent_width)
    }

    /// A child whose parent's number is in `slot` and whose own is in the one after it.
    fn child(&self, slot: usize) -> Path {
        let parent = Path::numbered(format!("{}/", self.root), slot, self.parent_width);
        parent.then("/", slot + 1, self.child_width)
    }

    fn numbers(&self, node: u32) -> [u32; 2] {
        [node / self.children_per_node, node % self.children_per_node]
    }
}

/// The driver: hands out znodes in order to whichever session has room.
struct Filler<'a> {
    shape: &'a Shape,
    nodes: u32,
    batch: u32,
    outstanding: usize,
    one: Template,
    many: Template,
    handed_out: u32,
    answered: u32,
    links: Vec<Link>,
    numbers: Vec<u32>,
    tally: Tally,
}

struct Link {
    /// When each outstanding request was sent, and how many znodes it creates.
    sent: VecDeque<(u64, u32)>,
    next_xid: i32,
    due_xid: i32,
}

impl<'a> Filler<'a> {
    fn new(options: &Options, shape: &'a Shape) -> Filler<'a> {
        let value = vec![b'x'; options.value_size];
        let multi = (0..options.batch as usize).fold(Build::new(Op::Multi), |multi, place| {
            multi.multi_op(Op::Create).create_body(&shape.child(2 * place), &value)
        });
        Filler {
            shape,
            nodes: options.nodes,
            batch: options.batch,
            outstanding: options.outstanding,
            one: template::create(&shape.child(0), &value),
            many: multi.multi_end(),
            handed_out: 0,
            answered: 0,
            links: (0..options.sessions)
                .map(|_| Link { sent: VecDeque::new(), next_xid: 1, due_xid: 1 })
                .collect(),
            numbers: Vec::new(),
            tally: Tally::new(),
        }
    }
}

impl Driver for Filler<'_> {
    fn reply(&mut self, number: usize, now: u64, header: ReplyHeader, body: &[u8]) -> Result<()> {
        let link = &mut self.links[number];
        let due = link.sent.pop_front().filter(|_| header.xid.0 == link.due_xid);
        let Some((sent, nodes)) = due else {
            return Err(BenchError::OutOfOrder { number, expected: link.due_xid, got: header.xid.0 });
        };
        link.due_xid += 1;
        let error = if nodes > 1 && header.error == 0 { multi_error(body) } else { header.error };
        self.tally.count(now.saturating_sub(sent), error);
        self.answered += nodes;
        Ok(())
    }

    fn refill(&mut self, number: usize, now: u64, out: &mut Vec<u8>) {
        let link = &mut self.links[number];
        while link.sent.len() < self.outstanding && self.handed_out < self.nodes {
            // A rest that fills no batch goes as single creates.
            let whole_batch = self.batch > 1 && self.nodes - self.handed_out >= self.batch;
            let (template, nodes) = if whole_batch { (&self.many, self.batch) } else { (&self.one, 1) };
            self.numbers.clear();
            self.numbers
                .extend((self.handed_out..self.handed_out + nodes).flat_map(|node| self.shape.numbers(node)));
            template.append(out, link.next_xid, &self.numbers);
            link.sent.push_back((now, nodes));
            link.next_xid += 1;
            self.handed_out += nodes;
        }
    }
}
