//! Reads each command from its words: one function for each entry in the table of commands.

use super::{
    super::{acl_text, catalogue, value_text::Form, words::NotUtf8},
    Action, Change, Command, CommandError, Create, HoldKind, Limits, Reconfig, Wanted, Write,
    reader::{ANY, CommandReader, number},
};
use ostler_client::{AddWatchMode, CreateMode, WatcherType};
use ostler_tree::quota::QuotaNumbers;
use std::time::Duration;

/// The default number of znodes that one transaction of `deleteall` deletes, as in zkCli.sh.
const BATCH: i32 = 1000;

/// Reads a command from its words.
pub(crate) type ReadCommand = fn(&mut CommandReader<'_>) -> Result<Action, CommandError>;
type Read = Result<Action, CommandError>;

pub(crate) fn ls(words: &mut CommandReader<'_>) -> Read {
    if words.has("?") {
        return Ok(Command::Help { command: Some(words.syntax()) }.into());
    }
    let watch = watch(words, "'ls path [watch]' is outdated: use 'ls [-w] path'")?;
    let (stat, recursive) = (words.has("s"), words.has("R"));
    Ok(Command::Ls { path: words.path(0)?, stat, watch, recursive }.into())
}

pub(crate) fn get(words: &mut CommandReader<'_>) -> Read {
    let watch = watch(words, "'get path [watch]' is outdated: use 'get [-s] [-w] path'")?;
    let (path, stat, form) = (words.path(0)?, words.has("s"), form(words));
    Ok(Command::Get { path, stat, watch, form }.into())
}

pub(crate) fn stat(words: &mut CommandReader<'_>) -> Read {
    let watch = watch(words, "'stat path [watch]' is outdated: use 'stat [-w] path'")?;
    Ok(Command::Stat { path: words.path(0)?, watch }.into())
}

pub(crate) fn get_acl(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::GetAcl { path: words.only_path()?, stat: words.has("s") }.into())
}

pub(crate) fn get_all_children_number(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::GetAllChildrenNumber { path: words.only_path()? }.into())
}

pub(crate) fn get_ephemerals(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::GetEphemerals { prefix: words.path_or_root()? }.into())
}

pub(crate) fn tree(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::Tree { path: words.path_or_root()?, depth: words.depth()?, sizes: words.has("s") }.into())
}

pub(crate) fn find(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::Find { path: words.path_or_root()?, depth: words.depth()?, wanted: wanted(words)? }.into())
}

pub(crate) fn du(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::Du { path: words.path_or_root()?, depth: words.depth()?.unwrap_or(1) }.into())
}

pub(crate) fn create(words: &mut CommandReader<'_>) -> Read {
    // With --file there is no operand for the data.
    let acl_at = if words.has("file") { 1 } else { 2 };
    words.operands(1, acl_at + 1)?;
    let acl = words.all_operands().get(acl_at).map(|word| String::try_from(*word)).transpose()?;
    Ok(Command::Write(Write::Create(Create {
        path: words.path(0)?,
        data: words.data(1)?,
        mode: mode(words)?,
        acl: acl.map(|text| acl_text::parse(&text)).transpose()?,
        parents: words.has("p"),
    }))
    .into())
}

pub(crate) fn set(words: &mut CommandReader<'_>) -> Read {
    let operands = if words.has("file") { 1 } else { 2 };
    words.operands(operands, operands)?;
    let data = words.data(1)?.ok_or(CommandError::Usage(words.syntax()))?;
    let set = Write::Set { path: words.path(0)?, data, version: words.version()?, stat: words.has("s") };
    Ok(Command::Write(set).into())
}

pub(crate) fn delete(words: &mut CommandReader<'_>) -> Read {
    words.operands(1, 2)?;
    let mut version = words.version()?;
    // zkCli.sh accepts the version and ignores it.
    if let Some(word) = words.all_operands().get(1) {
        version = number(words.syntax().name, word, "version")?;
        words.note_outdated("'delete path [version]' is outdated: use 'delete [-v version] path'");
    }
    Ok(Command::Write(Write::Delete { path: words.path(0)?, version }).into())
}

pub(crate) fn check(words: &mut CommandReader<'_>) -> Read {
    words.operands(2, 2)?;
    let version = number(words.syntax().name, words.all_operands()[1], "version")?;
    Ok(Command::Write(Write::Check { path: words.path(0)?, version }).into())
}

pub(crate) fn delete_all(words: &mut CommandReader<'_>) -> Read {
    // As in zkCli.sh, a batch of zero or less is a batch of one.
    let batch = words.number::<i32>("b", "batch size")?.unwrap_or(BATCH);
    let batch = usize::try_from(batch).unwrap_or(0).max(1);
    Ok(Command::DeleteAll { path: words.only_path()?, batch }.into())
}

pub(crate) fn set_acl(words: &mut CommandReader<'_>) -> Read {
    words.operands(2, 2)?;
    Ok(Command::SetAcl {
        path: words.path(0)?,
        acl: acl_text::parse(&words.text(1)?)?,
        version: words.version()?,
        stat: words.has("s"),
        recursive: words.has("R"),
    }
    .into())
}

