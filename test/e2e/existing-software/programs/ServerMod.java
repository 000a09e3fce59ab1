// A game server mod in Java. Like most mods it has no JSON library. Second version of the API.
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
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class ServerMod {
  static final Path ACTIVATION = Path.of(System.getenv("LICENSE_FILE"));
  static final HttpClient CLIENT = HttpClient.newHttpClient();

  static HttpResponse<String> ask(String method, String action, String key) throws Exception {
    String form = "license_key=" + URLEncoder.encode(key, StandardCharsets.UTF_8);
    boolean reads = method.equals("GET");
    String url = System.getenv("LICENSE_API") + "/api/v2/license/" + action + (reads ? "?" + form : "");
    HttpRequest request = HttpRequest.newBuilder(URI.create(url))
        .timeout(Duration.ofSeconds(30))
        .header("product-secret-key", System.getenv("PRODUCT_SECRET"))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .method(method, reads ? BodyPublishers.noBody() : BodyPublishers.ofString(form))
        .build();
    return CLIENT.send(request, BodyHandlers.ofString());
  }

  static boolean isEnabled(String body) {
    return Pattern.compile("\"enabled\"\\s*:\\s*true").matcher(body).find();
  }

  static String check(String key) throws Exception {
    try {
      HttpResponse<String> response = ask("GET", "verify", key);
      if (response.statusCode() == 200 && isEnabled(response.body())) {
        Files.writeString(ACTIVATION, key);
        return "VALID";
      }
    } catch (IOException away) {
      return Files.exists(ACTIVATION) ? "KEEP" : "TRY LATER";
    }
    Files.deleteIfExists(ACTIVATION);
    return "INVALID";
  }

  public static void main(String[] args) throws Exception {
    if (args[0].equals("check")) {
      System.out.println(check(args[1]));
      return;
    }
    String body = ask("PUT", args[0], args[1]).body();
    if (args[0].equals("usage") || args[0].equals("decrease")) {
      Matcher uses = Pattern.compile("\"uses\"\\s*:\\s*(\\d+)").matcher(body);
      System.out.println(uses.find() ? "USES " + uses.group(1) : body);
    } else {
      System.out.println(isEnabled(body) ? "ENABLED" : "DISABLED");
    }
  }
}
