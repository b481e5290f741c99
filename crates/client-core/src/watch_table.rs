//! The client's watches, and the entries that the server keeps for them.
//!
//! A server keeps one entry for each path and kind, for any number of the client's watches. So the client removes an
//! entry at the server when the last of its watches is gone, and not while another registration for it is under way.

use crate::{event_match, input::WatchId};
use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use hashbrown::HashMap;
use ostler_proto::{event::EventType, id::SessionId};
use rustc_hash::FxBuildHasher;

/// The kind of a watched change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum EventKind {
    /// The znode was created.
    NodeCreated,
    /// The znode was deleted.
    NodeDeleted,
    /// The znode's data was set.
    NodeDataChanged,
    /// A child was created or deleted.
    NodeChildrenChanged,
    /// Changes may be missing: the connection was lost and the watch is set again, or the reader was too slow. Read
    /// again what was read before.
    Gap,
}

impl From<EventType> for EventKind {
    fn from(kind: EventType) -> EventKind {
        match kind {
            EventType::NodeCreated => EventKind::NodeCreated,
            EventType::NodeDeleted => EventKind::NodeDeleted,
            EventType::NodeDataChanged => EventKind::NodeDataChanged,
            EventType::NodeChildrenChanged => EventKind::NodeChildrenChanged,
        }
    }
}

/// How a watch was set. The variants have the order of the lists in setWatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WatchKind {
    /// By getData, or by exists on an existing znode.
    Data,
    /// By exists on a znode that does not exist.
    Exist,
    /// By getChildren.
    Child,
    Persistent,
    Recursive,
}

pub(crate) const KINDS: [WatchKind; 5] =
    [WatchKind::Data, WatchKind::Exist, WatchKind::Child, WatchKind::Persistent, WatchKind::Recursive];

/// The kind of an entry in a server's watch tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EntryKind {
    Data,
    Child,
    Persistent,
    Recursive,
}

/// The entries that do not end when they fire.
pub(crate) const LASTING: [EntryKind; 2] = [EntryKind::Persistent, EntryKind::Recursive];

/// Watcher type in removeWatches: every entry of the path.
pub(crate) const REMOVE_ANY: i32 = 3;

impl EntryKind {
    /// Watcher type in removeWatches.
    pub(crate) fn removal(self) -> i32 {
        match self {
            EntryKind::Child => 1,
            EntryKind::Data => 2,
            EntryKind::Persistent => 4,
            EntryKind::Recursive => 5,
        }
    }

    /// The entry that removeWatches with this type is for; `None` if it is for all.
    pub(crate) fn of_removal(removal: i32) -> Option<EntryKind> {
        let all = [EntryKind::Data, EntryKind::Child, EntryKind::Persistent, EntryKind::Recursive];
        all.into_iter().find(|entry| entry.removal() == removal)
    }

    pub(crate) fn is_one_shot(self) -> bool {
        matches!(self, EntryKind::Data | EntryKind::Child)
    }

    fn watch_kinds(self) -> &'static [WatchKind] {
        match self {
            EntryKind::Data => &[WatchKind::Data, WatchKind::Exist],
            EntryKind::Child => &[WatchKind::Child],
            EntryKind::Persistent => &[WatchKind::Persistent],
            EntryKind::Recursive => &[WatchKind::Recursive],
        }
    }
}

impl WatchKind {
    pub(crate) fn entry(self) -> EntryKind {
        match self {
            WatchKind::Data | WatchKind::Exist => EntryKind::Data,
            WatchKind::Child => EntryKind::Child,
            WatchKind::Persistent => EntryKind::Persistent,
            WatchKind::Recursive => EntryKind::Recursive,
        }
    }

    pub(crate) fn is_one_shot(self) -> bool {
        self.entry().is_one_shot()
    }
}

#[derive(Debug)]
struct Watcher {
    path: Box<str>,
    kind: WatchKind,
    session: Option<SessionId>,
}

/// A registration that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) watch: WatchId,
    pub(crate) path: Box<str>,
    pub(crate) entry: EntryKind,
    /// The watch ends with this session, if there is one.
    pub(crate) session: Option<SessionId>,
}

