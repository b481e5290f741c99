import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Servers for tests with JUnit 5. A field with {@code @RegisterExtension} has new servers for each test; a static one has
 * the same servers for all tests of its class. The program {@code ostler} has to be in PATH; the environment variable
 * OSTLER names another one.
 *
 * <p>A server is its id, or "leader"; an end of the network also "clients" or "servers".
 */
public final class OstlerExtension
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
    private final int servers;
    private Testserver testserver;
    private String ensemble;
    private boolean forOneTest;

    private OstlerExtension(int servers) {
        this.servers = servers;
    }

    /** A standalone server. */
    public static OstlerExtension server() {
        return new OstlerExtension(1);
    }

    /** An ensemble of up to 9 servers. */
    public static OstlerExtension ensemble(int servers) {
        return new OstlerExtension(servers);
    }

    @Override
    public void beforeAll(ExtensionContext context) {
        start(context);
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        if (ensemble == null) {
            start(context);
            forOneTest = true;
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        if (forOneTest) {
            delete();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        delete();
    }

    private void start(ExtensionContext context) {
        // One program for all tests of the run. JUnit closes it at the end.
        testserver = context.getRoot()
                .getStore(ExtensionContext.Namespace.GLOBAL)
                .getOrComputeIfAbsent(Testserver.class, key -> new Testserver(), Testserver.class);
        String state = testserver.call("POST", "/ensembles", "{\"servers\": " + servers + "}");
        ensemble = "/ensembles/" + field(state, "id");
    }

    private void delete() {
        if (ensemble != null) {
            testserver.call("DELETE", ensemble, "");
            ensemble = null;
        }
    }

    private String call(String method, String path, String body) {
        return testserver.call(method, ensemble + path, body);
    }

    /** The state of the ensemble, in JSON. */
    public String state() {
        return call("GET", "", "");
    }

    /** What clients connect to. */
    public String connectString() {
        return field(state(), "connect");
    }

    /** Waits until a server leads. Returns its id. */
    public String leader() {
        return field(call("GET", "/leader", ""), "leader");
    }

    /** Waits until a server other than this one leads. Returns its id. */
    public String leaderOtherThan(String server) {
        return field(call("GET", "/leader?other_than=" + server, ""), "leader");
    }

    /** Waits until all servers that run serve clients. */
    public void untilServing() {
        call("GET", "/serving", "");
    }

    /** Ends a server as kill -9 does. */
    public void kill(String server) {
        call("POST", "/servers/" + server + "/kill", "");
    }

    public void stop(String server) {
        call("POST", "/servers/" + server + "/stop", "");
    }

    public void restart(String server) {
        call("POST", "/servers/" + server + "/restart", "");
    }

    /** Freezes a server as SIGSTOP does. */
    public void pause(String server) {
        call("POST", "/servers/" + server + "/pause", "");
    }

    public void resume(String server) {
        call("POST", "/servers/" + server + "/resume", "");
    }

    /** Expires a session: the server closes it. */
    public void expire(long session) {
        call("POST", "/sessions/" + session + "/expire", "");
    }

    /** Closes the connection of a session, which lives on. */
    public void disconnect(long session) {
        call("POST", "/sessions/" + session + "/disconnect", "");
    }

    /** Closes all connections between two ends, and each new one at once. */
    public void cut(String one, String other) {
        call("POST", "/network/cut", "{\"between\": [\"" + one + "\", \"" + other + "\"]}");
    }

    /** Holds back what one end sends to the other. Neither notices. */
    public void silence(String from, String to) {
        call("POST", "/network/silence", "{\"from\": \"" + from + "\", \"to\": \"" + to + "\"}");
    }

    /** Delays what one end sends to the other. */
    public void delay(String from, String to, int ms) {
        call("POST", "/network/delay", "{\"from\": \"" + from + "\", \"to\": \"" + to + "\", \"ms\": " + ms + "}");
    }

    /** Ends all cuts, silences and delays. */
    public void heal() {
        call("POST", "/network/heal", "");
    }

    /** The first value of this name in the answer, which is flat enough to need no parser of JSON. */
    private static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"?([^\",}]*)").matcher(json);
        if (!found.find()) {
            throw new IllegalStateException("no " + name + " in " + json);
        }
        return found.group(1);
    }

    /** The program {@code ostler testserver}. It ends when its standard input is closed, so also when the tests die. */
    private static final class Testserver implements ExtensionContext.Store.CloseableResource {
        private final Process process;
        private final HttpClient http = HttpClient.newHttpClient();
        private final String control;

        Testserver() {
            String program = System.getenv().getOrDefault("OSTLER", "ostler");
            try {
                process = new ProcessBuilder(program, "testserver", "--end-with-stdin")
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start();
                String line = new BufferedReader(
                        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
                if (line == null) {
                    throw new IllegalStateException(program + " testserver did not start: standard error says why");
                }
                control = field(line, "control");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        String call(String method, String path, String body) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(control + path))
                    .method(method, body.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(body))
                    .build();
            try {
                HttpResponse<String> answer = http.send(request, BodyHandlers.ofString());
                if (answer.statusCode() >= 300) {
                    throw new IllegalStateException(method + " " + path + ": " + answer.body());
                }
                return answer.body();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while waiting for " + path, e);
            }
        }

        @Override
        public void close() throws Exception {
            process.getOutputStream().close();
            process.waitFor();
        }
    }
}
