import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.Stat;

/** Makes a one-server quorum log a reconfiguration: java -cp ... Reconfigure.java HOST:PORT */
public class Reconfigure {
    public static void main(String[] args) throws Exception {
        ZooKeeperAdmin zk = new ZooKeeperAdmin(args[0], 30000, e -> {});
        zk.reconfigure("server.2=127.0.0.1:24510:24511:observer;127.0.0.1:24512", null, null, -1, new Stat());
        zk.close();
    }
}
