//! Stands in for the recorder of counters in a build without the feature `metrics`.

use ostler_client_core::ConnectionState;
use ostler_proto::op::Op;
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Recorder;

impl Recorder {
    pub(crate) fn answered(&mut self, _: Op, _: Duration, _: i32) {}

    pub(crate) fn failed(&mut self, _: Op) {}

    pub(crate) fn received(&mut self, _: usize) {}

    pub(crate) fn sent(&mut self, _: usize) {}

    pub(crate) fn delivered(&mut self, _: usize) {}

    pub(crate) fn state(&mut self, _: ConnectionState) {}
}
