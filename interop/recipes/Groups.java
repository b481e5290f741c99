import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * `Groups SERVERS`: two clients hold and wait below /curator with each of Curator's recipes, until the program is ended.
 * It prints `ready` once all of them stand in their queues, and a line when a revocation is asked for, or a latch leads.
 */
public final class Groups {
    private static final String ROOT = "/curator";

    private final CuratorFramework client;
    private final String id;

    private Groups(String servers, String id) throws Exception {
        this.id = id;
        client = CuratorFrameworkFactory.newClient(servers, 6000, 5000, new ExponentialBackoffRetry(50, 8));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] args) throws Exception {
        Groups first = new Groups(args[0], "first");
        Groups second = new Groups(args[0], "second");
        List<Thread> waiting = new ArrayList<>();
        for (Groups one : List.of(first, second)) {
            one.latch();
            one.selector();
            for (Acquire acquire : one.locks()) {
                Thread thread = new Thread(() -> {
                    try {
                        acquire.now();
                        if (one == first) {
                            System.out.println("held");
                        }
                        Thread.currentThread().join();
                    } catch (Exception e) {
                        System.out.println(one.id + " ends: " + e);
                    }
                });
                thread.setDaemon(true);
                thread.start();
                waiting.add(thread);
            }
            Thread.sleep(1500);
        }
        System.out.println("sessions " + first.session() + " " + second.session());
        System.out.println("ready");
        Thread.currentThread().join();
    }

    private interface Acquire {
        void now() throws Exception;
    }

    private String session() throws Exception {
        return "0x" + Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId());
    }

    private void latch() throws Exception {
        LeaderLatch latch = new LeaderLatch(client, ROOT + "/latch", id);
        latch.addListener(new org.apache.curator.framework.recipes.leader.LeaderLatchListener() {
            @Override
            public void isLeader() {
                System.out.println(id + " leads");
            }

            @Override
            public void notLeader() {
                System.out.println(id + " does not lead");
            }
        });
        latch.start();
    }

    private void selector() {
        LeaderSelector selector = new LeaderSelector(client, ROOT + "/selector", new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework unused) throws Exception {
                Thread.currentThread().join();
            }
        });
        selector.setId(id);
        selector.start();
    }

    private List<Acquire> locks() {
        InterProcessMutex mutex = new InterProcessMutex(client, ROOT + "/mutex");
        InterProcessMutex revocable = new InterProcessMutex(client, ROOT + "/revocable");
        revocable.makeRevocable(lock -> System.out.println(id + " is asked to release"), Runnable::run);
        InterProcessReadWriteLock readers = new InterProcessReadWriteLock(client, ROOT + "/readers");
        InterProcessReadWriteLock writer = new InterProcessReadWriteLock(client, ROOT + "/writer");
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, ROOT + "/semaphore", 2);
        InterProcessSemaphoreV2 full = new InterProcessSemaphoreV2(client, ROOT + "/full", 1);
        InterProcessSemaphoreMutex semaphoreMutex = new InterProcessSemaphoreMutex(client, ROOT + "/semaphore-mutex");
        return List.of(
                mutex::acquire,
                revocable::acquire,
                () -> readers.readLock().acquire(),
                () -> writer.writeLock().acquire(),
                semaphore::acquire,
                full::acquire,
                semaphoreMutex::acquire);
    }
}
