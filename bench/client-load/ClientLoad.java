import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * Load by the Java client's asynchronous calls, and by Curator's mutex: `HOST:PORT get|set|lock COUNT WARM_UP SECONDS`,
 * as src/lib.rs has it for the other clients.
 */
public final class ClientLoad {
    private static final byte[] DATA = new byte[100];
    private static final int SESSION_MS = 30000;
    private static final String ROOT = "/client-load";
    /** Of this process alone: what is left of another one's session does not hold it. */
    private static final String LOCK = "/client-load-lock-" + ProcessHandle.current().pid();

    private enum Phase { WARM_UP, MEASURING, OVER }

    private static volatile Phase phase = Phase.WARM_UP;

    public static void main(String[] args) throws Exception {
        if (args.length != 5) {
            System.err.println("usage: ClientLoad HOST:PORT get|set|lock COUNT WARM_UP_SECONDS SECONDS");
            System.exit(2);
        }
        Arrays.fill(DATA, (byte) 'x');
        String server = args[0];
        int count = Integer.parseInt(args[2]);
        CountDownLatch ended = new CountDownLatch(count);
        Turns[] all = isLock(args[1]) ? contend(server, count, ended) : request(server, args[1], count, ended);

        Thread.sleep(milliseconds(args[3]));
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long begun = System.nanoTime();
        long cpuBefore = system.getProcessCpuTime();
        phase = Phase.MEASURING;
        Thread.sleep(milliseconds(args[4]));
        phase = Phase.OVER;
        double seconds = (System.nanoTime() - begun) / 1e9;
        double cpu = (system.getProcessCpuTime() - cpuBefore) / 1e3;

        ended.await();
        Turns sum = new Turns();
        for (Turns turns : all) {
            sum.add(turns);
        }
        System.out.printf(Locale.ROOT, "{\"ops\": %d, \"rate\": %.1f, \"cpu\": %.3f, \"p50\": %.1f, \"p99\": %.1f}%n",
            sum.ops, sum.ops / seconds, cpu / Math.max(sum.ops, 1), sum.micros(0.5), sum.micros(0.99));
        System.out.flush();
        // Sessions end with their connections; nobody waits for that.
        Runtime.getRuntime().halt(0);
    }

    /** Curator's release is always waited for. */
    private static boolean isLock(String work) {
        return work.equals("lock") || work.equals("drop");
    }

    private static long milliseconds(String seconds) {
        return Math.round(Double.parseDouble(seconds) * 1000);
    }

    private static Turns[] request(String server, String work, int count, CountDownLatch ended) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(server, SESSION_MS, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        provide(zk, ROOT);
        Requests[] all = new Requests[count];
        for (int task = 0; task < count; task++) {
            String path = ROOT + "/" + task;
            provide(zk, path);
            all[task] = new Requests(zk, path, work.equals("set"), ended);
        }
        for (Requests requests : all) {
            requests.next();
        }
        return all;
    }

    private static void provide(ZooKeeper zk, String path) throws Exception {
        try {
            zk.create(path, DATA, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException e) {
            zk.setData(path, DATA, -1);
        }
    }

    private static Turns[] contend(String server, int count, CountDownLatch ended) throws Exception {
        Contender[] all = new Contender[count];
        for (int i = 0; i < count; i++) {
            CuratorFramework client =
                CuratorFrameworkFactory.newClient(server, SESSION_MS, 15000, new ExponentialBackoffRetry(100, 3));
            client.start();
            client.blockUntilConnected();
            all[i] = new Contender(new InterProcessMutex(client, LOCK), ended);
        }
        for (Contender contender : all) {
            new Thread(contender).start();
        }
        return all;
    }

    private static void fail(Object why) {
        System.err.println(why);
        Runtime.getRuntime().halt(1);
    }

    /** One request after the other, each made by the answer to the one before it. */
    private static final class Requests extends Turns {
        private final ZooKeeper zk;
        private final String path;
        private final boolean set;
        private final CountDownLatch ended;
        private long begun;

        Requests(ZooKeeper zk, String path, boolean set, CountDownLatch ended) {
            this.zk = zk;
            this.path = path;
            this.set = set;
            this.ended = ended;
        }

        void next() {
            begun = System.nanoTime();
            if (set) {
                zk.setData(path, DATA, -1, (rc, path, context, stat) -> answered(rc), null);
            } else {
                zk.getData(path, false, (rc, path, context, data, stat) -> answered(rc), null);
            }
        }

        private void answered(int rc) {
            if (rc != KeeperException.Code.OK.intValue()) {
                fail(KeeperException.create(KeeperException.Code.get(rc), path));
            }
            if (took(begun)) {
                next();
            } else {
                ended.countDown();
            }
        }
    }

    /** Takes and releases the lock. */
    private static final class Contender extends Turns implements Runnable {
        private final InterProcessMutex mutex;
        private final CountDownLatch ended;

        Contender(InterProcessMutex mutex, CountDownLatch ended) {
            this.mutex = mutex;
            this.ended = ended;
        }

        @Override
        public void run() {
            try {
                long begun;
                do {
                    begun = System.nanoTime();
                    mutex.acquire();
                    mutex.release();
                } while (took(begun));
            } catch (Exception e) {
                fail(e);
            }
            ended.countDown();
        }
    }

    /** How long turns took, in nanoseconds, to one part in 128. */
    private static class Turns {
        private final int[] buckets = new int[64 << 7];
        long ops;

        /** A turn that began then is over; whether there is to be another one. */
        boolean took(long begun) {
            Phase now = phase;
            if (now == Phase.MEASURING) {
                buckets[bucket(System.nanoTime() - begun)]++;
                ops++;
            }
            return now != Phase.OVER;
        }

        private static int bucket(long value) {
            int shift = Math.max(0, 56 - Long.numberOfLeadingZeros(value));
            return (shift << 7) + (int) (value >> shift);
        }

        private static long middle(int bucket) {
            int shift = Math.max(0, (bucket >> 7) - 1);
            return ((long) bucket - ((long) shift << 7) << shift) + ((1L << shift) >> 1);
        }

        void add(Turns other) {
            ops += other.ops;
            for (int i = 0; i < buckets.length; i++) {
                buckets[i] += other.buckets[i];
            }
        }

        double micros(double quantile) {
            long left = (long) Math.ceil(ops * quantile);
            for (int i = 0; i < buckets.length; i++) {
                left -= buckets[i];
                if (left <= 0) {
                    return middle(i) / 1000.0;
                }
            }
            return 0;
        }
    }
}
