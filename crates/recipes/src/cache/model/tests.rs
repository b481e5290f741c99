//! The model beside a server that a seed drives, with answers in any order and lost connections; and a table.

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
    Answer(Ask, Answer),
}

/// Znodes, the watches of one client, and what is on its way to it.
struct World {
    random: SplitMix64,
    watching: Watching,
    zxid: u64,
    /// The newest transaction when the cache was started.
    started: Zxid,
    znodes: BTreeMap<String, Znode>,
    watches: HashSet<(What, String)>,
    connected: bool,
    /// Asked and not yet at the server.
    requests: VecDeque<Ask>,
    wire: VecDeque<Message>,
    /// Answers that have come and that nobody has looked at.
    arrived: Vec<(Ask, Answer)>,
    model: Model,
    told: Vec<CacheEvent>,
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
            told: Vec::new(),
        };
        for _ in 0..world.below(30) {
            world.write();
        }
        world.started = Zxid(world.zxid);
        world.wire.clear();
        world.with_model(|model, effects| model.gap(effects));
        world
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn with_model(&mut self, act: impl FnOnce(&mut Model, &mut Effects)) {
        let mut effects = Effects::default();
        act(&mut self.model, &mut effects);
        self.requests.extend(effects.asks);
        self.told.extend(effects.told);
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
                // Versions are of no use: they overflow, and begin anew.
                znode.stat.mzxid = zxid;
                self.tell(EventKind::NodeDataChanged, path);
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
                self.tell(EventKind::NodeCreated, path);
            }
            _ => {}
        }
    }

    fn delete(&mut self, path: &str) {
        self.zxid += 1;
        self.znodes.remove(path);
        self.tell(EventKind::NodeDeleted, path);
        self.touch(paths::parent(path).unwrap(), -1);
    }

    fn touch(&mut self, parent: &str, by: i32) {
        let zxid = Zxid(self.zxid);
        if let Some(parent) = self.znodes.get_mut(parent) {
            parent.stat.pzxid = zxid;
            parent.stat.num_children += by;
        }
        self.tell(EventKind::NodeChildrenChanged, parent);
    }

    /// The watches that an event fires, as a server does it.
    fn tell(&mut self, kind: EventKind, path: &str) {
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
        let fired: &[What] = match kind {
            EventKind::NodeChildrenChanged => &[What::Children],
            EventKind::NodeDeleted => &[What::Data, What::Children],
            _ => &[What::Data],
        };
        for what in fired {
            // The watch stays marked as fired; after a reconnect the server finds that it must fire.
            if self.watches.remove(&(*what, path.to_owned())) {
                // Shells tell deletions by the watch of the data only.
                if *what == What::Data || kind == EventKind::NodeChildrenChanged {
                    self.wire.push_back(Message::Event(kind, path.to_owned()));
                }
            }
        }
    }

    /// The next request reaches the server.
    fn serve(&mut self) {
        let Some(ask) = self.requests.pop_front() else { return };
        let answer = match self.znodes.get(&ask.path) {
            None => Answer::NoNode,
            Some(znode) => match ask.what {
                What::Data => Answer::Data(Bytes::from(znode.data.to_string()), znode.stat),
                What::Children => {
                    let names =
                        children(&self.cached(), &ask.path).map(|node| node.name().to_owned()).collect();
                    Answer::Children(names, znode.stat)
                }
            },
        };
        if self.watching == Watching::OneShot {
            // At the root the shell watches for its creation.
            let watched = answer != Answer::NoNode || (ask.path == ROOT && ask.what == What::Data);
            if watched {
                self.watches.insert((ask.what, ask.path.clone()));
            }
        }
        self.wire.push_back(Message::Answer(ask, answer));
    }

    fn receive(&mut self) {
        match self.wire.pop_front() {
            Some(Message::Event(kind, path)) => {
                self.with_model(|model, effects| model.changed(kind, &path, effects));
            }
            Some(Message::Answer(ask, answer)) => self.arrived.push((ask, answer)),
            None => {}
        }
    }

    /// Gives the model one of the answers that have come, any of them.
    fn look(&mut self) {
        if self.arrived.is_empty() {
            return;
        }
        let at = self.below(self.arrived.len() as u64) as usize;
        let (ask, answer) = self.arrived.swap_remove(at);
        self.with_model(|model, effects| _ = model.answered(&ask, answer, effects));
    }

    /// What is on the wire is lost; requests without an answer are sent again, after the gap is told.
    fn reconnect(&mut self) {
        self.connected = false;
        let lost: Vec<Message> = self.wire.drain(..).collect();
        for _ in 0..self.below(6) {
            self.write();
        }
        self.connected = true;
        for message in lost {
            match message {
                Message::Answer(ask, _) => self.requests.push_back(ask),
                // The server compares transactions, and fires again what must fire.
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
            9..=10 => self.look(),
            _ if self.below(8) == 0 => self.reconnect(),
            _ => {}
        }
    }

    fn settle(&mut self) {
        while !(self.requests.is_empty() && self.wire.is_empty() && self.arrived.is_empty()) {
            self.serve();
            self.receive();
            self.look();
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
                .filter(|node| self.model.holds(&node.path))
                .map(|node| (node.path.clone(), node.data.clone(), node.stat.czxid))
                .collect()
        };
        assert_eq!(held(&self.model.nodes), held(&self.cached()), "seed {seed}: the cache is the tree");
        let mut replayed = BTreeMap::new();
        let mut initialized = 0;
        for event in &self.told {
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
                    for node in stayed.filter(|node| self.model.holds(&node.path)) {
                        assert!(replayed.contains_key(&node.path), "seed {seed}: {} too late", node.path);
                    }
                }
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert_eq!(held(&replayed), held(&self.cached()), "seed {seed}: the events tell the same");
        assert_eq!(initialized, 1, "seed {seed}: initialized once");
    }
}

