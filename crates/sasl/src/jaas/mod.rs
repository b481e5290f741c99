//! JAAS files, as the JDK reads them (`sun.security.provider.ConfigFile`).
//!
//! ```text
//! Server {
//!   org.apache.zookeeper.server.auth.DigestLoginModule required
//!   user_bob="secret";
//! };
//! ```

mod login;
mod parse;

pub use login::{KerberosLogin, Login, LoginError};

use alloc::{string::String, vec::Vec};

/// Why a file cannot be read. No value is in it: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JaasError {
    /// Something else should stand here.
    #[error("line {line}: {expected} is expected here")]
    Expected {
        /// The line, counted from 1.
        line: usize,
        /// The text that should stand there.
        expected: &'static str,
    },
    /// The file ends too early.
    #[error("the file ends where {expected} is expected")]
    Ends {
        /// The text that should follow.
        expected: &'static str,
    },
    /// A text in quotation marks does not end on its line.
    #[error("line {line}: a text in quotation marks has no end on this line")]
    OpenText {
        /// The line, counted from 1.
        line: usize,
    },
    /// A section comes twice.
    #[error("line {line}: the section {name} comes a second time")]
    Twice {
        /// The line, counted from 1.
        line: usize,
        /// The section.
        name: String,
    },
    /// `${...}` names no system property.
    #[error("line {line}: there is no system property {name}, which the value names by ${{...}}")]
    UnknownProperty {
        /// The line, counted from 1.
        line: usize,
        /// The property.
        name: String,
    },
}

/// The weight of a login module in the whole login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// `required`
    Required,
    /// `requisite`
    Requisite,
    /// `sufficient`
    Sufficient,
    /// `optional`
    Optional,
}

/// A login module with its options.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginModule {
    /// The Java class.
    pub class: String,
    /// Its weight in the whole login.
    pub flag: Flag,
    /// The options. Each name comes once.
    pub options: Vec<(String, String)>,
}

/// Without the values, which may be secrets.
impl core::fmt::Debug for LoginModule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names: Vec<&str> = self.options.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("LoginModule")
            .field("class", &self.class)
            .field("options", &names)
            .finish_non_exhaustive()
    }
}

impl LoginModule {
    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }
}

/// A section of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its modules, in their order.
    pub modules: Vec<LoginModule>,
}

/// A whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JaasFile {
    /// The sections, in their order. Each name comes once.
    pub sections: Vec<Section>,
}

impl JaasFile {
    /// Reads a file. `property` gives the system property that a value names by `${...}`.
    pub fn parse(text: &str, property: &dyn Fn(&str) -> Option<String>) -> Result<JaasFile, JaasError> {
        parse::file(text, property)
    }

    /// The section with this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}
