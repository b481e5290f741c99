//! Stands in for logins by Kerberos in a build without the feature `gssapi`. No value of its types exists.

use crate::{
    error::Result,
    shared::{FailedStep, SaslToken},
};
use ostler_client_core::{AttemptId, SaslStep};

#[derive(Debug, Clone)]
pub(crate) enum KerberosLogin {}

#[derive(Debug)]
pub(crate) enum KerberosSession {}

impl KerberosSession {
    pub(crate) fn new(login: KerberosLogin) -> Result<KerberosSession> {
        match login {}
    }

    pub(crate) fn check(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn begin(&self, _: AttemptId) {
        match *self {}
    }

    pub(crate) fn step(&self, _: &str, _: SaslToken) -> Option<std::result::Result<SaslStep, FailedStep>> {
        match *self {}
    }
}
