//! The terminal: keys from it, rows onto it.

use super::frame::{Row, Tone};
use crossterm::{
    QueueableCommand,
    cursor::{Hide, MoveTo, Show},
    event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor},
    terminal::{
        self, BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen,
    },
};
use std::{
    io::{self, Stdout, Write},
    panic, thread,
};
use tokio::sync::mpsc;

/// The meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Server(u16),
    Pause,
    Leader,
    End,
    Other,
}

/// The whole screen of the terminal, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Screen {
    out: Stdout,
    /// The rows that were painted last, and the size of the screen then.
    painted: ((u16, u16), Vec<Row>),
}

impl Screen {
    pub(super) fn take() -> io::Result<Screen> {
        terminal::enable_raw_mode()?;
        let mut screen = Screen { out: io::stdout(), painted: Default::default() };
        let before = panic::take_hook();
        // After a panic the terminal is given back first, so that the message can be read.
        panic::set_hook(Box::new(move |what| {
            let _ = give_back(&mut io::stdout());
            before(what);
        }));
        screen.out.queue(EnterAlternateScreen)?.queue(Hide)?.flush()?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        terminal::size()
    }

    /// Paints the rows that have changed.
    pub(super) fn paint(&mut self, size: (u16, u16), rows: Vec<Row>) -> io::Result<()> {
        let all = self.painted.0 != size;
        if !all && self.painted.1 == rows {
            return Ok(());
        }
        self.out.queue(BeginSynchronizedUpdate)?;
        if all {
            self.out.queue(Clear(ClearType::All))?;
        }
        for (at, row) in rows.iter().enumerate() {
            if all || self.painted.1.get(at) != Some(row) {
                self.out.queue(MoveTo(0, at as u16))?;
                for (tone, text) in &row.0 {
                    print(&mut self.out, *tone, text)?;
                }
                self.out.queue(Clear(ClearType::UntilNewLine))?;
            }
        }
        self.out.queue(EndSynchronizedUpdate)?.flush()?;
        self.painted = (size, rows);
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = give_back(&mut self.out);
    }
}

fn give_back(out: &mut Stdout) -> io::Result<()> {
    let shown = out.queue(Show).and_then(|out| out.queue(LeaveAlternateScreen)).and_then(|out| out.flush());
    terminal::disable_raw_mode().and(shown)
}

fn print(out: &mut Stdout, tone: Tone, text: &str) -> io::Result<()> {
    match tone {
        Tone::Plain => out.queue(Print(text))?,
        Tone::Strong => out.queue(SetAttribute(Attribute::Bold))?.queue(Print(text))?,
        Tone::Faint => out.queue(SetAttribute(Attribute::Dim))?.queue(Print(text))?,
        Tone::Good => out.queue(SetForegroundColor(Color::Green))?.queue(Print(text))?,
        Tone::Warning => out.queue(SetForegroundColor(Color::Yellow))?.queue(Print(text))?,
        Tone::Bad => out.queue(SetForegroundColor(Color::Red))?.queue(Print(text))?,
    };
    out.queue(SetAttribute(Attribute::Reset))?.queue(ResetColor)?;
    Ok(())
}

/// An event of the terminal: a key, or `None` if the screen has another size.
pub(super) type ScreenEvent = Option<Key>;

/// Keys, from a thread that waits for them as long as the process runs. The channel closes with the terminal.
pub(super) fn keys() -> io::Result<mpsc::UnboundedReceiver<ScreenEvent>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let read = move || {
        while let Ok(event) = event::read() {
            let said = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => Some(key_of(key)),
                Event::Resize(..) => None,
                _ => continue,
            };
            if sender.send(said).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".into()).spawn(read)?;
    Ok(receiver)
}

fn key_of(key: KeyEvent) -> Key {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if control => Key::End,
        _ if control => Key::Other,
        KeyCode::Char('q' | 'Q') => Key::End,
        KeyCode::Char('p' | 'P') => Key::Pause,
        KeyCode::Char('k' | 'K') => Key::Leader,
        KeyCode::Char(digit @ '1'..='9') => Key::Server(digit as u16 - '0' as u16),
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_meanings() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        for (key, expected) in [
            (plain(KeyCode::Char('1')), Key::Server(1)),
            (plain(KeyCode::Char('9')), Key::Server(9)),
            (plain(KeyCode::Char('0')), Key::Other),
            (plain(KeyCode::Char('k')), Key::Leader),
            (plain(KeyCode::Char('p')), Key::Pause),
            (plain(KeyCode::Char('q')), Key::End),
            (plain(KeyCode::Esc), Key::Other),
            (KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), Key::End),
            (KeyEvent::new(KeyCode::Char('k'), KeyModifiers::CONTROL), Key::Other),
        ] {
            assert_eq!(key_of(key), expected, "{key:?}");
        }
    }
}
