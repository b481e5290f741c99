//! The model against a simulated server: random changes from a seed, answers in any order, and lost connections. Then a
//! table of scripts.

use super::*;
use ostler_client::Zxid;
use rand_xoshiro::{
    SplitMix64,
    rand_core::{RngCore, SeedableRng},
};
use std::collections::HashSet;

#[derive(Debug, Clone)]
struct Znode {
    data: u64,
    stat: Stat,
}

#[derive(Debug, Clone)]
enum Message {
    Event(EventKind, String),
    Answer(NodeRead, ReadAnswer),
}

/// A server's znodes, the watches of one client, and the messages between both.
struct World {
    random: SplitMix64,
    watching: Watching,
    zxid: u64,
    /// The newest transaction when the cache was started.
    started: Zxid,
    znodes: BTreeMap<String, Znode>,
    watches: HashSet<(ReadKind, String)>,
    connected: bool,
    /// Reads that have not reached the server.
    requests: VecDeque<NodeRead>,
    /// Messages from the server that have not reached the client.
    wire: VecDeque<Message>,
    /// Answers that have come and that the model has not got.
    arrived: Vec<(NodeRead, ReadAnswer)>,
    model: Model,
    events: Vec<CacheEvent>,
}

const ROOT: &str = "/r";
const PATHS: [&str; 9] =
    ["/r", "/r/a", "/r/a/x", "/r/a/y", "/r/b", "/r/b/x", "/r/b/x/deep", "/r/c", "/other"];

