import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Curator while servers die, sessions expire and networks are cut. */
class CuratorTest {
    private static final int SESSION_MS = 4000;
    private static final int WAIT_S = 10;

    @RegisterExtension
    final OstlerExtension ostler = OstlerExtension.ensemble(3);

    private final List<AutoCloseable> open = new ArrayList<>();

    @AfterEach
    void closeAll() throws Exception {
        for (int at = open.size() - 1; at >= 0; at--) {
            open.get(at).close();
        }
    }

    private CuratorFramework client() {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                ostler.connectString(), SESSION_MS, SESSION_MS, new RetryForever(50));
        open.add(client);
        return client;
    }

    private CuratorFramework started() throws Exception {
        CuratorFramework client = client();
        client.start();
        assertTrue(client.blockUntilConnected(WAIT_S, TimeUnit.SECONDS));
        return client;
    }

    private LeaderLatch latch(CuratorFramework client) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, "/leader");
        latch.start();
        open.add(latch);
        return latch;
    }

    private static long session(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    /** The changes of the connection's state. */
    private static BlockingQueue<ConnectionState> states(CuratorFramework client) {
        BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
        client.getConnectionStateListenable().addListener((of, state) -> states.add(state));
        return states;
    }

    private static void await(BlockingQueue<ConnectionState> states, ConnectionState wanted) throws Exception {
        ConnectionState state;
        do {
            state = states.poll(WAIT_S, TimeUnit.SECONDS);
            assertNotNull(state, "the state does not become " + wanted);
        } while (state != wanted);
    }

    @Test
    void theLeaderWhoseSessionExpiresIsReplaced() throws Exception {
        CuratorFramework one = started();
        CuratorFramework two = started();
        LeaderLatch first = latch(one);
        assertTrue(first.await(WAIT_S, TimeUnit.SECONDS));
        CountDownLatch demoted = new CountDownLatch(1);
        first.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {}

            @Override
            public void notLeader() {
                demoted.countDown();
            }
        });
        LeaderLatch second = latch(two);

        ostler.expire(session(one));

        assertTrue(second.await(WAIT_S, TimeUnit.SECONDS));
        assertTrue(demoted.await(WAIT_S, TimeUnit.SECONDS));
        assertFalse(first.hasLeadership());
    }

    @Test
    void anExpiredSessionIsLostAndAnotherOneBegins() throws Exception {
        CuratorFramework client = started();
        BlockingQueue<ConnectionState> states = states(client);
        long session = session(client);

        ostler.expire(session);

        await(states, ConnectionState.LOST);
        await(states, ConnectionState.RECONNECTED);
        assertNotEquals(session, session(client));
    }

    @Test
    void aLeadershipSurvivesTheKillOfTheServerThatLeads() throws Exception {
        CuratorFramework client = started();
        LeaderLatch latch = latch(client);
        assertTrue(latch.await(WAIT_S, TimeUnit.SECONDS));
        long session = session(client);

        String leader = ostler.leader();
        ostler.kill(leader);
        assertNotEquals(leader, ostler.leader());

        client.create().forPath("/written");
        assertEquals(session, session(client));
        assertTrue(latch.await(WAIT_S, TimeUnit.SECONDS));
        ostler.restart(leader);
        ostler.untilServing();
        assertFalse(ostler.state().contains("\"down\""));
    }

    @Test
    void aCutSuspendsAndTheSessionComesBack() throws Exception {
        CuratorFramework client = started();
        BlockingQueue<ConnectionState> states = states(client);
        long session = session(client);

        ostler.cut("clients", "servers");
        await(states, ConnectionState.SUSPENDED);

        ostler.heal();
        await(states, ConnectionState.RECONNECTED);
        assertEquals(session, session(client));
    }
}
