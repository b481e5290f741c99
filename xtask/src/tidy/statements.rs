//! Checks that docs/statements.md explains the statement codes in the names of tests: exactly those that are used, with
//! the files that use them.

use super::sources::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = "docs/statements.md";
/// The beginning of a trace that shows promises, before their codes.
const IN_TRACE: &str = "# Statements: ";
/// The first letters of codes: elections, tree, recipes.
const LETTERS: [char; 3] = ['e', 't', 'r'];

/// The files for each code.
type FilesByCode<'a> = BTreeMap<String, BTreeSet<&'a str>>;

pub(crate) fn check(files: &[SourceFile]) -> Vec<String> {
    let Some(table) = files.iter().find(|file| file.name == TABLE) else {
        return vec![format!("{TABLE} is missing; it explains the codes in names of tests")];
    };
    let (used, explained) = (used_codes(files), explained_codes(&table.text));
    let mut complaints = Vec::new();
    for (code, files) in &used {
        match explained.get(code) {
            None => complaints.push(format!("{TABLE}: {code} is missing; {} uses it", list(files))),
            Some(named) if named != files => {
                complaints
                    .push(format!("{TABLE}: the tests of {code} are in {}; name these files", list(files)));
            }
            Some(_) => {}
        }
    }
    let unused = explained.keys().filter(|code| !used.contains_key(*code));
    complaints.extend(unused.map(|code| format!("{TABLE}: no test uses {code}; remove its line")));
    complaints
}

fn list(files: &BTreeSet<&str>) -> String {
    files.iter().copied().collect::<Vec<_>>().join(", ")
}

/// The codes in the names of functions and at the beginning of traces, with their files.
fn used_codes(files: &[SourceFile]) -> FilesByCode<'_> {
    let mut used = FilesByCode::new();
    for file in files {
        let codes = file.text.lines().next().and_then(|line| line.strip_prefix(IN_TRACE));
        for code in codes.into_iter().flat_map(|codes| codes.split(", ")) {
            used.entry(code.to_owned()).or_default().insert(&file.name);
        }
    }
    for file in files.iter().filter(|file| file.name.ends_with(".rs")) {
        for line in file.text.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("async ").unwrap_or(line);
            let Some(name) = line.strip_prefix("fn ") else { continue };
            for code in codes_of(name) {
                used.entry(code).or_default().insert(&file.name);
            }
        }
    }
    used
}

/// The codes at the beginning of a function's name: `e4_e5_the_first_vote()` has E4 and E5.
fn codes_of(name: &str) -> Vec<String> {
    let parts = name
        .split('_')
        .take_while(|part| part.strip_prefix(LETTERS).is_some_and(|number| number.parse::<u8>().is_ok()));
    parts.map(str::to_uppercase).collect()
}

/// The codes of the table's lines, with the files that the last column names.
fn explained_codes(text: &str) -> FilesByCode<'_> {
    let mut explained = FilesByCode::new();
    for line in text.lines() {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let (Some(code), Some(files)) = (cells.next(), cells.next_back()) else { continue };
        if codes_of(&code.to_lowercase()) == [code] {
            explained.insert(code.to_owned(), files.split('`').skip(1).step_by(2).collect());
        }
    }
    explained
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str =
        "| Code | Promise | Tests |\n|---|---|---|\n| E4 | One. | `a.rs` |\n| E5 | Two. | `a.rs`, `b.rs` |\n";

    fn complaints(table: &str, tests: &[(&str, &str)]) -> Vec<String> {
        let file = |name: &str, text: &str| SourceFile { name: name.to_owned(), text: text.to_owned() };
        let mut files = vec![file(TABLE, table)];
        files.extend(tests.iter().map(|(name, text)| file(name, text)));
        check(&files)
    }

    #[test]
    fn used_codes_and_the_table_are_compared() {
        let (a, b) =
            (("a.rs", "    fn e4_e5_a() {}\n"), ("b.rs", "async fn e5_b() {}\nfn e_c() {}\nfn t_1() {}\n"));
        assert_eq!(complaints(ROWS, &[a, b]), Vec::<String>::new());
        assert_eq!(
            complaints(ROWS, &[a]),
            ["docs/statements.md: the tests of E5 are in a.rs; name these files"]
        );
        let unused = "docs/statements.md: no test uses E4; remove its line";
        assert_eq!(complaints(ROWS, &[("a.rs", "fn e5_a() {}"), b]), [unused]);
        let missing = "docs/statements.md: T3 is missing; c.rs uses it";
        assert_eq!(complaints(ROWS, &[a, b, ("c.rs", "fn t3_c() {}")]), [missing]);
        assert_eq!(check(&[]).len(), 1, "without the table");
    }
}
