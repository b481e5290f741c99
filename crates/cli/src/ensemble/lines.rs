//! Output for pipes and files: a line at each change of a server's state.

use super::{
    group::Group,
    member::{Member, State},
};
use std::io::{self, Write};

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The last printed state and pid of each server.
    told: Vec<(State, Option<u32>)>,
}

impl Lines {
    pub(super) fn show(&mut self, group: &Group, out: &mut impl Write) -> io::Result<()> {
        self.told.resize(group.members.len(), (State::Down, None));
        for (member, told) in group.members.iter().zip(&mut self.told) {
            let now = (member.health.state, member.pid());
            if std::mem::replace(told, now) != now {
                writeln!(out, "{}", line(member))?;
            }
        }
        out.flush()
    }
}

/// `server 2: leader, pid 77, port 2182, epoch 1, zxid 0x100000000`
fn line(member: &Member) -> String {
    let (id, state, port) = (member.place.id, member.health.state, member.place.clients.port());
    let mut line = format!("server {id}: {state}");
    match (member.pid(), &member.last_end) {
        (Some(pid), _) => line += &format!(", pid {pid}, port {port}"),
        (None, Some(how)) => line += &format!(", {how}"),
        (None, None) => {}
    }
    if let Some(serving) = member.health.serving.as_ref().filter(|_| state.is_serving()) {
        let epoch = member.health.epoch().unwrap_or_default();
        line += &format!(", epoch {epoch}, zxid {:#x}", serving.zxid);
    }
    line
}
