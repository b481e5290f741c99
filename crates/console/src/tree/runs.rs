//! Runs: changes of many znodes that go on after the answer. They can be watched and stopped by whoever began them.

use super::{
    identity,
    params::{Body, Params},
    plan::LISTED_MAX,
};
use crate::{
    error::{ApiError, Code},
    people,
    rights::{Caller, Writer},
    state::Console,
};
use axum::{Json, extract::State};
use ostler_proto::acl::Id;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Runs at once.
const RUNNING_MAX: usize = 8;
/// Runs that are kept with those that are over.
const KEPT_MAX: usize = 64;

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a run has ended.
#[derive(Debug, Clone, Default)]
pub(super) struct End {
    /// Whether everything is done.
    pub(super) is_whole: bool,
    pub(super) sentence: String,
    /// The first paths that are left.
    pub(super) left: Vec<String>,
}

impl End {
    pub(super) fn done(sentence: impl Into<String>) -> End {
        End { is_whole: true, sentence: sentence.into(), left: Vec::new() }
    }

    pub(super) fn stopped(sentence: impl Into<String>, left: Vec<String>) -> End {
        End { is_whole: false, sentence: sentence.into(), left }
    }
}

/// A run.
pub(super) struct Run {
    id: String,
    who: Vec<Id>,
    done: AtomicU64,
    of: u64,
    stop: AtomicBool,
    end: Mutex<Option<End>>,
}

impl Run {
    /// More znodes are done.
    pub(super) fn add_done(&self, count: usize) {
        self.done.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Whether the person who began it wants it to stop.
    pub(super) fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        locked(&self.end).is_some()
    }

    /// The progress, and the end.
    pub(super) fn state(&self) -> Value {
        let end = locked(&self.end).clone();
        let state = match &end {
            None => "running",
            Some(end) if end.is_whole => "done",
            Some(_) => "stopped",
        };
        let End { sentence, left, .. } = end.unwrap_or_default();
        let sentence = (!sentence.is_empty()).then_some(sentence);
        json!({
            "done": self.done.load(Ordering::Relaxed), "of": self.of, "state": state, "sentence": sentence,
            "left": left.into_iter().take(LISTED_MAX).collect::<Vec<_>>(),
        })
    }
}

/// Ends a run that was dropped, so that it does not seem to go on.
struct Ending(Arc<Run>);

impl Drop for Ending {
    fn drop(&mut self) {
        locked(&self.0.end).get_or_insert_with(|| {
            End::stopped("The run has failed in the server. See its log.", Vec::new())
        });
    }
}

/// The runs, the newest last.
#[derive(Default)]
pub(super) struct Runs {
    all: Mutex<VecDeque<Arc<Run>>>,
}

impl Runs {
    /// Begins a run of this person over a number of znodes. Returns its id.
    pub(super) fn begin<F>(
        &self,
        who: Vec<Id>,
        of: usize,
        work: impl FnOnce(Arc<Run>) -> F,
    ) -> Result<String, ApiError>
    where
        F: Future<Output = End> + Send + 'static,
    {
        let Some(ticket) = people::new_ticket() else {
            return Err(ApiError::new(
                Code::Server,
                "The system gives no random numbers, so nothing is begun.",
            ));
        };
        let mut all = locked(&self.all);
        if all.iter().filter(|run| !run.is_over()).count() >= RUNNING_MAX {
            return Err(ApiError::new(
                Code::Busy,
                format!(
                    "{RUNNING_MAX} changes of many znodes are under way. Wait until one of them is done."
                ),
            ));
        }
        while all.len() >= KEPT_MAX
            && let Some(oldest) = all.iter().position(|run| run.is_over())
        {
            all.remove(oldest);
        }
        let run = Arc::new(Run {
            id: people::hex(&ticket),
            who,
            done: AtomicU64::new(0),
            of: of as u64,
            stop: AtomicBool::new(false),
            end: Mutex::new(None),
        });
        all.push_back(run.clone());
        let (id, ending, working) = (run.id.clone(), Ending(run.clone()), work(run));
        tokio::spawn(async move {
            let end = working.await;
            *locked(&ending.0.end) = Some(end);
        });
        Ok(id)
    }

    fn find(&self, id: &str, who: &[Id]) -> Result<Arc<Run>, ApiError> {
        let all = locked(&self.all);
        let found = all.iter().find(|run| run.id == id && run.who == who);
        found.cloned().ok_or_else(|| {
            ApiError::new(
                Code::NotFound,
                "There is no such run of yours (any more). The server keeps the last ones until it ends.",
            )
        })
    }
}

/// `GET /tree/runs`.
pub(super) async fn state(
    State(console): State<Arc<Console>>,
    caller: Caller,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    let id = params.text("id").ok_or_else(|| ApiError::bad("The parameter id is missing."))?;
    Ok(Json(console.tree.runs.find(id, &identity(&caller))?.state()))
}

#[derive(Deserialize)]
pub(super) struct Stop {
    id: String,
}

/// `POST /tree/stop-run`.
pub(super) async fn stop(
    State(console): State<Arc<Console>>,
    Writer(caller): Writer,
    Body(wanted): Body<Stop>,
) -> Result<Json<Value>, ApiError> {
    let run = console.tree.runs.find(&wanted.id, &identity(&caller))?;
    run.stop.store(true, Ordering::Relaxed);
    Ok(Json(run.state()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(name: &str) -> Vec<Id> {
        vec![Id::new("digest", name)]
    }

    #[tokio::test]
    async fn few_runs_at_once_and_each_is_shown_to_its_owner_only() {
        let runs = Runs::default();
        let begin = |name: &str| runs.begin(who(name), 5, |_| std::future::pending());
        let ids: Vec<String> = (0..RUNNING_MAX).map(|_| begin("ann").unwrap()).collect();
        assert!(begin("bob").is_err());
        assert!(runs.find(&ids[0], &who("bob")).is_err());
        let run = runs.find(&ids[0], &who("ann")).unwrap();
        run.add_done(3);
        assert_eq!(run.state()["done"], 3);
        assert_eq!((run.state()["state"].clone(), run.is_to_stop()), (json!("running"), false));
    }

    #[tokio::test]
    async fn a_run_that_is_over_makes_room_and_tells_how_it_ended() {
        let runs = Runs::default();
        let mut first = None;
        for _ in 0..=KEPT_MAX {
            let id = runs.begin(who("ann"), 1, |_| async { End::stopped("no", vec!["/a".into()]) }).unwrap();
            let run = runs.find(&id, &who("ann")).unwrap();
            while !run.is_over() {
                tokio::task::yield_now().await;
            }
            assert_eq!(
                (run.state()["state"].clone(), run.state()["left"].clone()),
                (json!("stopped"), json!(["/a"]))
            );
            first.get_or_insert(id);
        }
        assert!(runs.find(&first.unwrap(), &who("ann")).is_err());
        let id = runs.begin(who("ann"), 1, |_| async { panic!("a test's panic") }).unwrap();
        let run = runs.find(&id, &who("ann")).unwrap();
        while !run.is_over() {
            tokio::task::yield_now().await;
        }
        assert_eq!(run.state()["state"], "stopped");
    }
}
