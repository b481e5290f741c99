//! An instance of a service, and its JSON.

use crate::discovery::{UriSpec, uri_spec::Variables};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// How long an instance stays registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServiceType {
    /// As long as the session of its process: its znode is ephemeral.
    #[default]
    Dynamic,
    /// Until it is unregistered. The [`ServiceDiscovery`](crate::discovery::ServiceDiscovery) that has registered it does
    /// that when it is closed or dropped, as Curator does when it is closed. If the process dies before that, the
    /// instance stays registered.
    Static,
    /// As [`Static`](ServiceType::Static); for services that are not processes of this program.
    Permanent,
    /// As long as the session of its process; the server appends a number to the znode's name.
    DynamicSequential,
}

/// An instance of a service. Curator's `ServiceInstance`.
///
/// The programs choose the payload. Java writes its class as a field `@class` of an object, and reads an object without
/// that field as a map. Java reads a list only with its class: `["java.util.ArrayList", [1, 2]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", bound(serialize = "P: Serialize", deserialize = "P: DeserializeOwned"))]
pub struct ServiceInstance<P = Value> {
    /// The service's name.
    #[serde(default)]
    pub name: String,
    /// The instance's id, unique in its service.
    #[serde(default)]
    pub id: String,
    /// The instance's host.
    #[serde(default)]
    pub address: Option<String>,
    /// The instance's port.
    #[serde(default)]
    pub port: Option<i32>,
    /// The instance's port for TLS.
    #[serde(default)]
    pub ssl_port: Option<i32>,
    /// Data of the programs' own.
    #[serde(default)]
    pub payload: Option<P>,
    /// The time of the registration, in ms since 1970.
    #[serde(rename = "registrationTimeUTC", default)]
    pub registration_time_ms: i64,
    /// How long the instance stays registered.
    #[serde(default, deserialize_with = "null_as_default")]
    pub service_type: ServiceType,
    /// The template of the instance's URI.
    #[serde(default)]
    pub uri_spec: Option<UriSpec>,
    /// Whether providers give the instance out. The JSON has this field only if it is false, because Curator's default
    /// serializer does not write it.
    #[serde(default = "enabled", skip_serializing_if = "is_enabled")]
    pub enabled: bool,
}

fn enabled() -> bool {
    true
}

fn is_enabled(enabled: &bool) -> bool {
    *enabled
}

fn null_as_default<'de, D: Deserializer<'de>>(value: D) -> Result<ServiceType, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

impl<P> ServiceInstance<P> {
    /// A dynamic instance with a random id and the present time as the time of registration.
    pub fn new(name: &str, address: &str, port: u16) -> ServiceInstance<P> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ServiceInstance {
            name: name.to_owned(),
            id: Uuid::new_v4().to_string(),
            address: Some(address.to_owned()),
            port: Some(port.into()),
            ssl_port: None,
            payload: None,
            registration_time_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            service_type: ServiceType::Dynamic,
            uri_spec: None,
            enabled: true,
        }
    }

    /// The URI that the URI spec gives; `None` without a spec. `variables` come before the instance's own fields.
    pub fn build_uri(&self, variables: &[(&str, &str)]) -> Option<String> {
        let spec = self.uri_spec.as_ref()?;
        Some(spec.build(&Variables { given: variables, instance: Some(self) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by Curator 5.9's `JsonInstanceSerializer`.
    const STRING: &str = r#"{"name":"name","id":"id","address":"1.2.3.4","port":10,"sslPort":20,"payload":"text","registrationTimeUTC":1700000000123,"serviceType":"STATIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true}]}}"#;
    const VOID: &str = r#"{"name":"name","id":"id","address":"1.2.3.4","port":null,"sslPort":null,"payload":null,"registrationTimeUTC":1700000000123,"serviceType":"DYNAMIC","uriSpec":null}"#;
    const DISABLED: &str = r#"{"name":"name","id":"id","address":"1.2.3.4","port":10,"sslPort":null,"payload":"text","registrationTimeUTC":1700000000123,"serviceType":"PERMANENT","uriSpec":null,"enabled":false}"#;
    const OBJECT: &str = r#"{"name":"name","id":"id","address":"1.2.3.4","port":10,"sslPort":null,"payload":{"@class":"Payload","val":"x"},"registrationTimeUTC":1700000000123,"serviceType":"DYNAMIC_SEQUENTIAL","uriSpec":null,"enabled":true}"#;

    /// Parses the JSON, checks that it is written the same, and returns the instance.
    fn same<P: Serialize + DeserializeOwned>(json: &str) -> ServiceInstance<P> {
        let instance: ServiceInstance<P> = serde_json::from_str(json).unwrap();
        let written = serde_json::to_string(&instance).unwrap();
        assert_eq!(written, json.replace(r#","enabled":true"#, ""));
        instance
    }

    #[test]
    fn json_is_as_curator_writes_it() {
        let text = same::<String>(STRING);
        assert_eq!((text.payload.as_deref(), text.ssl_port), (Some("text"), Some(20)));
        assert_eq!(text.uri_spec, Some("{scheme}://{address}:{port}".parse().unwrap()));
        // With a port for TLS the scheme is https.
        assert_eq!(text.build_uri(&[]).unwrap(), "https://1.2.3.4:10");
        assert_eq!(text.build_uri(&[("scheme", "tcp")]).unwrap(), "tcp://1.2.3.4:10");
        let void = same::<()>(VOID);
        assert_eq!((void.port, void.build_uri(&[])), (None, None));
        assert!(!same::<String>(DISABLED).enabled);

        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Payload {
            #[serde(rename = "@class")]
            class: String,
            val: String,
        }
        let object = same::<Payload>(OBJECT);
        assert_eq!(object.service_type, ServiceType::DynamicSequential);
        assert_eq!(object.payload.unwrap().val, "x");
        same::<Value>(OBJECT);
    }

    #[test]
    fn missing_fields_have_curators_defaults() {
        let instance: ServiceInstance = serde_json::from_str("{}").unwrap();
        assert!(instance.enabled && instance.name.is_empty());
        assert_eq!(instance.service_type, ServiceType::Dynamic);
        let instance: ServiceInstance = serde_json::from_str(r#"{"serviceType":null,"later":[1]}"#).unwrap();
        assert_eq!(instance.service_type, ServiceType::Dynamic);
    }
}
