//! Quotas: znodes below /zookeeper/quota that mirror the limited paths.

use super::{
    super::{
        answer::Answer, command::Limits, error::ShellError, output::note, quota_text, session::ShellSession,
        walk::Walk,
    },
    reads::no_node,
};
use ostler_client::{Client, Error, Version, paths};
use ostler_proto::path::{CONFIG, QUOTA_LIMITS, QUOTA_ROOT, ancestors};
use ostler_tree::quota::{QuotaNumbers, limits_path, stats_path};

impl ShellSession {
    /// A client without a root (chroot), and the path as the servers know it.
    fn of_servers(&self, path: &str) -> Result<(Client, String), ShellError> {
        let connection = self.connected()?;
        let path = match (connection.client.namespace(), path) {
            ("/", path) => path.to_owned(),
            (root, "/") => root.to_owned(),
            (root, path) => format!("{root}{path}"),
        };
        Ok((connection.unrooted.clone(), path))
    }

    pub(super) async fn set_quota(&mut self, path: &str, limits: QuotaNumbers) -> Result<(), ShellError> {
        let (client, path) = self.of_servers(path)?;
        refuse_place(&path)?;
        if client.exists(&path).await?.is_none() {
            return Err(no_node("setquota", &path));
        }
        refuse_nesting(&client, &path).await?;
        let (limits_at, usage_at) = (limits_path(&path), stats_path(&path));
        let limits = match client.get_data(&limits_at).await {
            Ok((old, stat)) => {
                let limits = quota_text::with(QuotaNumbers::parse(&old), limits);
                client
                    .set_data(&limits_at, &quota_text::limits_text(limits))
                    .version(Version::Exactly(stat.version))
                    .await?;
                limits
            }
            Err(error) if error.is_no_node() => {
                client.create(&limits_at, &quota_text::limits_text(limits)).creating_parents().await?;
                // The server writes the usage into this znode as soon as it exists.
                client.create(&usage_at, &QuotaNumbers::usage_text(0, 0)).await?;
                limits
            }
            Err(error) => return Err(error.into()),
        };
        let (usage, _) = client.get_data(&usage_at).await?;
        for said in quota_text::exceeded(limits, QuotaNumbers::parse(&usage)) {
            note(&said);
        }
        Ok(())
    }

    pub(super) async fn list_quota(&mut self, path: String) -> Result<(), ShellError> {
        let (client, absolute) = self.of_servers(&path)?;
        let limits_at = limits_path(&absolute);
        note(&format!("absolute path is {limits_at}"));
        let (limits, _) = client.get_data(&limits_at).await.map_err(|error| no_quota(&path, error))?;
        let (usage, _) = client.get_data(&stats_path(&absolute)).await?;
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        self.answer(&Answer::Quota { path, limits: text(&limits), usage: text(&usage) })
    }

    pub(super) async fn del_quota(&mut self, path: &str, which: Limits) -> Result<(), ShellError> {
        let (client, absolute) = self.of_servers(path)?;
        let limits_at = limits_path(&absolute);
        let none = || ShellError::Refused(format!("Quota does not exist for {path}"));
        let read = client.get_data(&limits_at).await;
        let (old, stat) = read.map_err(|error| if error.is_no_node() { none() } else { error.into() })?;
        if which != Limits::default() {
            let limits = quota_text::without(QuotaNumbers::parse(&old), which);
            let text = quota_text::limits_text(limits);
            client.set_data(&limits_at, &text).version(Version::Exactly(stat.version)).await?;
            return Ok(());
        }
        client.delete(&limits_at).await?;
        client.delete(&stats_path(&absolute)).quietly().await?;
        // Znodes without content are deleted.
        let mirror = format!("{QUOTA_ROOT}{absolute}");
        let above = ancestors(&mirror).filter(|path| path.len() > QUOTA_ROOT.len());
        for path in [&*mirror].into_iter().chain(above) {
            match client.delete(path).await {
                Err(error) if error.is_not_empty() => break,
                deleted => deleted?,
            }
        }
        Ok(())
    }
}

fn no_quota(path: &str, error: Error) -> ShellError {
    match error.is_no_node() {
        true => ShellError::Refused(format!("quota for {path} does not exist.")),
        false => error.into(),
    }
}

fn refuse_place(path: &str) -> Result<(), ShellError> {
    if path == "/" {
        return Err(ShellError::Refused(
            "servers know no quota of the root: set one on each of its children".into(),
        ));
    }
    if path.starts_with(QUOTA_ROOT) || path == CONFIG {
        return Err(ShellError::Refused(format!("cannot set a quota under the path: {QUOTA_ROOT}")));
    }
    Ok(())
}

/// Refuses a second quota on the way from a znode to the root: servers allow only one.
async fn refuse_nesting(client: &Client, path: &str) -> Result<(), ShellError> {
    for above in ancestors(path).filter(|above| *above != "/") {
        if client.exists(&limits_path(above)).await?.is_some() {
            return Err(ShellError::Refused(format!("{path} has a parent {above} which has a quota")));
        }
    }
    let mirror = format!("{QUOTA_ROOT}{path}");
    if client.exists(&mirror).await?.is_none() {
        return Ok(());
    }
    let mut walk = Walk::new(client, &mirror, None);
    while let Some(visited) = walk.next().await? {
        let limited = paths::name(&visited.path) == QUOTA_LIMITS;
        if limited && visited.path != limits_path(path) {
            let below = visited.path.trim_start_matches(QUOTA_ROOT).trim_end_matches(QUOTA_LIMITS);
            let below = below.trim_end_matches('/');
            return Err(ShellError::Refused(format!("{path} has a child {below} which has a quota")));
        }
    }
    walk.end()
}
