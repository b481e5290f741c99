//! An ensemble in which one server has lost its data and another one is lost for good. Each error message names the next
//! step, and after the last step the ensemble serves.

use crate::{client::Client, log};
use ostler_testkit::{ServerId, TestEnsemble};
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

struct Losses {
    ensemble: TestEnsemble,
    leader: ServerId,
    emptied: ServerId,
}

impl Losses {
    async fn new() -> Losses {
        log::keep();
        let ensemble = TestEnsemble::start(3).await.unwrap();
        let leader = ensemble.leader().unwrap();
        let mut losses = Losses { leader, emptied: leader, ensemble };
        losses.write("/a").await;
        losses.ensemble.until_settled().await.unwrap();
        // A young ensemble can elect once more. The leader of this test has seen what the others acknowledged.
        while losses.ensemble.leader() != Some(losses.leader) {
            losses.leader = losses.ensemble.leader().unwrap();
            losses.write(&format!("/by-{}", losses.leader.0)).await;
            losses.ensemble.until_settled().await.unwrap();
        }
        let others: Vec<ServerId> = losses.ensemble.ids().filter(|id| *id != losses.leader).collect();
        losses.emptied = others[0];
        losses.ensemble.kill(others[1]).await.unwrap();
        losses.ensemble.stop(losses.emptied).await.unwrap();
        fs::remove_dir_all(losses.files_of(losses.emptied)).unwrap();
        losses
    }

    fn data_dir(&self, id: ServerId) -> &Path {
        self.ensemble.member(id).unwrap().data_dir()
    }

    fn files_of(&self, id: ServerId) -> PathBuf {
        self.data_dir(id).join("version-2")
    }

    async fn start(&mut self, id: ServerId) {
        self.ensemble.restart(id).await.unwrap();
    }

    async fn starts_and_says(&mut self, id: ServerId, parts: &[&str]) {
        let (before, begun) = (log::lines(parts).len(), Instant::now());
        self.start(id).await;
        while log::lines(parts).len() == before {
            assert!(begun.elapsed() < PATIENCE, "no message with {parts:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    async fn write(&mut self, path: &str) {
        let mut client = Client::open(self.ensemble.member(self.leader).unwrap().address()).await.unwrap();
        assert_eq!(client.create(path).await.unwrap(), 0);
    }

    async fn all_serve_with(&self, paths: &[&str]) {
        timeout(PATIENCE, self.ensemble.until_all_serve()).await.expect("in time").unwrap();
        for id in [self.leader, self.emptied] {
            let address = self.ensemble.member(id).unwrap().address();
            let mut client = Client::open(address).await.unwrap();
            for path in paths {
                assert!(client.exists(path, false).await.unwrap(), "{path} at {id:?}");
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[tokio::test]
async fn the_messages_after_lost_data_lead_to_an_ensemble_that_serves() {
    for (interrupted, is_copied) in [(false, true), (true, false)] {
        let mut losses = Losses::new().await;
        let (leader, emptied) = (losses.leader, losses.emptied);
        let words = if interrupted {
            // The server was stopped while it copied from a leader.
            fs::create_dir(losses.files_of(emptied)).unwrap();
            fs::write(losses.files_of(emptied).join("historyIncomplete"), "").unwrap();
            "stopped before it had copied all of a leader's data"
        } else {
            "this server's vote does not count before it has copied them from a leader"
        };
        losses
            .starts_and_says(emptied, &[words, "create an empty file named `initialize` in dataLogDir"])
            .await;

        losses.ensemble.stop(emptied).await.unwrap();
        fs::write(losses.data_dir(emptied).join("initialize"), "").unwrap();
        let of_emptied = format!("server={}", emptied.0);
        let words = [
            &*of_emptied,
            "had data and has none now",
            "copy this leader's data to it, or restart this leader",
        ];
        losses.starts_and_says(emptied, &words).await;
        // No step is needed twice.
        losses.starts_and_says(emptied, &words).await;

        if is_copied {
            losses.ensemble.stop(emptied).await.unwrap();
            copy(&losses.files_of(leader), &losses.files_of(emptied));
            losses.start(emptied).await;
        } else {
            losses.start(leader).await;
        }
        losses.all_serve_with(&["/a"]).await;
        assert!(!losses.data_dir(emptied).join("initialize").exists());
        losses.write("/b").await;
        for id in [leader, emptied] {
            losses.ensemble.stop(id).await.unwrap();
        }
        for id in [leader, emptied] {
            losses.start(id).await;
        }
        losses.all_serve_with(&["/a", "/b"]).await;
    }
}
