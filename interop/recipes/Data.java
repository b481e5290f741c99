import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.MultiItem;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.utils.CloseableUtils;
import org.apache.zookeeper.CreateMode;

/**
 * The Java half of data.py: `Data HOST:PORT STEP ME OTHER` does its part of a step, prints what it has seen in the end,
 * and ends with `done`. The Rust half is crates/recipes/examples/data.rs.
 */
public final class Data {
    private static CuratorFramework client;

    public static void main(String[] args) throws Exception {
        client = CuratorFrameworkFactory.newClient(args[0], 10_000, 10_000, new ExponentialBackoffRetry(50, 5));
        client.start();
        String me = args[2], other = args[3];
        switch (args[1]) {
            case "count": count(me); break;
            case "long": longs(); break;
            case "queue": queue(me, other); break;
            case "cache": cache(me, other); break;
            case "discovery": discovery(me); break;
            case "barrier": barrier(me, other); break;
            case "group": group(me); break;
            case "compressed": compressed(me, other); break;
            default: throw new IllegalArgumentException(args[1]);
        }
        client.close();
        System.out.println("done");
        System.exit(0);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static void check(boolean condition, String what) {
        if (!condition) {
            throw new IllegalStateException(what);
        }
    }

    private static void together(String path) throws Exception {
        DistributedDoubleBarrier both = new DistributedDoubleBarrier(client, path, 2);
        check(both.enter(60, TimeUnit.SECONDS), "nobody else enters " + path);
        check(both.leave(60, TimeUnit.SECONDS), "somebody does not leave " + path);
    }

    private static void count(String me) throws Exception {
        LinkedBlockingQueue<Integer> changes = new LinkedBlockingQueue<>();
        SharedCount count = new SharedCount(client, "/count", 0);
        count.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader reader, int now) {
                changes.add(now);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        });
        count.start();
        while (true) {
            VersionedValue<Integer> now = count.getVersionedValue();
            if (now.getValue() >= 40) {
                break;
            }
            if ((now.getValue() % 2 == 0 ? "java" : "rust").equals(me)) {
                count.trySetCount(now, now.getValue() + 1);
            } else {
                changes.poll(1, TimeUnit.SECONDS);
            }
        }
        System.out.println("count " + count.getCount());
    }

    private static void longs() throws Exception {
        DistributedAtomicLong number = new DistributedAtomicLong(client, "/long", new RetryForever(2));
        DistributedAtomicInteger integer = new DistributedAtomicInteger(client, "/integer", new RetryForever(2));
        for (int i = 0; i < 50; i++) {
            check(number.add(3L).succeeded() && integer.decrement().succeeded(), "not added");
        }
        together("/long-both");
        System.out.println("long " + number.get().postValue() + " integer " + integer.get().postValue());
    }

    private static final QueueSerializer<String> TEXT = new QueueSerializer<String>() {
        @Override
        public byte[] serialize(String item) {
            return bytes(item);
        }

        @Override
        public String deserialize(byte[] item) {
            return text(item);
        }
    };

    private static QueueConsumer<String> hand(BlockingQueue<String> to) {
        return new QueueConsumer<String>() {
            @Override
            public void consumeMessage(String item) {
                to.add(item);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
    }

    private static QueueBuilder<String> queueAt(String path, BlockingQueue<String> to) {
        QueueConsumer<String> consumer = to == null ? null : hand(to);
        return QueueBuilder.builder(client, consumer, TEXT, path).putInBackground(false);
    }

    private static void queue(String me, String other) throws Exception {
        DistributedQueue<String> out = queueAt("/queue-" + me, null).lockPath("/locks-" + me).buildQueue();
        DistributedPriorityQueue<String> priorities = queueAt("/priorities-" + me, null).buildPriorityQueue(1);
        DistributedIdQueue<String> ids = queueAt("/ids-" + me, null).buildIdQueue();
        DistributedDelayQueue<String> delays = queueAt("/delays-" + me, null).buildDelayQueue();
        out.start();
        priorities.start();
        ids.start();
        delays.start();
        SimpleDistributedQueue simple = new SimpleDistributedQueue(client, "/simple-" + me);
        for (String item : List.of("1", "2", "3")) {
            out.put(me + " " + item);
            simple.offer(bytes(me + " simple " + item));
        }
        java.util.Iterator<String> several = List.of("4", "5").iterator();
        out.putMulti((MultiItem<String>) () -> several.hasNext() ? several.next() : null);
        priorities.put("last", 7);
        priorities.put("first", -7);
        priorities.put("middle", 0);
        ids.put("a", "keep");
        ids.put("b", "drop");
        ids.put("c", "keep");
        delays.put("later", System.currentTimeMillis() + 300);
        delays.put("now", System.currentTimeMillis());
        together("/queue-full");

        DistributedIdQueue<String> theirs = queueAt("/ids-" + other, null).buildIdQueue();
        theirs.start();
        System.out.println("removed " + theirs.remove("drop"));
        LinkedBlockingQueue<String> items = new LinkedBlockingQueue<>();
        DistributedQueue<String> plain = queueAt("/queue-" + other, items).lockPath("/locks-" + other).buildQueue();
        plain.start();
        print("plain", items, 5);
        plain.close();
        DistributedPriorityQueue<String> byPriority = queueAt("/priorities-" + other, items).buildPriorityQueue(1);
        byPriority.start();
        print("priority", items, 3);
        byPriority.close();
        DistributedIdQueue<String> byId = queueAt("/ids-" + other, items).buildIdQueue();
        byId.start();
        print("id", items, 2);
        byId.close();
        DistributedDelayQueue<String> byTime = queueAt("/delays-" + other, items).buildDelayQueue();
        byTime.start();
        print("delay", items, 2);
        byTime.close();
        SimpleDistributedQueue input = new SimpleDistributedQueue(client, "/simple-" + other);
        for (int i = 0; i < 3; i++) {
            System.out.println("simple " + text(input.take()));
        }
        together("/queue-empty");
    }

    private static void print(String what, BlockingQueue<String> items, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            String item = items.poll(30, TimeUnit.SECONDS);
            check(item != null, "no item in the queue " + what);
            System.out.println(what + " " + item);
        }
    }

    private static void cache(String me, String other) throws Exception {
        CuratorCache cache = CuratorCache.build(client, "/tree");
        CountDownLatch initialized = new CountDownLatch(1);
        cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(initialized::countDown).build());
        cache.start();
        check(initialized.await(30, TimeUnit.SECONDS), "the cache is not initialized");
        for (int number = 0; number < 20; number++) {
            String path = "/tree/" + me + "/" + number;
            client.create().creatingParentsIfNeeded().forPath(path, bytes("new"));
            client.setData().forPath(path, bytes(me + " " + number));
            if (number % 2 == 0) {
                client.delete().forPath(path);
            }
        }
        client.create().forPath("/tree/" + me + "-done", new byte[0]);
        for (int i = 0; !cache.get("/tree/" + other + "-done").isPresent() || cache.size() != 25; i++) {
            check(i < 600, "the cache holds " + cache.size());
            Thread.sleep(50);
        }
        TreeMap<String, String> nodes = new TreeMap<>();
        cache.stream().forEach(node -> nodes.put(node.getPath(), text(node.getData())));
        nodes.forEach((path, data) -> System.out.println(path + " " + data));
        together("/cache-both");
    }

    /** curator-x-discovery comes with no package that is at hand, so this writes and reads its JSON as it does. */
    private static void discovery(String me) throws Exception {
        ObjectMapper json = new ObjectMapper();
        ObjectNode instance = json.createObjectNode();
        instance.put("name", "svc").put("id", me).put("address", me + ".host").put("port", 80).put("sslPort", 443);
        instance.put("payload", "payload of " + me).put("registrationTimeUTC", System.currentTimeMillis());
        instance.put("serviceType", "DYNAMIC");
        Object[][] parts = {{"scheme", true}, {"://", false}, {"address", true}, {":", false}, {"ssl-port", true}};
        for (Object[] part : parts) {
            instance.withObject("/uriSpec").withArray("parts").addObject()
                .put("value", (String) part[0]).put("variable", (Boolean) part[1]);
        }
        client.create().creatingParentContainersIfNeeded().withMode(CreateMode.EPHEMERAL)
            .forPath("/services/svc/" + me, json.writeValueAsBytes(instance));
        TreeMap<String, JsonNode> found = new TreeMap<>();
        for (int i = 0; found.size() < 2; i++) {
            check(i < 600, "one instance only");
            Thread.sleep(50);
            for (String id : client.getChildren().forPath("/services/svc")) {
                found.put(id, json.readTree(client.getData().forPath("/services/svc/" + id)));
            }
        }
        for (JsonNode node : found.values()) {
            List<String> names = new java.util.ArrayList<>();
            node.fieldNames().forEachRemaining(names::add);
            check(names.equals(List.of("name", "id", "address", "port", "sslPort", "payload", "registrationTimeUTC",
                "serviceType", "uriSpec")), "fields " + names);
            check(node.get("uriSpec").equals(instance.get("uriSpec")), "uriSpec " + node.get("uriSpec"));
            check(node.get("port").isInt() && node.get("registrationTimeUTC").isLong(), "numbers " + node);
            System.out.println(node.get("id").asText() + " https://" + node.get("address").asText() + ":"
                + node.get("sslPort").asInt() + " " + node.get("payload").asText() + " "
                + (node.get("serviceType").asText().equals("DYNAMIC") ? "Dynamic" : "other"));
        }
        together("/discovery-both");
    }

    private static void barrier(String me, String other) throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(client, "/barrier-" + me);
        barrier.setBarrier();
        together("/barrier-set");
        new DistributedBarrier(client, "/barrier-" + other).removeBarrier();
        check(barrier.waitOnBarrier(30, TimeUnit.SECONDS), "the barrier stays");
        System.out.println("barrier passed");
    }

    private static void compressed(String me, String other) throws Exception {
        client.create().compressed().forPath("/compressed-" + me, bytes(("data of " + me + " ").repeat(200)));
        together("/compressed-created");
        String created = text(client.getData().decompressed().forPath("/compressed-" + other));
        System.out.println(created.length() + " bytes, stored in fewer: "
            + (client.checkExists().forPath("/compressed-" + other).getDataLength() < created.length()));
        together("/compressed-read");
        client.setData().compressed().forPath("/compressed-" + me, bytes("new data of " + me));
        together("/compressed-set");
        System.out.println(text(client.getData().decompressed().forPath("/compressed-" + other)));
    }

    private static void group(String me) throws Exception {
        GroupMember member = new GroupMember(client, "/group", me, bytes("data of " + me));
        member.start();
        for (int i = 0; member.getCurrentMembers().size() < 2; i++) {
            check(i < 600, "alone in the group");
            Thread.sleep(50);
        }
        new TreeMap<>(member.getCurrentMembers()).forEach((id, data) -> System.out.println(id + " " + text(data)));
        together("/group-both");
        CloseableUtils.closeQuietly(member);
    }
}
