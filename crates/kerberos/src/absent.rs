//! A build without Kerberos: none of these can be made.

use crate::{KerberosError, KeySource};
use ostler_sasl::gssapi::{ContextStep, SecurityContext};
use std::convert::Infallible;

/// The keys of a server.
#[derive(Debug, Clone)]
pub struct Acceptor(Infallible);

/// The keys or tickets of a client.
#[derive(Debug, Clone)]
pub struct Initiator(Infallible);

/// A server's side of a context.
#[derive(Debug)]
pub struct AcceptorContext(Infallible);

/// A client's side of a context.
#[derive(Debug)]
pub struct InitiatorContext(Infallible);

impl Acceptor {
    /// Always an error.
    ///
    /// # Errors
    /// [`KerberosError::NotBuilt`].
    pub fn new(_: &KeySource) -> Result<Acceptor, KerberosError> {
        Err(KerberosError::NotBuilt)
    }

    /// The context of one login.
    pub fn context(&self) -> AcceptorContext {
        match self.0 {}
    }
}

impl Initiator {
    /// Always an error.
    ///
    /// # Errors
    /// [`KerberosError::NotBuilt`].
    pub fn new(_: KeySource) -> Result<Initiator, KerberosError> {
        Err(KerberosError::NotBuilt)
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn check(&self) -> Result<(), KerberosError> {
        match self.0 {}
    }

    /// The context of one login.
    ///
    /// # Errors
    /// None.
    pub fn context(&self, _service: &str) -> Result<InitiatorContext, KerberosError> {
        match self.0 {}
    }
}

/// There is none.
pub fn default_realm() -> Option<String> {
    None
}

macro_rules! impossible {
    ($context:ty) => {
        impl SecurityContext for $context {
            fn establish(&mut self, _: &[u8]) -> Result<ContextStep, String> {
                match self.0 {}
            }

            fn wrap(&mut self, _: &[u8]) -> Result<Vec<u8>, String> {
                match self.0 {}
            }

            fn unwrap(&mut self, _: &[u8]) -> Result<Vec<u8>, String> {
                match self.0 {}
            }

            fn initiator(&self) -> Result<String, String> {
                match self.0 {}
            }
        }
    };
}

impossible!(AcceptorContext);
impossible!(InitiatorContext);
