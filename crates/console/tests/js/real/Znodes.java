import java.io.ByteArrayOutputStream;
import java.io.Externalizable;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import net.jpountz.lz4.LZ4BlockOutputStream;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.xerial.snappy.SnappyOutputStream;

/** Prints znodes' bytes as Java programs write them: NAME BASE64, a line each. */
public final class Znodes {
    enum Mode { ACTIVE, STANDBY }

    static class Base implements Serializable {
        private static final long serialVersionUID = 1;
        long version = 81;
    }

    static final class Job extends Base {
        private static final long serialVersionUID = 0x1122334455667788L;
        boolean enabled = true;
        byte retries = 3;
        char grade = 'B';
        short port = 2181;
        int count = -5;
        float share = 0.5f;
        double ratio = 1.25;
        String name = "job <img> é";
        Mode mode = Mode.STANDBY;
        int[] slots = {1, 2, 3};
        byte[] blob = {0, 1, (byte) 0xff};
        Date since = new Date(1700000000000L);
        List<Object> owners = new ArrayList<>(List.of("ann", 7));
        Map<String, Object> labels = new HashMap<>(Map.of("zone", "a"));
        BigDecimal price = new BigDecimal("12.50");
        Job self = this;
        Object none = null;
    }

    public static final class Opaque implements Externalizable {
        public Opaque() {}

        @Override
        public void writeExternal(ObjectOutput out) throws java.io.IOException {
            out.writeInt(42);
            out.writeObject("inside");
        }

        @Override
        public void readExternal(ObjectInput in) {}
    }

    static byte[] serialised(Object... objects) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            for (Object object : objects) {
                out.writeObject(object);
            }
        }
        return bytes.toByteArray();
    }

    static byte[] discovery() throws Exception {
        Map<String, String> payload = new LinkedHashMap<>();
        payload.put("version", "2.1");
        ServiceInstance<Map> instance = ServiceInstance.<Map>builder().name("orders").id("7c1f").address("10.1.2.3")
            .port(8080).sslPort(8443).payload(payload).registrationTimeUTC(1700000000000L)
            .serviceType(ServiceType.DYNAMIC).uriSpec(new UriSpec("{scheme}://{address}:{port}")).build();
        return new JsonInstanceSerializer<>(Map.class).serialize(instance);
    }

    public static void main(String[] args) throws Exception {
        byte[] text = args[0].getBytes(StandardCharsets.UTF_8);
        print("java_object", serialised(new Job()));
        print("java_string_and_list", serialised("hello", List.of(1L, 2L), new Opaque()));
        print("curator_instance", discovery());
        ByteArrayOutputStream lz4 = new ByteArrayOutputStream();
        try (OutputStream out = new LZ4BlockOutputStream(lz4)) {
            out.write(text);
        }
        print("lz4_java_stream", lz4.toByteArray());
        ByteArrayOutputStream snappy = new ByteArrayOutputStream();
        try (OutputStream out = new SnappyOutputStream(snappy)) {
            out.write(text);
        }
        print("snappy_java_stream", snappy.toByteArray());
        print("snappy_java_raw", org.xerial.snappy.Snappy.compress(text));
    }

    static void print(String name, byte[] bytes) {
        System.out.println(name + " " + Base64.getEncoder().encodeToString(bytes));
    }
}
