//! Whether a znode is still the one that a person has seen.
//!
//! Versions begin at 0 with each create, so a znode that was deleted and created anew may have the version that the person
//! has seen, and all that a request of ZooKeeper checks is the version. So the zxids are compared before the change. A race
//! remains: if somebody deletes the znode and creates it anew between this look and the change, and the new znode has the
//! very version by then, it is changed.

use super::{
    look,
    refusal::{Change, of_client, sentence},
};
use crate::{
    error::{ApiError, Code},
    state::Console,
};
use ostler_client::Client;
use ostler_proto::error::ErrorCode;
use serde::Deserialize;

/// The zxids of the znode that a person has seen, as the pages have them: those that are not given are not compared.
#[derive(Default, Deserialize)]
pub(super) struct SeenZnode {
    /// Of its create.
    #[serde(default)]
    czxid: Option<String>,
    /// Of the last change of its data.
    #[serde(default)]
    mzxid: Option<String>,
}

impl SeenZnode {
    /// The refusal of a change, if the znode is another one than the one that was seen.
    pub(super) async fn refusal(
        &self,
        (console, client): (&Console, &Client),
        (path, change): (&str, Change),
    ) -> Result<Option<ApiError>, ApiError> {
        if self.czxid.is_none() && self.mzxid.is_none() {
            return Ok(None);
        }
        // This server may be behind what others have done already.
        client.sync(path).await.map_err(|error| of_client(path, change, &error))?;
        let found = look(console, |server| {
            server
                .tree()
                .get(path)
                .map(|node| [node.stat.czxid, node.stat.mzxid].map(|zxid| zxid.to_string()))
        });
        // Without a znode the server refuses the change itself.
        let Some([czxid, mzxid]) = found else { return Ok(None) };
        let is_other = |seen: &Option<String>, found: &str| seen.as_deref().is_some_and(|seen| seen != found);
        let code = ErrorCode::BadVersion;
        if is_other(&self.czxid, &czxid) {
            let sentence =
                "The znode was deleted and created anew since you have seen it. Load it anew, or compare.";
            let error = ApiError::new(Code::Client(code), sentence);
            return Ok(Some(error.at(path).with("created_anew", true.into())));
        }
        if is_other(&self.mzxid, &mzxid) {
            return Ok(Some(ApiError::new(Code::Client(code), sentence(change, code)).at(path)));
        }
        Ok(None)
    }
}
