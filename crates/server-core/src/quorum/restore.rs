//! The command `restore` of the admin server: other data take the place of this server's, while it runs.
//!
//! Only a standalone server does that. A member would differ from the others, whose log has what this server has lost.

use super::{
    AfterPersist,
    role::{Role, Standalone},
};
use crate::{context::Context, effect::PersistOp, server::Server};
use alloc::boxed::Box;
use ostler_tree::Tree;
use ostler_zab::{Electorate, Proposals, Quorum};

impl Server {
    /// Puts a tree in the place of this one. Clients are disconnected. Writes under way that have no answer yet are
    /// forgotten, and so are those of the log: their zxids may come again.
    ///
    /// The number of the search for a leader grows. So an acknowledgement of the disk for a proposal of before does
    /// not count for a new one with the same zxid.
    pub(crate) fn restore_tree(&mut self, cx: &mut Context<'_>, tree: Tree) {
        if !self.role.is_standalone() {
            return;
        }
        self.end_service(cx);
        self.pipeline.outstanding.clear();
        self.pipeline.marks = Default::default();
        self.last_list.take();
        self.replace_tree(tree);
        let last = self.tree.last_processed();
        let Role::Standalone(Standalone { proposals, restores, .. }) = &mut self.role else { return };
        *proposals = Proposals::new(Electorate::of(Quorum::majority([self.config.server])), last);
        *restores += 1;
        self.restart_sessions(cx.now);
        self.pipeline.persist(cx, PersistOp::Install(Box::new(self.tree.freeze())));
        let search_id = self.search_id();
        self.pipeline.gate.hold(AfterPersist::Restored { search_id });
        tracing::info!(%last, "the data of this server are replaced, as an operator has asked");
    }

    /// The number of restorations that are on disk.
    pub fn restorations(&self) -> u64 {
        match &self.role {
            Role::Standalone(standalone) => standalone.restored,
            Role::Member(_) => 0,
        }
    }

    /// A restoration is on disk.
    pub(crate) fn note_restored(&mut self) {
        if let Role::Standalone(standalone) = &mut self.role {
            standalone.restored = standalone.restores;
        }
    }
}
