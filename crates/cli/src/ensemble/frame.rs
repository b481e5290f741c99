//! The content of the screen, as pieces of text with a meaning. The screen chooses a colour for each meaning.

use super::{
    group::Group,
    inquiry::Mode,
    journal::{Entry, Weight},
    member::{Member, State, leader},
};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Warning,
    Bad,
}

/// Pieces of text, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row(pub(super) Vec<(Tone, String)>);

/// The part of the screen that stays the same while the ensemble runs.
#[derive(Debug)]
pub(super) struct Heading {
    /// Lines that say how to connect and where the data is.
    pub(super) greeting: Vec<String>,
    /// `p` was pressed: the next key chooses the server.
    pub(super) pausing: bool,
}

/// Rows for a screen of this size, the last one at its bottom.
pub(super) fn frame(group: &Group, heading: &Heading, (width, height): (usize, usize)) -> Vec<Row> {
    let now = Instant::now();
    let mut rows = Vec::from([title(&group.members, width)]);
    rows.extend(heading.greeting.iter().flat_map(|line| wrapped(line, width)));
    rows.push(Row::default());
    rows.push(Row::of(
        Tone::Faint,
        columns("id", "port", "pid", "state", "for", "epoch", "last zxid", "conns", "sessions"),
    ));
    rows.extend(group.members.iter().map(|member| server(member, now)));
    rows.push(Row::default());
    rows.push(Row::of(Tone::Faint, format!("{:>3}  {:<12}  what happened", "id", "time, UTC")));
    let keys = keys(group.members.len(), heading.pausing);
    let left = height.saturating_sub(rows.len() + 2);
    rows.extend(group.journal.last(left).map(entry));
    rows.resize(height.saturating_sub(1), Row::default());
    rows.push(keys);
    rows.iter_mut().for_each(|row| row.cut(width));
    rows
}

impl Row {
    fn of(tone: Tone, text: impl Into<String>) -> Row {
        Row(Vec::from([(tone, text.into())]))
    }

    fn with(mut self, tone: Tone, text: impl Into<String>) -> Row {
        self.0.push((tone, text.into()));
        self
    }

