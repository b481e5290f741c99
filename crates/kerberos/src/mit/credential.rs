//! Credentials from a keytab by its path.
//!
//! `libgssapi` takes a keytab only from the environment of the whole process, which a program with threads must not
//! change, and a server has up to three keytabs. MIT's `gss_acquire_cred_from` takes it by path.

use libgssapi::{
    credential::Cred,
    error::{Error, MajorFlags},
};
use libgssapi_sys as sys;
use std::{
    ffi::CString,
    ptr::{null, null_mut},
};

/// The object identifier of the name type of a principal, 1.2.840.113554.1.2.2.1.
const PRINCIPAL: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01";
/// The object identifier of the mechanism Kerberos, 1.2.840.113554.1.2.2.
const KERBEROS: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";

/// The side that the credentials are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Accept,
    Initiate,
}

/// Places of a credential store, by the keys that MIT's library has for them: `keytab`, `client_keytab`, `ccache`.
pub(super) type Store = Vec<(CString, CString)>;

/// Gets credentials of a principal from a store.
#[expect(unsafe_code, reason = "libgssapi has no call for a keytab by its path")]
pub(super) fn acquire(principal: Option<&str>, usage: Usage, store: &Store) -> Result<Cred, Error> {
    let usage = match usage {
        Usage::Accept => sys::GSS_C_ACCEPT,
        Usage::Initiate => sys::GSS_C_INITIATE,
    };
    let mut elements: Vec<_> = store
        .iter()
        .map(|(key, value)| sys::gss_key_value_element_desc { key: key.as_ptr(), value: value.as_ptr() })
        .collect();
    let set = sys::gss_key_value_set_desc { count: elements.len() as u32, elements: elements.as_mut_ptr() };
    let mut kerberos = identifier(KERBEROS);
    let mut mechanisms = sys::gss_OID_set_desc { count: 1, elements: &raw mut kerberos };
    let (mut minor, mut name, mut credential) = (0, null_mut(), null_mut());
    // SAFETY: all pointers are to values of this function, which live until its end. The library copies what it keeps of
    // the name, the mechanisms and the store, and writes to none of them. The name is released once, after its last
    // use. The credential is given to one `Cred`, which releases it.
    unsafe {
        if let Some(principal) = principal {
            let mut text =
                sys::gss_buffer_desc { length: principal.len(), value: principal.as_ptr().cast_mut().cast() };
            let mut kind = identifier(PRINCIPAL);
            let major = sys::gss_import_name(&raw mut minor, &raw mut text, &raw mut kind, &raw mut name);
            complete(major, minor)?;
        }
        let major = sys::gss_acquire_cred_from(
            &raw mut minor,
            name,
            sys::_GSS_C_INDEFINITE,
            &raw mut mechanisms,
            usage as sys::gss_cred_usage_t,
            if store.is_empty() { null() } else { &raw const set },
            &raw mut credential,
            null_mut(),
            null_mut(),
        );
        if !name.is_null() {
            let mut ignored = 0;
            sys::gss_release_name(&raw mut ignored, &raw mut name);
        }
        complete(major, minor)?;
        Ok(Cred::from_c(credential))
    }
}

fn identifier(bytes: &'static [u8]) -> sys::gss_OID_desc {
    sys::gss_OID_desc { length: bytes.len() as u32, elements: bytes.as_ptr().cast_mut().cast() }
}

fn complete(major: u32, minor: u32) -> Result<(), Error> {
    match major {
        sys::GSS_S_COMPLETE => Ok(()),
        _ => Err(Error { major: MajorFlags::from_bits_retain(major), minor }),
    }
}
