//! The answers of the commands `session_ends`, `slow_requests` and `hot_paths`, from the parameters behind the question
//! mark. All are bounded, and paged by `after` and `limit`.

use crate::{admin::long_reports, driver::Driver};
use ostler_server_core::{
    sessions::ends::{self, EndsQuery, EndsReport, session_of},
    stats::{
        hot::HotReport,
        slow_requests::{self, SlowReport},
    },
};
use std::collections::BTreeMap;

/// The parameters of a command.
pub type Parameters = BTreeMap<String, String>;

/// Hot paths and clients of each kind in an answer, by default.
const HOT_LIMIT: usize = 20;
/// The most that are kept of each kind, in both halves of time.
const HOT_MAX: usize = 256;

/// A parameter has a value that it cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}={value} is not allowed: {needed}")]
pub struct BadParameter {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that are allowed.
    pub needed: &'static str,
}

/// The ends of connections and sessions: `session=0x...`, `address=HOST[:PORT]`, `after=N`, `limit=N`.
pub(crate) fn session_ends(driver: &Driver, parameters: &Parameters) -> Result<EndsReport, BadParameter> {
    let query = ends_query(parameters)?;
    let now = driver.clock.now();
    let mut report = driver.inspect(|server| server.session_ends(now, &query));
    if let (None, Some(address)) = (query.session, query.address) {
        report.living = long_reports::living_at(driver, now, address);
    }
    Ok(report)
}

/// The last slow requests: `after=N`, `limit=N`.
pub(crate) fn slow_requests(driver: &Driver, parameters: &Parameters) -> Result<SlowReport, BadParameter> {
    let after = number(parameters, "after")?.unwrap_or(0);
    let limit = limit(parameters, slow_requests::ANSWER_MAX)?;
    Ok(driver.inspect(|server| server.slow_requests(after, limit)))
}

/// The hottest paths and clients: `limit=N` of each kind, 20 by default.
pub(crate) fn hot_paths(driver: &Driver, parameters: &Parameters) -> Result<HotReport, BadParameter> {
    let wanted =
        number(parameters, "limit")?.map_or(HOT_LIMIT, |limit| usize::try_from(limit).unwrap_or(HOT_MAX));
    let now = driver.clock.now();
    Ok(driver.inspect(|server| server.hot_paths(now, wanted.min(HOT_MAX))))
}

fn ends_query(parameters: &Parameters) -> Result<EndsQuery, BadParameter> {
    let bad = |name, value: &str, needed| BadParameter { name, value: value.to_owned(), needed };
    let session = parameters.get("session").map(|text| {
        session_of(text)
            .ok_or_else(|| bad("session", text, "a session id is 0x and up to 16 hexadecimal digits"))
    });
    let address = parameters.get("address").map(|text| {
        let address = EndsQuery::of(text).and_then(|query| query.address);
        address
            .ok_or_else(|| bad("address", text, "an address is as 10.0.0.5, 10.0.0.5:41234 or [::1]:41234"))
    });
    Ok(EndsQuery {
        session: session.transpose()?,
        address: address.transpose()?,
        after: number(parameters, "after")?.unwrap_or(0),
        limit: limit(parameters, ends::ANSWER_MAX)?,
    })
}

fn limit(parameters: &Parameters, most: usize) -> Result<usize, BadParameter> {
    let wanted = number(parameters, "limit")?;
    Ok(wanted.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(most).min(most))
}

fn number(parameters: &Parameters, name: &'static str) -> Result<Option<u64>, BadParameter> {
    let Some(value) = parameters.get(name) else { return Ok(None) };
    let number = value.parse();
    let bad = |_| BadParameter { name, value: value.clone(), needed: "a whole number from 0 on" };
    number.map(Some).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> Parameters {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn parameters_are_read() {
        let query = ends_query(&parameters("session=0x10&address=10.0.0.5&after=7&limit=9")).unwrap();
        assert_eq!((query.session.map(|session| session.0), query.after, query.limit), (Some(16), 7, 9));
        assert_eq!(query.address, Some(([10, 0, 0, 5], 0).into()));
        assert_eq!(
            ends_query(&parameters("")).unwrap(),
            EndsQuery { limit: ends::ANSWER_MAX, ..EndsQuery::default() }
        );
        assert_eq!(limit(&parameters("limit=99999"), 10), Ok(10));
    }

    #[test]
    fn bad_values_are_refused_with_what_is_needed() {
        for text in
            ["session=10", "session=0x", "session=0x11112222333344445", "address=host", "after=-1", "limit=x"]
        {
            let refused = ends_query(&parameters(text)).unwrap_err();
            assert!(refused.to_string().starts_with(&format!("{text} is not allowed: ")), "{refused}");
        }
    }
}
