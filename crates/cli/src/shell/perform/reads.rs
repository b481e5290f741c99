//! Commands that read one znode.

use super::super::{
    answer::{Answer, OutputStyle},
    error::ShellError,
    output::note,
    session::ShellSession,
    value_text::{self, Form},
    watches::Watched,
};
use ostler_client::{Error, ErrorCode, Id};

impl ShellSession {
    pub(super) async fn ls(&mut self, path: String, stat: bool, watch: bool) -> Result<(), ShellError> {
        let client = self.client()?;
        let (mut names, found) = match watch {
            false => client.get_children_and_stat(&path).await?,
            true => {
                let (read, changed) = client.get_children_and_stat(&path).watch().await?;
                self.connected()?.watches.once(&path, Watched::Children, changed);
                read
            }
        };
        names.sort_unstable();
        self.answer(&Answer::Children { path, names, stat: stat.then_some(found) })
    }

    pub(super) async fn get(
        &mut self,
        path: String,
        stat: bool,
        watch: bool,
        form: Form,
    ) -> Result<(), ShellError> {
        let client = self.client()?;
        let (data, found) = match watch {
            false => client.get_data(&path).await?,
            true => {
                let (read, changed) = client.get_data(&path).watch().await?;
                self.connected()?.watches.once(&path, Watched::Data, changed);
                read
            }
        };
        if form == Form::Plain && self.output.style != OutputStyle::Json && value_text::text(&data).is_none()
        {
            note("the data is not text and is shown in hexadecimal; get --raw gives the bytes");
        }
        self.answer(&Answer::Data { path, data, form, stat: stat.then_some(found) })
    }

    pub(super) async fn stat(&mut self, path: String, watch: bool) -> Result<(), ShellError> {
        let client = self.client()?;
        let found = match watch {
            false => client.exists(&path).await?,
            true => {
                let (read, changed) = client.exists(&path).watch().await?;
                self.connected()?.watches.once(&path, Watched::Data, changed);
                read
            }
        };
        match found {
            Some(stat) => self.answer(&Answer::Stat { path, stat }),
            None => Err(no_node("exists", &path)),
        }
    }

    pub(super) async fn get_acl(&mut self, path: String, stat: bool) -> Result<(), ShellError> {
        let (acl, found) = self.client()?.get_acl(&path).await?;
        self.answer(&Answer::Acl { path, acl, stat: stat.then_some(found) })
    }

    pub(super) async fn get_all_children_number(&mut self, path: String) -> Result<(), ShellError> {
        let count = self.client()?.get_all_children_number(&path).await?;
        self.answer(&Answer::Count { path, count })
    }

    pub(super) async fn get_ephemerals(&mut self, prefix: &str) -> Result<(), ShellError> {
        let mut paths = self.client()?.get_ephemerals(prefix).await?;
        paths.sort_unstable();
        self.answer(&Answer::Ephemerals { paths })
    }

    pub(super) async fn sync(&mut self, path: &str) -> Result<(), ShellError> {
        self.client()?.sync(path).await?;
        self.answer(&Answer::said("sync", "Sync is OK"))
    }

    pub(super) async fn who_am_i(&mut self) -> Result<(), ShellError> {
        let known = self.client()?.who_am_i().await?;
        let identities = known.into_iter().map(|Id { scheme, id }| (scheme, id)).collect();
        self.answer(&Answer::Identities { identities })
    }
}

pub(super) fn no_node(operation: &'static str, path: &str) -> ShellError {
    Error::Server { code: ErrorCode::NoNode, operation, path: path.into() }.into()
}
