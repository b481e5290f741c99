use super::{super::words::split, *};
use std::time::Duration;

fn parsed(line: &str) -> Result<ParsedLine, CommandError> {
    let words = split(line).unwrap();
    parse(&words[0], &words[1..])
}

#[track_caller]
fn check(line: &str, command: Command) {
    let expected = ParsedLine { action: Action::Command(command), outdated: None };
    assert_eq!(parsed(line), Ok(expected), "{line}");
}

#[track_caller]
fn refused(line: &str, said: &str) {
    assert_eq!(parsed(line).map_err(|error| error.to_string()), Err(said.into()), "{line}");
}

fn path(path: &str) -> String {
    path.to_owned()
}

fn create(data: Option<&str>, mode: CreateMode) -> Command {
    let data = data.map(|text| Data::Given(text.into()));
    Command::Write(Write::Create(Create { path: path("/a"), data, mode, acl: None, parents: false }))
}

#[test]
fn commands_that_read_take_their_options() {
    let ls = |stat, watch, recursive| Command::Ls { path: path("/a"), stat, watch, recursive };
    check("ls /a", ls(false, false, false));
    check("ls -s -w -R /a", ls(true, true, true));
    check("ls /a -Rs", ls(true, false, true));
    check("ls -?", Command::Help { command: catalogue::find("ls") });
    let get = |stat, watch, form| Command::Get { path: path("/a"), stat, watch, form };
    check("get /a", get(false, false, Form::Plain));
    check("get -s -w -b /a", get(true, true, Form::Base64));
    check("get -x /a", get(false, false, Form::Hex));
    check("get --raw /a", get(false, false, Form::Raw));
    check("stat -w /a", Command::Stat { path: path("/a"), watch: true });
    check("getAcl -s /a", Command::GetAcl { path: path("/a"), stat: true });
    check("getEphemerals", Command::GetEphemerals { prefix: path("/") });
    check("tree -L 2 /a", Command::Tree { path: path("/a"), depth: Some(2), sizes: false });
    check("du /a", Command::Du { path: path("/a"), depth: 1 });
    let wanted = Wanted { name: Some("lock-*".into()), larger: Some(10), ephemeral: true };
    check("find /a -name lock-* -larger 10 -e", Command::Find { path: path("/a"), depth: None, wanted });
}

#[test]
fn create_has_every_mode() {
    let ttl = Duration::from_millis(3000);
    check("create /a", create(None, CreateMode::Persistent));
    check("create /a \"\"", create(Some(""), CreateMode::Persistent));
    check("create -s /a x", create(Some("x"), CreateMode::PersistentSequential));
    check("create -e /a x", create(Some("x"), CreateMode::Ephemeral));
    check("create -s -e /a x", create(Some("x"), CreateMode::EphemeralSequential));
    check("create -se /a x", create(Some("x"), CreateMode::EphemeralSequential));
    check("create -c /a x", create(Some("x"), CreateMode::Container));
    check("create -t 3000 /a x", create(Some("x"), CreateMode::PersistentWithTtl(ttl)));
    check("create -s -t 3000 /a x", create(Some("x"), CreateMode::PersistentSequentialWithTtl(ttl)));
    let acl = Some(vec![Acl::world(ostler_client::Perms::READ)]);
    let data = Some(Data::Given(b"x".to_vec()));
    let mode = CreateMode::Persistent;
    let full = Create { path: path("/a/b"), data, mode, acl: acl.clone(), parents: true };
    check("create -p /a/b x world:anyone:r", Command::Write(Write::Create(full)));
    let data = Some(Data::File("f".into()));
    let of_file = Create { path: path("/a"), data, mode, acl, parents: false };
    check("create --file f /a world:anyone:r", Command::Write(Write::Create(of_file)));
    refused(
        "create -c -e /a",
        "create: -c goes with neither -s nor -e: containers are neither sequential nor ephemeral",
    );
    refused("create -c -t 1 /a", "create: -t does not go with -c: containers have no time to live");
    refused("create -t x /a", "create: \"x\" is not a valid time to live in milliseconds");
}

#[test]
fn commands_that_write_take_their_options() {
    let set = |data, version| Command::Write(Write::Set { path: path("/a"), data, version, stat: false });
    check("set /a x", set(Data::Given(b"x".to_vec()), -1));
    check("set -v 3 /a x", set(Data::Given(b"x".to_vec()), 3));
    check("set /a -5", set(Data::Given(b"-5".to_vec()), -1));
    check("set -b /a /wo=", set(Data::Given(b"\xff\n".to_vec()), -1));
    check(r"set /a $'\xff'", set(Data::Given(b"\xff".to_vec()), -1));
    check("set /a --file f", set(Data::File("f".into()), -1));
    check("set /a --file -", set(Data::Input, -1));
    // Java's decoder wants no padding.
    check("set -b /a /wo", set(Data::Given(b"\xff\n".to_vec()), -1));
    refused("set -b /a ?", "set: \"?\" is not a valid base64");
    refused("set /a", "usage: set [-s] [-v version] [-b] [--file name] path data");
    check("delete -v 1 /a", Command::Write(Write::Delete { path: path("/a"), version: 1 }));
    check("check /a 4", Command::Write(Write::Check { path: path("/a"), version: 4 }));
    check("deleteall /a", Command::DeleteAll { path: path("/a"), batch: 1000 });
    check("rmr /a -b 0", Command::DeleteAll { path: path("/a"), batch: 1 });
    check("deleteall -b -1 /a", Command::DeleteAll { path: path("/a"), batch: 1 });
    let acl = vec![Acl::world(ostler_client::Perms(3))];
    check(
        "setAcl -R -v 2 /a world:anyone:rw",
        Command::SetAcl { path: path("/a"), acl, version: 2, stat: false, recursive: true },
    );
}

