//! Draws a tree line by line.

/// Knows which branches go on in the next lines.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    /// For each level above: whether its last znode is drawn.
    ended: Vec<bool>,
}

impl Drawing {
    /// The line of a znode that is `depth` levels below the first. Znodes come parents first.
    pub(crate) fn line(&mut self, depth: usize, last: bool, name: &str) -> String {
        let Some(level) = depth.checked_sub(1) else { return name.to_owned() };
        self.ended.truncate(level);
        let above: String = self.ended.iter().map(|ended| if *ended { "    " } else { "│   " }).collect();
        self.ended.push(last);
        format!("{above}{}{name}", if last { "└── " } else { "├── " })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn lines_go_on_where_siblings_follow() {
        let mut drawing = Drawing::default();
        let znodes = [
            (0, true, "/"),
            (1, false, "a"),
            (2, false, "b"),
            (3, true, "c"),
            (2, true, "d"),
            (1, true, "e"),
            (2, true, "f"),
        ];
        let lines = znodes.map(|(depth, last, name)| drawing.line(depth, last, name) + "\n");
        expect![[r#"
            /
            ├── a
            │   ├── b
            │   │   └── c
            │   └── d
            └── e
                └── f
        "#]]
        .assert_eq(&lines.concat());
    }
}
