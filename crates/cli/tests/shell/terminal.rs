//! Tests of the prompt, in a terminal of 100 columns.

use crate::program::{ends, once, shell};
use ostler_testkit::TestServer;
use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{self, OpenptFlags},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
const TAB: &str = "\t";
const UP: &str = "\x1b[A";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// The shell at a terminal, and the text that it has written there, without codes for the cursor and colours.
struct Terminal {
    child: Child,
    keyboard: File,
    bytes: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(server: &str, history: &Path) -> Terminal {
        Terminal::start_with(server, history, &[("NO_COLOR", "1")])
    }

    fn start_with(server: &str, history: &Path, variables: &[(&str, &str)]) -> Terminal {
        let end = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&end).unwrap();
        pty::unlockpt(&end).unwrap();
        tcsetwinsize(&end, Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = pty::ptsname(&end, Vec::new()).unwrap();
        let other = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let file = || OwnedFd::from(other.try_clone().unwrap());
        // The terminal controls the shell's session, as after a login, so that Ctrl-C becomes a signal.
        let own = shell();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(own.get_program()).args(own.get_args()).arg(server);
        command.stdin(file()).stdout(file()).stderr(file()).env("TERM", "xterm");
        command.env_remove("NO_COLOR").envs(variables.iter().copied()).env("OSTLER_HISTORY", history);
        let child = command.spawn().unwrap();
        let keyboard = File::from(end);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, bytes) = mpsc::channel();
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut some) {
                if sender.send(some[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard, bytes, seen: String::new() }
    }

    fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this text is shown. Returns and forgets everything up to it.
    #[track_caller]
    fn until(&mut self, shown: &str) -> String {
        let begun = Instant::now();
        loop {
            if let Some((before, rest)) = self.seen.split_once(shown) {
                let (before, rest) = (before.to_owned(), rest.to_owned());
                self.seen = rest;
                return before;
            }
            match self.bytes.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(_) => panic!("never showed {shown:?}, but {:?}", self.seen),
            }
        }
    }

    /// Types a line. Returns the text before the next prompt.
    #[track_caller]
    fn line(&mut self, line: &str) -> String {
        self.keys(&format!("{line}\r"));
        self.until("\r\n");
        self.until("[zk: ")
    }

    #[track_caller]
    fn ends(mut self) -> Option<i32> {
        ends(&mut self.child)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_prompt_shows_the_state_and_what_happens() {
    let mut server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut terminal = Terminal::start(&at, Path::new(""));
    terminal.until("help lists the commands");
    terminal.until("connected, session 0x");
    terminal.until(&format!("[zk: {at}(CONNECTED) 0] "));
    assert!(terminal.line("create /app x").contains("Created /app"));
    terminal.until("(CONNECTED) 1] ");
    let stat = terminal.line("get -w /app");
    assert!(stat.contains('x'), "{stat}");
    terminal.until("(CONNECTED) 2] ");

    // The event comes while nothing is typed.
    once(&at, &["set", "/app", "y"]);
    terminal.until("WATCHER:: NodeDataChanged /app  zxid 0x");
    terminal.until("(CONNECTED) 2] ");
    let stat = terminal.line("stat /app");
    assert!(stat.contains("dataVersion = 1") && stat.contains(" ago)"), "{stat}");

    let refused = terminal.line("get /nothing");
    assert!(refused.contains("Node does not exist: /nothing"), "{refused}");
    terminal.line("begin");
    terminal.line("set /app z");
    terminal.until("multi:1] ");
    terminal.line("commit");

    server.kill().await;
    terminal.until("connection lost, looking for another server");
    terminal.keys("\r");
    terminal.until("(SUSPENDED) ");
    server.restart().await.unwrap();
    terminal.until("connected, session 0x");
    terminal.keys("quit\r");
    assert_eq!(terminal.ends(), Some(0));
}

#[tokio::test]
async fn lines_are_completed_found_again_and_interrupted() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    once(&at, &["create", "-p", "/application/some where/x", "found"]);
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history");
    let mut terminal = Terminal::start(&at, &history);
    terminal.until("(CONNECTED) 0] ");
    terminal.keys(&format!("getAllC{TAB}"));
    terminal.until("getAllChildrenNumber ");
    terminal.keys(&format!("/app{TAB}\r"));
    terminal.until("/application");
    terminal.until("\r\n2\r\n");
    terminal.until("(CONNECTED) 1] ");
    // A name with a space is put into quotes.
    terminal.keys(&format!("get /application/so{TAB}"));
    terminal.until("\"/application/some where\"");
    terminal.keys(CTRL_C);
    terminal.until("(CONNECTED) 1] ");
    terminal.keys(&format!("{UP}\r"));
    terminal.until("\r\n2\r\n");
    terminal.until("(CONNECTED) 2] ");

    terminal.keys("watch -R /application\r");
    server.until(|counts| counts.watches > 0).await.unwrap();
    once(&at, &["set", "/application", "y"]);
    terminal.until("NodeDataChanged /application");
    terminal.keys(CTRL_C);
    terminal.until("interrupted");
    terminal.until("(CONNECTED) 3] ");
    // Several lines at once, as they come when they are pasted.
    terminal.keys("\x1b[200~addauth digest user:secret\nstat /application\x1b[201~\r");
    terminal.until("dataVersion = 1");
    terminal.until("(CONNECTED) 5] ");
    terminal.keys(CTRL_D);
    assert_eq!(terminal.ends(), Some(0));

    let kept = fs::read_to_string(&history).unwrap();
    assert!(!kept.contains("secret"), "{kept}");
    let mut terminal = Terminal::start(&at, &history);
    terminal.until("(CONNECTED) 0] ");
    terminal.keys(UP);
    terminal.until("watch -R /application");
}

