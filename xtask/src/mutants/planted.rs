//! Finds code that runs only with a planted bug. Mutants of such code do not matter.

use std::{fs, path::Path};

const PLANTED: &str = "planted::";

/// Whether the line of a mutant (`FILE:LINE:COLUMN: what`), or a line above with less indentation, tests for a planted
/// bug.
pub(super) fn is_in_planted_bug(checkout: &Path, mutant: &str) -> bool {
    let mut parts = mutant.split(':');
    let (Some(file), Some(Ok(line))) = (parts.next(), parts.next().map(str::parse::<usize>)) else {
        return false;
    };
    let Ok(text) = fs::read_to_string(checkout.join(file)) else { return false };
    asks_for_planted_bug(&text, line)
}

fn asks_for_planted_bug(text: &str, line: usize) -> bool {
    let mut lines = text.lines().take(line).collect::<Vec<_>>().into_iter().rev();
    let Some(own) = lines.next() else { return false };
    let mut depth = depth_of(own);
    own.contains(PLANTED)
        || lines.filter(|line| !line.trim().is_empty()).any(|line| {
            let above = depth_of(line) < depth;
            depth = depth.min(depth_of(line));
            above && line.contains(PLANTED)
        })
}

/// The depth of indentation of a line. The opening brace stands for a condition of several lines.
fn depth_of(line: &str) -> usize {
    line.len() - line.trim_start().len() + usize::from(line.trim() == "{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_under_a_planted_bug_is_in_it() {
        let text = "fn f() {\n    if planted::is(Bug::A)\n        && x > 1\n    {\n        y += 1;\n    }\n    z += 1;\n}\n";
        let of = |line| asks_for_planted_bug(text, line);
        assert_eq!((1..=8).map(of).collect::<Vec<_>>(), [false, true, true, true, true, false, false, false]);
    }
}
