//! Charts of the last 24 hours, from samples that one task takes each 10 s. A request of a client costs nothing here.

mod latency;
mod marks;
mod ring;
mod series;

use crate::{
    error::ApiError,
    list::{self, Parameters},
    rights::Viewer,
    state::Console,
};
use axum::{
    Json,
    extract::{Query, State},
    response::{IntoResponse, Response},
};
use marks::Mark;
use ring::STEP_MS;
pub(crate) use ring::{FreeSpace, Ring};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use series::{LINES, Step};
use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// The most values of a line in an answer.
const POINTS_MAX: u64 = 360;
/// The time that an answer covers by default, and at most, ms.
const WINDOW_MS: u64 = 3_600_000;
const WINDOW_MAX_MS: u64 = 24 * WINDOW_MS;

/// The charts of one server, or of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charts {
    step_ms: u64,
    /// When the first step begins, in milliseconds since 1970.
    since_ms: u64,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

/// A line of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Series {
    /// 0 for a standalone server.
    server: i64,
    name: String,
    unit: String,
    values: Vec<Option<f64>>,
}

/// The part of time that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    since_ms: u64,
    step_ms: u64,
}

impl Window {
    /// The window of a request at this time. Its step is as long as it has to be.
    fn of(now_ms: u64, parameters: &Parameters) -> Result<Window, ApiError> {
        let needed = "a time in milliseconds since 1970";
        let since_ms =
            list::parsed::<u64>(parameters, "since_ms", needed)?.unwrap_or(now_ms.saturating_sub(WINDOW_MS));
        let since_ms = since_ms.clamp(now_ms.saturating_sub(WINDOW_MAX_MS), now_ms.max(since_ms));
        let steps = now_ms.saturating_sub(since_ms).div_ceil(STEP_MS);
        let step_ms = STEP_MS * steps.div_ceil(POINTS_MAX).max(1);
        // Another server, whose clock may differ, asks for its own step.
        let asked = list::parsed::<u64>(parameters, "step_ms", "a multiple of 10,000, of a day at most")?;
        match asked {
            Some(asked) if asked % STEP_MS != 0 || !(STEP_MS..=WINDOW_MAX_MS).contains(&asked) => {
                Err(ApiError::bad(format!(
                    "step_ms={asked} is not allowed: a multiple of 10,000, of a day at most."
                )))
            }
            asked => Ok(Window { since_ms, step_ms: asked.unwrap_or(step_ms) }),
        }
    }
}

/// Takes samples as long as the console is there.
pub(crate) fn start_sampling(console: &Arc<Console>) {
    let console = Arc::downgrade(console);
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_millis(STEP_MS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let Some(console) = console.upgrade() else { return };
            let sampled = spawn_blocking(move || console.ring.add(console.handle.figures()));
            if sampled.await.is_err() {
                return;
            }
        }
    });
}

/// `GET /metrics`.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    _viewer: Viewer,
    Query(parameters): Query<Parameters>,
) -> Result<Response, ApiError> {
    Ok(Json(page(&console, parameters).await?).into_response())
}

/// The charts of all servers, or of the one that is wanted.
pub(crate) async fn page(console: &Arc<Console>, mut parameters: Parameters) -> Result<Value, ApiError> {
    let only = list::parsed::<i64>(&parameters, "server", "the number of a server")?;
    let window = console.ring.look(|kept| Window::of(kept.now_ms(), &parameters))?;
    let own = local(console, window);
    parameters.insert("since_ms".into(), window.since_ms.to_string());
    parameters.insert("step_ms".into(), window.step_ms.to_string());
    let all = list::with_others(console, "metrics", &parameters, own).await;
    let mut charts = merge(all.parts);
    charts.series.retain(|line| only.is_none_or(|only| line.server == only));
    Ok(all.servers.value(charts))
}

/// The charts of this server.
fn local(console: &Console, window: Window) -> Charts {
    let (steps, marks) =
        console.ring.look(|kept| (steps(kept.timed(), window), kept.marks_since(window.since_ms)));
    charts(list::own_id(&console.handle), window, &steps, marks)
}

/// The steps by their numbers since 1970.
fn steps<'a>(samples: impl Iterator<Item = (u64, &'a ring::Sample)>, window: Window) -> BTreeMap<u64, Step> {
    let mut steps: BTreeMap<u64, Step> = BTreeMap::new();
    for (at_ms, sample) in samples.filter(|(at_ms, _)| at_ms + STEP_MS > window.since_ms) {
        let step = steps.entry(at_ms / window.step_ms);
        step.and_modify(|step| step.add(sample)).or_insert_with(|| Step::of(sample));
    }
    while steps.len() as u64 > POINTS_MAX {
        steps.pop_first();
    }
    steps
}

fn charts(server: i64, window: Window, steps: &BTreeMap<u64, Step>, marks: Vec<Mark>) -> Charts {
    let first = steps.keys().next().copied();
    let last = steps.keys().next_back().copied();
    let all = first
        .zip(last)
        .map_or(0..0, |(first, last)| first.max((last + 1).saturating_sub(POINTS_MAX))..last + 1);
    let series = LINES.iter().map(|line| Series {
        server,
        name: line.name.into(),
        unit: line.unit.into(),
        values: all.clone().map(|at| line.value(steps.get(&at)?)).collect(),
    });
    let since_ms = if all.is_empty() { window.since_ms } else { all.start * window.step_ms };
    Charts { step_ms: window.step_ms, since_ms, series: series.collect(), marks }
}

