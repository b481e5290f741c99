//! Servers from the SRV records of DNS.

use crate::{
    connect_string::HostPort,
    server_source::{Finding, ServerSource},
};
use hickory_resolver::{TokioResolver, proto::rr::RData};
use std::{io, sync::Arc};

/// The source of a connect string `dns-srv://name`.
pub(crate) fn source(name: &str) -> Result<ServerSource, &'static str> {
    if name.is_empty() {
        return Err("the name of the SRV records is missing");
    }
    // A dot at the end: the name is complete, and no search domain is appended.
    let name: Arc<str> = if name.ends_with('.') { name.into() } else { format!("{name}.").into() };
    Ok(Arc::new(move || {
        let name = name.clone();
        Box::pin(async move {
            // Made anew each time: the system's resolvers may have changed, and nothing is answered from a cache.
            let resolver = TokioResolver::builder_tokio().and_then(|builder| builder.build());
            find(&resolver.map_err(io::Error::other)?, &name).await
        }) as Finding
    }))
}

/// The servers of all records. Their priorities and weights do not count: the client tries servers in a random order.
async fn find(resolver: &TokioResolver, name: &str) -> io::Result<Vec<HostPort>> {
    let found = resolver.srv_lookup(name).await.map_err(io::Error::other)?;
    let address = |data: &RData| match data {
        RData::SRV(record) => {
            let host = record.target.to_utf8();
            // The root as the target says that there is no such service.
            let host = host.trim_end_matches('.');
            (!host.is_empty() && record.port > 0).then(|| HostPort::new(host, record.port))
        }
        _ => None,
    };
    let mut servers: Vec<HostPort> =
        found.answers().iter().filter_map(|record| address(&record.data)).collect();
    // The order of answers is random: a sorted list shows whether something has changed.
    servers.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)));
    servers.dedup();
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::{
        config::{ConnectionConfig, NameServerConfig, ResolverConfig},
        net::runtime::TokioRuntimeProvider,
    };
    use tokio::net::UdpSocket;

    /// Answers each question with these records: port and target.
    async fn dns_server(records: Vec<(u16, &'static str)>) -> u16 {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                // The header has 12 bytes. The question is a name, which ends with 0, its type and its class.
                let end = 12 + buffer[12..length].iter().position(|byte| *byte == 0).unwrap() + 5;
                let mut answer = buffer[..end].to_vec();
                answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
                for (port, target) in &records {
                    let mut data = vec![0, 1, 0, 1];
                    data.extend(port.to_be_bytes());
                    for label in target.split('.').filter(|label| !label.is_empty()) {
                        data.push(label.len() as u8);
                        data.extend(label.as_bytes());
                    }
                    data.push(0);
                    answer.extend([0xc0, 12, 0, 33, 0, 1, 0, 0, 0, 60]);
                    answer.extend((data.len() as u16).to_be_bytes());
                    answer.extend(data);
                }
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        port
    }

    async fn found(records: Vec<(u16, &'static str)>) -> io::Result<Vec<String>> {
        let mut connection = ConnectionConfig::udp();
        connection.port = dns_server(records).await;
        let server = NameServerConfig::new([127, 0, 0, 1].into(), true, vec![connection]);
        let config = ResolverConfig::from_parts(None, vec![], vec![server]);
        let provider = TokioRuntimeProvider::default();
        let resolver = TokioResolver::builder_with_config(config, provider).build().unwrap();
        let found = find(&resolver, "_zookeeper._tcp.example.").await?;
        Ok(found.iter().map(HostPort::to_string).collect())
    }

    #[tokio::test]
    async fn servers_are_the_targets_of_the_records() {
        let records = vec![(2182, "b.example"), (2181, "a.example"), (2182, "b.example"), (0, "c.example")];
        assert_eq!(found(records).await.unwrap(), ["a.example:2181", "b.example:2182"]);
        assert_eq!(found(vec![(2181, ".")]).await.unwrap(), [""; 0]);
    }

    #[tokio::test]
    async fn a_connect_string_with_a_record_has_a_root_and_no_server() {
        let (parsed, source) =
            crate::server_source::parse("dns-srv://_zookeeper._tcp.example/app", None).unwrap();
        assert!(parsed.hosts.is_empty() && source.is_some());
        assert_eq!(parsed.chroot.root(), "/app");
        assert!(crate::server_source::parse("dns-srv:///app", None).is_err());
    }
}
