//! System properties in environment variables, as the start scripts of a Java server read them: `-Dname=value`.

use super::error::SettingLocation;
use super::keys;
use super::properties::Entry;

/// The variables from which a Java server reads flags. The last one wins.
pub const JVM_FLAG_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "SERVER_JVMFLAGS", "JVMFLAGS"];

/// The JVM's property for a JAAS file, and the key of the same file here.
const JAAS_FILE: &str = "java.security.auth.login.config";
const JAAS_KEY: &str = "zookeeper.sasl.jaasFile";

/// The known properties among `flags`, pairs of a variable's name and its text. Later ones win. Properties of the Java
/// machine and of other programs are ignored.
pub(super) fn entries(flags: &[(&str, &str)]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (variable, text) in flags {
        for flag in split(text) {
            let Some((name, value)) = flag.strip_prefix("-D").and_then(|flag| flag.split_once('=')) else {
                continue;
            };
            // The JVM takes a URL, too, and a second `=` that keeps its own default file out.
            let (name, value) = match name {
                JAAS_FILE => (JAAS_KEY, jaas_path(value)),
                _ => (name, value),
            };
            let Some(key) = keys::find_property(name) else { continue };
            let entry = Entry {
                location: SettingLocation::in_variable(variable),
                key: name.into(),
                value: value.trim().into(),
            };
            // A key may have several spellings. Of a family each key counts.
            let is_replaced = |earlier: &Entry| match key.is_family() {
                true => earlier.name() == entry.name(),
                false => keys::find_property(&earlier.key).is_some_and(|known| known.name == key.name),
            };
            entries.retain(|earlier| !is_replaced(earlier));
            entries.push(entry);
        }
    }
    entries
}

fn jaas_path(value: &str) -> &str {
    let value = value.strip_prefix('=').unwrap_or(value);
    value.strip_prefix("file://").or_else(|| value.strip_prefix("file:")).unwrap_or(value)
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
        entries(flags)
            .iter()
            .map(|entry| format!("{}: {}={}", entry.location, entry.key, entry.value))
            .collect()
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
    fn the_jaas_file_of_the_jvm_is_that_of_the_server() {
        for flag in [
            "=/etc/zk/jaas.conf",
            "==/etc/zk/jaas.conf",
            "=file:/etc/zk/jaas.conf",
            "=file:///etc/zk/jaas.conf",
        ] {
            let flag = format!("-Xmx1g -Djava.security.auth.login.config{flag}");
            let expected = "SERVER_JVMFLAGS: zookeeper.sasl.jaasFile=/etc/zk/jaas.conf";
            assert_eq!(shown(&[("SERVER_JVMFLAGS", &flag)]), [expected]);
        }
    }

    #[test]
    fn keys_that_only_a_file_can_set_are_ignored() {
        assert!(
            shown(&[("JVMFLAGS", "-Dzookeeper.dataDir=/x -Dzookeeper.tickTime=1 -DsnapCount=5")]).is_empty()
        );
    }

    #[test]
    fn the_last_setting_of_a_property_wins() {
        let flags = [
            ("JAVA_TOOL_OPTIONS", "-Dzookeeper.maxCnxns=1"),
            ("SERVER_JVMFLAGS", "-Dzookeeper.maxCnxns=2 -Dzookeeper.maxCnxns=3"),
        ];
        assert_eq!(shown(&flags), ["SERVER_JVMFLAGS: zookeeper.maxCnxns=3"]);
    }

    #[test]
    fn each_key_of_a_family_counts() {
        let flags = [
            (
                "SERVER_JVMFLAGS",
                "-Dzookeeper.authProvider.1=a -Dzookeeper.superUser.1=x -Dzookeeper.authProvider.2=b",
            ),
            ("JVMFLAGS", "-Dzookeeper.superUser=w -Dzookeeper.authProvider.1=c -Dzookeeper.superUser.2=y"),
        ];
        assert_eq!(
            shown(&flags),
            [
                "SERVER_JVMFLAGS: zookeeper.superUser.1=x",
                "SERVER_JVMFLAGS: zookeeper.authProvider.2=b",
                "JVMFLAGS: zookeeper.superUser=w",
                "JVMFLAGS: zookeeper.authProvider.1=c",
                "JVMFLAGS: zookeeper.superUser.2=y",
            ]
        );
    }

    #[test]
    fn quotes_hold_a_flag_together() {
        let flags = [("JVMFLAGS", r#"-Dx='a b' "-Dzookeeper.4lw.commands.whitelist=ruok, stat""#)];
        assert_eq!(shown(&flags), ["JVMFLAGS: zookeeper.4lw.commands.whitelist=ruok, stat"]);
    }
}
