//! A held frame: the side of the test that decides, and the side of the proxy that waits.

use crate::error::TestkitError;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Open,
    Pass,
    Cut,
}

/// The proxy's side of a held frame.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    reached: watch::Sender<bool>,
    decision: watch::Receiver<Decision>,
}

impl Gate {
    /// Waits for the test's decision. Returns whether the frame passes.
    pub(super) async fn passes(&mut self) -> bool {
        self.reached.send_replace(true);
        match self.decision.wait_for(|decision| *decision != Decision::Open).await {
            Ok(decision) => *decision == Decision::Pass,
            // The test has dropped its side.
            Err(_) => true,
        }
    }
}

/// A frame that a proxy holds, or will hold when it arrives. If this is dropped, the frame passes.
#[derive(Debug)]
#[must_use = "a frame passes when this is dropped"]
pub struct HeldFrame {
    reached: watch::Receiver<bool>,
    decision: watch::Sender<Decision>,
}

impl HeldFrame {
    /// Waits until the frame has arrived at the proxy.
    ///
    /// # Errors
    /// [`TestkitError::ConnectionGone`] if its connection ends before.
    pub async fn reached(&mut self) -> Result<(), TestkitError> {
        self.reached.wait_for(|reached| *reached).await.map(drop).map_err(|_| TestkitError::ConnectionGone)
    }

    /// Lets the frame pass.
    pub fn pass(self) {
        self.decision.send_replace(Decision::Pass);
    }

    /// Closes its connection. The frame is lost.
    pub fn cut(self) {
        self.decision.send_replace(Decision::Cut);
    }
}

pub(super) fn pair() -> (HeldFrame, Gate) {
    let (reach, reached) = watch::channel(false);
    let (decide, decision) = watch::channel(Decision::Open);
    (HeldFrame { reached, decision: decide }, Gate { reached: reach, decision })
}