#[test]
fn whatever_happens_the_cache_and_its_events_end_up_as_the_tree_is() {
    for watching in [Watching::Persistent, Watching::OneShot] {
        for scope in [Scope::Tree, Scope::Children, Scope::Node] {
            for seed in 0..6000 {
                let mut world = World::new(seed, scope, watching);
                for _ in 0..world.below(300) {
                    world.step();
                }
                world.settle();
                world.check(seed);
                assert!(world.model.under_way.is_empty());
            }
        }
    }
}

/// What a script does to a model, as text: `+path` created, `=path` data changed, `-path` deleted, `gap`,
/// `path@czxid.mzxid` data read, `path[names]@czxid.pzxid` listed, `path!` not there.
fn check(script: &str, expected: &str) {
    let mut model = Model::new("/r", Scope::Tree, Watching::Persistent);
    let mut effects = Effects::default();
    for word in script.split_whitespace() {
        play(&mut model, word, &mut effects);
    }
    let asks = effects.asks.iter().map(|ask| match ask.what {
        What::Data => format!("?{}", ask.path),
        What::Children => format!("?{}[]", ask.path),
    });
    let told = effects.told.iter().map(|event| match event {
        CacheEvent::Created(node) => format!("+{}", node.path),
        CacheEvent::Changed { new, .. } => format!("={}", new.path),
        CacheEvent::Deleted(node) => format!("-{}", node.path),
        CacheEvent::Initialized => "initialized".to_owned(),
        other => format!("{other:?}"),
    });
    let seen = asks.chain(told).collect::<Vec<_>>().join(" ");
    assert_eq!(seen, expected, "{script}");
}

fn play(model: &mut Model, word: &str, effects: &mut Effects) {
    let zxids = |text: &str| {
        let (first, second) = text.split_once('.').unwrap();
        (Zxid(first.parse().unwrap()), Zxid(second.parse().unwrap()))
    };
    let data = |path: &str| Ask { what: What::Data, path: path.into() };
    if word == "gap" {
        model.gap(effects);
    } else if let Some(path) = word.strip_prefix('+') {
        model.changed(EventKind::NodeCreated, path, effects);
    } else if let Some(path) = word.strip_prefix('=') {
        model.changed(EventKind::NodeDataChanged, path, effects);
    } else if let Some(path) = word.strip_prefix('-') {
        model.changed(EventKind::NodeDeleted, path, effects);
    } else if let Some(path) = word.strip_suffix('!') {
        model.answered(&data(path), Answer::NoNode, effects);
    } else if let Some((path, rest)) = word.split_once('[') {
        let (names, at) = rest.split_once("]@").unwrap();
        let (czxid, pzxid) = zxids(at);
        let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let ask = Ask { what: What::Children, path: path.into() };
        let mzxid = model.nodes.get(path).map_or(czxid, |node| node.stat.mzxid);
        model.answered(
            &ask,
            Answer::Children(names, Stat { czxid, mzxid, pzxid, ..Stat::default() }),
            effects,
        );
    } else {
        let (path, at) = word.split_once('@').unwrap();
        let (czxid, mzxid) = zxids(at);
        let stat = Stat { czxid, mzxid, num_children: 1, ..Stat::default() };
        model.answered(&data(path), Answer::Data(Bytes::new(), stat), effects);
    }
}

