//! A frame that is held, and who holds it.

use crate::error::TestkitError;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Open,
    Pass,
    Cut,
}

/// The proxy's side.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    reached: watch::Sender<bool>,
    decision: watch::Receiver<Decision>,
}

impl Gate {
    /// Waits for the test's word: whether the frame passes.
    pub(super) async fn passes(&mut self) -> bool {
        self.reached.send_replace(true);
        match self.decision.wait_for(|decision| *decision != Decision::Open).await {
            Ok(decision) => *decision == Decision::Pass,
            // The test does not care any more.
            Err(_) => true,
        }
    }
}

/// A frame that a proxy holds, or will hold once it comes. Dropped, it passes.
#[derive(Debug)]
pub struct Held {
    reached: watch::Receiver<bool>,
    decision: watch::Sender<Decision>,
}

impl Held {
    /// Waits until the frame is there.
    pub async fn reached(&mut self) -> Result<(), TestkitError> {
        self.reached.wait_for(|reached| *reached).await.map(drop).map_err(|_| TestkitError::ConnectionGone)
    }

    /// Lets it pass.
    pub fn pass(self) {
        self.decision.send_replace(Decision::Pass);
    }

    /// Breaks its connection.
    pub fn cut(self) {
        self.decision.send_replace(Decision::Cut);
    }
}

pub(super) fn pair() -> (Held, Gate) {
    let (reach, reached) = watch::channel(false);
    let (decide, decision) = watch::channel(Decision::Open);
    (Held { reached, decision: decide }, Gate { reached: reach, decision })
}
