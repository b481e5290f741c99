import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/**
 * Curator with TLS or a login, which the properties of the JVM ask for.
 * `Secure HOST:PORT read PATH` prints the data of a znode. `Secure HOST:PORT own PATH SCHEME ID` makes a tree that only
 * this identity may use, with a cache and a lock.
 */
public final class Secure {
    private static final int SESSION_MS = 6000;
    private static final int WAIT_S = 10;

    public static void main(String[] args) throws Exception {
        boolean isOwner = args[1].equals("own");
        CuratorFrameworkFactory.Builder builder = CuratorFrameworkFactory.builder()
            .connectString(args[0])
            .sessionTimeoutMs(SESSION_MS)
            .connectionTimeoutMs(SESSION_MS)
            .retryPolicy(new RetryNTimes(2, 200));
        if (isOwner) {
            builder.aclProvider(onlyFor(new Id(args[3], args[4])));
        }
        try (CuratorFramework client = builder.build()) {
            client.start();
            if (!client.blockUntilConnected(WAIT_S, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no connection");
            }
            if (isOwner) {
                own(client, args[2]);
            }
            System.out.println(new String(client.getData().forPath(args[2]), StandardCharsets.UTF_8));
        } catch (Exception error) {
            System.out.println("failed: " + error);
        }
        System.exit(0); // threads of the client may still wait
    }

    private static void own(CuratorFramework client, String path) throws Exception {
        client.create().forPath(path, "treasure".getBytes(StandardCharsets.UTF_8));
        CountDownLatch seen = new CountDownLatch(1);
        try (CuratorCache cache = CuratorCache.build(client, path)) {
            cache.listenable().addListener(CuratorCacheListener.builder().forCreates(node -> {
                if (node.getPath().endsWith("/child")) {
                    seen.countDown();
                }
            }).build());
            cache.start();
            client.create().forPath(path + "/child");
            if (!seen.await(WAIT_S, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the cache has not seen the child");
            }
        }
        InterProcessMutex mutex = new InterProcessMutex(client, path + "/lock");
        if (!mutex.acquire(WAIT_S, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the lock is not free");
        }
        mutex.release();
    }

    private static ACLProvider onlyFor(Id id) {
        // The client asks whether the list has a null in it, which List.of does not allow.
        List<ACL> acl = Collections.singletonList(new ACL(Perms.ALL, id));
        return new ACLProvider() {
            @Override
            public List<ACL> getDefaultAcl() {
                return acl;
            }

            @Override
            public List<ACL> getAclForPath(String path) {
                return acl;
            }
        };
    }
}