#[test]
fn forms_of_old_versions_work_with_a_note() {
    for (line, command) in [
        ("get /a watch", Command::Get { path: path("/a"), stat: false, watch: true, form: Form::Plain }),
        ("ls /a true", Command::Ls { path: path("/a"), stat: false, watch: true, recursive: false }),
        ("stat /a 1", Command::Stat { path: path("/a"), watch: true }),
        ("delete /a 7", Command::Write(Write::Delete { path: path("/a"), version: 7 })),
    ] {
        let parsed_line = parsed(line).unwrap();
        assert_eq!(parsed_line.action, Action::Command(command), "{line}");
        assert!(parsed_line.outdated.is_some_and(|said| said.contains("is outdated")), "{line}");
    }
}

#[test]
fn commands_for_watches_take_their_options() {
    let add = |mode| Command::AddWatch { path: path("/a"), mode };
    check("addWatch /a", add(AddWatchMode::PersistentRecursive));
    check("addWatch -m persistent /a", add(AddWatchMode::Persistent));
    let remove = |kind, here| Command::RemoveWatches { path: path("/a"), kind, here };
    check("removewatches /a", remove(WatcherType::Any, false));
    check("removewatches /a -c -l", remove(WatcherType::Children, true));
    check("removewatches -r /a", remove(WatcherType::PersistentRecursive, false));
    check("printwatches off", Command::PrintWatches(Some(false)));
    check("watch -R -n 3 /a", Command::Watch { path: path("/a"), recursive: true, count: Some(3) });
    let said = "addWatch: \"often\" is not a valid mode: they are PERSISTENT and PERSISTENT_RECURSIVE";
    refused("addWatch -m often /a", said);
}

#[test]
fn commands_for_quotas_and_the_ensemble_take_their_options() {
    let limits = QuotaNumbers { count: 5, bytes_hard: 0, ..QuotaNumbers::UNSET };
    check("setquota -n 5 -B 0 /a", Command::SetQuota { path: path("/a"), limits });
    refused("setquota -n 0 /a", "setquota: a limit on the count of znodes is greater than zero");
    refused("setquota /a", "usage: setquota -n|-b|-N|-B val path");
    let which = Limits { bytes: true, ..Limits::default() };
    check("delquota -b /a", Command::DelQuota { path: path("/a"), which });
    let change = Change::Step { joining: Some("4=h:1:2;3,5=h:1:2;3".into()), leaving: Some("2".into()) };
    let reconfig = Reconfig { change, version: 0x1_0000_0000, stat: false };
    check("reconfig -add 4=H:1:2;3 --add 5=h:1:2;3 -remove 2 -v 100000000", Command::Reconfig(reconfig));
    refused(
        "reconfig -members a -add b",
        "reconfig: -add and -remove do not go with -members or -file, which say all servers",
    );
}

#[test]
fn an_invalid_line_gives_one_sentence() {
    refused("frobnicate", "Command not found frobnicate; help lists all");
    refused("getacl /a", "Command not found getacl; did you mean getAcl?");
    refused("ls", "usage: ls [-?] [-s] [-w] [-R] path");
    refused(
        "ls -x /a",
        "ls: it has no option -x (quote data that begins with a dash); usage: ls [-?] [-s] [-w] [-R] path",
    );
    let path =
        "path of a znode: it begins with a slash, and has no empty, `.` or `..` part and no slash at the end";
    refused("ls a", &format!("ls: \"a\" is not a valid {path}"));
    refused("stat /a/", &format!("stat: \"/a/\" is not a valid {path}"));
    refused(r"ls $'\xff'", "\u{fffd} is no UTF-8 text");
}

#[test]
fn the_command_line_after_lock_keeps_its_options() {
    let words = ["sh", "-c", "echo -s"].map(Word::plain).to_vec();
    let ParsedLine { action, .. } = parsed("lock /l -- sh -c 'echo -s'").unwrap();
    let Action::Hold { kind: HoldKind::Lock, path, command } = action else { panic!("{action:?}") };
    let texts = |words: &[Word]| words.iter().map(|word| word.text().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!((&*path, texts(&command)), ("/l", texts(&words)));
}
