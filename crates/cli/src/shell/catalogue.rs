//! The table of all commands: name, form, help, options, and the function that reads the words.

use super::{
    command::forms::{self, ReadCommand},
    options::Syntax,
};

const fn command(
    name: &'static str,
    usage: &'static str,
    summary: &'static str,
    read: ReadCommand,
) -> Syntax {
    Syntax { name, usage, summary, flags: &[], values: &[], others_command: false, read }
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

/// All commands, in the order of the help.
pub(crate) const COMMANDS: &[Syntax] = &[
    command("ls", "[-?] [-s] [-w] [-R] path", "lists children; -s with Stat, -w sets a watch, -R lists all znodes below, -? shows only this help", forms::ls).flags(&["?", "s", "w", "R"]),
    command("get", "[-s] [-w] [-b] [-x] [--raw] path", "shows data; -s with Stat, -w sets a watch, -b as base64, -x as hexadecimal, --raw only the bytes", forms::get).flags(&["s", "w", "b", "x", "raw"]),
    command("stat", "[-w] path", "shows the Stat; -w sets a watch", forms::stat).flags(&["w"]),
    command("getAcl", "[-s] path", "shows the access control list; -s with Stat", forms::get_acl).flags(&["s"]),
    command("getAllChildrenNumber", "path", "shows the number of znodes below", forms::get_all_children_number),
    command("getEphemerals", "[path]", "lists the ephemeral znodes of this session whose paths begin with path", forms::get_ephemerals),
    command("tree", "[-L depth] [-s] [path]", "draws the znodes below as a tree; -L levels to draw, -s with bytes and versions", forms::tree).flags(&["s"]).values(&["L"]),
    command("find", "[-L depth] [-name pattern] [-larger bytes] [-e] [path]", "lists znodes below; -L levels, -name with * and ?, -larger than this number of bytes, -e only ephemeral ones", forms::find).flags(&["e"]).values(&["L", "name", "larger"]),
    command("du", "[-L depth] [path]", "shows bytes of data and number of znodes, of each child and in all; -L levels to show", forms::du).values(&["L"]),
    command("create", "[-s] [-e] [-c] [-t ttl] [-p] [-b] [--file name] path [data] [acl]", "creates a znode; -s sequential, -e ephemeral, -c container, -t time to live in ms, -p parents too, -b data is base64, --file reads the data from a file (- is the standard input)", forms::create).flags(&["s", "e", "c", "p", "b"]).values(&["t", "file"]),
    command("set", "[-s] [-v version] [-b] [--file name] path data", "sets data; -s shows the Stat, -v only at this version, -b data is base64, --file reads the data from a file (- is the standard input)", forms::set).flags(&["s", "b"]).values(&["v", "file"]),
    command("delete", "[-v version] path", "deletes a znode without children; -v only at this version", forms::delete).values(&["v"]),
    command("deleteall", "path [-b batch size]", "deletes a znode and all below it; -b number of deletes in one transaction (default 1000)", forms::delete_all).values(&["b"]),
    command("setAcl", "[-s] [-v version] [-R] path acl", "sets the access control list, scheme:id:cdrwa joined by commas; -s shows the Stat, -v only at this version of the list, -R also of all znodes below", forms::set_acl).flags(&["s", "R"]).values(&["v"]),
    command("check", "path version", "in a transaction: checks that the znode has this version (-1: any)", forms::check),
    command("begin", "", "begins a transaction: create, set, delete and check wait for commit", forms::begin),
    command("commit", "", "does the whole transaction, or nothing of it", forms::commit),
    command("abort", "", "discards the transaction", forms::abort),
    command("watch", "[-R] [-n count] path", "shows changes as they happen, until Ctrl-C; -R also of all znodes below, -n ends after this number of changes", forms::watch_changes).flags(&["R"]).values(&["n"]),
    command("addWatch", "[-m mode] path", "sets a watch that stays; mode is PERSISTENT or PERSISTENT_RECURSIVE (default)", forms::add_watch).values(&["m"]),
    command("removewatches", "path [-c|-d|-p|-r|-a] [-l]", "removes watches; -c children, -d data, -p persistent, -r persistent recursive, -a all (default), -l only here if there is no connection", forms::remove_watches).flags(&["c", "d", "p", "r", "a", "l"]),
    command("printwatches", "[on|off]", "shows or sets whether watch events are shown", forms::print_watches),
    command("setquota", "-n|-b|-N|-B val path", "sets limits; -n znodes and -b bytes only warn; above -N znodes and -B bytes writes are refused if the server has enforceQuota=true", forms::set_quota).values(&["n", "b", "N", "B"]),
    command("listquota", "path", "shows limits and usage", forms::list_quota),
    command("delquota", "[-n|-b|-N|-B] path", "removes limits, by default all", forms::del_quota).flags(&["n", "b", "N", "B"]),
    command("config", "[-c] [-w] [-s]", "shows the servers of the ensemble; -c only the version and the client addresses, -w sets a watch, -s with Stat", forms::config).flags(&["c", "w", "s"]),
    command("reconfig", "[-s] [-v version] [-file path | -members server.N=...,... | [-add N=host:port:port;port,...] [-remove N,...]]", "changes the servers of the ensemble; -add servers to add or change, -remove ids, -members or -file all servers, -v only at this version of the configuration", forms::reconfig).flags(&["s"]).values(&["v", "file", "members", "add", "remove"]),
    command("sync", "[path]", "waits until the server has all that was committed before", forms::sync),
    command("addauth", "scheme auth", "adds an identity to this session, for example: digest user:password", forms::add_auth),
    command("whoami", "", "lists the identities of this session", forms::who_am_i),
    command("lock", "path [--] command args...", "runs a command while holding the lock at path", forms::lock).others_command(),
    command("elect", "path [--] command args...", "runs a command while leading the election at path", forms::elect).others_command(),
    command("connect", "[host:port,...]", "opens a new session, with these servers or the same as before", forms::connect),
    command("close", "", "ends the session", forms::close),
    command("history", "", "lists the last commands with their numbers", forms::history),
    command("redo", "cmdno", "repeats the command with this number", forms::redo),
    command("version", "", "shows this program's version", forms::version),
    command("help", "[command]", "lists all commands, or explains one", forms::help),
    command("quit", "", "ends the session and this program", forms::quit),
];

/// Other names of commands, from older versions of zkCli.sh.
const ALIASES: &[(&str, &str)] = &[("rmr", "deleteall"), ("exit", "quit"), ("?", "help")];

/// The command with this name.
pub(crate) fn find(name: &str) -> Option<&'static Syntax> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    COMMANDS.iter().find(|command| command.name == name)
}