impl World {
    fn new(seed: u64, scope: Scope, watching: Watching) -> World {
        let mut world = World {
            random: SplitMix64::seed_from_u64(seed),
            watching,
            zxid: 0,
            started: Zxid(0),
            znodes: BTreeMap::new(),
            watches: HashSet::new(),
            connected: true,
            requests: VecDeque::new(),
            wire: VecDeque::new(),
            arrived: Vec::new(),
            model: Model::new(ROOT, scope, watching),
            events: Vec::new(),
        };
        for _ in 0..world.below(30) {
            world.write();
        }
        world.started = Zxid(world.zxid);
        world.wire.clear();
        world.with_model(|model, effects| model.begin_sweep(effects));
        world
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn with_model(&mut self, act: impl FnOnce(&mut Model, &mut Effects)) {
        let mut effects = Effects::default();
        act(&mut self.model, &mut effects);
        self.requests.extend(effects.reads);
        self.events.extend(effects.events);
    }

    fn write(&mut self) {
        let path = PATHS[self.below(PATHS.len() as u64) as usize];
        let kind = self.below(3);
        let there = self.znodes.contains_key(path);
        let parent = paths::parent(path).unwrap().to_owned();
        self.zxid += 1;
        let zxid = Zxid(self.zxid);
        match kind {
            0 if there => {
                let znode = self.znodes.get_mut(path).unwrap();
                znode.data += 1;
                // The version stays: the model must not rely on it, because versions overflow and start again.
                znode.stat.mzxid = zxid;
                self.fire(EventKind::NodeDataChanged, path);
            }
            1 if there => {
                let whole: Vec<String> = below(&self.cached(), path).map(|(path, _)| path.clone()).collect();
                for path in whole.iter().rev().map(String::as_str).chain([path]) {
                    self.delete(path);
                }
            }
            _ if !there && (parent == "/" || self.znodes.contains_key(&parent)) => {
                let stat = Stat { czxid: zxid, mzxid: zxid, pzxid: zxid, ..Stat::default() };
                self.znodes.insert(path.to_owned(), Znode { data: 0, stat });
                self.touch(&parent, 1);
                self.fire(EventKind::NodeCreated, path);
            }
            _ => {}
        }
    }

    fn delete(&mut self, path: &str) {
        self.zxid += 1;
        self.znodes.remove(path);
        self.fire(EventKind::NodeDeleted, path);
        self.touch(paths::parent(path).unwrap(), -1);
    }

    fn touch(&mut self, parent: &str, by: i32) {
        let zxid = Zxid(self.zxid);
        if let Some(parent) = self.znodes.get_mut(parent) {
            parent.stat.pzxid = zxid;
            parent.stat.num_children += by;
        }
        self.fire(EventKind::NodeChildrenChanged, parent);
    }

    /// Fires the watches of a change, as a server does.
    fn fire(&mut self, kind: EventKind, path: &str) {
        if self.watching == Watching::Persistent {
            let wanted = match self.model.scope {
                Scope::Node => path == ROOT,
                _ => kind != EventKind::NodeChildrenChanged && (path == ROOT || is_below(path, ROOT)),
            };
            if self.connected && wanted {
                self.wire.push_back(Message::Event(kind, path.to_owned()));
            }
            return;
        }
        let fired: &[ReadKind] = match kind {
            EventKind::NodeChildrenChanged => &[ReadKind::Children],
            EventKind::NodeDeleted => &[ReadKind::Data, ReadKind::Children],
            _ => &[ReadKind::Data],
        };
        for read in fired {
            if self.watches.remove(&(*read, path.to_owned())) {
                // `one_shot.rs` passes deletions on by the watch of the data only.
                if *read == ReadKind::Data || kind == EventKind::NodeChildrenChanged {
                    self.wire.push_back(Message::Event(kind, path.to_owned()));
                }
            }
        }
    }

    /// The next read reaches the server.
    fn serve(&mut self) {
        let Some(read) = self.requests.pop_front() else { return };
        let answer = match self.znodes.get(&read.path) {
            None => ReadAnswer::NoNode,
            Some(znode) => match read.kind {
                ReadKind::Data => ReadAnswer::Data(Bytes::from(znode.data.to_string()), znode.stat),
                ReadKind::Children => {
                    let names =
                        children(&self.cached(), &read.path).map(|node| node.name().to_owned()).collect();
                    ReadAnswer::Children(names, znode.stat)
                }
            },
        };
        if self.watching == Watching::OneShot {
            // `one_shot.rs` watches for the creation of the root.
            let watched = answer != ReadAnswer::NoNode || (read.path == ROOT && read.kind == ReadKind::Data);
            if watched {
                self.watches.insert((read.kind, read.path.clone()));
            }
        }
        self.wire.push_back(Message::Answer(read, answer));
    }

    fn receive(&mut self) {
        match self.wire.pop_front() {
            Some(Message::Event(kind, path)) => {
                self.with_model(|model, effects| model.watch_fired(kind, &path, effects));
            }
            Some(Message::Answer(read, answer)) => self.arrived.push((read, answer)),
            None => {}
        }
    }

    /// Gives the model a random one of the answers that have come.
    fn deliver_answer(&mut self) {
        if self.arrived.is_empty() {
            return;
        }
        let at = self.below(self.arrived.len() as u64) as usize;
        let (read, answer) = self.arrived.swap_remove(at);
        self.with_model(|model, effects| _ = model.read_answered(&read, answer, effects));
    }

    /// Loses the messages on the wire. Reads without an answer are sent again, after the event of the gap.
    fn reconnect(&mut self) {
        self.connected = false;
        let lost: Vec<Message> = self.wire.drain(..).collect();
        for _ in 0..self.below(6) {
            self.write();
        }
        self.connected = true;
        for message in lost {
            match message {
                Message::Answer(read, _) => self.requests.push_back(read),
                // The server compares zxids, and fires the watches again that must fire.
                Message::Event(kind, path) if self.watching == Watching::OneShot => {
                    self.wire.push_back(Message::Event(kind, path));
                }
                Message::Event(..) => {}
            }
        }
        if self.watching == Watching::Persistent {
            self.wire.push_back(Message::Event(EventKind::Gap, String::new()));
        }
    }

    fn step(&mut self) {
        match self.below(12) {
            0..=1 => self.write(),
            2..=4 => self.serve(),
            5..=8 => self.receive(),
            9..=10 => self.deliver_answer(),
            _ if self.below(8) == 0 => self.reconnect(),
            _ => {}
        }
    }

    fn deliver_all(&mut self) {
        while !(self.requests.is_empty() && self.wire.is_empty() && self.arrived.is_empty()) {
            self.serve();
            self.receive();
            self.deliver_answer();
        }
    }

    /// The znodes as a cache would hold them.
    fn cached(&self) -> BTreeMap<String, Arc<CachedNode>> {
        let node = |(path, znode): (&String, &Znode)| {
            let data = Bytes::from(znode.data.to_string());
            (path.clone(), Arc::new(CachedNode { path: path.clone(), data, stat: znode.stat }))
        };
        self.znodes.iter().map(node).collect()
    }

    fn check(&self, seed: u64) {
        let held = |nodes: &BTreeMap<String, Arc<CachedNode>>| -> Vec<(String, Bytes, Zxid)> {
            nodes
                .values()
                .filter(|node| self.model.covers(&node.path))
                .map(|node| (node.path.clone(), node.data.clone(), node.stat.czxid))
                .collect()
        };
        assert_eq!(held(&self.model.nodes), held(&self.cached()), "seed {seed}: the cache is the tree");
        let mut replayed = BTreeMap::new();
        let mut initialized = 0;
        for event in &self.events {
            match event {
                CacheEvent::Created(node) => {
                    let before = replayed.insert(node.path.clone(), node.clone());
                    assert!(before.is_none(), "seed {seed}: {} created twice", node.path);
                }
                CacheEvent::Changed { old, new } => {
                    let before = replayed.insert(new.path.clone(), new.clone());
                    assert_eq!(before.map(|node| node.data.clone()), Some(old.data.clone()), "seed {seed}");
                    assert!(old.stat.mzxid < new.stat.mzxid, "seed {seed}: back in time");
                }
                CacheEvent::Deleted(node) => {
                    assert!(replayed.remove(&node.path).is_some(), "seed {seed}: {} phantom", node.path);
                    assert!(below(&replayed, &node.path).next().is_none(), "seed {seed}: children left");
                }
                CacheEvent::Initialized => {
                    initialized += 1;
                    let stayed = self.cached().into_values().filter(|node| node.stat.czxid <= self.started);
                    for node in stayed.filter(|node| self.model.covers(&node.path)) {
                        assert!(replayed.contains_key(&node.path), "seed {seed}: {} too late", node.path);
                    }
                }
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert_eq!(held(&replayed), held(&self.cached()), "seed {seed}: the events add up to the tree");
        assert_eq!(initialized, 1, "seed {seed}: initialized once");
    }
}

#[test]
fn cache_and_events_equal_the_tree_after_random_changes_and_reconnects() {
    for watching in [Watching::Persistent, Watching::OneShot] {
        for scope in [Scope::Tree, Scope::Children, Scope::Node] {
            for seed in 0..6000 {
                let mut world = World::new(seed, scope, watching);
                for _ in 0..world.below(300) {
                    world.step();
                }
                world.deliver_all();
                world.check(seed);
                assert!(world.model.pending.is_empty());
            }
        }
    }
}

/// Plays a script on a model, and compares the model's reads and events, as text. Events in the script: `+path` created,
/// `=path` data changed, `-path` deleted, `gap`. Answers in the script: `path@czxid.mzxid` data,
/// `path[names]@czxid.pzxid` children, `path!` no such znode.
fn check(script: &str, expected: &str) {
    let mut model = Model::new("/r", Scope::Tree, Watching::Persistent);
    let mut effects = Effects::default();
    for word in script.split_whitespace() {
        play(&mut model, word, &mut effects);
    }
    let reads = effects.reads.iter().map(|read| match read.kind {
        ReadKind::Data => format!("?{}", read.path),
        ReadKind::Children => format!("?{}[]", read.path),
    });
    let events = effects.events.iter().map(|event| match event {
        CacheEvent::Created(node) => format!("+{}", node.path),
        CacheEvent::Changed { new, .. } => format!("={}", new.path),
        CacheEvent::Deleted(node) => format!("-{}", node.path),
        CacheEvent::Initialized => "initialized".to_owned(),
        other => format!("{other:?}"),
    });
    let seen = reads.chain(events).collect::<Vec<_>>().join(" ");
    assert_eq!(seen, expected, "{script}");
}

fn play(model: &mut Model, word: &str, effects: &mut Effects) {
    let zxids = |text: &str| {
        let (first, second) = text.split_once('.').unwrap();
        (Zxid(first.parse().unwrap()), Zxid(second.parse().unwrap()))
    };
    let data = |path: &str| NodeRead { kind: ReadKind::Data, path: path.into() };
    if word == "gap" {
        model.begin_sweep(effects);
    } else if let Some(path) = word.strip_prefix('+') {
        model.watch_fired(EventKind::NodeCreated, path, effects);
    } else if let Some(path) = word.strip_prefix('=') {
        model.watch_fired(EventKind::NodeDataChanged, path, effects);
    } else if let Some(path) = word.strip_prefix('-') {
        model.watch_fired(EventKind::NodeDeleted, path, effects);
    } else if let Some(path) = word.strip_suffix('!') {
        model.read_answered(&data(path), ReadAnswer::NoNode, effects);
    } else if let Some((path, rest)) = word.split_once('[') {
        let (names, at) = rest.split_once("]@").unwrap();
        let (czxid, pzxid) = zxids(at);
        let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let read = NodeRead { kind: ReadKind::Children, path: path.into() };
        let mzxid = model.nodes.get(path).map_or(czxid, |node| node.stat.mzxid);
        model.read_answered(
            &read,
            ReadAnswer::Children(names, Stat { czxid, mzxid, pzxid, ..Stat::default() }),
            effects,
        );
    } else {
        let (path, at) = word.split_once('@').unwrap();
        let (czxid, mzxid) = zxids(at);
        let stat = Stat { czxid, mzxid, num_children: 1, ..Stat::default() };
        model.read_answered(&data(path), ReadAnswer::Data(Bytes::new(), stat), effects);
    }
}

#[test]
fn scripts_of_events_and_answers_give_the_expected_reads_and_events() {
    // The root does not exist.
    check("gap /r!", "?/r initialized");
    check("gap /r@1.1 /r[]@1.1", "?/r ?/r[] +/r initialized");
    check("gap /r@1.1 /r[a]@1.2 /r/a!", "?/r ?/r[] ?/r/a +/r initialized");
    // A change while a read is under way: the answer may be older than the change, so the znode is read again.
    check("gap =/r /r@1.1 /r@1.2 /r[]@1.1", "?/r ?/r[] ?/r +/r =/r initialized");
    check("gap =/r /r@1.1 /r@1.1 /r[]@1.1", "?/r ?/r[] ?/r +/r initialized");
    // `Initialized` does not wait for a znode that is created after the start.
    check("gap /r@1.1 +/r/b /r[]@1.1 =/r/b /r/b@5.5", "?/r ?/r[] ?/r/b ?/r/b[] ?/r/b +/r initialized +/r/b");
    // The parent's answer is older than the child: the list of children has the child.
    check(
        "gap /r! +/r +/r/a /r/a@3.3 /r@2.2 /r[a]@2.3 /r/a@3.3",
        "?/r ?/r ?/r/a ?/r[] ?/r ?/r/a ?/r/a[] initialized +/r +/r/a",
    );
    // Deleted while its data is on the way: not reported as created.
    check("gap /r@1.1 /r[a]@1.2 -/r/a /r/a@2.2 /r/a!", "?/r ?/r[] ?/r/a ?/r/a +/r initialized");
    // A list without a child removes the child only if the list is not older than the child.
    let start = "gap /r@1.1 /r[]@1.1 +/r/a /r/a@5.5 /r/a[]@5.5";
    let began = "?/r ?/r[] ?/r/a ?/r/a[]";
    check(&format!("{start} gap /r[]@1.4"), &format!("{began} ?/r[] +/r initialized +/r/a"));
    check(&format!("{start} gap /r[]@1.5"), &format!("{began} ?/r[] +/r initialized +/r/a -/r/a"));
    // Deleted and created again without an event: the version is the same, the czxid differs.
    check(
        &format!("{start} gap /r[a]@1.9 /r/a[]@8.8 /r/a@8.8"),
        &format!("{began} ?/r[] ?/r/a[] ?/r/a ?/r/a[] +/r initialized +/r/a -/r/a +/r/a"),
    );
    // Events about znodes outside of the root are ignored.
    check("gap /r! +/rx +/r0 =/ -/other", "?/r initialized");
}

/// Each answer is older than an event that has come before it, and newer than the cache's content.
#[test]
fn znode_that_changes_in_every_round_trip_is_held() {
    let mut model = Model::new("/r", Scope::Node, Watching::Persistent);
    let mut effects = Effects::default();
    model.begin_sweep(&mut effects);
    for zxid in 1..=100 {
        model.watch_fired(EventKind::NodeDataChanged, "/r", &mut effects);
        let read = effects.reads.pop_front().unwrap();
        let stat = Stat { czxid: Zxid(1), mzxid: Zxid(zxid), ..Stat::default() };
        let answer = ReadAnswer::Data(Bytes::from(zxid.to_string()), stat);
        assert!(!model.read_answered(&read, answer, &mut effects), "it is read again");
        assert_eq!(model.nodes["/r"].data, zxid.to_string());
        assert!(model.initialized);
    }
    let mut events = effects.events.into_iter();
    assert!(matches!(events.next(), Some(CacheEvent::Created(_))));
    assert_eq!(events.next(), Some(CacheEvent::Initialized));
    assert_eq!(events.filter(|event| matches!(event, CacheEvent::Changed { .. })).count(), 99);
}

/// CURATOR-690: the counter of reads under way must not be limited to 65,535.
#[test]
fn curator_690_more_than_64k_children_are_read() {
    let mut model = Model::new("/r", Scope::Tree, Watching::OneShot);
    let mut effects = Effects::default();
    model.begin_sweep(&mut effects);
    let stat = |zxid| Stat { czxid: Zxid(zxid), mzxid: Zxid(zxid), pzxid: Zxid(70_000), ..Stat::default() };
    let mut asked = 0;
    while let Some(read) = effects.reads.pop_front() {
        asked += 1;
        let answer = match (read.kind, read.path.as_str()) {
            (ReadKind::Children, "/r") => {
                ReadAnswer::Children((0..70_000).map(|n| n.to_string()).collect(), stat(1))
            }
            (ReadKind::Children, _) => ReadAnswer::Children(Vec::new(), stat(asked)),
            (ReadKind::Data, path) => {
                ReadAnswer::Data(Bytes::new(), if path == "/r" { stat(1) } else { stat(asked) })
            }
        };
        assert!(!model.initialized);
        let answer = match answer {
            ReadAnswer::Children(names, _) if read.path != "/r" => {
                ReadAnswer::Children(names, model.nodes[&read.path].stat)
            }
            answer => answer,
        };
        model.read_answered(&read, answer, &mut effects);
    }
    assert!(model.initialized);
    assert_eq!((model.nodes.len(), asked), (70_001, 140_002));
}
