//! MIT's library.

mod credential;

use crate::{KerberosError, KeySource};
use credential::{Store, Usage, acquire};
use libgssapi::{
    context::{ClientCtx, CtxFlags, SecurityContext as _, ServerCtx},
    credential::Cred,
    error::Error,
    name::Name,
    oid::{GSS_MECH_KRB5, GSS_NT_KRB5_PRINCIPAL, GSS_NT_USER_NAME},
    util::Buf,
};
use ostler_sasl::gssapi::{ContextStep, SecurityContext};
use std::{ffi::CString, os::unix::ffi::OsStrExt, path::Path};

/// The keys of a server. Clones share them.
#[derive(Debug, Clone)]
pub struct Acceptor(Cred);

impl Acceptor {
    /// Finds the keys. They are read again at each login, so that a keytab may be replaced.
    ///
    /// # Errors
    /// [`KerberosError::Credentials`] if the keytab cannot be read or has no keys of the principal.
    pub fn new(source: &KeySource) -> Result<Acceptor, KerberosError> {
        let store = source.keytab.iter().filter_map(|file| place(c"keytab".into(), file)).collect();
        acquire(source.principal.as_deref(), Usage::Accept, &store).map(Acceptor).map_err(failed(source))
    }

    /// The context of one login.
    pub fn context(&self) -> AcceptorContext {
        AcceptorContext(ServerCtx::new(Some(self.0.clone())))
    }
}

/// The keys or tickets of a client.
#[derive(Debug, Clone)]
pub struct Initiator(KeySource);

impl Initiator {
    /// Names the keys or tickets. Nothing is read yet.
    ///
    /// # Errors
    /// None in this build.
    pub fn new(source: KeySource) -> Result<Initiator, KerberosError> {
        Ok(Initiator(source))
    }

    /// Looks for the keys or tickets. The KDC is asked at the first login, and again as tickets expire; those of a keytab
    /// are kept in memory.
    ///
    /// # Errors
    /// [`KerberosError::Credentials`] if there is no usable ticket, and no key of the principal.
    pub fn check(&self) -> Result<(), KerberosError> {
        self.credential().map(drop)
    }

    fn credential(&self) -> Result<Cred, KerberosError> {
        let source = &self.0;
        let mut store: Store =
            source.keytab.iter().filter_map(|file| place(c"client_keytab".into(), file)).collect();
        if source.keytab.is_some() {
            // One cache for each identity: the library looks for tickets there first.
            let cache = CString::new(format!("MEMORY:ostler, {source}"));
            store.extend(cache.ok().map(|cache| (c"ccache".into(), cache)));
        }
        acquire(source.principal.as_deref(), Usage::Initiate, &store).map_err(failed(source))
    }

    /// The context of one login at a service, such as `zookeeper/zk1.example.com` or the same with `@REALM`.
    ///
    /// # Errors
    /// [`KerberosError`] if there is no ticket, or the service is no principal.
    pub fn context(&self, service: &str) -> Result<InitiatorContext, KerberosError> {
        let failed =
            |error: Error| KerberosError::Principal { principal: service.into(), problem: text(error) };
        let name = Name::new(service.as_bytes(), Some(GSS_NT_KRB5_PRINCIPAL)).map_err(failed)?;
        // Mutual: the service proves itself. Integrity is what messages about layers need.
        let flags = CtxFlags::GSS_C_MUTUAL_FLAG | CtxFlags::GSS_C_SEQUENCE_FLAG | CtxFlags::GSS_C_INTEG_FLAG;
        Ok(InitiatorContext(ClientCtx::new(Some(self.credential()?), name, flags, Some(GSS_MECH_KRB5))))
    }
}

/// The default realm of krb5.conf.
pub fn default_realm() -> Option<String> {
    let name = Name::new(b"x", Some(GSS_NT_USER_NAME)).ok()?.canonicalize(Some(GSS_MECH_KRB5)).ok()?;
    let shown = name.display_name().ok()?;
    let (_, realm) = std::str::from_utf8(&shown).ok()?.rsplit_once('@')?;
    Some(realm.to_owned())
}

fn place(key: CString, file: &Path) -> Option<(CString, CString)> {
    let path = [b"FILE:", file.as_os_str().as_bytes()].concat();
    // A path with a zero byte names no file.
    Some((key, CString::new(path).ok()?))
}

fn failed(source: &KeySource) -> impl FnOnce(Error) -> KerberosError {
    let origin = source.to_string();
    |error| KerberosError::Credentials { origin, problem: text(error) }
}

/// The library's text in one line.
fn text(error: Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bytes(buffer: &Buf) -> Vec<u8> {
    buffer.to_vec()
}

fn principal(name: Result<Name, Error>) -> Result<String, String> {
    let shown = name.and_then(|name| name.display_name()).map_err(text)?;
    String::from_utf8(bytes(&shown)).map_err(|_| "the principal is no text".to_owned())
}

/// The same on both sides: what an established context does.
macro_rules! established_context {
    () => {
        fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
            self.0.wrap(false, message).map(|wrapped| bytes(&wrapped)).map_err(text)
        }

        fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, String> {
            self.0.unwrap(wrapped).map(|message| bytes(&message)).map_err(text)
        }

        fn initiator(&self) -> Result<String, String> {
            principal(self.0.source_name())
        }
    };
}

/// A server's side of a context.
#[derive(Debug)]
pub struct AcceptorContext(ServerCtx);

impl SecurityContext for AcceptorContext {
    fn establish(&mut self, token: &[u8]) -> Result<ContextStep, String> {
        let answer = self.0.step(token, None);
        // A client may send tickets that let the server act for it; the server has no use for them.
        drop(self.0.take_delegated_cred());
        let answer = answer.map_err(text)?;
        Ok(ContextStep { token: answer.as_ref().map(bytes), is_established: self.0.is_complete() })
    }

    established_context!();
}

/// A client's side of a context.
#[derive(Debug)]
pub struct InitiatorContext(ClientCtx);

impl SecurityContext for InitiatorContext {
    fn establish(&mut self, token: &[u8]) -> Result<ContextStep, String> {
        let answer = self.0.step((!token.is_empty()).then_some(token), None).map_err(text)?;
        let is_established = self.0.is_complete();
        if is_established && !self.0.flags().map_err(text)?.contains(CtxFlags::GSS_C_MUTUAL_FLAG) {
            return Err("the service has not proven who it is".into());
        }
        Ok(ContextStep { token: answer.as_ref().map(bytes), is_established })
    }

    established_context!();
}
