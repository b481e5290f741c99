import java.util.*;
import org.apache.zookeeper.*;
import org.apache.zookeeper.data.*;
import static org.apache.zookeeper.ZooDefs.Ids.*;

/** Makes a server log every type of transaction: java -cp ... EveryTxn.java HOST:PORT */
public class EveryTxn {
    public static void main(String[] args) throws Exception {
        ZooKeeper zk = new ZooKeeper(args[0], 30000, e -> {});
        zk.create("/plain", "abc".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create("/null", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create("/empty", new byte[0], OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create("/plain/with-stat", "x".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, new Stat());
        zk.create("/plain/n-", "s".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL);
        zk.create("/ephemeral", "e".getBytes(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        zk.create("/container", "c".getBytes(), OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        zk.create("/container/child", new byte[0], READ_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create("/ttl", "t".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 86400000L);
        zk.create("/\u017elu\u0165ou\u010dk\u00fd", "utf".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.setData("/plain", "second".getBytes(), 0);
        zk.setACL("/plain", Arrays.asList(new ACL(31, new Id("ip", "127.0.0.1")), new ACL(1, ANYONE_ID_UNSAFE)), -1);
        zk.create("/doomed", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.delete("/doomed", 0);
        try { zk.delete("/missing", -1); } catch (KeeperException.NoNodeException e) { }
        zk.multi(Arrays.asList(Op.check("/plain", 1), Op.create("/m", "1".getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
            Op.setData("/m", "2".getBytes(), 0), Op.delete("/m", 1)));
        try {
            zk.multi(Arrays.asList(Op.create("/n", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), Op.delete("/missing", -1)));
        } catch (KeeperException.NoNodeException e) { }
        // Reaped by the server a moment later: deleteContainer.
        zk.create("/reaped", null, OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        zk.create("/reaped/child", null, OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.delete("/reaped/child", -1);
        for (int i = 0; i < 100 && zk.exists("/reaped", false) != null; i++) Thread.sleep(100);
        StringBuilder big = new StringBuilder();
        for (int i = 0; i < 9000; i++) big.append((char) ('a' + i % 26));
        zk.create("/big", big.toString().getBytes(), OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.close();
        // A session that stays: it is in the snapshots.
        ZooKeeper stays = new ZooKeeper(args[0], 30000, e -> {});
        stays.create("/stays", "alive".getBytes(), OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        System.out.println("done");
        Runtime.getRuntime().halt(0);
    }
}