    fn len(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Shortens the row to `width`; an ellipsis stands at the end.
    fn cut(&mut self, width: usize) {
        if self.len() <= width {
            return;
        }
        let mut left = width.saturating_sub(1);
        for (_, text) in &mut self.0 {
            let kept: String = text.chars().take(left).collect();
            left -= kept.chars().count();
            *text = kept;
        }
        if width > 0 {
            self.0.push((Tone::Faint, "…".into()));
        }
    }
}

fn title(members: &[Member], width: usize) -> Row {
    let name = format!(" ostler ensemble {}", members.len());
    let (tone, verdict) = verdict(members);
    let gap = width.saturating_sub(name.len() + verdict.len() + 1).max(2);
    Row::of(Tone::Strong, name).with(Tone::Plain, " ".repeat(gap)).with(tone, verdict)
}

fn verdict(members: &[Member]) -> (Tone, String) {
    if let Some(leader) = leader(members) {
        let epoch = leader.health.epoch().unwrap_or_default();
        return (Tone::Good, format!("server {} leads, epoch {epoch}", leader.place.id));
    }
    let voters = || members.iter().filter(|member| member.place.votes);
    let (up, needed) =
        (voters().filter(|voter| voter.health.state.is_up()).count(), voters().count() / 2 + 1);
    if up < needed {
        return (Tone::Bad, format!("no quorum: {up} of {} run, {needed} are needed", voters().count()));
    }
    (Tone::Warning, "no leader yet".into())
}

/// Splits a line that is longer than a row, after a comma if there is one.
fn wrapped(line: &str, width: usize) -> Vec<Row> {
    let chars: Vec<char> = format!(" {line}").chars().collect();
    let (mut rest, mut rows) = (&chars[..], Vec::new());
    while rest.len() > width.max(1) {
        let full = &rest[..width.max(1)];
        let cut = full.iter().rposition(|char| *char == ',').map_or(full.len(), |comma| comma + 1);
        rows.push(Row::of(Tone::Plain, String::from_iter(&rest[..cut])));
        rest = &rest[cut..];
    }
    rows.push(Row::of(Tone::Plain, String::from_iter(rest)));
    rows
}

#[expect(clippy::too_many_arguments, reason = "one for each column")]
fn columns(
    id: &str,
    port: &str,
    pid: &str,
    state: &str,
    since: &str,
    epoch: &str,
    zxid: &str,
    conns: &str,
    sessions: &str,
) -> String {
    format!(
        "{id:>3}  {port:>5}  {pid:>7}  {state:<8}  {since:>8}  {epoch:>5}  {zxid:<14}  {conns:>5}  {sessions:>8}"
    )
}

fn server(member: &Member, now: Instant) -> Row {
    let health = &member.health;
    let state = health.state;
    let seen = health.serving.as_ref();
    // Only servers that serve clients now: older numbers of other servers are not valid any more.
    let serving = seen.filter(|_| state.is_serving());
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let text = columns(
        &member.place.id.to_string(),
        &member.place.clients.port().to_string(),
        &or_dash(member.pid().map(|pid| pid.to_string())),
        &state.to_string(),
        &duration(now.saturating_duration_since(health.since)),
        &or_dash(health.epoch().map(|epoch| epoch.to_string())),
        &or_dash(seen.map(|seen| format!("{:#x}", seen.zxid))),
        &or_dash(serving.map(|serving| serving.connections.to_string())),
        &or_dash(serving.and_then(|serving| serving.sessions).map(|sessions| sessions.to_string())),
    );
    Row::of(tone_of(state), text)
}

fn tone_of(state: State) -> Tone {
    match state {
        State::Serving(Mode::Leader | Mode::Standalone) => Tone::Good,
        State::Serving(Mode::Follower | Mode::Observer) => Tone::Plain,
        State::Serving(Mode::ReadOnly) | State::Starting | State::Looking | State::Paused => Tone::Warning,
        State::Silent | State::Down => Tone::Bad,
    }
}

/// A duration in at most eight characters, for a column.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes}m {:02}s", seconds % 60),
        3600..86_400 => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

fn entry(entry: &Entry) -> Row {
    let tone = match entry.weight {
        Weight::Info => Tone::Plain,
        Weight::Deed => Tone::Strong,
        Weight::Warning => Tone::Warning,
        Weight::Error => Tone::Bad,
    };
    // Text of a log must not move the cursor.
    let text = entry.text.replace(char::is_control, "·");
    let text = if entry.count == 1 { text } else { format!("({} times) {text}", entry.count) };
    Row::of(Tone::Strong, format!("{:>3}  ", entry.server))
        .with(Tone::Faint, format!("{}  ", entry.time))
        .with(tone, text)
}

fn keys(servers: usize, pausing: bool) -> Row {
    let which = if servers == 1 { "1".into() } else { format!("1-{servers}") };
    if pausing {
        return Row::of(
            Tone::Warning,
            format!(" pause or continue which server? {which}; any other key: none"),
        );
    }
    let mut row = Row::default();
    let what = [
        (which.clone(), "kill -9 or start"),
        (format!("p{which}"), "pause or continue"),
        ("k".into(), "kill the leader"),
        ("q".into(), "end"),
    ];
    for (key, does) in what {
        row = row.with(Tone::Strong, format!(" {key}")).with(Tone::Faint, format!(" {does} "));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::{super::folders::ServerSetup, super::inquiry::Serving, *};

    const WIDTH: usize = 80;

    fn member(id: u16, state: State, zxid: u64) -> Member {
        let place = ServerSetup {
            id,
            zoo_cfg: "/nowhere/zoo.cfg".into(),
            log: "/nowhere/server.log".into(),
            clients: ([127, 0, 0, 1], 65_000 + id).into(),
            admin: None,
            votes: true,
            current_epoch: "/nowhere/currentEpoch".into(),
        };
        let mut member = Member::new(place);
        let mode = if let State::Serving(mode) = state { mode } else { Mode::Follower };
        let serving = Serving { mode, zxid, connections: 99_999, sessions: Some(1_000_000) };
        (member.health.state, member.health.serving) = (state, Some(serving));
        member
    }

    fn text(row: &Row) -> String {
        row.0.iter().map(|(_, text)| &**text).collect()
    }

    #[test]
    fn a_server_fits_into_80_columns() {
        let states = [State::Down, State::Paused, State::Starting, State::Looking, State::Silent];
        let modes = [Mode::Leader, Mode::Follower, Mode::Observer, Mode::Standalone, Mode::ReadOnly];
        let modes = modes.map(State::Serving);
        for state in states.into_iter().chain(modes) {
            let row = server(&member(9, state, 0xffff_ffff_ffff), Instant::now());
            assert!(row.len() < WIDTH, "{}", text(&row));
            assert_eq!(text(&row).contains("99999"), state.is_serving(), "{}", text(&row));
        }
    }

    #[test]
    fn keys_fit_into_80_columns() {
        for servers in 1..=9 {
            assert!(keys(servers, false).len() <= WIDTH && keys(servers, true).len() <= WIDTH);
        }
        assert!(text(&keys(3, false)).starts_with(" 1-3 kill -9 or start  p1-3 pause"));
    }

    #[test]
    fn the_title_names_the_leader_or_the_reason_why_there_is_none() {
        let leader = |id, zxid| member(id, State::Serving(Mode::Leader), zxid);
        let looking = |id| member(id, State::Looking, 0);
        let down = |id| member(id, State::Down, 0);
        for (members, expected) in [
            ([leader(1, 5 << 32), down(2), down(3)], "server 1 leads, epoch 5"),
            ([leader(1, 5 << 32), leader(2, 6 << 32), down(3)], "server 2 leads, epoch 6"),
            ([looking(1), looking(2), down(3)], "no leader yet"),
            ([looking(1), member(2, State::Paused, 0), down(3)], "no quorum: 1 of 3 run, 2 are needed"),
        ] {
            let row = title(&members, WIDTH);
            assert!(text(&row).ends_with(expected), "{}", text(&row));
            assert_eq!(row.len(), WIDTH - 1);
        }
    }

    #[test]
    fn long_text_is_wrapped_or_cut() {
        let rows = wrapped(&"x".repeat(WIDTH), WIDTH);
        assert_eq!(rows.iter().map(Row::len).collect::<Vec<_>>(), [WIDTH, 1]);
        let rows = wrapped("to 1:21,2:22,3:23", 10);
        assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), [" to 1:21,", "2:22,3:23"]);
        for (width, expected) in [(9, "Größe: 12"), (8, "Größe: …"), (3, "Gr…"), (1, "…"), (0, "")]
        {
            let mut row = Row::of(Tone::Plain, "Größe").with(Tone::Strong, ": 12");
            row.cut(width);
            assert_eq!(text(&row), expected);
        }
    }

    #[test]
    fn durations_are_short() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (63, "1m 03s"),
            (3_599, "59m 59s"),
            (7_300, "2h 01m"),
            (950_000, "10d 23h"),
        ] {
            assert_eq!(duration(Duration::from_secs(seconds)), expected);
        }
    }
}
