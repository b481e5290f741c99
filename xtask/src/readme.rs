//! The Rust examples of a README, as programs.

/// Words after the backticks that make a block an example for rustdoc.
const RUST: [&str; 4] = ["rust", "no_run", "should_panic", "edition2024"];
/// An example without `main` that ends so returns a `Result`.
const ENDS_WITH_RESULT: &str = "(())";

/// The programs of all examples, in their order.
pub(crate) fn programs(text: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<String> =
            lines.by_ref().take_while(|line| *line != "```").map(shown_or_hidden).collect();
        if !info.is_empty() && info.split(',').all(|word| RUST.contains(&word)) {
            programs.push(program(&block.join("\n")));
        }
    }
    programs
}

/// A line as the compiler gets it: rustdoc hides lines that begin with `# `.
fn shown_or_hidden(line: &str) -> String {
    let trimmed = line.trim_start();
    match trimmed.strip_prefix("# ") {
        Some(hidden) => hidden.to_owned(),
        None if trimmed == "#" => String::new(),
        None => line.to_owned(),
    }
}

/// The code with a `main`, as rustdoc adds one.
fn program(code: &str) -> String {
    if code.contains("fn main(") {
        return format!("{code}\n");
    }
    if code.trim_end().ends_with(ENDS_WITH_RESULT) {
        return format!(
            "fn main() {{\n    fn example() -> Result<(), impl std::fmt::Debug> {{\n{code}\n    }}\n    \
             example().expect(\"the example works\");\n}}\n"
        );
    }
    format!("fn main() {{\n{code}\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_become_programs() {
        let text = "# A\n```rust\nlet a = 1;\n# let b = a;\n```\nText\n```sh\nls\n```\n```rust,no_run\nfn main() {}\n```\n\
            ```rust\nf()?;\n# Ok::<(), E>(())\n```\n```text\n# fn no() {}\n```\n";
        let programs = programs(text);
        assert_eq!(programs[0], "fn main() {\nlet a = 1;\nlet b = a;\n}\n");
        assert_eq!(programs[1], "fn main() {}\n");
        assert!(programs[2].contains("f()?;\nOk::<(), E>(())"), "{}", programs[2]);
        assert!(programs[2].contains("example().expect("), "{}", programs[2]);
        assert_eq!(programs.len(), 3);
    }
}
