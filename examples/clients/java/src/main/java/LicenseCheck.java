import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Checks a license key when it starts, and counts a use: java LicenseCheck LICENSE-KEY */
public final class LicenseCheck {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);
  private static final Duration DEADLINE = Duration.ofSeconds(10);
  private static final Duration GRACE = Duration.ofDays(14);
  private static final int DEPTH = 100;
  private static final String SCALAR = "\"[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+\"|true|false|null|-?\\d[-+.\\deE]*+";
  private static final Pattern TOKEN = Pattern.compile(SCALAR + "|\\S");

  private final HttpClient http = HttpClient.newBuilder()
      .version(HttpClient.Version.HTTP_1_1)
      .connectTimeout(TIMEOUT)
      .build();
  private final String base = getenv("LATCHKEY_URL", "http://127.0.0.1:8787");
  private final String secret = getenv("LATCHKEY_SECRET", "");
  /** Until when a valid verdict counts without the agent. */
  private Instant until = Instant.now().plus(GRACE);
  /** What the lease unlocks. */
  private List<String> entitlements = List.of();
  private final Path lastKnown = Path.of(getenv("LATCHKEY_LAST_KNOWN", "last-known"));

  public static void main(String[] args) throws InterruptedException {
    if (args.length != 1) {
      System.err.println("usage: LicenseCheck LICENSE-KEY");
      System.exit(2);
    }
    LicenseCheck check = new LicenseCheck();
    boolean hasRoots = Lease.ROOTS.length > 0;
    String verdict = hasRoots ? check.leased(args[0]) : check.remembered(check.verify(args[0]));
    System.out.println(verdict);
    if (!check.entitlements.isEmpty()) {
      System.out.println("entitlements: " + String.join(" ", check.entitlements));
    }
    if (verdict.equals("valid")) {
      System.out.println("uses: " + check.countUse(args[0]));
    }
    System.exit(verdict.startsWith("valid") ? 0 : verdict.startsWith("refused") ? 1 : 2);
  }

  private String verify(String key) throws InterruptedException {
    try {
      HttpResponse<String> answer = send(request("/api/v2/license/verify?" + form(key)).GET());
      Object body = parse(answer.body());
      Object enabled = answer.statusCode() == 200 ? member(member(body, "data"), "enabled") : null;
      if ("true".equals(enabled)) {
        noteEnd(member(body, "data"));
        return "valid";
      }
      if ("false".equals(enabled)) {
        return "refused: disabled";
      }
      boolean isUnknown =
          answer.statusCode() == 404 && "\"license_not_found\"".equals(member(body, "code"));
      return isUnknown ? "refused: not found" : "undetermined";
    } catch (IOException | IllegalArgumentException | DateTimeParseException noAnswer) {
      // An invalid address or secret throws an IllegalArgumentException.
      return "undetermined";
    }
  }

  /** What the vendor has signed for this device: another program on the port cannot say it. */
  private String leased(String key) throws InterruptedException {
    String nonce = UUID.randomUUID().toString();
    try {
      String query = form(key) + "&nonce=" + nonce;
      HttpResponse<String> answer = send(request("/agent/v1/lease?" + query).GET());
      Object code = answer.statusCode() == 200 ? null : member(parse(answer.body()), "code");
      if (answer.statusCode() == 404 && "\"license_not_found\"".equals(code)) {
        return "refused: not found";
      }
      if (answer.statusCode() == 409 && "\"no_seat_left\"".equals(code)) {
        return "refused: no seat left";
      }
      if (answer.statusCode() == 409 && "\"license_expired\"".equals(code)) {
        return "refused: expired";
      }
      Lease.Checked checked = Lease.check(answer.body(), key, nonce, seenVersion());
      seen(checked.keysVersion());
      entitlements = checked.entitlements();
      return checked.verdict();
    } catch (IOException | IllegalArgumentException | Lease.NotProven reason) {
      System.err.println("not proven: " + reason.getMessage());
      return "undetermined";
    }
  }

  /** The version of the keys that was seen last. Keys that the vendor has retired have a lower one. */
  private long seenVersion() {
    try {
      return Long.parseLong(Files.readString(lastKnown));
    } catch (IOException | NumberFormatException unusable) {
      return 0;
    }
  }

  private void seen(long keysVersion) {
    try {
      Files.writeString(lastKnown, Long.toString(keysVersion));
    } catch (IOException unusable) {
      System.err.println(unusable.getMessage());
    }
  }

  /** All retries send the same idempotency key, so that the use counts once. */
  private String countUse(String key) throws InterruptedException {
    String idempotencyKey = UUID.randomUUID().toString();
    Instant end = Instant.now().plus(DEADLINE);
    for (long wait = 100; Instant.now().isBefore(end); wait = Math.min(2 * wait, 2_000)) {
      try {
        HttpResponse<String> answer = send(request("/api/v2/license/usage")
            .header("Idempotency-Key", idempotencyKey)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .PUT(BodyPublishers.ofString(form(key))));
        int status = answer.statusCode();
        Object body = parse(answer.body());
        if (status == 200 && member(member(body, "data"), "uses") instanceof String uses) {
          return uses;
        }
        if (status != 200 && status < 500 && status != 408 && status != 409 && status != 429) {
          return "refused (" + member(body, "code") + ")";
        }
      } catch (IOException noAnswer) {
        // The use may have been counted: repeat the request to find out.
      }
      Thread.sleep(wait);
    }
    return "later, under " + idempotencyKey;
  }

  /** The final verdict: a missing answer is not a "no", and only "disabled" revokes at once. */
  /** No license is valid after its end. */
  private void noteEnd(Object license) {
    Object grace = member(license, "grace_until");
    Object end = grace == null ? member(license, "expires_at") : grace;
    if (end != null && !end.equals("null")) {
      Instant date = OffsetDateTime.parse(end.toString().replace("\"", "")).toInstant();
      until = date.isBefore(until) ? date : until;
    }
  }

  private String remembered(String verdict) {
    try {
      if (verdict.equals("valid") || verdict.equals("refused: disabled")) {
        Files.writeString(lastKnown, until + " " + verdict);
      } else if (verdict.equals("undetermined") && Files.exists(lastKnown)) {
        String[] line = Files.readString(lastKnown).split(" ", 2);
        if (line.length < 2) {
          return verdict;
        }
        if (line[1].equals("refused: disabled")) {
          return line[1];
        }
        if (line[1].equals("valid") && !Instant.now().isAfter(Instant.parse(line[0]))) {
          return "valid (last known)";
        }
      }
    } catch (IOException | DateTimeParseException unusable) {
      System.err.println(unusable.getMessage());
    }
    return verdict;
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(base + path))
        .header("product-secret-key", secret)
        .header("Accept", "application/problem+json, application/json");
  }

  private HttpResponse<String> send(HttpRequest.Builder request) throws IOException, InterruptedException {
    // The timeout of a request covers the headers only: the body may arrive byte by byte, without end.
    CompletableFuture<HttpResponse<String>> answer = http.sendAsync(request.build(), BodyHandlers.ofString());
    try {
      return answer.get(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException noAnswer) {
      answer.cancel(true);
      throw new IOException(noAnswer);
    }
  }

  /**
   * Reads JSON, because the JDK has no JSON parser; use a library if your program has one. An object becomes a map, and
   * a scalar stays as it is written, so that "false" in quotes is not false.
   */
  private static Object parse(String json) throws IOException {
    Queue<String> tokens =
        TOKEN.matcher(json).results().map(MatchResult::group).collect(Collectors.toCollection(ArrayDeque::new));
    Object value = value(tokens, 0);
    if (!tokens.isEmpty()) {
      throw new IOException("this is no JSON");
    }
    return value;
  }

  private static Object value(Queue<String> tokens, int depth) throws IOException {
    String first = tokens.isEmpty() ? "" : tokens.remove();
    if (first.matches(SCALAR)) {
      return first;
    }
    boolean isObject = first.equals("{");
    if (!isObject && !first.equals("[") || depth > DEPTH) {
      throw new IOException("this is no JSON");
    }
    Map<String, Object> members = new HashMap<>();
    String end = isObject ? "}" : "]";
    while (!end.equals(tokens.peek())) {
      if (!members.isEmpty()) {
        expect(",", tokens);
      }
      String name = "";
      if (isObject) {
        name = tokens.poll();
        expect(":", tokens);
      }
      members.put(name, value(tokens, depth + 1));
    }
    tokens.remove();
    return members;
  }

  private static void expect(String token, Queue<String> tokens) throws IOException {
    if (!token.equals(tokens.poll())) {
      throw new IOException("this is no JSON");
    }
  }

  private static Object member(Object value, String name) {
    return value instanceof Map<?, ?> members ? members.get("\"" + name + "\"") : null;
  }

  private static String form(String key) {
    return "license_key=" + URLEncoder.encode(key, StandardCharsets.UTF_8) + "&product_key=" + Lease.PRODUCT;
  }

  private static String getenv(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }
}