#[test]
fn steps() {
    // Nothing there, and that is all there is to know.
    check("gap /r!", "?/r initialized");
    check("gap /r@1.1 /r[]@1.1", "?/r ?/r[] +/r initialized");
    check("gap /r@1.1 /r[a]@1.2 /r/a!", "?/r ?/r[] ?/r/a +/r initialized");
    // A change while a read is under way: the answer may be older than that, and is asked for again.
    check("gap =/r /r@1.1 /r@1.2 /r[]@1.1", "?/r ?/r[] ?/r +/r =/r initialized");
    check("gap =/r /r@1.1 /r@1.1 /r[]@1.1", "?/r ?/r[] ?/r +/r initialized");
    // What comes meanwhile was not there at the start, so the start does not wait for it.
    check("gap /r@1.1 +/r/b /r[]@1.1 =/r/b /r/b@5.5", "?/r ?/r[] ?/r/b ?/r/b[] ?/r/b +/r initialized +/r/b");
    // Its parent's answer is from before it was there: the list tells.
    check(
        "gap /r! +/r +/r/a /r/a@3.3 /r@2.2 /r[a]@2.3 /r/a@3.3",
        "?/r ?/r ?/r/a ?/r[] ?/r ?/r/a ?/r/a[] initialized +/r +/r/a",
    );
    // Deleted while its data is on its way: no phantom.
    check("gap /r@1.1 /r[a]@1.2 -/r/a /r/a@2.2 /r/a!", "?/r ?/r[] ?/r/a ?/r/a +/r initialized");
    // A list that is older than a child says nothing of it; one that is as new does.
    let start = "gap /r@1.1 /r[]@1.1 +/r/a /r/a@5.5 /r/a[]@5.5";
    let began = "?/r ?/r[] ?/r/a ?/r/a[]";
    check(&format!("{start} gap /r[]@1.4"), &format!("{began} ?/r[] +/r initialized +/r/a"));
    check(&format!("{start} gap /r[]@1.5"), &format!("{began} ?/r[] +/r initialized +/r/a -/r/a"));
    // Deleted and created again unnoticed: the Stat's version is the same, the czxid is not.
    check(
        &format!("{start} gap /r[a]@1.9 /r/a[]@8.8 /r/a@8.8"),
        &format!("{began} ?/r[] ?/r/a[] ?/r/a ?/r/a[] +/r initialized +/r/a -/r/a +/r/a"),
    );
    // What is outside is ignored.
    check("gap /r! +/rx +/r0 =/ -/other", "?/r initialized");
}

/// Each answer is older than an event that has come before it, and newer than what is held.
#[test]
fn what_changes_at_every_round_trip_is_held_all_the_same() {
    let mut model = Model::new("/r", Scope::Node, Watching::Persistent);
    let mut effects = Effects::default();
    model.gap(&mut effects);
    for zxid in 1..=100 {
        model.changed(EventKind::NodeDataChanged, "/r", &mut effects);
        let ask = effects.asks.pop_front().unwrap();
        let stat = Stat { czxid: Zxid(1), mzxid: Zxid(zxid), ..Stat::default() };
        let answer = Answer::Data(Bytes::from(zxid.to_string()), stat);
        assert!(!model.answered(&ask, answer, &mut effects), "it is asked for again");
        assert_eq!(model.nodes["/r"].data, zxid.to_string());
        assert!(model.initialized);
    }
    let mut told = effects.told.into_iter();
    assert!(matches!(told.next(), Some(CacheEvent::Created(_))));
    assert_eq!(told.next(), Some(CacheEvent::Initialized));
    assert_eq!(told.filter(|event| matches!(event, CacheEvent::Changed { .. })).count(), 99);
}

/// CURATOR-690: what counts the reads under way must not end at 65,535.
#[test]
fn curator_690_more_than_64k_children() {
    let mut model = Model::new("/r", Scope::Tree, Watching::OneShot);
    let mut effects = Effects::default();
    model.gap(&mut effects);
    let stat = |zxid| Stat { czxid: Zxid(zxid), mzxid: Zxid(zxid), pzxid: Zxid(70_000), ..Stat::default() };
    let mut asked = 0;
    while let Some(ask) = effects.asks.pop_front() {
        asked += 1;
        let answer = match (ask.what, ask.path.as_str()) {
            (What::Children, "/r") => Answer::Children((0..70_000).map(|n| n.to_string()).collect(), stat(1)),
            (What::Children, _) => Answer::Children(Vec::new(), stat(asked)),
            (What::Data, path) => {
                Answer::Data(Bytes::new(), if path == "/r" { stat(1) } else { stat(asked) })
            }
        };
        assert!(!model.initialized);
        let answer = match answer {
            Answer::Children(names, _) if ask.path != "/r" => {
                Answer::Children(names, model.nodes[&ask.path].stat)
            }
            answer => answer,
        };
        model.answered(&ask, answer, &mut effects);
    }
    assert!(model.initialized);
    assert_eq!((model.nodes.len(), asked), (70_001, 140_002));
}
