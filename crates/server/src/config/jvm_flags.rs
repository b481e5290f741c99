//! System properties as the start scripts of a Java server take them: `-Dname=value` in environment
//! variables.

use super::error::Place;
use super::keys;
use super::properties::Entry;

/// The variables that a Java server reads flags from, the one that wins last.
pub const JVM_FLAG_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "SERVER_JVMFLAGS", "JVMFLAGS"];

/// The known properties among `flags`, pairs of a variable's name and its text, later ones winning.
/// Properties of the Java machine and of other programs are nobody's business here and leave no trace.
pub(super) fn entries(flags: &[(&str, &str)]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (variable, text) in flags {
        for flag in split(text) {
            let Some((name, value)) = flag.strip_prefix("-D").and_then(|flag| flag.split_once('=')) else {
                continue;
            };
            let Some(key) = keys::find_property(name) else { continue };
            entries
                .retain(|entry| keys::find_property(&entry.key).is_none_or(|known| known.name != key.name));
            entries.push(Entry {
                place: Place::in_variable(variable),
                key: name.into(),
                value: value.trim().into(),
            });
        }
    }
    entries
}

/// Splits at white space outside single or double quotes, as a shell does.
fn split(text: &str) -> Vec<String> {
    let mut flags = Vec::new();
    let mut flag = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => flag.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => flags.push(std::mem::take(&mut flag)),
            None => flag.push(c),
        }
    }
    flags.push(flag);
    flags.retain(|flag| !flag.is_empty());
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(flags: &[(&str, &str)]) -> Vec<String> {
        entries(flags).iter().map(|entry| format!("{}: {}={}", entry.place, entry.key, entry.value)).collect()
    }

    #[test]
    fn known_properties_are_found_and_the_rest_ignored() {
        let text = "-Xmx1g -Dfile.encoding=UTF-8 -Dzookeeper.snapCount=500 -Djute.maxbuffer=4194304 \
                    -Dzookeeper.root.logger=INFO,CONSOLE -Dreadonlymode.enabled=true -Djava.awt.headless=true -D";
        assert_eq!(
            shown(&[("JVMFLAGS", text)]),
            [
                "JVMFLAGS: zookeeper.snapCount=500",
                "JVMFLAGS: jute.maxbuffer=4194304",
                "JVMFLAGS: readonlymode.enabled=true",
            ]
        );
    }

    #[test]
    fn keys_that_only_a_file_can_set_are_ignored() {
        assert!(
            shown(&[("JVMFLAGS", "-Dzookeeper.dataDir=/x -Dzookeeper.tickTime=1 -DsnapCount=5")]).is_empty()
        );
    }

    #[test]
    fn the_last_one_wins() {
        let flags = [
            ("JAVA_TOOL_OPTIONS", "-Dzookeeper.maxCnxns=1"),
            ("SERVER_JVMFLAGS", "-Dzookeeper.maxCnxns=2 -Dzookeeper.maxCnxns=3"),
        ];
        assert_eq!(shown(&flags), ["SERVER_JVMFLAGS: zookeeper.maxCnxns=3"]);
    }

    #[test]
    fn quotes_hold_a_flag_together() {
        let flags = [("JVMFLAGS", r#"-Dx='a b' "-Dzookeeper.4lw.commands.whitelist=ruok, stat""#)];
        assert_eq!(shown(&flags), ["JVMFLAGS: zookeeper.4lw.commands.whitelist=ruok, stat"]);
    }
}