#[tokio::test]
async fn a_terminal_gets_colours_unless_no_color_is_set() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    once(&at, &["create", "/app", "x"]);
    let mut terminal = Terminal::start_with(&at, Path::new(""), &[]);
    terminal.until("WATCHER::\x1b[39m connected");
    terminal.until("(CONNECTED) 0] ");
    let stat = terminal.line("stat -w /app");
    for part in ["\x1b[38;5;8mdataVersion\x1b[39m = \x1b[1m0\x1b[0m", "\x1b[38;5;8m  (0:2)\x1b[39m"] {
        assert!(stat.contains(part), "{part:?} in {stat:?}");
    }
    once(&at, &["set", "/app", "y"]);
    terminal.until("\x1b[38;5;3mWATCHER::\x1b[39m NodeDataChanged /app");
    terminal.until("(CONNECTED) 1] ");
    let tree = terminal.line("tree -s /app");
    assert!(tree.contains("/app\x1b[38;5;8m  1 bytes, version 1\x1b[39m"), "{tree:?}");

    for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = shell();
        command.arg(&at).args(["stat", "/app"]);
        let seen = at_terminal(command.env(plain.0, plain.1));
        assert!(seen.contains("dataVersion = 1\r\n"), "{plain:?}: {seen:?}");
    }
    let piped = once(&at, &["stat", "/app"]).out;
    assert!(piped.contains("dataVersion = 1\n") && !piped.contains('\x1b'), "{piped:?}");
}

/// The output of a command at a terminal.
fn at_terminal(command: &mut Command) -> String {
    let end = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&end).unwrap();
    pty::unlockpt(&end).unwrap();
    let name = pty::ptsname(&end, Vec::new()).unwrap();
    let other = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.stdout(OwnedFd::from(other)).spawn().unwrap();
    // The command holds the other end, too.
    command.stdout(Stdio::null());
    assert_eq!(ends(&mut child), Some(0));
    let mut seen = Vec::new();
    // A terminal whose other end is closed ends with an error.
    let _ = File::from(end).read_to_end(&mut seen);
    String::from_utf8(seen).unwrap()
}

#[tokio::test]
async fn a_command_under_a_lock_has_the_terminal() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut terminal = Terminal::start(&at, Path::new(""));
    terminal.until("(CONNECTED) 0] ");
    terminal.keys("lock /held -- sh -c 'echo token $OSTLER_TOKEN; read line; echo got $line; exec cat'\r");
    terminal.until("\r\ntoken ");
    terminal.keys("words\r");
    terminal.until("got words");
    terminal.keys(CTRL_C);
    terminal.until("the command has ended with 130");
    terminal.until("(CONNECTED) 1] ");
    assert_eq!(once(&at, &["ls", "/held"]).out, "[]\n");

    // SIGTERM ends the command, and then the shell.
    terminal.keys("lock /held -- sh -c 'kill -TERM $PPID; exec cat'\r");
    terminal.until("told to end");
    assert_eq!(terminal.ends(), Some(143));
    server.until(|counts| counts.sessions == 0).await.unwrap();
}

#[tokio::test]
async fn sigterm_ends_a_prompt_that_had_a_command() {
    let server = TestServer::start().await.unwrap();
    let at = server.connect_string();
    let mut terminal = Terminal::start(&at, Path::new(""));
    terminal.until("(CONNECTED) 0] ");
    terminal.keys("lock /held -- sh -c 'echo parent $PPID'\r");
    terminal.until("\r\nparent ");
    let parent = terminal.until("\r\n");
    terminal.until("(CONNECTED) 1] ");
    kill_process(Pid::from_raw(parent.parse().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(terminal.ends(), Some(143));
}
