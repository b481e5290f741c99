//! Templates for the URI of an instance.

use crate::discovery::{ServiceInstance, ServiceType};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Text with variables in braces: `{scheme}://{address}:{port}`. Curator's `UriSpec`.
///
/// The variables are `scheme` (`https` if there is a port for TLS, `http` if not), `name`, `id`, `address`, `port`,
/// `ssl-port`, `registration-time-utc`, `service-type`, `[` and `]` for braces, and those that the caller gives. Others
/// are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UriSpec {
    parts: Vec<UriPart>,
}

/// A part of a [`UriSpec`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UriPart {
    /// Text, or a variable's name.
    pub value: String,
    /// Whether this is a variable.
    pub variable: bool,
}

/// Text that is no [`UriSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriSpecError {
    /// An opening brace within a variable.
    #[error("an opening brace within a variable; write {{[}} for a brace")]
    Nested,
    /// A closing brace outside of a variable.
    #[error("a closing brace without an opening one; write {{]}} for a brace")]
    Unopened,
    /// The last variable has no end.
    #[error("the last variable has no closing brace")]
    Unclosed,
}

impl FromStr for UriSpec {
    type Err = UriSpecError;

    fn from_str(spec: &str) -> Result<UriSpec, UriSpecError> {
        let (mut parts, mut rest, mut inside) = (Vec::new(), spec, false);
        loop {
            let (text, brace, after) = match rest.find(['{', '}']) {
                Some(at) => (&rest[..at], rest[at..].chars().next(), &rest[at + 1..]),
                None => (rest, None, ""),
            };
            if !text.is_empty() {
                let value = if inside { text.trim() } else { text };
                parts.push(UriPart { value: value.to_owned(), variable: inside });
            }
            match brace {
                Some('{') if inside => return Err(UriSpecError::Nested),
                Some('}') if !inside => return Err(UriSpecError::Unopened),
                Some(_) => inside = !inside,
                None if inside => return Err(UriSpecError::Unclosed),
                None => return Ok(UriSpec { parts }),
            }
            rest = after;
        }
    }
}

impl fmt::Display for UriSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for UriPart { value, variable } in &self.parts {
            match variable {
                true => write!(f, "{{{value}}}")?,
                false => f.write_str(value)?,
            }
        }
        Ok(())
    }
}

/// The values of variables: those that the caller gives, and then the instance's fields.
pub(crate) struct Variables<'a, P> {
    pub(crate) given: &'a [(&'a str, &'a str)],
    pub(crate) instance: Option<&'a ServiceInstance<P>>,
}

impl UriSpec {
    /// The parts, in order.
    pub fn parts(&self) -> &[UriPart] {
        &self.parts
    }

    pub(crate) fn build<P>(&self, variables: &Variables<'_, P>) -> String {
        let value = |part: &UriPart| match part.variable {
            true => variables.value(&part.value),
            false => part.value.clone(),
        };
        self.parts.iter().map(value).collect()
    }
}

impl<P> Variables<'_, P> {
    fn value(&self, name: &str) -> String {
        if let Some((_, value)) = self.given.iter().find(|(given, _)| *given == name) {
            return (*value).to_owned();
        }
        match name {
            "[" => return "{".to_owned(),
            "]" => return "}".to_owned(),
            _ => {}
        }
        let instance = self.instance;
        let number = |number: Option<i32>| number.map_or(String::new(), |number| number.to_string());
        match (name, instance) {
            ("scheme", Some(instance)) if instance.ssl_port.is_some() => "https".to_owned(),
            ("scheme", _) => "http".to_owned(),
            ("name", Some(instance)) => instance.name.clone(),
            ("id", Some(instance)) => instance.id.clone(),
            ("address", Some(instance)) => instance.address.clone().unwrap_or_default(),
            ("port", Some(instance)) => number(instance.port),
            ("ssl-port", Some(instance)) => number(instance.ssl_port),
            ("registration-time-utc", Some(instance)) => instance.registration_time_ms.to_string(),
            ("service-type", Some(instance)) => match instance.service_type {
                ServiceType::Dynamic => "dynamic",
                ServiceType::Static => "static",
                ServiceType::Permanent => "permanent",
                ServiceType::DynamicSequential => "dynamic_sequential",
            }
            .to_owned(),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read_and_built() {
        let mut instance: ServiceInstance<()> = ServiceInstance::new("foo", "1.2.3.4", 5);
        instance.id = "i".to_owned();
        for (spec, built) in [
            ("{scheme}://{ address }:{port}/{name}/{id}", "http://1.2.3.4:5/foo/i"),
            ("{[}{ssl-port}{nothing}{]}{service-type}{own}", "{}dynamicmine"),
            ("", ""),
            ("plain", "plain"),
        ] {
            let spec: UriSpec = spec.parse().unwrap();
            let variables = Variables { given: &[("own", "mine")], instance: Some(&instance) };
            assert_eq!(spec.build(&variables), built);
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        for (spec, error) in
            [("{a{b}}", UriSpecError::Nested), ("a}", UriSpecError::Unopened), ("{a", UriSpecError::Unclosed)]
        {
            assert_eq!(spec.parse::<UriSpec>(), Err(error));
        }
    }
}
