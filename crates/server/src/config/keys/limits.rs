use super::super::values::Kind::{Decimal, LooseBoolean, Text};
use super::super::values::{ANY_INT, ANY_LONG, int_from};
use super::Fate::{Obeyed, Replaced};
use super::{JAVA_THREADS, Key, Section, bare_property, file, property};

const NO_CACHE: &str = "Replies are made straight from the tree; there is no reply cache to size";
const ONE_WATCH_TABLE: &str = "There is one watch table, and closed connections leave it at once";

pub(super) const SECTION: Section = Section { title: "Sessions, requests and limits", keys: KEYS };

const KEYS: &[Key] = &[
    // 20 ticks must fit in the int that session timeouts are on the wire.
    file(
        "tickTime",
        super::super::values::Kind::Int { min: 1, max: 107_374_182 },
        "3000",
        Obeyed("Milliseconds of a tick"),
    ),
    file("minSessionTimeout", int_from(-1), "-1", Obeyed("Milliseconds; -1 for 2 ticks")),
    file("maxSessionTimeout", int_from(-1), "-1", Obeyed("Milliseconds; -1 for 20 ticks")),
    property(
        "globalOutstandingLimit",
        ANY_INT,
        "1000",
        Obeyed("Unanswered requests of a connection at which the server stops reading from it"),
    ),
    property("largeRequestThreshold", ANY_INT, "-1", Obeyed("Requests of more bytes are large; off below 1")),
    property("largeRequestMaxBytes", int_from(1), "104857600", Obeyed("Bytes of the large requests of all clients that come or are under way; one more closes its connection")),
    file(
        "largeAnswersMaxBytes",
        ANY_LONG,
        "-1",
        Obeyed(
            "Ostler's own: bytes that the answers of all clients together may take while they wait to be read; then \
             large reads wait for their turn. -1 for a sixteenth of the machine's memory, at least 128 MiB",
        ),
    ),
    property("enforceQuota", LooseBoolean, "false", Obeyed("Writes over a hard quota fail")),
    property("extendedTypesEnabled", LooseBoolean, "false", Obeyed("TTL znodes can be created")),
    property(
        "emulate353TTLNodes",
        LooseBoolean,
        "false",
        Obeyed("TTL znodes are marked as ZooKeeper 3.5.3 did"),
    ),
    bare_property(
        "znode.container.checkIntervalMs",
        int_from(1),
        "60000",
        Obeyed("Milliseconds between looks for empty containers and expired TTL znodes"),
    ),
    bare_property(
        "znode.container.maxPerMinute",
        int_from(1),
        "10000",
        Obeyed("Empty containers and expired TTL znodes that are deleted in a minute at most"),
    ),
    bare_property(
        "znode.container.maxNeverUsedIntervalMs",
        ANY_LONG,
        "0",
        Obeyed("Milliseconds after which a container that never had a child is deleted; never below 1"),
    ),
    property("maxResponseCacheSize", ANY_INT, "400", Replaced(NO_CACHE)),
    property("maxGetChildrenResponseCacheSize", ANY_INT, "400", Replaced(NO_CACHE)),
    property("request_throttle_max_requests", ANY_INT, "0", Obeyed("Requests of all clients under way; with more, connections wait in a line, pings apart. Off below 1"))
        .also(&["requestThrottleLimit"]),
    property("request_throttle_stall_time", ANY_INT, "100", Obeyed("Milliseconds after which a connection in that line looks again by itself"))
        .also(&["requestThrottleStallTime"]),
    property("request_throttle_drop_stale", LooseBoolean, "true", Obeyed("Stale requests in that line are dropped, with their connections"))
        .also(&["requestThrottleDropStale"]),
    property("request_stale_connection_check", LooseBoolean, "true", Obeyed("A request is stale when its client has closed the connection"))
        .also(&["requestStaleConnectionCheck"]),
    property("request_stale_latency_check", LooseBoolean, "false", Obeyed("A request is stale when it has waited for longer than its session may be silent"))
        .also(&["requestStaleLatencyCheck"]),
    property("request_throttler.shutdownTimeout", ANY_INT, "10000", Replaced("A server that stops gives up the requests that wait")),
    property("throttled_op_wait_time", ANY_INT, "0", Obeyed("Milliseconds of waiting in that line after which a request is refused with -127; none is below 1"))
        .also(&["throttledOpWaitTime"]),
    property("connection_throttle_tokens", ANY_INT, "0", Obeyed("Connections that may come at once; each takes a token, and without one it is closed. Off below 1"))
        .also(&["connectionMaxTokens"]),
    property("connection_throttle_fill_time", ANY_INT, "1", Obeyed("Milliseconds in which tokens come back; at least 1"))
        .also(&["connectionTokenFillTime"]),
    property("connection_throttle_fill_count", ANY_INT, "1", Obeyed("Tokens that come back in that time"))
        .also(&["connectionTokenFillCount"]),
    property("connection_throttle_freeze_time", ANY_INT, "-1", Obeyed("Milliseconds between changes of the probability with which connections are closed; -1 for none"))
        .also(&["connectionFreezeTime"]),
    property("connection_throttle_drop_increase", Decimal, "0.02", Obeyed("What the probability rises by while there are no tokens"))
        .also(&["connectionDropIncrease"]),
    property("connection_throttle_drop_decrease", Decimal, "0.002", Obeyed("What the probability falls by when few tokens are missing"))
        .also(&["connectionDropDecrease"]),
    property("connection_throttle_decrease_ratio", Decimal, "0", Obeyed("The part of the tokens that may be missing then"))
        .also(&["connectionDecreaseRatio"]),
    property("connection_throttle_weight_enabled", LooseBoolean, "false", Obeyed("A connection takes tokens by its kind; the numbers of tokens count new global sessions")),
    property("connection_throttle_global_session_weight", ANY_INT, "3", Obeyed("Tokens of a new session that all servers know")),
    property("connection_throttle_local_session_weight", ANY_INT, "1", Obeyed("Tokens of a new local session; the other weights are not below it")),
    property("connection_throttle_renew_session_weight", ANY_INT, "2", Obeyed("Tokens of a session that comes back")),
    property("watchManagerName", Text, "", Replaced(ONE_WATCH_TABLE)),
    property("watcherCleanThreadsNum", ANY_INT, "2", Replaced(ONE_WATCH_TABLE)),
    property("watcherCleanThreshold", ANY_INT, "1000", Replaced(ONE_WATCH_TABLE)),
    property("watcherCleanIntervalInSeconds", ANY_INT, "600", Replaced(ONE_WATCH_TABLE)),
    property("maxInProcessingDeadWatchers", ANY_INT, "-1", Replaced(ONE_WATCH_TABLE)),
    property("bitHashCacheSize", ANY_INT, "10", Replaced(ONE_WATCH_TABLE)),
    property("commitProcessor.numWorkerThreads", ANY_INT, "", Replaced(JAVA_THREADS)),
    property("commitProcessor.maxReadBatchSize", ANY_INT, "-1", Replaced(JAVA_THREADS)),
    property("commitProcessor.maxCommitBatchSize", ANY_INT, "1", Replaced(JAVA_THREADS)),
    property("commitProcessor.shutdownTimeout", ANY_LONG, "5000", Replaced(JAVA_THREADS)),
];