/// The charts of several servers in one answer. A part with another step is left out: its server could not follow the
/// request.
fn merge(parts: Vec<Charts>) -> Charts {
    let step_ms = parts.first().map_or(STEP_MS, |part| part.step_ms);
    let parts: Vec<Charts> = parts.into_iter().filter(|part| part.step_ms == step_ms).collect();
    let number = |part: &Charts| part.since_ms / step_ms;
    let length = |part: &Charts| part.series.iter().map(|line| line.values.len()).max().unwrap_or(0) as u64;
    let filled = || parts.iter().filter(|part| length(part) > 0);
    let without = || parts.first().map_or(0, number);
    let end = filled().map(|part| number(part) + length(part)).max().unwrap_or_else(without);
    let start = filled().map(number).min().unwrap_or(end).max(end.saturating_sub(POINTS_MAX));
    let mut merged = Charts { step_ms, since_ms: start * step_ms, series: Vec::new(), marks: Vec::new() };
    let mut marks = Vec::new();
    for part in parts {
        let first = number(&part);
        merged.series.extend(part.series.into_iter().map(|line| line.placed(first, start..end)));
        marks.extend(part.marks);
    }
    merged.marks = marks::merge(marks);
    merged
}

impl Series {
    /// The line with a value for each of these steps; its own first value is that of the step `first`.
    fn placed(self, first: u64, steps: Range<u64>) -> Series {
        let value = |at: u64| *self.values.get(usize::try_from(at.checked_sub(first)?).ok()?)?;
        let values = steps.map(value).collect();
        Series { values, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::tests::figures;

    const START: u64 = 1_000_000_000;

    fn parameters(text: &str) -> Parameters {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn window(now_ms: u64, text: &str) -> Window {
        Window::of(now_ms, &parameters(text)).unwrap()
    }

    /// The charts of a server that answers 100 requests in each step, at the end of this number of steps.
    fn charts_after(steps_taken: u64, text: &str) -> Charts {
        let ring = Ring::default();
        (0..=steps_taken).for_each(|at| ring.add(figures(at * STEP_MS, at * 100)));
        ring.look(|kept| {
            let window = window(kept.now_ms(), text);
            charts(1, window, &steps(kept.timed(), window), kept.marks_since(window.since_ms))
        })
    }

    fn values<'a>(charts: &'a Charts, name: &str) -> &'a [Option<f64>] {
        &charts.series.iter().find(|line| line.name == name).unwrap().values
    }

    #[test]
    fn an_hour_has_all_samples_and_a_day_has_steps_of_four_minutes() {
        let day = 86_400_000;
        let now = 10 * day;
        assert_eq!(window(now, ""), Window { since_ms: now - WINDOW_MS, step_ms: 10_000 });
        assert_eq!(window(now, "since_ms=1"), Window { since_ms: now - day, step_ms: 240_000 });
        let later = window(now, &format!("since_ms={}", now + 5));
        assert_eq!(later, Window { since_ms: now + 5, step_ms: 10_000 });
        assert_eq!(window(now, "since_ms=1&step_ms=60000").step_ms, 60_000);
        for wrong in ["since_ms=x", "since_ms=-1", "step_ms=5", "step_ms=0", "step_ms=86410000"] {
            assert!(Window::of(now, &parameters(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_line_has_more_than_360_values() {
        for (taken, text) in
            [(0, ""), (5, ""), (9_000, ""), (9_000, "since_ms=0"), (9_000, "since_ms=0&step_ms=10000")]
        {
            let charts = charts_after(taken, text);
            let lengths: Vec<usize> = charts.series.iter().map(|line| line.values.len()).collect();
            assert!(lengths.iter().all(|length| *length <= 360 && *length == lengths[0]), "{taken} {text}");
            assert_eq!(lengths[0] as u64, taken.min(360), "{taken} {text}");
            assert_eq!(charts.series.len(), 13);
            // The last steps are there, and each has the rate of its samples.
            assert!(values(&charts, "operations").iter().all(|value| *value == Some(10.0)));
            assert!(values(&charts, "latency_p50").iter().all(Option::is_none));
        }
    }

    #[test]
    fn a_window_that_is_longer_than_the_record_says_since_when_it_knows() {
        let charts = charts_after(12, "since_ms=0");
        assert!(charts.since_ms <= START && START - charts.since_ms < charts.step_ms);
        assert_eq!(charts.marks.len(), 1, "the start");
        let later = charts_after(12, &format!("since_ms={}", START + 1));
        assert_eq!(later.marks.len(), 0, "the start was before the window");
    }

    #[test]
    fn servers_are_laid_side_by_side() {
        let line = |server, values: &[f64]| Series {
            server,
            name: "operations".into(),
            unit: "per_second".into(),
            values: values.iter().copied().map(Some).collect(),
        };
        let part =
            |since_ms, series| Charts { step_ms: 10_000, since_ms, series: vec![series], marks: vec![] };
        let other = Charts { step_ms: 20_000, ..part(0, line(3, &[7.0])) };
        let parts =
            vec![part(100_000, line(1, &[1.0, 2.0, 3.0])), part(113_000, line(2, &[5.0, 6.0, 7.0])), other];
        let merged = merge(parts);
        assert_eq!((merged.step_ms, merged.since_ms), (10_000, 100_000));
        let values: Vec<_> = merged.series.iter().map(|line| (line.server, line.values.clone())).collect();
        assert_eq!(
            values,
            [
                (1, vec![Some(1.0), Some(2.0), Some(3.0), None]),
                (2, vec![None, Some(5.0), Some(6.0), Some(7.0)])
            ]
        );
        assert_eq!(merge(Vec::new()).series, []);
        let empty = charts_after(0, "");
        assert_eq!(merge(vec![empty.clone(), empty]).series.len(), 26);
    }
}
