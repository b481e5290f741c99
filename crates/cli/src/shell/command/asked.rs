//! From a command's words to the command.

use super::{
    super::{
        acl_text, catalogue,
        options::{Given, Syntax},
        value_text::{self, Form},
        words::{NoText, Word},
    },
    Change, Command, CommandError, Create, Data, Held, Limits, Line, Reconfig, Understood, Wanted, Write,
};
use ostler_client::{AddWatchMode, CreateMode, WatcherType, paths};
use ostler_tree::quota::QuotaNumbers;
use std::{str::FromStr, time::Duration};

/// Any version.
const ANY: i32 = -1;
/// What one transaction of `deleteall` deletes, as upstream has it.
const BATCH: i32 = 1000;

/// A command's words, while they are being understood.
pub(super) struct Asked<'w> {
    syntax: &'static Syntax,
    given: Given<'w>,
    outdated: Option<&'static str>,
}

impl<'w> Asked<'w> {
    pub(super) fn new(syntax: &'static Syntax, given: Given<'w>) -> Asked<'w> {
        Asked { syntax, given, outdated: None }
    }

    pub(super) fn understand(mut self) -> Result<Understood, CommandError> {
        Ok(Understood { line: self.line()?, outdated: self.outdated })
    }

    fn line(&mut self) -> Result<Line, CommandError> {
        match self.syntax.name {
            "lock" => self.hold(Held::Lock),
            "elect" => self.hold(Held::Leadership),
            "redo" => {
                self.operands(1, 1)?;
                let number = number(self.syntax.name, self.given.operands[0], "command's number")?;
                Ok(Line::Redo { number })
            }
            _ => self.command().map(Line::Command),
        }
    }

    fn command(&mut self) -> Result<Command, CommandError> {
        Ok(match self.syntax.name {
            "ls" if self.has("?") => Command::Help { command: Some(self.syntax) },
            "ls" => Command::Ls {
                watch: self.watch("'ls path [watch]' is outdated: use 'ls [-w] path'")?,
                path: self.path(0)?,
                stat: self.has("s"),
                recursive: self.has("R"),
            },
            "get" => Command::Get {
                watch: self.watch("'get path [watch]' is outdated: use 'get [-s] [-w] path'")?,
                path: self.path(0)?,
                stat: self.has("s"),
                form: self.form(),
            },
            "stat" => Command::Stat {
                watch: self.watch("'stat path [watch]' is outdated: use 'stat [-w] path'")?,
                path: self.path(0)?,
            },
            "getAcl" => Command::GetAcl { path: self.only_path()?, stat: self.has("s") },
            "getAllChildrenNumber" => Command::GetAllChildrenNumber { path: self.only_path()? },
            "getEphemerals" => Command::GetEphemerals { prefix: self.path_or_root()? },
            "tree" => {
                Command::Tree { path: self.path_or_root()?, depth: self.depth()?, sizes: self.has("s") }
            }
            "find" => {
                Command::Find { path: self.path_or_root()?, depth: self.depth()?, wanted: self.wanted()? }
            }
            "du" => Command::Du { path: self.path_or_root()?, depth: self.depth()?.unwrap_or(1) },
            "create" => Command::Write(self.create()?),
            "set" => Command::Write(self.set()?),
            "delete" => Command::Write(self.delete()?),
            "check" => {
                self.operands(2, 2)?;
                let version = number(self.syntax.name, self.given.operands[1], "version")?;
                Command::Write(Write::Check { path: self.path(0)?, version })
            }
            "deleteall" => {
                // One by one if it is zero or less, as upstream.
                let batch = self.number::<i32>("b", "batch size")?.unwrap_or(BATCH);
                let batch = usize::try_from(batch).unwrap_or(0).max(1);
                Command::DeleteAll { path: self.only_path()?, batch }
            }
            "setAcl" => {
                self.operands(2, 2)?;
                Command::SetAcl {
                    path: self.path(0)?,
                    acl: acl_text::parse(&self.text(1)?)?,
                    version: self.version()?,
                    stat: self.has("s"),
                    recursive: self.has("R"),
                }
            }
            "begin" => self.alone(Command::Begin)?,
            "commit" => self.alone(Command::Commit)?,
            "abort" => self.alone(Command::Abort)?,
            "watch" => Command::Watch {
                path: self.only_path()?,
                recursive: self.has("R"),
                count: self.number("n", "count")?,
            },
            "addWatch" => Command::AddWatch { path: self.only_path()?, mode: self.watch_mode()? },
            "removewatches" => Command::RemoveWatches {
                path: self.only_path()?,
                kind: self.watcher_type(),
                here: self.has("l"),
            },
            "printwatches" => self.print_watches()?,
            "setquota" => Command::SetQuota { limits: self.limits()?, path: self.only_path()? },
            "listquota" => Command::ListQuota { path: self.only_path()? },
            "delquota" => Command::DelQuota {
                path: self.only_path()?,
                which: Limits {
                    count: self.has("n"),
                    bytes: self.has("b"),
                    count_hard: self.has("N"),
                    bytes_hard: self.has("B"),
                },
            },
            "config" => self.alone(Command::Config {
                for_clients: self.has("c"),
                watch: self.has("w"),
                stat: self.has("s"),
            })?,
            "reconfig" => self.reconfig()?,
            "sync" => Command::Sync { path: self.path_or_root()? },
            "addauth" => {
                self.operands(1, 2)?;
                let auth = self.given.operands.get(1).map_or(&[][..], |word| word.bytes());
                Command::AddAuth { scheme: self.text(0)?, auth: auth.to_vec() }
            }
            "whoami" => self.alone(Command::WhoAmI)?,
            "connect" => {
                self.operands(0, 1)?;
                let servers = self.given.operands.first().map(|word| String::try_from(*word)).transpose()?;
                Command::Connect { servers }
            }
            "close" => self.alone(Command::Close)?,
            "history" => self.alone(Command::History)?,
            "version" => self.alone(Command::Version)?,
            "help" => self.help()?,
            "quit" => self.alone(Command::Quit)?,
            _ => return Err(CommandError::Usage(self.syntax)),
        })
    }

    fn has(&self, option: &str) -> bool {
        self.given.has(option)
    }

    fn operands(&self, least: usize, most: usize) -> Result<(), CommandError> {
        let count = self.given.operands.len();
        if (least..=most).contains(&count) { Ok(()) } else { Err(CommandError::Usage(self.syntax)) }
    }

    fn alone(&self, command: Command) -> Result<Command, CommandError> {
        self.operands(0, 0).map(|()| command)
    }

    fn text(&self, at: usize) -> Result<String, CommandError> {
        let word = self.given.operands.get(at).ok_or(CommandError::Usage(self.syntax))?;
        Ok(String::try_from(*word)?)
    }

    fn path(&self, at: usize) -> Result<String, CommandError> {
        let path = self.text(at)?;
        // A sequential znode's name may be empty, and is checked when it is created.
        if self.syntax.name == "create" || paths::is_valid(&path) {
            return Ok(path);
        }
        let what = "path of a znode: it begins with a slash, and has no empty, `.` or `..` part and no slash at the end";
        Err(CommandError::Value { command: self.syntax.name, value: path, what })
    }

    fn only_path(&self) -> Result<String, CommandError> {
        self.operands(1, 1)?;
        self.path(0)
    }

    fn path_or_root(&self) -> Result<String, CommandError> {
        self.operands(0, 1)?;
        if self.given.operands.is_empty() { Ok("/".into()) } else { self.path(0) }
    }

    /// `-w`, or a second operand, which meant the same in old versions.
    fn watch(&mut self, outdated: &'static str) -> Result<bool, CommandError> {
        self.operands(1, 2)?;
        let second = self.given.operands.len() == 2;
        if second {
            self.outdated = Some(outdated);
        }
        Ok(second || self.has("w"))
    }

    fn form(&self) -> Form {
        match (self.has("raw"), self.has("x"), self.has("b")) {
            (true, _, _) => Form::Raw,
            (_, true, _) => Form::Hex,
            (_, _, true) => Form::Base64,
            _ => Form::Plain,
        }
    }

    fn number<T: FromStr>(&self, option: &str, what: &'static str) -> Result<Option<T>, CommandError> {
        self.given.value(option).map(|word| number(self.syntax.name, word, what)).transpose()
    }

    fn version(&self) -> Result<i32, CommandError> {
        Ok(self.number("v", "version")?.unwrap_or(ANY))
    }

    fn depth(&self) -> Result<Option<usize>, CommandError> {
        self.number("L", "depth")
    }

    fn wanted(&self) -> Result<Wanted, CommandError> {
        let name = self.given.value("name").map(String::try_from).transpose()?;
        Ok(Wanted { name, larger: self.number("larger", "count of bytes")?, ephemeral: self.has("e") })
    }

    fn conflict<T>(&self, problem: &'static str) -> Result<T, CommandError> {
        Err(CommandError::Conflict { command: self.syntax.name, problem })
    }

    /// The data among the operands at `at`, or where an option says.
    fn data(&self, at: usize) -> Result<Option<Data>, CommandError> {
        let file = self.given.value("file").map(String::try_from).transpose()?;
        match (file, self.given.operands.get(at)) {
            (Some(file), _) if file == "-" => Ok(Some(Data::Input)),
            (Some(file), _) => Ok(Some(Data::File(file.into()))),
            (None, Some(word)) if self.has("b") => {
                let value = || String::from_utf8_lossy(word.bytes()).into_owned();
                let decoded = value_text::from_base64(word.bytes());
                let wrong =
                    || CommandError::Value { command: self.syntax.name, value: value(), what: "base64" };
                Ok(Some(Data::Given(decoded.ok_or_else(wrong)?)))
            }
            (None, Some(word)) => Ok(Some(Data::Given(word.bytes().to_vec()))),
            (None, None) => Ok(None),
        }
    }

    fn create(&self) -> Result<Write<Data>, CommandError> {
        // With --file there is no operand for the data.
        let acl_at = if self.has("file") { 1 } else { 2 };
        self.operands(1, acl_at + 1)?;
        let acl = self.given.operands.get(acl_at).map(|word| String::try_from(*word)).transpose()?;
        Ok(Write::Create(Create {
            path: self.path(0)?,
            data: self.data(1)?,
            mode: self.mode()?,
            acl: acl.map(|text| acl_text::parse(&text)).transpose()?,
            parents: self.has("p"),
        }))
    }

    fn mode(&self) -> Result<CreateMode, CommandError> {
        let (sequential, ephemeral, container) = (self.has("s"), self.has("e"), self.has("c"));
        let ttl: Option<u64> = self.number("t", "time to live in milliseconds")?;
        match (ttl.map(Duration::from_millis), container) {
            (None, true) if sequential || ephemeral => self
                .conflict("-c goes with neither -s nor -e: containers are neither sequential nor ephemeral"),
            (Some(_), true) => self.conflict("-t does not go with -c: containers have no time to live"),
            (Some(_), false) if ephemeral => {
                self.conflict("-t does not go with -e: an ephemeral znode lives as long as its session")
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

    fn set(&self) -> Result<Write<Data>, CommandError> {
        let operands = if self.has("file") { 1 } else { 2 };
        self.operands(operands, operands)?;
        let data = self.data(1)?.ok_or(CommandError::Usage(self.syntax))?;
        Ok(Write::Set { path: self.path(0)?, data, version: self.version()?, stat: self.has("s") })
    }

    fn delete(&mut self) -> Result<Write<Data>, CommandError> {
        self.operands(1, 2)?;
        let mut version = self.version()?;
        // Upstream takes it and deletes whatever version there is. Whoever writes it means it.
        if let Some(word) = self.given.operands.get(1) {
            version = number(self.syntax.name, word, "version")?;
            self.outdated = Some("'delete path [version]' is outdated: use 'delete [-v version] path'");
        }
        Ok(Write::Delete { path: self.path(0)?, version })
    }

    fn watch_mode(&self) -> Result<AddWatchMode, CommandError> {
        let Some(word) = self.given.value("m") else { return Ok(AddWatchMode::PersistentRecursive) };
        let text = String::try_from(word)?;
        match &*text.to_ascii_uppercase() {
            "PERSISTENT" => Ok(AddWatchMode::Persistent),
            "PERSISTENT_RECURSIVE" => Ok(AddWatchMode::PersistentRecursive),
            _ => Err(CommandError::Value {
                command: self.syntax.name,
                value: text,
                what: "mode: they are PERSISTENT and PERSISTENT_RECURSIVE",
            }),
        }
    }

    /// Upstream's order where several are given.
    fn watcher_type(&self) -> WatcherType {
        let kinds = [
            ("c", WatcherType::Children),
            ("d", WatcherType::Data),
            ("p", WatcherType::Persistent),
            ("r", WatcherType::PersistentRecursive),
        ];
        let kind = kinds.into_iter().find(|(option, _)| self.has(option));
        kind.map_or(WatcherType::Any, |(_, kind)| kind)
    }

    fn print_watches(&self) -> Result<Command, CommandError> {
        self.operands(0, 1)?;
        if self.given.operands.is_empty() {
            return Ok(Command::PrintWatches(None));
        }
        match &*self.text(0)? {
            "on" => Ok(Command::PrintWatches(Some(true))),
            "off" => Ok(Command::PrintWatches(Some(false))),
            _ => Err(CommandError::Usage(self.syntax)),
        }
    }

    fn limits(&self) -> Result<QuotaNumbers, CommandError> {
        let count = |option| match self.number::<i32>(option, "count of znodes")? {
            Some(..=0) => self.conflict("a limit on the count of znodes is greater than zero"),
            limit => Ok(limit.map_or(-1, i64::from)),
        };
        let bytes = |option| match self.number::<i64>(option, "count of bytes")? {
            Some(..=-1) => self.conflict("a limit on bytes is not negative"),
            limit => Ok(limit.unwrap_or(-1)),
        };
        let limits = QuotaNumbers {
            count: count("n")?,
            bytes: bytes("b")?,
            count_hard: count("N")?,
            bytes_hard: bytes("B")?,
        };
        if limits == QuotaNumbers::UNSET { Err(CommandError::Usage(self.syntax)) } else { Ok(limits) }
    }

    fn reconfig(&self) -> Result<Command, CommandError> {
        self.operands(0, 0)?;
        let joined = |option| {
            let texts = self.given.all(option).iter().map(String::try_from);
            let texts = texts.collect::<Result<Vec<String>, NoText>>()?;
            Ok::<_, CommandError>((!texts.is_empty()).then(|| texts.join(",").to_lowercase()))
        };
        let (joining, leaving, members) = (joined("add")?, joined("remove")?, joined("members")?);
        let file = self.given.value("file").map(String::try_from).transpose()?;
        let change = match (members, file) {
            (Some(_), Some(_)) => {
                return self.conflict("-file does not go with -members: both say all servers");
            }
            (None, None) if joining.is_none() && leaving.is_none() => {
                return Err(CommandError::Usage(self.syntax));
            }
            (None, None) => Change::Step { joining, leaving },
            _ if joining.is_some() || leaving.is_some() => {
                return self
                    .conflict("-add and -remove do not go with -members or -file, which say all servers");
            }
            (Some(members), None) => Change::Members(members),
            (None, Some(file)) => Change::MembersOf(file.into()),
        };
        let version = self.given.value("v").map(|word| {
            let text = String::try_from(word)?;
            let wrong = "version of a configuration, a hexadecimal number";
            i64::from_str_radix(&text, 16).map_err(|_| CommandError::Value {
                command: self.syntax.name,
                value: text,
                what: wrong,
            })
        });
        let version = version.transpose()?.unwrap_or(ANY.into());
        Ok(Command::Reconfig(Reconfig { change, version, stat: self.has("s") }))
    }

    fn hold(&self, what: Held) -> Result<Line, CommandError> {
        self.operands(2, usize::MAX)?;
        let command = self.given.operands[1..].iter().map(|word| (*word).clone()).collect();
        Ok(Line::Hold { what, path: self.path(0)?, command })
    }

    fn help(&self) -> Result<Command, CommandError> {
        self.operands(0, 1)?;
        if self.given.operands.is_empty() {
            return Ok(Command::Help { command: None });
        }
        let name = self.text(0)?;
        let command = catalogue::find(&name);
        let not_found = || CommandError::NotFound { nearest: catalogue::nearest(&name), name: name.clone() };
        Ok(Command::Help { command: Some(command.ok_or_else(not_found)?) })
    }
}

fn number<T: FromStr>(command: &'static str, word: &Word, what: &'static str) -> Result<T, CommandError> {
    let number = word.text().ok().and_then(|text| text.parse().ok());
    let value = || String::from_utf8_lossy(word.bytes()).into_owned();
    number.ok_or_else(|| CommandError::Value { command, value: value(), what })
}
