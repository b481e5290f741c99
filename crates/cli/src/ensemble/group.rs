//! All servers together: starts and ends them, and asks for their state.

use super::{
    EnsembleError,
    error::While,
    folders::ServerSetup,
    inquiry::{self, ServerState},
    journal::Journal,
    member::{Member, State, leader},
    process::ServerProcess,
};
use rustix::process::Signal;
use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::ExitStatus,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// The time that servers have to end before they are killed.
const END_WITHIN: Duration = Duration::from_secs(10);
const END_LOOKED_FOR_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Group {
    pub(super) members: Vec<Member>,
    pub(super) journal: Journal,
    /// The path of this program.
    ostler: PathBuf,
    questions: JoinSet<InquiryResult>,
}

/// The answer of one server.
#[derive(Debug)]
pub(super) struct InquiryResult {
    member: usize,
    pid: u32,
    answer: ServerState,
}

impl Group {
    /// Starts all servers.
    pub(super) fn start(places: Vec<ServerSetup>) -> Result<Group, EnsembleError> {
        let ostler = std::env::current_exe().during(|| "cannot find this program's file".into())?;
        let members: Vec<Member> = places.into_iter().map(Member::new).collect();
        let mut group = Group { members, journal: Journal::default(), ostler, questions: JoinSet::new() };
        for at in 0..group.members.len() {
            group.start_one(at)?;
        }
        Ok(group)
    }

    fn start_one(&mut self, at: usize) -> Result<(), EnsembleError> {
        let member = &mut self.members[at];
        let id = member.place.id;
        let process = ServerProcess::start(&self.ostler, &member.place)
            .during(|| format!("cannot start server {id}: {}", self.ostler.display()))?;
        self.journal.started(id, process.pid());
        member.process = Some(process);
        member.health.started(Instant::now());
        Ok(())
    }

    /// Kills a server (`kill -9`) if it runs, also if it is paused. Starts it if it does not run.
    pub(super) fn kill_or_start(&mut self, id: u16) {
        let Some(at) = self.position(id) else { return };
        let member = &mut self.members[at];
        match &member.process {
            Some(process) => {
                process.signal(Signal::KILL);
                member.killed = true;
                self.journal.deed(id, "kill -9");
            }
            None => {
                // The start may fail for lack of memory; another try may succeed.
                if let Err(error) = self.start_one(at) {
                    self.journal.deed(id, error.to_string());
                }
            }
        }
    }

    pub(super) fn kill_leader(&mut self) {
        if let Some(id) = leader(&self.members).map(|leader| leader.place.id) {
            self.kill_or_start(id);
        }
    }

    pub(super) fn pause_or_continue(&mut self, id: u16) {
        let Some(at) = self.position(id) else { return };
        let member = &mut self.members[at];
        let Some(process) = &member.process else { return };
        // A signal takes some time to have its effect.
        let goes_on = member.paused || process.is_paused();
        member.paused = !goes_on;
        let (signal, deed) = if goes_on { (Signal::CONT, "goes on") } else { (Signal::STOP, "paused") };
        self.journal.deed(id, deed);
        process.signal(signal);
    }

    fn position(&self, id: u16) -> Option<usize> {
        self.members.iter().position(|member| member.place.id == id)
    }

    /// Looks at processes and logs, and asks each running server for its state, if it is not being asked already.
    pub(super) fn look(&mut self) {
        for (at, member) in self.members.iter_mut().enumerate() {
            let id = member.place.id;
            member.health.noted_epoch = noted_epoch(&member.place);
            // Before the log is read, so that the log is complete.
            let ended = member.process.as_mut().and_then(ServerProcess::ended);
            for line in member.log.lines() {
                self.journal.log_line(id, &line);
            }
            let Some(process) = &member.process else { continue };
            if let Some(status) = ended {
                let text = self.journal.complaint(id).filter(|_| status.code().is_some());
                let how = text.map_or_else(|| ending(status), |text| format!("{}: {text}", ending(status)));
                if !std::mem::take(&mut member.killed) {
                    self.journal.deed(id, ending(status));
                }
                member.last_end = Some(how);
                (member.process, member.paused) = (None, false);
                member.health.ended(Instant::now());
            } else if process.is_paused() {
                member.health.paused(Instant::now());
            } else if !std::mem::replace(&mut member.asked, true) {
                let (pid, server) = (process.pid(), member.place.clients);
                self.questions.spawn(async move {
                    InquiryResult { member: at, pid, answer: inquiry::ask(server).await }
                });
            }
        }
    }

    /// Waits for the next answer. Never returns if no server is being asked.
    pub(super) async fn answer(&mut self) -> InquiryResult {
        match self.questions.join_next().await {
            Some(Ok(answered)) => answered,
            Some(Err(failed)) => std::panic::resume_unwind(failed.into_panic()),
            None => std::future::pending().await,
        }
    }

    pub(super) fn take(&mut self, answered: InquiryResult) {
        let member = &mut self.members[answered.member];
        member.asked = false;
        // The server may have ended or been paused since it was asked.
        let Some(process) = &member.process else { return };
        if process.pid() == answered.pid && !process.is_paused() {
            member.health.answered(answered.answer, Instant::now());
        }
    }

    /// The log file of each server.
    pub(super) fn logs(&self) -> Vec<PathBuf> {
        self.members.iter().map(|member| member.place.log.clone()).collect()
    }

    pub(super) fn all_down(&self) -> bool {
        self.members.iter().all(|member| member.health.state == State::Down)
    }

    /// Sends SIGTERM to all servers, waits for a time, and kills those that are left.
    pub(super) async fn end(mut self) {
        for process in self.members.iter().filter_map(|member| member.process.as_ref()) {
            process.signal(Signal::TERM);
            // A paused server gets the signal only when it goes on.
            process.signal(Signal::CONT);
        }
        let begun = Instant::now();
        while begun.elapsed() < END_WITHIN && self.members.iter_mut().any(is_running) {
            tokio::time::sleep(END_LOOKED_FOR_EVERY).await;
        }
    }
}

fn noted_epoch(place: &ServerSetup) -> Option<u64> {
    fs::read_to_string(&place.current_epoch).ok()?.trim().parse().ok()
}

fn is_running(member: &mut Member) -> bool {
    member.process.as_mut().is_some_and(|process| process.ended().is_none())
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended by itself with code {code}"),
        (None, Some(9)) => "ended by kill -9".into(),
        (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
    }
}
