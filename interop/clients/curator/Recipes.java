import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;

/**
 * Curator's recipes against the server at 127.0.0.1:PORT.
 * `Recipes PORT` runs them one after the other; `Recipes PORT hold PATH` takes a mutex, says so and keeps it.
 */
public final class Recipes {
    private static final int SESSION_MS = 4000;
    private static int port;

    public static void main(String[] args) throws Exception {
        port = Integer.parseInt(args[0]);
        if (args.length > 2 && args[1].equals("hold")) {
            hold(args[2]);
        }
        run("nodes and transactions", Recipes::nodes);
        run("leader latch", Recipes::leaderLatch);
        run("leader selector", Recipes::leaderSelector);
        run("mutex", Recipes::mutex);
        run("read-write lock and semaphore", Recipes::otherLocks);
        run("counters and barrier", Recipes::countersAndBarrier);
        run("cache", Recipes::cache);
        run("session loss", Recipes::sessionLoss);
        System.out.println("all recipes work");
        System.exit(0);
    }

    private interface Recipe {
        void run() throws Exception;
    }

    private static void run(String name, Recipe recipe) {
        long began = System.currentTimeMillis();
        try {
            recipe.run();
        } catch (Throwable e) {
            e.printStackTrace(System.out);
            System.out.println("recipe failed: " + name + ": " + e);
            System.exit(1);
        }
        System.out.printf("%s (%d ms)%n", name, System.currentTimeMillis() - began);
    }

