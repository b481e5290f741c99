//! Makes the answers of commands.

use super::{
    bodies,
    command::Command,
    json::Object,
    member_bodies::{self, Place},
    pages::{self, Page},
    state::AdminState,
};
use crate::{
    admin::{
        four_letter::NOT_SERVING,
        observations::{self, BadParameter},
    },
    driver::Driver,
};
use serde::Serialize;
use serde_json::{Value, json};

/// The parameters behind the question mark.
pub(super) type Query = std::collections::BTreeMap<String, String>;

/// The answer to a command that shows something or resets counts.
pub(super) fn answer(state: &AdminState, command: Command, query: &Query) -> Object {
    let driver = &*state.driver;
    let (member, mode, zxid) =
        driver.inspect(|server| (server.member_report(), server.mode(), server.tree().last_processed()));
    let place = Place { member: member.as_ref(), mode, zxid };
    if !command.answers_without_tree() && !member_bodies::is_serving(&place) {
        return finished(Object::from_iter([("error".into(), json!(NOT_SERVING))]), command.name());
    }
    finished(members(state, command, (&place, query)), command.name())
}

/// Adds the members that every answer has. An error that the command has set stays in its place.
pub(super) fn finished(mut members: Object, name: &str) -> Object {
    members.insert("command".into(), json!(name));
    if !members.contains_key("error") {
        members.insert("error".into(), Value::Null);
    }
    members
}

fn members(state: &AdminState, command: Command, (place, query): (&Place<'_>, &Query)) -> Object {
    let (driver, reports) = (&*state.driver, &*state.reports);
    let word = command.word();
    let view = || reports.view(driver, word);
    let acted = || {
        reports.act(driver, word, None);
        Object::new()
    };
    match command {
        Command::Configuration => bodies::configuration(&view()),
        Command::ConnectionStatReset | Command::StatReset => acted(),
        // Nothing is counted by the connections of observers.
        Command::ObserverConnectionStatReset | Command::Ruok => Object::new(),
        Command::Connections => pages::connections(&view(), Page::of(query)),
        Command::Dirs => bodies::dirs(&view()),
        Command::Dump => pages::dump(&view(), Page::of(query)),
        Command::Elections => elections(&view().elections),
        Command::Environment => bodies::environment(&view()),
        Command::GetTraceMask => bodies::trace_mask(&view()),
        Command::SessionEnds => observed(observations::session_ends(driver, query)),
        Command::SetTraceMask => set_trace_mask(state, query),
        Command::Hash => bodies::hash(&view()),
        Command::HotPaths => observed(observations::hot_paths(driver, query)),
        Command::InitialConfiguration => initial_configuration(&state.configuration),
        Command::IsReadOnly => bodies::is_read_only(&view()),
        Command::LastSnapshot => last_snapshot(state),
        Command::Leader => member_bodies::leader(place),
        Command::Monitor => bodies::monitor(&view()),
        Command::Observers => observers(driver),
        Command::ServerStats => bodies::server_stats(&reports.view_with_figures(driver, word)),
        Command::SlowRequests => observed(observations::slow_requests(driver, query)),
        Command::Stats => pages::stats(&reports.view_with_figures(driver, word), Page::of(query)),
        Command::SystemProperties => system_properties(state),
        Command::VotingView => member_bodies::voting_view(place),
        Command::WatchSummary => bodies::watch_summary(&view()),
        Command::Watches => pages::watches(view().watches, Page::of(query)),
        Command::WatchesByPath => pages::watches_by_path(view().watches, Page::of(query)),
        Command::Zabstate => member_bodies::zabstate(place),
        // These have answers of their own: see `whole.rs`.
        Command::Restore | Command::ShedConnections | Command::Snapshot => Object::new(),
    }
}

/// A report with names as its fields have them. A parameter that cannot be gets an error in the first place.
fn observed<T: Serialize>(report: Result<T, BadParameter>) -> Object {
    match report {
        Ok(report) => serde_json::to_value(report).map(bodies::object).unwrap_or_default(),
        Err(error) => Object::from_iter([("error".into(), json!(error.to_string()))]),
    }
}

fn elections(all: &crate::admin::elections::Elections) -> Object {
    serde_json::to_value(all).map(bodies::object).unwrap_or_default()
}

fn set_trace_mask(state: &AdminState, query: &Query) -> Object {
    let wrong = |end: &str| {
        let text = format!("setTraceMask requires long traceMask argument{end}");
        Object::from_iter([("error".into(), json!(text))])
    };
    let Some(written) = query.get("traceMask") else { return wrong("") };
    let Ok(mask) = written.parse::<i64>() else { return wrong(&format!(", got {written}")) };
    state.reports.act(&state.driver, Command::SetTraceMask.word(), Some(mask));
    bodies::object(json!({ "tracemask": mask }))
}

/// The file as it was at the start, with the secrets masked.
fn initial_configuration(text: &str) -> Object {
    bodies::object(json!({ "initial_configuration": text }))
}

/// The newest snapshot, with its time in seconds.
fn last_snapshot(state: &AdminState) -> Object {
    match state.reports.last_snapshot() {
        Some((zxid, at)) => bodies::object(json!({ "zxid": format!("{zxid:x}"), "timestamp": at })),
        // As Java shows a zxid and a time of -1.
        None => bodies::object(json!({ "zxid": format!("{:x}", u64::MAX), "timestamp": -1 })),
    }
}

fn observers(driver: &Driver) -> Object {
    let synced = driver.inspect(|server| server.quorum()).map_or(0, |quorum| quorum.learners.observers);
    bodies::object(json!({ "synced_observers": synced, "observers": Value::Array(Vec::new()) }))
}

/// There is no JVM with properties: shows the settings that Java takes from them.
fn system_properties(state: &AdminState) -> Object {
    let mut all: Vec<(String, String)> = state.reports.properties();
    all.sort();
    all.into_iter().map(|(key, value)| (key, json!(value))).collect()
}
