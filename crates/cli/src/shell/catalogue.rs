//! Every command: its name, how it is written, what it does.

use super::options::Syntax;

const fn command(name: &'static str, usage: &'static str, summary: &'static str) -> Syntax {
    Syntax { name, usage, summary, flags: &[], values: &[], others_command: false }
}

impl Syntax {
    const fn flags(self, flags: &'static [&'static str]) -> Syntax {
        Syntax { flags, ..self }
    }

    const fn values(self, values: &'static [&'static str]) -> Syntax {
        Syntax { values, ..self }
    }

    const fn others_command(self) -> Syntax {
        Syntax { others_command: true, ..self }
    }
}

/// In the order of the help.
pub(crate) const COMMANDS: &[Syntax] = &[
    command("ls", "[-?] [-s] [-w] [-R] path", "children; -s with Stat, -w watch, -R all below, -? only this help")
        .flags(&["?", "s", "w", "R"]),
    command("get", "[-s] [-w] [-b] [-x] [--raw] path", "data; -b as base64, -x as hexadecimal, --raw as it is")
        .flags(&["s", "w", "b", "x", "raw"]),
    command("stat", "[-w] path", "Stat").flags(&["w"]),
    command("getAcl", "[-s] path", "access control list").flags(&["s"]),
    command("getAllChildrenNumber", "path", "how many znodes are below"),
    command("getEphemerals", "[path]", "ephemeral znodes of this session, those that begin with path"),
    command("tree", "[-L depth] [-s] [path]", "what is below, as a drawing; -s with bytes and versions")
        .flags(&["s"])
        .values(&["L"]),
    command(
        "find",
        "[-L depth] [-name pattern] [-larger bytes] [-e] [path]",
        "znodes below; * and ? in the pattern, -e ephemeral ones",
    )
    .flags(&["e"])
    .values(&["L", "name", "larger"]),
    command("du", "[-L depth] [path]", "bytes of data and count of znodes, below and in all").values(&["L"]),
    command(
        "create",
        "[-s] [-e] [-c] [-t ttl] [-p] [-b] [--file name] path [data] [acl]",
        "-s sequential, -e ephemeral, -c container, -t time to live in ms, -p parents as well, -b data in base64",
    )
    .flags(&["s", "e", "c", "p", "b"])
    .values(&["t", "file"]),
    command(
        "set",
        "[-s] [-v version] [-b] [--file name] path data",
        "data; -v only at this version, -b data in base64, --file from a file, - for the input",
    )
    .flags(&["s", "b"])
    .values(&["v", "file"]),
    command("delete", "[-v version] path", "one znode; -v only at this version").values(&["v"]),
    command("deleteall", "path [-b batch size]", "deletes a znode and all below it; -b: the number of deletes in one transaction")
        .values(&["b"]),
    command(
        "setAcl",
        "[-s] [-v version] [-R] path acl",
        "scheme:id:cdrwa, joined by commas; -R of all below as well",
    )
    .flags(&["s", "R"])
    .values(&["v"]),
    command("check", "path version", "in a transaction: the znode has this version, -1 for any"),
    command("begin", "", "begins a transaction: create, set, delete and check wait for commit"),
    command("commit", "", "does all of the transaction or nothing"),
    command("abort", "", "forgets the transaction"),
    command("watch", "[-R] [-n count] path", "shows changes as they happen, until Ctrl-C or -n changes")
        .flags(&["R"])
        .values(&["n"]),
    command("addWatch", "[-m mode] path", "a watch that stays; PERSISTENT or PERSISTENT_RECURSIVE, which is usual")
        .values(&["m"]),
    command(
        "removewatches",
        "path [-c|-d|-p|-r|-a] [-l]",
        "of children, data, persistent, recursive, any; -l here if there is no connection",
    )
    .flags(&["c", "d", "p", "r", "a", "l"]),
    command("printwatches", "[on|off]", "whether changes are shown"),
    command("setquota", "-n|-b|-N|-B val path", "-n znodes, -b bytes; in capitals refused above")
        .values(&["n", "b", "N", "B"]),
    command("listquota", "path", "limits and usage"),
    command("delquota", "[-n|-b|-N|-B] path", "removes limits; all of them by default")
        .flags(&["n", "b", "N", "B"]),
    command("config", "[-c] [-w] [-s]", "the ensemble; -c for clients").flags(&["c", "w", "s"]),
    command(
        "reconfig",
        "[-s] [-v version] [-file path | -members server.N=...,... | [-add N=host:port:port;port,...] [-remove N,...]]",
        "changes the ensemble",
    )
    .flags(&["s"])
    .values(&["v", "file", "members", "add", "remove"]),
    command("sync", "[path]", "what is read afterwards is no older than now"),
    command("addauth", "scheme auth", "shows an identity: digest user:password"),
    command("whoami", "", "the identities that the server has for this connection"),
    command("lock", "path [--] command args...", "runs a command while holding the lock at path").others_command(),
    command("elect", "path [--] command args...", "runs a command while leading the election at path")
        .others_command(),
    command("connect", "[host:port,...]", "a new session, with these servers"),
    command("close", "", "ends the session"),
    command("history", "", "the last commands, with numbers for redo"),
    command("redo", "cmdno", "a command once more"),
    command("version", "", "of this program"),
    command("help", "[command]", "this list, or one command"),
    command("quit", "", "ends the session and this program"),
];

/// What people type who come from older versions.
const ALIASES: &[(&str, &str)] = &[("rmr", "deleteall"), ("exit", "quit"), ("?", "help")];

/// The command of a name.
pub(crate) fn find(name: &str) -> Option<&'static Syntax> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    COMMANDS.iter().find(|command| command.name == name)
}

/// The command that somebody may have meant.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let distance =
        |command: &Syntax| strsim::damerau_levenshtein(&command.name.to_lowercase(), &name.to_lowercase());
    let nearest = COMMANDS.iter().min_by_key(|command| distance(command))?;
    (distance(nearest) <= 2).then_some(nearest.name)
}

/// All of it.
pub(crate) fn help() -> String {
    let width = COMMANDS.iter().map(|command| command.name.len()).max().unwrap_or(0);
    let lines = COMMANDS.iter().map(|command| format!("{:width$}  {}\n", command.name, command.summary));
    lines.collect()
}

/// One command.
pub(crate) fn help_with(command: &Syntax) -> String {
    format!("{} {}\n    {}\n", command.name, command.usage, command.summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_upstreams_shell_is_there() {
        let upstream = "addWatch addauth close config connect create delete deleteall delquota get getAcl \
             getAllChildrenNumber getEphemerals history listquota ls printwatches quit reconfig redo removewatches \
             set setAcl setquota stat sync version whoami";
        for name in upstream.split_whitespace() {
            assert!(find(name).is_some(), "{name}");
        }
        assert_eq!(find("rmr").unwrap().name, "deleteall");
    }

    #[test]
    fn slips_are_understood() {
        assert_eq!(nearest("getacl"), Some("getAcl"));
        assert_eq!(nearest("craete"), Some("create"));
        assert_eq!(nearest("frobnicate"), None);
    }

    #[test]
    fn options_are_in_the_usage_and_the_usage_has_no_others() {
        for command in COMMANDS {
            for option in command.flags.iter().chain(command.values) {
                assert!(command.usage.contains(&format!("-{option}")), "{} -{option}", command.name);
            }
        }
    }
}