    private static CuratorFramework client() {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                "127.0.0.1:" + port, SESSION_MS, 5000, new ExponentialBackoffRetry(50, 5));
        client.start();
        return client;
    }

    private static List<CuratorFramework> clients(int count) {
        List<CuratorFramework> clients = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            clients.add(client());
        }
        return clients;
    }

    private static void check(boolean holds, String text) {
        if (!holds) {
            throw new AssertionError(text);
        }
    }

    private static void eventually(String text, Callable<Boolean> condition) throws Exception {
        long until = System.nanoTime() + Duration.ofSeconds(20).toNanos();
        while (!condition.call()) {
            check(System.nanoTime() < until, "within 20 s not so: " + text);
            Thread.sleep(10);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void hold(String path) throws Exception {
        new InterProcessMutex(client(), path).acquire();
        System.out.println("holding");
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void nodes() throws Exception {
        try (CuratorFramework client = client()) {
            String made = client.create().creatingParentContainersIfNeeded().withProtection()
                    .withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/nodes/parent/p-", bytes("x"));
            check(made.matches("/nodes/parent/_c_[0-9a-f-]{36}-p-0000000000"), "protected name is " + made);
            client.create().orSetData().forPath("/nodes/a", bytes("1"));
            client.create().orSetData().forPath("/nodes/a", bytes("2"));
            client.create().withTtl(60000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/nodes/ttl");
            client.transaction().forOperations(
                    client.transactionOp().create().forPath("/nodes/b", bytes("b")),
                    client.transactionOp().setData().withVersion(1).forPath("/nodes/a", bytes("3")),
                    client.transactionOp().delete().forPath("/nodes/ttl"));
            try {
                client.transaction().forOperations(
                        client.transactionOp().setData().forPath("/nodes/a", bytes("refused")),
                        client.transactionOp().check().withVersion(9).forPath("/nodes/b"));
                check(false, "a transaction with a wrong version was let through");
            } catch (KeeperException.BadVersionException expected) {
                check(new String(client.getData().forPath("/nodes/a")).equals("3"), "half a transaction was applied");
            }
            client.delete().deletingChildrenIfNeeded().forPath("/nodes");
            check(client.checkExists().forPath("/nodes") == null, "/nodes is still there");
        }
    }

    /** Five arrive one after the other; the leader closes, and the next in line leads, one at a time. */
    private static void leaderLatch() throws Exception {
        List<CuratorFramework> clients = clients(5);
        List<LeaderLatch> line = new ArrayList<>();
        AtomicInteger leading = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        for (CuratorFramework client : clients) {
            LeaderLatch latch = new LeaderLatch(client, "/latch", "p" + line.size());
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    most.accumulateAndGet(leading.incrementAndGet(), Math::max);
                }

                @Override
                public void notLeader() {
                    leading.decrementAndGet();
                }
            });
            latch.start();
            line.add(latch);
            int arrived = line.size();
            eventually("participant " + arrived + " is in line", () -> latch.getParticipants().size() == arrived);
        }
        for (int n = 0; n < line.size(); n++) {
            LeaderLatch leader = line.get(n);
            check(leader.await(20, TimeUnit.SECONDS), "p" + n + " does not lead though it is next");
            for (LeaderLatch other : line.subList(n, line.size())) {
                check(other.hasLeadership() == (other == leader), other.getId() + " is wrong about its leadership");
                check(other.getLeader().getId().equals("p" + n), other.getId() + " takes " + other.getLeader() + " for the leader");
            }
            // Curator deletes its znode first, and calls notLeader later: the next one may lead before that call. So a
            // leader counts until it begins to leave.
            leading.decrementAndGet();
            leader.close(LeaderLatch.CloseMode.SILENT);
        }
        check(most.get() == 1, most + " led at the same time");
        clients.forEach(CuratorFramework::close);
    }

    private static void leaderSelector() throws Exception {
        List<CuratorFramework> clients = clients(3);
        List<LeaderSelector> selectors = new ArrayList<>();
        AtomicInteger leading = new AtomicInteger();
        AtomicInteger turns = new AtomicInteger();
        AtomicInteger tooMany = new AtomicInteger();
        for (CuratorFramework client : clients) {
            LeaderSelector selector = new LeaderSelector(client, "/selector", new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework unused) throws Exception {
                    if (leading.incrementAndGet() != 1) {
                        tooMany.incrementAndGet();
                    }
                    Thread.sleep(20);
                    turns.incrementAndGet();
                    leading.decrementAndGet();
                }
            });
            selector.autoRequeue();
            selector.start();
            selectors.add(selector);
        }
        eventually("leadership went round 15 times", () -> turns.get() >= 15);
        check(tooMany.get() == 0, "several led at the same time");
        selectors.forEach(LeaderSelector::close);
        clients.forEach(CuratorFramework::close);
    }

    /** 4 clients take the lock 50 times each; each time one reads a counter and writes it back plus one. */
    private static void mutex() throws Exception {
        List<CuratorFramework> clients = clients(4);
        clients.get(0).create().forPath("/counted", bytes("0"));
        AtomicInteger inside = new AtomicInteger();
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<?>> work = new ArrayList<>();
        for (CuratorFramework client : clients) {
            InterProcessMutex lock = new InterProcessMutex(client, "/mutex");
            work.add(threads.submit(() -> {
                for (int n = 0; n < 50; n++) {
                    check(lock.acquire(60, TimeUnit.SECONDS), "no lock within 60 s");
                    check(inside.incrementAndGet() == 1, "two hold the lock");
                    int value = Integer.parseInt(new String(client.getData().forPath("/counted")));
                    client.setData().forPath("/counted", bytes(Integer.toString(value + 1)));
                    inside.decrementAndGet();
                    lock.release();
                }
                return null;
            }));
        }
        for (Future<?> one : work) {
            one.get();
        }
        check(new String(clients.get(0).getData().forPath("/counted")).equals("200"), "an update was lost under the lock");

        InterProcessMutex mine = new InterProcessMutex(clients.get(0), "/mutex");
        InterProcessMutex theirs = new InterProcessMutex(clients.get(1), "/mutex");
        mine.acquire();
        mine.acquire();
        mine.release();
        check(!theirs.acquire(200, TimeUnit.MILLISECONDS), "the lock went to a second one while it was held once more");
        mine.release();
        check(theirs.acquire(5, TimeUnit.SECONDS), "the lock stayed with one that had released it");
        theirs.release();
        threads.shutdown();
        clients.forEach(CuratorFramework::close);
    }

    private static void otherLocks() throws Exception {
        List<CuratorFramework> clients = clients(3);
        InterProcessReadWriteLock a = new InterProcessReadWriteLock(clients.get(0), "/rw");
        InterProcessReadWriteLock b = new InterProcessReadWriteLock(clients.get(1), "/rw");
        a.readLock().acquire();
        check(b.readLock().acquire(5, TimeUnit.SECONDS), "readers shut each other out");
        check(!new InterProcessReadWriteLock(clients.get(2), "/rw").writeLock().acquire(200, TimeUnit.MILLISECONDS),
                "a writer came in beside readers");
        a.readLock().release();
        b.readLock().release();
        check(a.writeLock().acquire(5, TimeUnit.SECONDS), "no write lock though nobody reads");
        a.writeLock().release();

        InterProcessSemaphoreV2 one = new InterProcessSemaphoreV2(clients.get(0), "/semaphore", 2);
        InterProcessSemaphoreV2 two = new InterProcessSemaphoreV2(clients.get(1), "/semaphore", 2);
        Lease first = one.acquire();
        Lease second = two.acquire();
        check(two.acquire(200, TimeUnit.MILLISECONDS) == null, "three leases of two");
        one.returnLease(first);
        two.returnLease(two.acquire(5, TimeUnit.SECONDS));
        two.returnLease(second);
        clients.forEach(CuratorFramework::close);
    }

    private static void countersAndBarrier() throws Exception {
        List<CuratorFramework> clients = clients(2);
        SharedCount here = new SharedCount(clients.get(0), "/shared", 5);
        SharedCount there = new SharedCount(clients.get(1), "/shared", 0);
        here.start();
        there.start();
        here.setCount(7);
        eventually("the other sees the shared count", () -> there.getCount() == 7);
        here.close();
        there.close();
        for (int n = 1; n <= 10; n++) {
            DistributedAtomicLong sum = new DistributedAtomicLong(clients.get(n % 2), "/sum", new RetryNTimes(10, 10));
            check(sum.increment().postValue() == n, "the atomic long is not " + n);
        }
        CountDownLatch passed = new CountDownLatch(2);
        for (CuratorFramework client : clients) {
            new Thread(() -> {
                DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, "/barrier", 2);
                try {
                    barrier.enter();
                    barrier.leave();
                    passed.countDown();
                } catch (Exception e) {
                    e.printStackTrace(System.out);
                }
            }).start();
        }
        check(passed.await(20, TimeUnit.SECONDS), "the double barrier does not open");
        clients.forEach(CuratorFramework::close);
    }

    /** A cache of a subtree, fed by one persistent recursive watch, follows what another client does. */
    private static void cache() throws Exception {
        try (CuratorFramework writer = client(); CuratorFramework reader = client();
                CuratorCache cache = CuratorCache.build(reader, "/cached")) {
            writer.create().forPath("/cached", bytes("root"));
            writer.create().forPath("/cached/before", bytes("1"));
            Map<String, AtomicInteger> seen = new ConcurrentHashMap<>();
            CountDownLatch initialized = new CountDownLatch(1);
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forCreates(node -> count(seen, "create"))
                    .forChanges((before, after) -> count(seen, "change"))
                    .forDeletes(node -> count(seen, "delete"))
                    .forInitialized(initialized::countDown).build());
            cache.start();
            check(initialized.await(20, TimeUnit.SECONDS), "the cache does not become ready");
            check(cache.size() == 2, "the cache starts with " + cache.size() + " nodes");
            for (int n = 0; n < 20; n++) {
                writer.create().forPath("/cached/" + n, bytes("new"));
                writer.create().forPath("/cached/" + n + "/deep", bytes("new"));
            }
            eventually("42 nodes are cached", () -> cache.size() == 42);
            for (int n = 0; n < 20; n++) {
                writer.setData().forPath("/cached/" + n + "/deep", bytes("changed"));
            }
            eventually("all changes are cached", () -> cache.stream().filter(
                    node -> new String(node.getData()).equals("changed")).count() == 20);
            writer.delete().deletingChildrenIfNeeded().forPath("/cached");
            eventually("all deletions are cached", () -> cache.size() == 0);
            eventually("42 creations, 20 changes, 42 deletions were told", () -> seen.get("create").get() == 42
                    && seen.get("change").get() == 20 && seen.get("delete").get() == 42);
        }
    }

    private static void count(Map<String, AtomicInteger> seen, String kind) {
        seen.computeIfAbsent(kind, k -> new AtomicInteger()).incrementAndGet();
    }

    /** Another client closes the session: this one learns that it is lost, gets a new one and puts its nodes back. */
    private static void sessionLoss() throws Exception {
        try (CuratorFramework client = client(); CuratorFramework other = client();
                PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, "/persistent", bytes("p"));
                LeaderLatch latch = new LeaderLatch(client, "/lost-latch", "me")) {
            CountDownLatch lost = new CountDownLatch(1);
            CountDownLatch back = new CountDownLatch(1);
            client.getConnectionStateListenable().addListener((unused, state) -> {
                if (state == ConnectionState.LOST) {
                    lost.countDown();
                }
                if (state == ConnectionState.RECONNECTED && lost.getCount() == 0) {
                    back.countDown();
                }
            });
            node.start();
            check(node.waitForInitialCreate(20, TimeUnit.SECONDS), "no ephemeral node");
            latch.start();
            check(latch.await(20, TimeUnit.SECONDS), "no leadership");
            ZooKeeper victim = client.getZookeeperClient().getZooKeeper();
            long old = victim.getSessionId();
            CountDownLatch connected = new CountDownLatch(1);
            ZooKeeper twin = new ZooKeeper("127.0.0.1:" + port, SESSION_MS, event -> connected.countDown(), old, victim.getSessionPasswd());
            check(connected.await(20, TimeUnit.SECONDS), "the twin does not connect");
            twin.close();
            check(lost.await(30, TimeUnit.SECONDS), "the client does not learn that its session is lost");
            check(back.await(30, TimeUnit.SECONDS), "the client does not come back");
            eventually("the node belongs to the new session", () -> {
                var stat = other.checkExists().forPath("/persistent");
                return stat != null && stat.getEphemeralOwner() != old;
            });
            check(latch.await(20, TimeUnit.SECONDS), "leadership does not come back");
        }
    }
}
