//! Carries out commands.

mod hold;
mod membership;
mod quotas;
mod reads;
mod walks;
mod watching;
mod writes;

use super::{
    answer::Answer,
    catalogue,
    command::Command,
    error::ShellError,
    session::{Flow, ShellSession},
};

/// The number of lines that `history` shows, as in zkCli.sh.
const HISTORY_SHOWN: usize = 11;

impl ShellSession {
    /// Carries out a command, and prints its answer.
    pub(crate) async fn perform(&mut self, command: Command) -> Result<Flow, ShellError> {
        match command {
            Command::Ls { path, stat, watch, recursive: false } => self.ls(path, stat, watch).await?,
            Command::Ls { path, watch, recursive: true, .. } => self.ls_all(&path, watch).await?,
            Command::Get { path, stat, watch, form } => self.get(path, stat, watch, form).await?,
            Command::Stat { path, watch } => self.stat(path, watch).await?,
            Command::GetAcl { path, stat } => self.get_acl(path, stat).await?,
            Command::GetAllChildrenNumber { path } => self.get_all_children_number(path).await?,
            Command::GetEphemerals { prefix } => self.get_ephemerals(&prefix).await?,
            Command::Tree { path, depth, sizes } => self.tree(&path, depth, sizes).await?,
            Command::Find { path, depth, wanted } => self.find(&path, depth, &wanted).await?,
            Command::Du { path, depth } => self.du(&path, depth).await?,
            Command::Write(write) => self.write(write).await?,
            Command::DeleteAll { path, batch } => self.delete_all(path, batch).await?,
            Command::SetAcl { path, acl, version, stat, recursive: false } => {
                self.set_acl(path, &acl, version, stat).await?;
            }
            Command::SetAcl { path, acl, version, recursive: true, .. } => {
                self.set_acl_of_all(&path, &acl, version).await?;
            }
            Command::Begin => self.begin()?,
            Command::Commit => self.commit().await?,
            Command::Abort => self.abort()?,
            Command::Watch { path, recursive, count } => self.watch(&path, recursive, count).await?,
            Command::AddWatch { path, mode } => self.add_watch(&path, mode).await?,
            Command::RemoveWatches { path, kind, here } => self.remove_watches(&path, kind, here).await?,
            Command::PrintWatches(wanted) => self.print_watches(wanted)?,
            Command::SetQuota { path, limits } => self.set_quota(&path, limits).await?,
            Command::ListQuota { path } => self.list_quota(path).await?,
            Command::DelQuota { path, which } => self.del_quota(&path, which).await?,
            Command::Config { for_clients, watch, stat } => self.config(for_clients, watch, stat).await?,
            Command::Reconfig(change) => self.reconfig(change).await?,
            Command::Sync { path } => self.sync(&path).await?,
            Command::AddAuth { scheme, auth } => self.client()?.add_auth(&scheme, auth).await?,
            Command::WhoAmI => self.who_am_i().await?,
            Command::Connect { servers } => self.connect(servers.as_deref(), true).await?,
            Command::Close => {
                self.connected()?;
                self.close().await;
            }
            Command::History => self.show_history()?,
            Command::Version => {
                let text = format!("Ostler shell version: {}", env!("CARGO_PKG_VERSION"));
                self.answer(&Answer::said("version", text))?;
            }
            Command::Help { command } => {
                let text = command.map_or_else(catalogue::help, catalogue::help_with);
                self.answer(&Answer::said("help", text))?;
            }
            Command::Quit => return Ok(Flow::Ends),
        }
        Ok(Flow::Goes)
    }

    fn show_history(&mut self) -> Result<(), ShellError> {
        let first = self.history.len().saturating_sub(HISTORY_SHOWN);
        let lines: String = self
            .history
            .iter()
            .enumerate()
            .skip(first)
            .map(|(at, line)| format!("{at} - {line}\n"))
            .collect();
        self.answer(&Answer::said("history", lines))
    }
}
