//! Places in the lists of several servers, as a cursor has them.

use crate::error::ApiError;
use serde::{Deserialize, Serialize};

/// The most servers in a cursor.
const SERVERS_MAX: usize = 64;

/// A place in one server's list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The server.
    pub(super) server: i64,
    /// The number of its survey; 0 for none.
    pub(super) survey: u64,
    /// The place: a number of entries, or the number of a connection.
    pub(super) at: u64,
}

/// The cursor of these places; `None` if there are none.
pub(super) fn cursor<'a>(places: impl Iterator<Item = &'a Place>) -> Option<String> {
    let all: Vec<String> =
        places.map(|place| format!("{}:{}:{}", place.server, place.survey, place.at)).collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// A server's place in a cursor. Without a cursor it is the beginning; `None` if the server's list was at its end.
pub(super) fn of_server(cursor: Option<&str>, server: i64) -> Result<Option<Place>, ApiError> {
    let Some(cursor) = cursor else { return Ok(Some(Place { server, ..Place::default() })) };
    let refused = || ApiError::bad("The cursor is none of this list. Leave it out to begin anew.");
    let places: Option<Vec<Place>> = cursor.split(',').take(SERVERS_MAX).map(read).collect();
    Ok(places.ok_or_else(refused)?.into_iter().find(|place| place.server == server))
}

fn read(text: &str) -> Option<Place> {
    let mut parts = text.split(':');
    let place = Place {
        server: parts.next()?.parse().ok()?,
        survey: parts.next()?.parse().ok()?,
        at: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_finds_its_place() {
        let places = [Place { server: 1, survey: 7, at: 200 }, Place { server: 3, survey: 9, at: 5 }];
        let cursor = cursor(places.iter()).unwrap();
        let of = |server| of_server(Some(&cursor), server).unwrap();
        assert_eq!((of(1), of(2), of(3)), (Some(places[0].clone()), None, Some(places[1].clone())));
        assert_eq!(of_server(None, 2).unwrap(), Some(Place { server: 2, survey: 0, at: 0 }));
        for wrong in ["", "1", "1:2", "1:2:3:4", "1:2:x", "1:2:3,"] {
            assert!(of_server(Some(wrong), 1).is_err(), "{wrong}");
        }
        assert_eq!(super::cursor([].iter()), None);
    }
}
