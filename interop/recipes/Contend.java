import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * `Contend SERVERS RECIPE,RECIPE... NAME`: takes /contended/RECIPE again and again with Curator, and leaves the trace
 * that crates/recipes/examples/contend.rs describes.
 */
public final class Contend {
    private static final int SESSION_MS = 2000;
    /** Of the semaphore, here and in contend.rs. */
    private static final int LEASES = 2;

    private static CuratorFramework client;
    private static String name;

    private final String recipe;
    private final String path;

    private Contend(String recipe) {
        this.recipe = recipe;
        this.path = "/contended/" + recipe;
    }

    public static void main(String[] args) throws Exception {
        name = args[2];
        client = CuratorFrameworkFactory.newClient(args[0], SESSION_MS, 5000, new ExponentialBackoffRetry(20, 8));
        client.getConnectionStateListenable().addListener((unused, state) -> {
            if (state != ConnectionState.CONNECTED) {
                trouble("the connection is " + state);
            }
        });
        client.start();
        client.blockUntilConnected();
        System.out.println("ready");
        for (String recipe : args[1].split(",")) {
            new Thread(() -> {
                try {
                    new Contend(recipe).contend();
                } catch (Throwable e) {
                    trouble(e.toString());
                }
            }).start();
        }
    }

    /** What it holds goes with its session, all at once. */
    private static void trouble(String what) {
        System.out.println("trouble: " + what);
        Runtime.getRuntime().halt(3);
    }

    private static void violation(String what) {
        System.out.println("VIOLATION: " + what);
        Runtime.getRuntime().halt(1);
    }

    private void contend() throws Exception {
        switch (recipe) {
            case "mutex":
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                while (true) {
                    mutex.acquire();
                    turn(node("lock-"));
                    mutex.release();
                }
            case "semaphore-mutex":
                InterProcessSemaphoreMutex semaphoreMutex = new InterProcessSemaphoreMutex(client, path);
                while (true) {
                    semaphoreMutex.acquire();
                    turn(node("lease-"));
                    semaphoreMutex.release();
                }
            case "semaphore":
                InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
                while (true) {
                    Lease lease = semaphore.acquire();
                    share(path + "/leases/" + lease.getNodeName());
                    semaphore.returnLease(lease);
                }
            case "read-write":
                readAndWrite(new InterProcessReadWriteLock(client, path));
                break;
            case "latch":
                while (true) {
                    LeaderLatch latch = new LeaderLatch(client, path, name);
                    latch.start();
                    latch.await();
                    turn(latch.getOurPath());
                    latch.close();
                }
            case "selector":
                select();
                break;
            default:
                throw new IllegalArgumentException(recipe);
        }
    }

    private void readAndWrite(InterProcessReadWriteLock lock) throws Exception {
        while (true) {
            lock.readLock().acquire();
            read(node("__READ__"));
            lock.readLock().release();

            lock.writeLock().acquire();
            turn(node("__WRIT__"));
            lock.writeLock().release();

            lock.writeLock().acquire();
            turn(node("__WRIT__"));
            lock.readLock().acquire();
            lock.writeLock().release();
            read(node("__READ__"));
            lock.readLock().release();
        }
    }

    private void select() throws Exception {
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework unused) {
                try {
                    turn(node("lock-"));
                } catch (Throwable e) {
                    trouble(e.toString());
                }
            }
        });
        selector.setId(name);
        selector.autoRequeue();
        selector.start();
        new Semaphore(0).acquire();
    }

    /** The one of this session's znodes by which it holds. */
    private String node(String word) throws Exception {
        List<String> own = zooKeeper().getEphemerals(path);
        for (String node : own) {
            if (node.startsWith(path + "/") && node.substring(node.lastIndexOf('/')).contains(word)) {
                return node;
            }
        }
        doubtful("no znode " + word + " among " + own);
        return null;
    }

    /** Holds alone. */
    private void turn(String node) throws Exception {
        String mark = "/held/" + recipe;
        mark(node, mark, true);
        List<String> readers = client.getChildren().forPath("/sharing/" + recipe);
        if (!readers.isEmpty()) {
            violation(name + " holds " + node + " alone, beside " + readers);
        }
        pause();
        client.delete().forPath(mark);
    }

    /** Holds with others, no more than there are leases. */
    private void share(String node) throws Exception {
        String mark = "/sharing/" + recipe + "/" + name;
        mark(node, mark, true);
        List<String> holders = client.getChildren().forPath("/sharing/" + recipe);
        if (holders.size() > LEASES) {
            violation(LEASES + " leases, and " + holders + " hold");
        }
        pause();
        client.delete().forPath(mark);
    }

    /** Reads, with other readers and no writer. */
    private void read(String node) throws Exception {
        String mark = "/sharing/" + recipe + "/" + name;
        mark(node, mark, false);
        for (int look = 0; look < 2; look++) {
            if (client.checkExists().forPath("/held/" + recipe) != null) {
                violation(name + " reads by " + node + ", beside a writer");
            }
            pause();
        }
        client.delete().forPath(mark);
    }

    /** Says that it holds, if by the server it does. */
    private void mark(String node, String mark, boolean journal) throws Exception {
        CuratorOp held = client.transactionOp().check().forPath(node);
        CuratorOp say = client.transactionOp().create().withMode(CreateMode.EPHEMERAL).forPath(mark, bytes(name));
        CuratorOp entry = client.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL)
            .forPath("/journal/" + recipe + "/at-", bytes(name));
        try {
            if (journal) {
                client.transaction().forOperations(held, say, entry);
            } else {
                client.transaction().forOperations(held, say);
            }
        } catch (KeeperException.NodeExistsException e) {
            Stat stat = new Stat();
            byte[] other = client.getData().storingStatIn(stat).forPath(mark);
            // Its own if Curator has repeated the transaction.
            if (stat.getEphemeralOwner() != zooKeeper().getSessionId()) {
                violation(name + " holds " + node + ", and so does " + new String(other, StandardCharsets.UTF_8));
            }
        } catch (KeeperException.NoNodeException e) {
            doubtful("the server knows nothing of " + node);
        }
    }

    /** It holds nothing: a violation, unless it is about to be told that its session is over. */
    private static void doubtful(String what) throws Exception {
        Thread.sleep(SESSION_MS);
        violation(name + " holds, and " + what);
    }

    private static ZooKeeper zooKeeper() throws Exception {
        return client.getZookeeperClient().getZooKeeper();
    }

    private static void pause() throws Exception {
        Thread.sleep(ThreadLocalRandom.current().nextInt(3));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
