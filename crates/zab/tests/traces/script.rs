//! Trace files: commands, each followed by the trace that it has to give. See CONTRIBUTING.md, "Traces".
//!
//! The tests of the core use this file, too.

use std::{fs, path::Path};

/// Between a command and its trace.
const RULE: &str = "----";
/// Written for a command that gives no trace.
const NOTHING: &str = "ok";
/// Equal lines that are shown around a difference.
const CONTEXT: usize = 3;

/// The servers that a trace file drives.
pub(crate) trait Script: Default {
    /// Carries out a command, and returns its trace.
    fn run(&mut self, command: &[&str]) -> Vec<String>;
}

/// One test for each of these files in `testdata`, and a test that no file is forgotten.
macro_rules! traces {
    ($world:ty: $($name:ident)*) => {
        const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
        $(#[test]
        fn $name() {
            $crate::script::check::<$world>(FOLDER.as_ref(), stringify!($name));
        })*

        #[test]
        fn each_trace_file_has_a_test() {
            $crate::script::check_names(FOLDER.as_ref(), &[$(stringify!($name)),*]);
        }
    };
}
pub(crate) use traces;

/// Runs the commands of a file, and compares their traces with those in it. With `UPDATE_TRACES` set, writes them.
pub(crate) fn check<S: Script>(folder: &Path, name: &str) {
    let file = folder.join(format!("{name}.txt"));
    let expected = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let found = rerun::<S>(&expected);
    if found == expected {
        return;
    }
    if std::env::var_os("UPDATE_TRACES").is_some() {
        return fs::write(&file, found).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    panic!("{} differs (UPDATE_TRACES=1 accepts it):\n{}", file.display(), diff(&expected, &found));
}

pub(crate) fn check_names(folder: &Path, names: &[&str]) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap();
        assert!(names.contains(&name), "no test runs {}: name it in main.rs", path.display());
    }
}

/// The file as it would be if every trace in it were right.
fn rerun<S: Script>(text: &str) -> String {
    let (mut world, mut found, mut lines) = (S::default(), String::new(), text.lines().peekable());
    while let Some(line) = lines.next() {
        found.push_str(line);
        found.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if lines.next_if_eq(&RULE).is_some() {
            while lines.next_if(|line| !line.is_empty()).is_some() {}
        }
        println!("{line}");
        let mut trace = world.run(&line.split_whitespace().collect::<Vec<&str>>());
        if trace.is_empty() {
            trace.push(NOTHING.to_owned());
        }
        for line in [RULE].into_iter().chain(trace.iter().map(String::as_str)) {
            found.push_str(line);
            found.push('\n');
        }
        // A command that was just written may follow at once.
        if lines.peek().is_some_and(|line| !line.is_empty()) {
            found.push('\n');
        }
    }
    found
}

/// Lines that differ, with some around them: the longest common part of both is kept.
fn diff(expected: &[&str], found: &[&str]) -> String {
    let (rows, columns) = (expected.len(), found.len());
    let mut common = vec![vec![0_usize; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            common[row][column] = if expected[row] == found[column] {
                common[row + 1][column + 1] + 1
            } else {
                common[row + 1][column].max(common[row][column + 1])
            };
        }
    }
    let (mut row, mut column, mut lines) = (0, 0, Vec::new());
    while row < rows || column < columns {
        if row < rows && column < columns && expected[row] == found[column] {
            lines.push((' ', expected[row]));
            (row, column) = (row + 1, column + 1);
        } else if column == columns || (row < rows && common[row + 1][column] >= common[row][column + 1]) {
            lines.push(('-', expected[row]));
            row += 1;
        } else {
            lines.push(('+', found[column]));
            column += 1;
        }
    }
    let is_near = |at: usize| {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        lines[around].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut text = String::new();
    for (at, (sign, line)) in lines.iter().enumerate().filter(|(at, _)| is_near(*at)) {
        if at > 0 && !is_near(at - 1) {
            text.push_str("  ...\n");
        }
        text.push_str(&format!("{sign} {line}\n"));
    }
    text
}

#[test]
fn a_difference_is_shown_with_the_lines_around_it() {
    let expected = ["a", "b", "c", "d", "e", "f"];
    let found = ["a", "b", "c", "d", "x", "e", "f"];
    assert_eq!(diff(&expected, &found), "  ...\n  b\n  c\n  d\n+ x\n  e\n  f\n");
    assert_eq!(diff(&["a", "b"], &["b", "c"]), "- a\n  b\n+ c\n");
}

#[test]
fn a_command_without_a_trace_gets_one() {
    #[derive(Default)]
    struct Echo;
    impl Script for Echo {
        fn run(&mut self, command: &[&str]) -> Vec<String> {
            command[1..].iter().map(|word| format!("says {word}")).collect()
        }
    }
    let found = "# A note.\n\nsay a b\n----\nsays a\nsays b\n\nsay\n----\nok\n";
    assert_eq!(rerun::<Echo>("# A note.\n\nsay a b\nsay\n"), found);
    assert_eq!(rerun::<Echo>("# A note.\n\nsay a b\n----\nsays c\n\nsay\n----\nok\n"), found);
}
