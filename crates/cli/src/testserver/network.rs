//! Faults of the network: between clients and servers, and between servers.

use super::{error::ControlError, request::WhichServer, running::Running};
use ostler_proto::id::ServerId;
use ostler_testkit::{Direction, FrameProxy};
use serde::Deserialize;
use std::time::Duration;

const DELAY_MS_MAX: u64 = 60_000;

/// A change of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Cut,
    Silence,
    Delay,
    Heal,
}

impl Fault {
    pub(super) fn parse(text: &str) -> Option<Fault> {
        Some(match text {
            "cut" => Fault::Cut,
            "silence" => Fault::Silence,
            "delay" => Fault::Delay,
            "heal" => Fault::Heal,
            _ => return None,
        })
    }
}

/// The part of the network, and the length of a delay.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Where {
    between: Option<(EndText, EndText)>,
    from: Option<EndText>,
    to: Option<EndText>,
    ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum EndText {
    Id(i64),
    Word(String),
}

/// One end of a part of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clients,
    /// Every server but the one at the other end.
    Servers,
    Server(ServerId),
}

impl EndText {
    fn end(&self, running: &Running) -> Result<End, ControlError> {
        match self {
            EndText::Id(id) => Ok(End::Server(running.which(WhichServer::Id(ServerId(*id)))?)),
            EndText::Word(word) => match &**word {
                "clients" => Ok(End::Clients),
                "servers" => Ok(End::Servers),
                word => Ok(End::Server(running.which(WhichServer::parse(word)?)?)),
            },
        }
    }
}

/// One direction between clients and a server, or between two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Clients(ServerId, Direction),
    Servers(ServerId, ServerId),
}

/// Applies a fault.
pub(super) fn apply(running: &Running, fault: Fault, place: &Where) -> Result<(), ControlError> {
    let is_whole = place.between.is_none() && place.from.is_none() && place.to.is_none();
    if fault == Fault::Heal && is_whole {
        return heal_all(running);
    }
    let is_one_way = place.from.is_some() || place.to.is_some();
    if is_one_way && matches!(fault, Fault::Cut | Fault::Heal) {
        return Err(bad_place("a cut and its end are the same in both directions: give `between`"));
    }
    let by = delay(fault, place.ms)?;
    for way in ways(running, place)? {
        match way {
            Way::Clients(server, direction) => {
                at_proxy(proxy(running, server)?, fault, direction, by);
            }
            Way::Servers(from, to) => {
                // Only an ensemble has two servers.
                let Some(ensemble) = running.ensemble() else { continue };
                match fault {
                    Fault::Cut => ensemble.cut_link(from, to),
                    Fault::Silence => ensemble.silence_link(from, to),
                    Fault::Delay => ensemble.delay_link(from, to, by),
                    Fault::Heal => ensemble.heal_link(from, to),
                }
            }
        }
    }
    Ok(())
}

fn bad_place(wanted: &'static str) -> ControlError {
    ControlError::Value { name: "the place in the network", value: "the body".into(), wanted }
}

fn delay(fault: Fault, ms: Option<u64>) -> Result<Duration, ControlError> {
    let wanted = |wanted| ControlError::Value {
        name: "ms",
        value: ms.map_or_else(|| "missing".into(), |ms| ms.to_string()),
        wanted,
    };
    match (fault, ms) {
        (Fault::Delay, Some(ms @ 0..=DELAY_MS_MAX)) => Ok(Duration::from_millis(ms)),
        (Fault::Delay, _) => Err(wanted("a delay takes 0 to 60000 ms")),
        (_, None) => Ok(Duration::ZERO),
        (_, Some(_)) => Err(wanted("only a delay has a length")),
    }
}

fn proxy(running: &Running, server: ServerId) -> Result<&FrameProxy, ControlError> {
    let proxy = running.server(server)?.client_proxy();
    Ok(proxy.expect("every server is started with a proxy for its clients"))
}

fn at_proxy(proxy: &FrameProxy, fault: Fault, direction: Direction, by: Duration) {
    match fault {
        Fault::Cut => proxy.block(),
        Fault::Silence => proxy.silence(direction),
        Fault::Delay => proxy.delay(direction, by),
        Fault::Heal => proxy.heal(),
    }
}

fn heal_all(running: &Running) -> Result<(), ControlError> {
    for id in running.ids() {
        proxy(running, id)?.heal();
    }
    if let Some(ensemble) = running.ensemble() {
        ensemble.heal();
    }
    Ok(())
}

/// All ways that a place means: both directions of `between`, or one from `from` to `to`.
fn ways(running: &Running, place: &Where) -> Result<Vec<Way>, ControlError> {
    let Where { between, from, to, .. } = place;
    let (from, to, is_both) = match (between, from, to) {
        (Some((a, b)), None, None) => (a.end(running)?, b.end(running)?, true),
        (None, Some(from), Some(to)) => (from.end(running)?, to.end(running)?, false),
        _ => return Err(bad_place("give either `between` with two ends, or `from` and `to`")),
    };
    let ids = running.ids();
    let mut ways = one_way(&ids, from, to);
    if is_both {
        ways.extend(one_way(&ids, to, from));
    }
    if ways.is_empty() {
        return Err(ControlError::NoNetwork(format!("{from} and {to}")));
    }
    Ok(ways)
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Clients => f.write_str("clients"),
            End::Servers => f.write_str("servers"),
            End::Server(id) => write!(f, "server {}", id.0),
        }
    }
}

fn one_way(ids: &[ServerId], from: End, to: End) -> Vec<Way> {
    let chosen = |end: End| -> Vec<ServerId> {
        match end {
            End::Clients => Vec::new(),
            End::Servers => ids.to_vec(),
            End::Server(id) => vec![id],
        }
    };
    match (from, to) {
        (End::Clients, to) => {
            chosen(to).into_iter().map(|id| Way::Clients(id, Direction::ToServer)).collect()
        }
        (from, End::Clients) => {
            chosen(from).into_iter().map(|id| Way::Clients(id, Direction::ToClient)).collect()
        }
        (from, to) => {
            let (from, to) = (chosen(from), chosen(to));
            let pairs = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
            pairs.filter(|(a, b)| a != b).map(|(a, b)| Way::Servers(a, b)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [ServerId; 3] = [ServerId(1), ServerId(2), ServerId(3)];

    #[test]
    fn ends_are_expanded_to_ways() {
        let to = Direction::ToServer;
        let [one, two, three] = IDS;
        assert_eq!(one_way(&IDS, End::Clients, End::Server(two)), [Way::Clients(two, to)]);
        assert_eq!(
            one_way(&IDS, End::Servers, End::Clients),
            IDS.map(|id| Way::Clients(id, Direction::ToClient))
        );
        assert_eq!(
            one_way(&IDS, End::Server(one), End::Servers),
            [Way::Servers(one, two), Way::Servers(one, three)]
        );
        assert_eq!(one_way(&IDS, End::Servers, End::Servers).len(), 6);
        assert_eq!(one_way(&IDS, End::Server(one), End::Server(one)), []);
        assert_eq!(one_way(&IDS, End::Clients, End::Clients), []);
    }

    #[test]
    fn only_a_delay_has_a_length() {
        assert_eq!(delay(Fault::Delay, Some(20)).unwrap(), Duration::from_millis(20));
        assert!(delay(Fault::Delay, None).is_err());
        assert!(delay(Fault::Delay, Some(60_001)).is_err());
        assert!(delay(Fault::Cut, Some(20)).is_err());
    }
}