pub(crate) fn begin(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::Begin)
}

pub(crate) fn commit(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::Commit)
}

pub(crate) fn abort(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::Abort)
}

pub(crate) fn watch_changes(words: &mut CommandReader<'_>) -> Read {
    let count = words.number("n", "number of changes")?;
    Ok(Command::Watch { path: words.only_path()?, recursive: words.has("R"), count }.into())
}

pub(crate) fn add_watch(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::AddWatch { path: words.only_path()?, mode: watch_mode(words)? }.into())
}

pub(crate) fn remove_watches(words: &mut CommandReader<'_>) -> Read {
    let (kind, here) = (watcher_type(words), words.has("l"));
    Ok(Command::RemoveWatches { path: words.only_path()?, kind, here }.into())
}

pub(crate) fn print_watches(words: &mut CommandReader<'_>) -> Read {
    words.operands(0, 1)?;
    if words.all_operands().is_empty() {
        return Ok(Command::PrintWatches(None).into());
    }
    match &*words.text(0)? {
        "on" => Ok(Command::PrintWatches(Some(true)).into()),
        "off" => Ok(Command::PrintWatches(Some(false)).into()),
        _ => Err(CommandError::Usage(words.syntax())),
    }
}

pub(crate) fn set_quota(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::SetQuota { limits: limits(words)?, path: words.only_path()? }.into())
}

pub(crate) fn list_quota(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::ListQuota { path: words.only_path()? }.into())
}

pub(crate) fn del_quota(words: &mut CommandReader<'_>) -> Read {
    let which = Limits {
        count: words.has("n"),
        bytes: words.has("b"),
        count_hard: words.has("N"),
        bytes_hard: words.has("B"),
    };
    Ok(Command::DelQuota { path: words.only_path()?, which }.into())
}

pub(crate) fn config(words: &mut CommandReader<'_>) -> Read {
    let (for_clients, watch, stat) = (words.has("c"), words.has("w"), words.has("s"));
    words.alone(Command::Config { for_clients, watch, stat })
}

pub(crate) fn reconfig(words: &mut CommandReader<'_>) -> Read {
    words.operands(0, 0)?;
    let joined = |option| {
        let texts = words.values(option).iter().map(String::try_from);
        let texts = texts.collect::<Result<Vec<String>, NotUtf8>>()?;
        Ok::<_, CommandError>((!texts.is_empty()).then(|| texts.join(",").to_lowercase()))
    };
    let (joining, leaving, members) = (joined("add")?, joined("remove")?, joined("members")?);
    let file = words.value("file").map(String::try_from).transpose()?;
    let change = match (members, file) {
        (Some(_), Some(_)) => {
            return words.conflict("-file does not go with -members: both say all servers");
        }
        (None, None) if joining.is_none() && leaving.is_none() => {
            return Err(CommandError::Usage(words.syntax()));
        }
        (None, None) => Change::Step { joining, leaving },
        _ if joining.is_some() || leaving.is_some() => {
            return words
                .conflict("-add and -remove do not go with -members or -file, which say all servers");
        }
        (Some(members), None) => Change::Members(members),
        (None, Some(file)) => Change::MembersOf(file.into()),
    };
    let version = words.value("v").map(|word| {
        let text = String::try_from(word)?;
        let wrong = "version of a configuration, a hexadecimal number";
        i64::from_str_radix(&text, 16).map_err(|_| CommandError::Value {
            command: words.syntax().name,
            value: text,
            what: wrong,
        })
    });
    let version = version.transpose()?.unwrap_or(ANY.into());
    Ok(Command::Reconfig(Reconfig { change, version, stat: words.has("s") }).into())
}

pub(crate) fn sync(words: &mut CommandReader<'_>) -> Read {
    Ok(Command::Sync { path: words.path_or_root()? }.into())
}

pub(crate) fn add_auth(words: &mut CommandReader<'_>) -> Read {
    words.operands(1, 2)?;
    let auth = words.all_operands().get(1).map_or(&[][..], |word| word.bytes());
    Ok(Command::AddAuth { scheme: words.text(0)?, auth: auth.to_vec() }.into())
}

pub(crate) fn who_am_i(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::WhoAmI)
}

pub(crate) fn close(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::Close)
}

pub(crate) fn history(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::History)
}

pub(crate) fn version(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::Version)
}

pub(crate) fn quit(words: &mut CommandReader<'_>) -> Read {
    words.alone(Command::Quit)
}

pub(crate) fn lock(words: &mut CommandReader<'_>) -> Read {
    hold(words, HoldKind::Lock)
}

pub(crate) fn elect(words: &mut CommandReader<'_>) -> Read {
    hold(words, HoldKind::Leadership)
}

pub(crate) fn connect(words: &mut CommandReader<'_>) -> Read {
    words.operands(0, 1)?;
    let servers = words.all_operands().first().map(|word| String::try_from(*word)).transpose()?;
    Ok(Command::Connect { servers }.into())
}

pub(crate) fn redo(words: &mut CommandReader<'_>) -> Read {
    words.operands(1, 1)?;
    let number = number(words.syntax().name, words.all_operands()[0], "number of a command")?;
    Ok(Action::Redo { number })
}

