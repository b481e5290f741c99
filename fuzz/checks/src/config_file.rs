//! Fuzzes the reading of zoo.cfg, the JVM flags in the environment, the dynamic configuration file, and `myid`.

use ostler_proto::membership::Membership;
use ostler_server::config::{self, JVM_FLAG_VARIABLES};
use std::{
    cell::OnceCell,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// The input is split at zero bytes into zoo.cfg, JVM flags, `zoo.cfg.dynamic` and `myid`. `@` stands for their folder.
/// A configuration is either read or refused with an error that names the file.
pub fn check(bytes: &[u8]) {
    let mut parts = bytes.splitn(4, |byte| *byte == 0);
    let text = parts.next().unwrap_or_default();
    let flags = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let dynamic = parts.next().unwrap_or_default();
    let my_id = parts.next().unwrap_or_default();
    if may_ask_the_network(text) || may_ask_the_network(dynamic) {
        return;
    }
    let path = path();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let here = folder.display().to_string();
    let put = |file: &str, text: &[u8]| {
        fs::write(folder.join(file), text).expect("the temporary folder takes a small file");
    };
    // These two are found only through `@`.
    if text.contains(&b'@') {
        put("zoo.cfg.dynamic", dynamic);
        put("myid", my_id);
    }
    let text = text.split(|byte| *byte == b'@').collect::<Vec<_>>().join(here.as_bytes());
    put("zoo.cfg", &text);
    match config::load_with_flags(&path, &[(JVM_FLAG_VARIABLES[1], &flags)]) {
        Ok(loaded) => {
            assert!(loaded.notes.iter().all(|note| !note.to_string().is_empty()));
            let config = loaded.config;
            assert!(config.sessions.min_session_timeout_ms <= config.sessions.max_session_timeout_ms);
            assert!(config.tick_time_ms > 0);
            if let Some(ensemble) = &config.ensemble {
                let membership = &ensemble.membership;
                assert_eq!(Membership::parse(&membership.to_string()).as_ref(), Ok(membership));
            }
        }
        Err(error) => {
            let said = error.to_string();
            // The error may name a file elsewhere.
            let names_file = text.windows(17).any(|name| name == b"dynamicConfigFile");
            assert!(said.contains(&here) || said.contains(JVM_FLAG_VARIABLES[1]) || names_file, "{said}");
        }
    }
}

fn path() -> PathBuf {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| TempDir::new().expect("there is a temporary folder"));
        folder.path().join("zoo.cfg")
    })
}

/// Whether reading the file could look up host names. The check must not use the network, so only plain addresses pass.
fn may_ask_the_network(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let names_host = |line: &str| line.contains("ddress") || line.contains("erver.") || line.contains("peer");
    if !text.lines().any(names_host) {
        // A key can be spelled with escapes that are not decoded here.
        return text.contains("\\u") || text.contains("\\\n");
    }
    let plain = |part: &str| part.is_empty() || part.parse::<IpAddr>().is_ok() || part.parse::<u16>().is_ok();
    let values =
        text.lines().filter(|line| names_host(line)).filter_map(|line| line.split_once(['=', ':', ' ']));
    text.contains('\\')
        || text.contains('\r')
        || values.into_iter().any(|(_, value)| {
            value.parse::<IpAddr>().is_err()
                && !value
                    .split([':', ';', ' ', '=', '|'])
                    .all(|part| plain(part) || matches!(part, "participant" | "observer"))
        })
}