/// An entry that no watch of the client needs, and that the server may still have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnneededEntry {
    pub(crate) path: Box<str>,
    pub(crate) entry: EntryKind,
}

#[derive(Debug, Default)]
pub(crate) struct WatchTable {
    watchers: HashMap<WatchId, Watcher, FxBuildHasher>,
    by_path: [BTreeMap<Box<str>, Vec<WatchId>>; KINDS.len()],
    /// Registrations under way, and whether the watch still exists.
    under_way: HashMap<WatchId, bool, FxBuildHasher>,
    entries_under_way: HashMap<(EntryKind, Box<str>), UnderWay, FxBuildHasher>,
}

/// Registrations under way for one entry.
#[derive(Debug, Default)]
struct UnderWay {
    count: u32,
    /// The server has the entry even if these registrations fail. Once none is under way, the entry is removed if no
    /// watch needs it.
    owed: bool,
}

impl WatchTable {
    /// A registration is handed to the session.
    pub(crate) fn begin(&mut self, registration: &Registration) {
        self.under_way.insert(registration.watch, true);
        let key = (registration.entry, registration.path.clone());
        self.entries_under_way.entry(key).or_default().count += 1;
    }

    /// The server has answered a registration. `kind` is the kind of watch that it set; `None` if it set none. Returns
    /// the entry if it must be removed because no watch needs it.
    pub(crate) fn finish(
        &mut self,
        registration: Registration,
        kind: Option<WatchKind>,
    ) -> Option<UnneededEntry> {
        let wanted = self.under_way.remove(&registration.watch).unwrap_or(false);
        let Registration { watch, path, entry, session } = registration;
        match kind {
            Some(kind) if wanted => {
                self.insert(watch, Watcher { path: path.clone(), kind, session });
                self.count_down(entry, path, false)
            }
            kind => self.count_down(entry, path, kind.is_some()),
        }
    }

    /// A registration never reached a server, or its connection is lost and the entry with it.
    pub(crate) fn abandon(&mut self, registration: &Registration) {
        self.under_way.remove(&registration.watch);
        self.count_down(registration.entry, registration.path.clone(), false);
    }

    fn count_down(&mut self, entry: EntryKind, path: Box<str>, owed: bool) -> Option<UnneededEntry> {
        let key = (entry, path);
        let under_way = self.entries_under_way.get_mut(&key)?;
        under_way.count -= 1;
        under_way.owed |= owed;
        if under_way.count > 0 {
            return None;
        }
        let owed = self.entries_under_way.remove(&key)?.owed;
        let (entry, path) = key;
        (owed && !self.is_watched(entry, &path)).then_some(UnneededEntry { path, entry })
    }

    fn insert(&mut self, watch: WatchId, watcher: Watcher) {
        self.by_path[watcher.kind as usize].entry(watcher.path.clone()).or_default().push(watch);
        self.watchers.insert(watch, watcher);
    }

    /// The application has dropped `watch`. Returns the entry if no other watch needs it.
    pub(crate) fn remove(&mut self, watch: WatchId) -> Option<UnneededEntry> {
        if let Some(wanted) = self.under_way.get_mut(&watch) {
            *wanted = false;
            return None;
        }
        let Watcher { path, kind, .. } = self.take(watch)?;
        self.unneeded(kind.entry(), path)
    }

    fn take(&mut self, watch: WatchId) -> Option<Watcher> {
        let watcher = self.watchers.remove(&watch)?;
        let list = &mut self.by_path[watcher.kind as usize];
        if let Some(others) = list.get_mut(&watcher.path) {
            others.retain(|other| *other != watch);
            if others.is_empty() {
                list.remove(&watcher.path);
            }
        }
        Some(watcher)
    }

    /// The session sets an entry again. The server then has it even if the registrations under way fail.
    pub(crate) fn renewed(&mut self, entry: EntryKind, path: &str) {
        if let Some(under_way) = self.entries_under_way.get_mut(&(entry, path.into())) {
            under_way.owed = true;
        }
    }

