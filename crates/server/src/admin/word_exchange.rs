//! The exchange of one four-letter word: within a time, and only a few long answers at once.

use super::{
    four_letter::{TELNET_CLOSE, Word},
    four_letter_door::FourLetterDoor,
};
use crate::driver::Driver;
use ostler_server_core::ConnId;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

/// From the word to the last byte of its answer. The connection of a slower reader is closed.
const WITHIN: Duration = Duration::from_secs(10);
/// The number of long answers that are in memory at once. Others wait for their turn, within their time.
const LONG_ANSWERS: usize = 4;

/// What the first bytes of a connection ask for that are no handshake.
#[derive(Debug)]
pub(crate) enum Asked {
    /// What a telnet client sends on interrupt: it gets no answer.
    Interrupt,
    Word {
        word: Word,
        /// The eight bytes after `stmk`.
        mask: Option<i64>,
    },
}

impl Asked {
    /// `None` if these bytes are no word.
    pub(crate) fn read(bytes: &[u8]) -> Option<Asked> {
        let code = i32::from_be_bytes(*bytes.first_chunk::<4>()?);
        if code == TELNET_CLOSE {
            return Some(Asked::Interrupt);
        }
        let mask = bytes[4..].first_chunk::<8>().map(|mask| i64::from_be_bytes(*mask));
        Some(Asked::Word { word: Word::from_length(code)?, mask })
    }
}

/// What making an answer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Little,
    /// A look at the system's files, and at what is gathered in parts.
    Some,
    /// It grows with what clients do.
    Long,
}

fn work_of(word: Word) -> Work {
    match word {
        Word::Cons | Word::Dump | Word::Stat | Word::Wchc | Word::Wchp => Work::Long,
        // Whoever keeps the long ones busy does not blind those who watch over the server.
        Word::Conf | Word::Dirs | Word::Mntr => Work::Some,
        Word::Crst
        | Word::Elec
        | Word::Envi
        | Word::Gtmk
        | Word::Hash
        | Word::Isro
        | Word::Ruok
        | Word::Srst
        | Word::Srvr
        | Word::Stmk
        | Word::Wchs => Work::Little,
    }
}

/// The turns of those who ask for something long.
#[derive(Debug)]
pub(crate) struct Turns {
    /// For as long as an answer is in memory.
    answers: Arc<Semaphore>,
    /// One is made at a time: clients need the other cores.
    making: Arc<Mutex<()>>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { answers: Arc::new(Semaphore::new(LONG_ANSWERS)), making: Arc::default() }
    }
}

/// Answers a word on its connection.
pub(crate) async fn answer(
    door: &Arc<FourLetterDoor>,
    (driver, conn): (&Arc<Driver>, ConnId),
    stream: &mut TcpStream,
    asked: Asked,
) {
    let Asked::Word { word, mask } = asked else { return driver.count_word(conn) };
    let exchange = async {
        let (text, _turn) = text(door, (driver, conn), word, mask).await?;
        stream.write_all(&text).await
    };
    match timeout(WITHIN, exchange).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(word = word.name(), %error, "who asked is gone"),
        Err(_) => tracing::info!(
            word = word.name(),
            "who asked for this word was hung up on: its answer was not made and read within {WITHIN:?}"
        ),
    }
}

/// The answer, and the turn that lasts as long as it does.
async fn text(
    door: &Arc<FourLetterDoor>,
    (driver, conn): (&Arc<Driver>, ConnId),
    word: Word,
    mask: Option<i64>,
) -> io::Result<(Vec<u8>, Option<OwnedSemaphorePermit>)> {
    let work = if door.allows(word) { work_of(word) } else { Work::Little };
    let turn = match work {
        Work::Little => return Ok((door.answer((driver, conn), word, mask), None)),
        Work::Some => None,
        Work::Long => {
            let kept = door.turns.answers.clone().acquire_owned().await.map_err(io::Error::other)?;
            Some((kept, door.turns.making.clone().lock_owned().await))
        }
    };
    let (door, driver) = (door.clone(), driver.clone());
    // The turns go with the thread: it goes on when nobody waits for it any more.
    let made = spawn_blocking(move || {
        let text = door.answer((&driver, conn), word, mask);
        (text, turn.map(|(kept, _making)| kept))
    });
    made.await.map_err(io::Error::other)
}
