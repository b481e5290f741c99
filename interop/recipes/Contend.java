import java.nio.charset.StandardCharsets;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** `Contend SERVERS RECIPE NAME`: takes /contended again and again with Curator, and says so in /journal. */
public final class Contend {
    private static final int SESSION_MS = 2000;
    private static CuratorFramework client;
    private static String name;
    /** Where whoever holds alone puts its mark: one place for each recipe. */
    private static String mark;

    public static void main(String[] args) throws Exception {
        name = args[2];
        mark = "/holder-" + args[1];
        client = CuratorFrameworkFactory.newClient(args[0], SESSION_MS, 5000, new ExponentialBackoffRetry(20, 8));
        client.start();
        System.out.println("ready");
        try {
            contend(args[1]);
        } catch (Throwable e) {
            // What it holds goes with its session, all at once.
            System.out.println("trouble: " + e);
            Runtime.getRuntime().halt(3);
        }
    }

    private static void contend(String recipe) throws Exception {
        String path = "/contended/" + recipe;
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        InterProcessReadWriteLock rw = new InterProcessReadWriteLock(client, path);
        InterProcessSemaphoreMutex semaphoreMutex = new InterProcessSemaphoreMutex(client, path);
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 1);
        if (recipe.equals("selector")) {
            select(path);
        }
        while (true) {
            switch (recipe) {
                case "mutex":
                    mutex.acquire();
                    turn();
                    mutex.release();
                    break;
                case "semaphore-mutex":
                    semaphoreMutex.acquire();
                    turn();
                    semaphoreMutex.release();
                    break;
                case "semaphore":
                    Lease lease = semaphore.acquire();
                    turn();
                    semaphore.returnLease(lease);
                    break;
                case "read-write":
                    readOrWrite(rw);
                    break;
                case "latch":
                    LeaderLatch latch = new LeaderLatch(client, path, name);
                    latch.start();
                    latch.await();
                    turn();
                    latch.close();
                    break;
                default:
                    throw new IllegalArgumentException(recipe);
            }
        }
    }

    private static void readOrWrite(InterProcessReadWriteLock lock) throws Exception {
        switch (ThreadLocalRandom.current().nextInt(3)) {
            case 0:
                lock.readLock().acquire();
                read();
                lock.readLock().release();
                break;
            case 1:
                lock.writeLock().acquire();
                turn();
                lock.writeLock().release();
                break;
            default:
                lock.writeLock().acquire();
                turn();
                lock.readLock().acquire();
                lock.writeLock().release();
                read();
                lock.readLock().release();
        }
    }

    private static void select(String path) throws Exception {
        Semaphore failed = new Semaphore(0);
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework unused) {
                try {
                    turn();
                } catch (Exception e) {
                    System.out.println("trouble: " + e);
                    failed.release();
                }
            }
        });
        selector.setId(name);
        selector.autoRequeue();
        selector.start();
        failed.acquire();
        throw new IllegalStateException("a turn failed");
    }

    /** Whoever holds alone: nobody else's mark may be there. */
    private static void turn() throws Exception {
        try {
            client.create().withMode(CreateMode.EPHEMERAL).forPath(mark, bytes(name));
        } catch (KeeperException.NodeExistsException e) {
            Stat stat = new Stat();
            byte[] other = client.getData().storingStatIn(stat).forPath(mark);
            if (stat.getEphemeralOwner() != client.getZookeeperClient().getZooKeeper().getSessionId()) {
                System.out.println("VIOLATION: " + name + " holds, and so does " + new String(other));
            }
        }
        client.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath("/journal/at-", bytes(name));
        Thread.sleep(ThreadLocalRandom.current().nextInt(3));
        client.delete().forPath(mark);
    }

    /** Readers share, but with no writer. */
    private static void read() throws Exception {
        for (int look = 0; look < 2; look++) {
            if (client.checkExists().forPath(mark) != null) {
                System.out.println("VIOLATION: " + name + " reads beside a writer");
            }
            Thread.sleep(ThreadLocalRandom.current().nextInt(2));
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
