//! The admin servers of the other members, for the pages about the whole ensemble.

use super::error::ConfigError;
use super::settings::Settings;
use ostler_proto::id::ServerId;

/// The admin server of another member, where it is not at this server's own port at the host of the member's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminPeer {
    /// The member.
    pub id: ServerId,
    /// Whether it is asked by TLS.
    pub https: bool,
    /// A host name or an IP address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// Reads `admin.peers`: `ID=HOST:PORT`, parted by semicolons, with `http://` or `https://` before the host. `https` is meant
/// where none is written.
pub(super) fn read(settings: &Settings, https: bool) -> Result<Vec<AdminPeer>, ConfigError> {
    let Some(entry) = settings.entry("admin.peers") else { return Ok(Vec::new()) };
    let mut peers: Vec<AdminPeer> = Vec::new();
    for text in entry.value.split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let peer = parse(text, https).ok_or_else(|| {
            entry.refused(
                "it is ID=HOST:PORT, parted by semicolons, such as 1=10.0.0.1:8080;2=https://[::1]:8443",
            )
        })?;
        if peers.iter().any(|other| other.id == peer.id) {
            return Err(entry.refused(format!("server {} is named twice", peer.id)));
        }
        peers.push(peer);
    }
    Ok(peers)
}

fn parse(text: &str, https: bool) -> Option<AdminPeer> {
    let (id, url) = text.split_once('=')?;
    let (https, place) = match url.trim().split_once("://") {
        None => (https, url.trim()),
        Some(("http", place)) => (false, place),
        Some(("https", place)) => (true, place),
        Some(_) => return None,
    };
    let (host, port) = place.trim_end_matches('/').rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = |host: &str| {
        !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    let host = match bare {
        Some(ipv6) if ipv6.parse::<std::net::Ipv6Addr>().is_ok() => ipv6,
        None if is_host(host) => host,
        _ => return None,
    };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    Some(AdminPeer { id: ServerId(id.trim().parse().ok()?), https, host: host.into(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_read() {
        let peer =
            |id, https, host: &str, port| AdminPeer { id: ServerId(id), https, host: host.into(), port };
        for (text, by_default, expected) in [
            ("1=h1:8080", false, Some(peer(1, false, "h1", 8080))),
            (" 2 = https://h-2.example:8443/", false, Some(peer(2, true, "h-2.example", 8443))),
            ("3=[::1]:80", true, Some(peer(3, true, "::1", 80))),
            ("3=http://10.0.0.1:80", true, Some(peer(3, false, "10.0.0.1", 80))),
            ("h1:8080", false, None),
            ("1=h1", false, None),
            ("1=h1:0", false, None),
            ("1=ftp://h1:1", false, None),
            ("1=a b:1", false, None),
            ("1=u@h1:1", false, None),
            ("1=[h1]:1", false, None),
            ("x=h1:1", false, None),
        ] {
            assert_eq!(parse(text, by_default), expected, "{text}");
        }
    }
}
