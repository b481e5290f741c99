//! The exchange that is played again and again, with another fault each time: a holder hands over twice.

use crate::{
    servers::Servers,
    world::{Held, Recipe, World, check_journal, is_record, open_journal, patiently, write_journal},
};
use ostler_client::Client;
use ostler_testkit::{Change, ChangeKind};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

pub(crate) struct Site<S> {
    pub(crate) world: World<S>,
    /// Up to which zxid the history was looked at.
    checked: AtomicU64,
}

/// Whether one who holds can lose it through no doing of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is held until it is released.
    Lasts,
    /// A contender that has lost it tries again.
    CanBeLost,
}

impl Hold {
    /// While the session lives.
    pub(crate) fn of(recipe: Recipe) -> Hold {
        if recipe.ends_when_suspended() { Hold::CanBeLost } else { Hold::Lasts }
    }
}

impl<S: Servers> Site<S> {
    pub(crate) async fn new(world: World<S>) -> Site<S> {
        let client = world.client().await;
        open_journal(&client).await;
        client.close().await;
        Site { world, checked: AtomicU64::new(0) }
    }

    /// One holds; we wait, hold, write and release; then another one holds. Nobody holds while one before does.
    /// `hold` is ours.
    pub(crate) async fn hand_over(&self, (recipe, path): (Recipe, &str), ours: &Client, hold: Hold) {
        // New ones each time: who loses its connection again and again waits longer and longer.
        let others = [self.world.client().await, self.world.client().await];
        let first = recipe.hold_first(&others[0], path).await;
        let (client, place) = (ours.clone(), path.to_owned());
        let waiting = tokio::spawn(async move { hold_and_write((recipe, &place), &client, hold).await });
        let expected = recipe.with_one_waiting();
        self.world.until("in the queue", move |c| (c.ephemerals, c.watches) == expected).await;
        assert!(write_journal(&first.fence).await || Hold::of(recipe) == Hold::CanBeLost);
        assert!(!waiting.is_finished() || !first.fence.is_held(), "two hold");
        let before = first.fence.clone();
        first.release().await;

        let held = waiting.await.unwrap();
        assert!(!before.is_held() && before.token() < held.fence.token());
        let before = held.fence.clone();
        held.release().await;

        let last = hold_and_write((recipe, path), &others[1], Hold::of(recipe)).await;
        assert!(!before.is_held() && before.token() < last.fence.token());
        last.release().await;
        for other in others {
            other.close().await;
        }
    }

    /// The state that must hold afterwards: no orphan znode, no leaked watch, and never two holders by the servers' history.
    /// Gives the tokens of those who have written as holders, in the order in which they have.
    pub(crate) async fn check(&self, recipe: Recipe, what: &str) -> Vec<u64> {
        self.world.until_clean(what).await;
        let history = self.world.server.history(self.checked.load(SeqCst)).await;
        self.checked.store(history.last().map_or(0, |change| change.zxid.0), SeqCst);
        let written = never_two(&history, recipe, what);
        let client = self.world.client().await;
        let tokens = patiently(what, check_journal(&client)).await;
        client.close().await;
        assert_eq!(tokens, written, "{what}: by the history, and by what is there");
        tokens
    }
}

/// Whoever writes as a holder has the znode of its token, and of those who have written before nobody has its own any
/// more. Gives the tokens.
fn never_two(history: &[Change], recipe: Recipe, what: &str) -> Vec<u64> {
    // The znode that came with each zxid, while it is there.
    let mut there: BTreeMap<u64, &str> = BTreeMap::new();
    let mut written: Vec<u64> = Vec::new();
    for change in history {
        match &change.kind {
            ChangeKind::Created { data, .. } if is_record(&change.path) => {
                let token: u64 = std::str::from_utf8(data).unwrap().parse().unwrap();
                assert!(there.contains_key(&token), "{what}: {token} wrote without its znode");
                let mut before = written.iter().filter(|before| **before != token);
                // Two who read hold at the same time.
                let shared = recipe == Recipe::Read && !written.is_empty() && token != written[0];
                let two =
                    before.find(|before| there.contains_key(before) && (!shared || **before == written[0]));
                assert_eq!(two, None, "{what}: {token} wrote while another one had its znode");
                written.push(token);
            }
            ChangeKind::Created { owner: Some(_), .. } => {
                there.insert(change.zxid.0, &change.path);
            }
            ChangeKind::Created { .. } => {}
            ChangeKind::Deleted => there.retain(|_, path| *path != change.path),
        }
    }
    written
}

/// Holds it and writes as its holder.
async fn hold_and_write((recipe, path): (Recipe, &str), client: &Client, hold: Hold) -> Held {
    loop {
        let held = recipe.hold(client, path).await.unwrap();
        assert!(held.fence.is_held() || hold == Hold::CanBeLost);
        if write_journal(&held.fence).await {
            return held;
        }
        assert!(hold == Hold::CanBeLost, "{recipe:?}: the session lives, so it is held");
        assert!(held.fence.verify().await.unwrap_err().is_not_held(), "once lost, lost for good");
    }
}