/// The command whose name is most similar, if it differs by at most two letters.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let distance =
        |command: &Syntax| strsim::damerau_levenshtein(&command.name.to_lowercase(), &name.to_lowercase());
    let nearest = COMMANDS.iter().min_by_key(|command| distance(command))?;
    (distance(nearest) <= 2).then_some(nearest.name)
}

/// The help text: one line for each command, without its options.
pub(crate) fn help() -> String {
    let width = COMMANDS.iter().map(|command| command.name.len()).max().unwrap_or(0);
    let line = |command: &Syntax| {
        let effect = command.summary.split("; -").next().unwrap_or_default();
        format!("{:width$}  {effect}\n", command.name)
    };
    let lines: String = COMMANDS.iter().map(line).collect();
    format!("{lines}help COMMAND explains the options of a command.\n")
}

/// The help text of one command, with its options.
pub(crate) fn help_with(command: &Syntax) -> String {
    format!("{} {}\n    {}\n", command.name, command.usage, command.summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_zkcli_is_there() {
        let upstream = "addWatch addauth close config connect create delete deleteall delquota get getAcl \
             getAllChildrenNumber getEphemerals history listquota ls printwatches quit reconfig redo removewatches \
             set setAcl setquota stat sync version whoami";
        for name in upstream.split_whitespace() {
            assert!(find(name).is_some(), "{name}");
        }
        assert_eq!(find("rmr").unwrap().name, "deleteall");
    }

    #[test]
    fn help_has_options_for_one_command_only() {
        assert!(help().contains("\nget                   shows data\n"), "{}", help());
        assert!(help_with(find("get").unwrap()).contains("; -s with Stat, "));
    }

    #[test]
    fn a_misspelt_command_gets_the_most_similar_name() {
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
