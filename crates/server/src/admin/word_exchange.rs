//! Serves one four-letter word: with a time limit, and with a limit of long answers at once.

use super::{
    four_letter::{TELNET_CLOSE, Word},
    four_letter_door::FourLetterDoor,
};
use crate::{client_stream::ClientStream, driver::Driver};
use ostler_server_core::ConnId;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

/// The time from the word to the last byte of its answer. The connection of a slower reader is closed.
const WITHIN: Duration = Duration::from_secs(10);
/// The number of long answers that are in memory at once. Others wait for their turn, within [`WITHIN`].
const LONG_ANSWERS: usize = 4;

/// A request that comes in place of the handshake.
#[derive(Debug)]
pub(crate) enum WordRequest {
    /// The bytes that a telnet client sends on interrupt. They get no answer.
    Interrupt,
    /// A four-letter word.
    Word {
        word: Word,
        /// The eight bytes after `stmk`.
        mask: Option<i64>,
    },
}

impl WordRequest {
    /// `None` if these bytes are no word.
    pub(crate) fn read(bytes: &[u8]) -> Option<WordRequest> {
        let code = i32::from_be_bytes(*bytes.first_chunk::<4>()?);
        if code == TELNET_CLOSE {
            return Some(WordRequest::Interrupt);
        }
        let mask = bytes[4..].first_chunk::<8>().map(|mask| i64::from_be_bytes(*mask));
        Some(WordRequest::Word { word: Word::from_length(code)?, mask })
    }
}

/// The work of making an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Little,
    /// The answer reads files of the system, or is gathered in parts.
    Some,
    /// The answer grows with the number of sessions, watches or ephemerals.
    Long,
}

fn work_of(word: Word) -> Work {
    match word {
        Word::Cons | Word::Dump | Word::Stat | Word::Wchc | Word::Wchp => Work::Long,
        // These do not wait for a turn: monitoring goes on while others keep the turns of long answers busy.
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

/// The turns of long answers.
#[derive(Debug)]
pub(crate) struct Turns {
    /// A permit is held as long as an answer is in memory.
    answers: Arc<Semaphore>,
    /// One answer is made at a time: clients need the other cores.
    making: Arc<Mutex<()>>,
    /// The same for all figures, which have their own turn: programs that watch the server ask for them, and long answers
    /// take long.
    figures: Arc<Mutex<()>>,
}

impl Turns {
    /// Waits for the turn of a long answer. `None` if the server ends.
    pub(crate) async fn long(&self) -> Option<LongTurn> {
        let kept = self.answers.clone().acquire_owned().await.ok()?;
        Some(LongTurn { _kept: kept, _making: self.making.clone().lock_owned().await })
    }

    /// Waits for the turn of an answer with all figures.
    pub(crate) async fn figures(&self) -> OwnedMutexGuard<()> {
        self.figures.clone().lock_owned().await
    }
}

/// The turn of a long answer, until it is dropped.
pub(crate) struct LongTurn {
    _kept: OwnedSemaphorePermit,
    _making: OwnedMutexGuard<()>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            answers: Arc::new(Semaphore::new(LONG_ANSWERS)),
            making: Arc::default(),
            figures: Arc::default(),
        }
    }
}

/// Answers a word on its connection.
pub(crate) async fn answer(
    door: &Arc<FourLetterDoor>,
    (driver, conn): (&Arc<Driver>, ConnId),
    stream: &mut ClientStream,
    request: WordRequest,
) {
    let WordRequest::Word { word, mask } = request else { return driver.count_word(conn) };
    let exchange = async {
        let (text, _turn) = text(door, (driver, conn), word, mask).await?;
        stream.write_all(&text).await
    };
    match timeout(WITHIN, exchange).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::debug!(word = word.name(), %error, "a four-letter word could not be answered: its connection failed")
        }
        Err(_) => tracing::info!(
            word = word.name(),
            "the connection of a four-letter word was closed: the answer was not made and read within {WITHIN:?}"
        ),
    }
}

/// Makes the answer. The permit is held until the answer is dropped.
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
            let kept = door.reports.turns.answers.clone().acquire_owned().await.map_err(io::Error::other)?;
            Some((kept, door.reports.turns.making.clone().lock_owned().await))
        }
    };
    let (door, driver) = (door.clone(), driver.clone());
    // The thread holds the turns, because it goes on even if this task ends.
    let made = spawn_blocking(move || {
        let text = door.answer((&driver, conn), word, mask);
        (text, turn.map(|(kept, _making)| kept))
    });
    made.await.map_err(io::Error::other)
}