pub(crate) fn help(words: &mut CommandReader<'_>) -> Read {
    words.operands(0, 1)?;
    if words.all_operands().is_empty() {
        return Ok(Command::Help { command: None }.into());
    }
    let name = words.text(0)?;
    let command = catalogue::find(&name);
    let not_found = || CommandError::NotFound { nearest: catalogue::nearest(&name), name: name.clone() };
    Ok(Command::Help { command: Some(command.ok_or_else(not_found)?) }.into())
}

fn hold(words: &CommandReader<'_>, kind: HoldKind) -> Read {
    words.operands(2, usize::MAX)?;
    let command = words.all_operands()[1..].iter().map(|word| (*word).clone()).collect();
    Ok(Action::Hold { kind, path: words.path(0)?, command })
}

/// Whether a watch is wanted: by `-w`, or by a second operand, as in old versions.
fn watch(words: &mut CommandReader<'_>, outdated: &'static str) -> Result<bool, CommandError> {
    words.operands(1, 2)?;
    let second = words.all_operands().len() == 2;
    if second {
        words.note_outdated(outdated);
    }
    Ok(second || words.has("w"))
}

fn form(words: &CommandReader<'_>) -> Form {
    match (words.has("raw"), words.has("x"), words.has("b")) {
        (true, _, _) => Form::Raw,
        (_, true, _) => Form::Hex,
        (_, _, true) => Form::Base64,
        _ => Form::Plain,
    }
}

fn wanted(words: &CommandReader<'_>) -> Result<Wanted, CommandError> {
    let name = words.value("name").map(String::try_from).transpose()?;
    Ok(Wanted { name, larger: words.number("larger", "count of bytes")?, ephemeral: words.has("e") })
}

fn mode(words: &CommandReader<'_>) -> Result<CreateMode, CommandError> {
    let (sequential, ephemeral, container) = (words.has("s"), words.has("e"), words.has("c"));
    let ttl: Option<u64> = words.number("t", "time to live in milliseconds")?;
    match (ttl.map(Duration::from_millis), container) {
        (None, true) if sequential || ephemeral => {
            words.conflict("-c goes with neither -s nor -e: containers are neither sequential nor ephemeral")
        }
        (Some(_), true) => words.conflict("-t does not go with -c: containers have no time to live"),
        (Some(_), false) if ephemeral => {
            words.conflict("-t does not go with -e: an ephemeral znode lives as long as its session")
        }
        (None, true) => Ok(CreateMode::Container),
        (Some(ttl), false) if sequential => Ok(CreateMode::PersistentSequentialWithTtl(ttl)),
        (Some(ttl), false) => Ok(CreateMode::PersistentWithTtl(ttl)),
        (None, false) => Ok(match (sequential, ephemeral) {
            (false, false) => CreateMode::Persistent,
            (true, false) => CreateMode::PersistentSequential,
            (false, true) => CreateMode::Ephemeral,
            (true, true) => CreateMode::EphemeralSequential,
        }),
    }
}

fn watch_mode(words: &CommandReader<'_>) -> Result<AddWatchMode, CommandError> {
    let Some(word) = words.value("m") else { return Ok(AddWatchMode::PersistentRecursive) };
    let text = String::try_from(word)?;
    match &*text.to_ascii_uppercase() {
        "PERSISTENT" => Ok(AddWatchMode::Persistent),
        "PERSISTENT_RECURSIVE" => Ok(AddWatchMode::PersistentRecursive),
        _ => Err(CommandError::Value {
            command: words.syntax().name,
            value: text,
            what: "mode: they are PERSISTENT and PERSISTENT_RECURSIVE",
        }),
    }
}

/// The kind of watch. Of several options the first counts, in the order of zkCli.sh.
fn watcher_type(words: &CommandReader<'_>) -> WatcherType {
    let kinds = [
        ("c", WatcherType::Children),
        ("d", WatcherType::Data),
        ("p", WatcherType::Persistent),
        ("r", WatcherType::PersistentRecursive),
    ];
    let kind = kinds.into_iter().find(|(option, _)| words.has(option));
    kind.map_or(WatcherType::Any, |(_, kind)| kind)
}

fn limits(words: &CommandReader<'_>) -> Result<QuotaNumbers, CommandError> {
    let count = |option| match words.number::<i32>(option, "count of znodes")? {
        Some(..=0) => words.conflict("a limit on the count of znodes is greater than zero"),
        limit => Ok(limit.map_or(-1, i64::from)),
    };
    let bytes = |option| match words.number::<i64>(option, "count of bytes")? {
        Some(..=-1) => words.conflict("a limit on bytes is not negative"),
        limit => Ok(limit.unwrap_or(-1)),
    };
    let limits = QuotaNumbers {
        count: count("n")?,
        bytes: bytes("b")?,
        count_hard: count("N")?,
        bytes_hard: bytes("B")?,
    };
    if limits == QuotaNumbers::UNSET { Err(CommandError::Usage(words.syntax())) } else { Ok(limits) }
}
