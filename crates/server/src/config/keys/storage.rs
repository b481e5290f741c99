use super::super::values::Kind::{LooseBoolean, OneOf, Path, YesNo};
use super::super::values::{ANY_INT, ANY_LONG, int_from};
use super::Fate::{Obeyed, Replaced};
use super::{Key, Section, either_property, file, property};

const GROUPED: &str =
    "The log writer takes all waiting transactions into one disk write; there is nothing to tune";

pub(super) const SECTION: Section = Section { title: "Storage", keys: KEYS };

const KEYS: &[Key] = &[
    file("dataDir", Path, "", Obeyed("The folder of snapshots and, without dataLogDir, of logs; needed")),
    file("dataLogDir", Path, "", Obeyed("The folder of the logs; dataDir without it")),
    property(
        "snapCount",
        ANY_INT,
        "100000",
        Obeyed("Transactions after which a snapshot is taken; 2 at least"),
    ),
    property(
        "snapSizeLimitInKb",
        ANY_LONG,
        "4194304",
        Obeyed("KiB of log after which a snapshot is taken; no limit below 1"),
    ),
    property(
        "preAllocSize",
        int_from(0),
        "65536",
        Obeyed("KiB by which a log file is extended ahead of writing"),
    ),
    property(
        "txnLogSizeLimitInKb",
        ANY_LONG,
        "-1",
        Obeyed("KiB after which a new log file is begun; no limit below 1"),
    ),
    property(
        "forceSync",
        YesNo { otherwise: true },
        "yes",
        Obeyed("no: writes are answered before they are on disk, and a power failure loses them"),
    ),
    either_property(
        "fsync.warningthresholdms",
        int_from(0),
        "1000",
        Obeyed("Milliseconds after which a disk write is logged as slow"),
    ),
    file("autopurge.snapRetainCount", ANY_INT, "3", Obeyed("Snapshots that purging keeps; 3 at least")),
    file(
        "autopurge.purgeInterval",
        ANY_INT,
        "1",
        Obeyed(
            "Hours between purges; 0 turns purging off. ZooKeeper's default is 0; here old files are purged unless \
             the file says 0",
        ),
    ),
    property(
        "digest.enabled",
        LooseBoolean,
        "true",
        Obeyed("The digest of the tree in transactions and snapshots"),
    ),
    property(
        "closeSessionTxn.enabled",
        LooseBoolean,
        "true",
        Obeyed("Session ends list their ephemeral znodes in the log"),
    ),
    property(
        "serializeLastProcessedZxid.enabled",
        LooseBoolean,
        "true",
        Obeyed("Snapshots end with the last zxid in them"),
    ),
    property(
        "snapshot.compression.method",
        OneOf(&["", "gz", "snappy"]),
        "",
        Obeyed("How snapshots are compressed: gz, snappy, or nothing"),
    ),
    property(
        "snapshot.trust.empty",
        LooseBoolean,
        "false",
        Obeyed("Start from logs although there is no snapshot"),
    ),
    property(
        "db.autocreate",
        LooseBoolean,
        "true",
        Obeyed("Start with an empty tree when there are no files"),
    ),
    property(
        "files.mode",
        OneOf(&["600", "640", "644", "660", "664"]),
        "600",
        Obeyed(
            "Ostler's own: the mode of new logs, snapshots and other files, less the process's umask. A folder can be \
             entered by those that the mode lets read its files. Files that exist keep theirs. ZooKeeper's are 644",
        ),
    ),
    property("datadir.autocreate", LooseBoolean, "true", Obeyed("Make missing folders at the start")),
    property("flushDelay", ANY_LONG, "0", Replaced(GROUPED)),
    property("maxWriteQueuePollTime", ANY_LONG, "0", Replaced(GROUPED)),
    property("maxBatchSize", ANY_INT, "1000", Replaced(GROUPED)),
];
