//! The format of a store, by a setting or by the name of its file.

use std::{fmt, path::Path};

/// The format of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// Java's own format.
    Jks,
    /// Text with blocks of base64.
    Pem,
    /// The format of RFC 7292, which keytool writes by default.
    Pkcs12,
}

/// The reason for which the format of a store is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreKindError {
    /// The setting names no format.
    #[error("\"{setting}\" is not a type of store: set it to JKS, PEM or PKCS12")]
    UnknownSetting {
        /// The setting as it stands.
        setting: String,
    },
    /// There is no setting, and the name of the file says nothing.
    #[error(
        "the type of the store cannot be told from the name of its file, which ends neither in .jks nor in .pem nor in \
         .p12 (in small letters): set the type to JKS, PEM or PKCS12, or rename the file"
    )]
    UnknownSuffix,
    /// The store is one of BouncyCastle's.
    #[error(
        "the store is of the type BCFKS, which only BouncyCastle in Java reads: convert it with keytool \
         -importkeystore -deststoretype PKCS12"
    )]
    BouncyCastle,
}

const BOUNCY_CASTLE: &str = "BCFKS";
const SUFFIXES: [(&[u8], Result<StoreKind, StoreKindError>); 4] = [
    (b".jks", Ok(StoreKind::Jks)),
    (b".pem", Ok(StoreKind::Pem)),
    (b".p12", Ok(StoreKind::Pkcs12)),
    (b".bcfks", Err(StoreKindError::BouncyCastle)),
];

impl StoreKind {
    /// All formats.
    pub const ALL: [StoreKind; 3] = [StoreKind::Jks, StoreKind::Pem, StoreKind::Pkcs12];

    /// The format of the store at a path, as Java's servers decide. A setting that is not empty decides, in letters of
    /// any case. Without one the suffix of the file does, in small letters only.
    ///
    /// # Errors
    /// Neither names a format, or the format is BCFKS.
    pub fn of(path: &Path, setting: Option<&str>) -> Result<StoreKind, StoreKindError> {
        let Some(setting) = setting.filter(|setting| !setting.is_empty()) else {
            let name = path.as_os_str().as_encoded_bytes();
            let by_suffix = SUFFIXES.into_iter().find(|(suffix, _)| name.ends_with(suffix));
            return by_suffix.map_or(Err(StoreKindError::UnknownSuffix), |(_, kind)| kind);
        };
        if setting.eq_ignore_ascii_case(BOUNCY_CASTLE) {
            return Err(StoreKindError::BouncyCastle);
        }
        let by_name = StoreKind::ALL.into_iter().find(|kind| setting.eq_ignore_ascii_case(kind.name()));
        by_name.ok_or_else(|| StoreKindError::UnknownSetting { setting: setting.to_owned() })
    }

    /// The name as it stands in a setting.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Jks => "JKS",
            StoreKind::Pem => "PEM",
            StoreKind::Pkcs12 => "PKCS12",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_decides_in_any_case_and_suffix_in_small_letters() {
        let unknown = |setting: &str| Err(StoreKindError::UnknownSetting { setting: setting.to_owned() });
        for (path, setting, kind) in [
            ("a.jks", None, Ok(StoreKind::Jks)),
            ("/a/b.pem", None, Ok(StoreKind::Pem)),
            ("a.b.p12", Some(""), Ok(StoreKind::Pkcs12)),
            (".jks", None, Ok(StoreKind::Jks)),
            ("a.jks", Some("pem"), Ok(StoreKind::Pem)),
            ("a", Some("Jks"), Ok(StoreKind::Jks)),
            ("a.pfx", Some("PKCS12"), Ok(StoreKind::Pkcs12)),
            ("a.JKS", None, Err(StoreKindError::UnknownSuffix)),
            ("a.pfx", None, Err(StoreKindError::UnknownSuffix)),
            ("a.jks/", None, Err(StoreKindError::UnknownSuffix)),
            ("", None, Err(StoreKindError::UnknownSuffix)),
            ("a.bcfks", None, Err(StoreKindError::BouncyCastle)),
            ("a.jks", Some("bcfks"), Err(StoreKindError::BouncyCastle)),
            ("a.jks", Some("PKCS#12"), unknown("PKCS#12")),
            ("a.jks", Some(" JKS"), unknown(" JKS")),
        ] {
            assert_eq!(StoreKind::of(Path::new(path), setting), kind, "{path} {setting:?}");
        }
    }
}
