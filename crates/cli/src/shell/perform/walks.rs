//! Commands that go through all znodes below a path.

use super::super::{
    answer::Answer,
    command::Wanted,
    drawing::Drawing,
    error::ShellError,
    pattern,
    session::ShellSession,
    tally::{Sum, Tally},
    walk::Walk,
    watches::Watched,
};
use ostler_client::paths;

impl ShellSession {
    /// Lists siblings together, then the znodes below each, in the order of zkCli.sh.
    pub(super) async fn ls_all(&mut self, path: &str, watch: bool) -> Result<(), ShellError> {
        let client = self.client()?;
        if watch {
            // zkCli.sh reads the first znode's data, too, and so sets a data watch.
            let (_, changed) = client.get_data(path).watch().await?;
            self.connected()?.watches.once(path, Watched::Data, changed);
        }
        let mut walk = Walk::new(&client, path, None).watching(watch);
        while let Some(visited) = walk.next().await? {
            if visited.depth == 0 {
                self.answer(&Answer::Path { path: visited.path.clone() })?;
            }
            for name in &visited.names {
                self.answer(&Answer::Path { path: paths::join(&visited.path, name) })?;
            }
            if let Some(changed) = visited.watch {
                self.connected()?.watches.once(&visited.path, Watched::Children, changed);
            }
        }
        walk.end()
    }

    pub(super) async fn tree(
        &mut self,
        path: &str,
        depth: Option<usize>,
        sizes: bool,
    ) -> Result<(), ShellError> {
        let mut walk = Walk::new(&self.client()?, path, depth);
        let mut drawing = Drawing::default();
        while let Some(visited) = walk.next().await? {
            let name = if visited.depth == 0 { path } else { paths::name(&visited.path) };
            let drawing = drawing.line(visited.depth, visited.last, name);
            self.answer(&Answer::Branch { drawing, path: visited.path, stat: visited.stat, sizes })?;
        }
        walk.end()
    }

    pub(super) async fn find(
        &mut self,
        path: &str,
        depth: Option<usize>,
        wanted: &Wanted,
    ) -> Result<(), ShellError> {
        let mut walk = Walk::new(&self.client()?, path, depth);
        while let Some(visited) = walk.next().await? {
            if pattern::is_wanted(wanted, &visited.path, &visited.stat) {
                self.answer(&Answer::Path { path: visited.path })?;
            }
        }
        walk.end()
    }

    pub(super) async fn du(&mut self, path: &str, depth: usize) -> Result<(), ShellError> {
        let mut walk = Walk::new(&self.client()?, path, None);
        let mut tally = Tally::new(depth);
        while let Some(visited) = walk.next().await? {
            let bytes = u64::try_from(visited.stat.data_length).unwrap_or(0);
            let sums = tally.add(&visited.path, visited.depth, bytes);
            self.answer_sums(sums)?;
        }
        self.answer_sums(tally.end())?;
        walk.end()
    }

    fn answer_sums(&mut self, sums: Vec<Sum>) -> Result<(), ShellError> {
        for Sum { path, bytes, znodes } in sums {
            self.answer(&Answer::Usage { path, bytes, znodes })?;
        }
        Ok(())
    }
}
