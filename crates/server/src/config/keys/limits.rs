use super::super::values::Kind::{Decimal, LooseBoolean, Text};
use super::super::values::{ANY_INT, ANY_LONG, int_from};
use super::Fate::{Absent, Obeyed, Replaced};
use super::{JAVA_THREADS, Key, Section, bare_property, file, property};

const NO_CONNECTION_THROTTLE: &str =
    "Throttling of new connections is not part of this build; maxCnxns and maxClientCnxns limit them";
const NO_REQUEST_THROTTLE: &str =
    "There is no second queue in front of the requests; globalOutstandingLimit stops reading instead";
const NO_LARGE_REQUESTS: &str =
    "Requests of any size are bounded per connection: 8 MiB unanswered, then no more is read";
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
    property("largeRequestThreshold", ANY_INT, "-1", Replaced(NO_LARGE_REQUESTS)),
    property("largeRequestMaxBytes", int_from(1), "104857600", Replaced(NO_LARGE_REQUESTS)),
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
    property("request_throttle_max_requests", ANY_INT, "0", Replaced(NO_REQUEST_THROTTLE))
        .also(&["requestThrottleLimit"]),
    property("request_throttle_stall_time", ANY_INT, "100", Replaced(NO_REQUEST_THROTTLE))
        .also(&["requestThrottleStallTime"]),
    property("request_throttle_drop_stale", LooseBoolean, "true", Replaced(NO_REQUEST_THROTTLE))
        .also(&["requestThrottleDropStale"]),
    property("request_stale_connection_check", LooseBoolean, "true", Replaced(NO_REQUEST_THROTTLE))
        .also(&["requestStaleConnectionCheck"]),
    property("request_stale_latency_check", LooseBoolean, "false", Replaced(NO_REQUEST_THROTTLE))
        .also(&["requestStaleLatencyCheck"]),
    property("request_throttler.shutdownTimeout", ANY_INT, "10000", Replaced(NO_REQUEST_THROTTLE)),
    property("throttled_op_wait_time", ANY_INT, "0", Replaced(NO_REQUEST_THROTTLE))
        .also(&["throttledOpWaitTime"]),
    property("connection_throttle_tokens", ANY_INT, "0", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionMaxTokens"]),
    property("connection_throttle_fill_time", ANY_INT, "1", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionTokenFillTime"]),
    property("connection_throttle_fill_count", ANY_INT, "1", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionTokenFillCount"]),
    property("connection_throttle_freeze_time", ANY_INT, "-1", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionFreezeTime"]),
    property("connection_throttle_drop_increase", Decimal, "0.02", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionDropIncrease"]),
    property("connection_throttle_drop_decrease", Decimal, "0.002", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionDropDecrease"]),
    property("connection_throttle_decrease_ratio", Decimal, "0", Absent(NO_CONNECTION_THROTTLE))
        .also(&["connectionDecreaseRatio"]),
    property("connection_throttle_weight_enabled", LooseBoolean, "false", Absent(NO_CONNECTION_THROTTLE)),
    property("connection_throttle_global_session_weight", ANY_INT, "3", Absent(NO_CONNECTION_THROTTLE)),
    property("connection_throttle_local_session_weight", ANY_INT, "1", Absent(NO_CONNECTION_THROTTLE)),
    property("connection_throttle_renew_session_weight", ANY_INT, "2", Absent(NO_CONNECTION_THROTTLE)),
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
