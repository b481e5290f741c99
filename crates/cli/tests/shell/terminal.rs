//! The prompt, in a terminal of 100 columns.

use crate::program::{once, shell};
use ostler_testkit::TestServer;
use rustix::{
    pty::{self, OpenptFlags},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::{self, File},
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
const TAB: &str = "\t";
const UP: &str = "\x1b[A";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// The shell at a terminal, and what it has written there, without what only moves the cursor or colours.
struct Terminal {
    child: Child,
    keyboard: File,
    bytes: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn start(server: &str, history: &Path) -> Terminal {
        let end = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&end).unwrap();
        pty::unlockpt(&end).unwrap();
        tcsetwinsize(&end, Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = pty::ptsname(&end, Vec::new()).unwrap();
        let other = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let file = || OwnedFd::from(other.try_clone().unwrap());
        // With the terminal as its own, as a login has it: Ctrl-C becomes a signal.
        let own = shell();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(own.get_program()).args(own.get_args()).arg(server);
        command.stdin(file()).stdout(file()).stderr(file()).env("TERM", "xterm").env("NO_COLOR", "1");
        command.env("OSTLER_HISTORY", history);
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

    /// Waits until it shows this, and forgets all up to there; what came before.
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

    /// Types a line; what is shown before the next prompt.
    #[track_caller]
    fn line(&mut self, line: &str) -> String {
        self.keys(&format!("{line}\r"));
        self.until("\r\n");
        self.until("[zk: ")
    }

    #[track_caller]
    fn ends(mut self) -> Option<i32> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not end");
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

    // While nothing is typed.
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