    fn unneeded(&mut self, entry: EntryKind, path: Box<str>) -> Option<UnneededEntry> {
        if self.is_watched(entry, &path) {
            return None;
        }
        let key = (entry, path);
        if let Some(under_way) = self.entries_under_way.get_mut(&key) {
            under_way.owed = true;
            return None;
        }
        Some(UnneededEntry { path: key.1, entry })
    }

    /// Whether a watch needs an entry.
    pub(crate) fn is_watched(&self, entry: EntryKind, path: &str) -> bool {
        entry.watch_kinds().iter().any(|kind| self.by_path[*kind as usize].contains_key(path))
    }

    /// Whether any entry of the path is needed, or may be soon.
    pub(crate) fn is_any_needed(&self, path: &str) -> bool {
        self.is_lasting_needed(path)
            || [EntryKind::Data, EntryKind::Child].into_iter().any(|entry| self.is_needed(entry, path))
    }

    /// The same for the entries that do not end when they fire.
    pub(crate) fn is_lasting_needed(&self, path: &str) -> bool {
        LASTING.into_iter().any(|entry| self.is_needed(entry, path))
    }

    /// Whether an entry is needed, or may be soon.
    pub(crate) fn is_needed(&self, entry: EntryKind, path: &str) -> bool {
        self.is_watched(entry, path) || self.entries_under_way.contains_key(&(entry, path.into()))
    }

    /// The watches that get an event. Removes the one-shot watches among them.
    pub(crate) fn fire(&mut self, kind: EventKind, path: &str) -> Vec<WatchId> {
        let mut found = Vec::new();
        for watch_kind in event_match::kinds_on_path(kind) {
            let list = &mut self.by_path[*watch_kind as usize];
            if !watch_kind.is_one_shot() {
                found.extend(list.get(path).into_iter().flatten());
            } else if let Some(fired) = list.remove(path) {
                fired.iter().for_each(|watch| drop(self.watchers.remove(watch)));
                found.extend(fired);
            }
        }
        if event_match::reaches_recursive(kind) && !self.by_path[WatchKind::Recursive as usize].is_empty() {
            let list = &self.by_path[WatchKind::Recursive as usize];
            let paths = core::iter::once(path).chain(ostler_proto::path::ancestors(path));
            found.extend(paths.filter_map(|above| list.get(above)).flatten());
        }
        found.sort_unstable();
        found
    }

    /// Every watched path with its kind and its watchers, in the order of setWatches.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (WatchKind, &str, &[WatchId])> {
        KINDS.into_iter().flat_map(|kind| {
            self.by_path[kind as usize].iter().map(move |(path, watchers)| (kind, &**path, &**watchers))
        })
    }

    /// Ends the watches of a session, or all.
    pub(crate) fn end(&mut self, session: Option<SessionId>) -> Vec<WatchId> {
        let ends = |watcher: &Watcher| session.is_none() || watcher.session == session;
        let mut ended: Vec<WatchId> =
            self.watchers.iter().filter(|(_, watcher)| ends(watcher)).map(|(watch, _)| *watch).collect();
        ended.sort_unstable();
        for watch in &ended {
            self.take(*watch);
        }
        ended
    }

    /// Ends the watches of a path that a removeWatches of this type is for.
    pub(crate) fn end_on_path(&mut self, path: &str, removal: i32) -> Vec<WatchId> {
        let kinds =
            KINDS.into_iter().filter(|kind| removal == REMOVE_ANY || kind.entry().removal() == removal);
        let lists = kinds.filter_map(|kind| self.by_path[kind as usize].get(path));
        let mut ended: Vec<WatchId> = lists.flatten().copied().collect();
        ended.sort_unstable();
        for watch in &ended {
            self.take(*watch);
        }
        ended
    }

    /// Whether the watch is set.
    pub(crate) fn has(&self, watch: WatchId) -> bool {
        self.watchers.contains_key(&watch)
    }

    /// The number of watches that are set.
    pub(crate) fn len(&self) -> usize {
        self.watchers.len()
    }
}
