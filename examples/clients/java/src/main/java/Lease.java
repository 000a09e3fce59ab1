import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.crypto.ECDSAVerifier;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.ECKey;
import com.nimbusds.jose.util.Base64URL;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.text.ParseException;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Checks the lease of a license key with the public root keys of the vendor. */
final class Lease {
  // What `latchkey lease setup` prints. A program that reads these from a file can be given others.
  private static final String ISSUER = "https://licenses.example.com";
  static final String PRODUCT = "RGsF";
  private static final long MIN_KEYS_VERSION = 1;
  /** x and y of each. While there are none, the program asks an agent, and believes what answers on its port. */
  static final String[][] ROOTS = {};

  private static final Set<String> STATES = Set.of("disabled", "ended", "blocked", "replaced");
  private static final String GENERATED = "(?i)[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}";

  /** The verdict of an answer, the version of its keys, and what the license unlocks. */
  record Checked(String verdict, long keysVersion, List<String> entitlements) {}

  /** The answer proves nothing: this is not a "no". */
  static final class NotProven extends Exception {
    private static final long serialVersionUID = 1L;

    NotProven(String reason) {
      super(reason);
    }
  }

  /** A document whose signature is right. */
  private record Opened(JWTClaimsSet claims, String keyId, String signedPart) {}

  static Checked check(String body, String licenseKey, String nonce, long seenVersion) throws NotProven {
    if (licenseKey == null || nonce == null || nonce.isEmpty()) {
      throw new IllegalArgumentException("licenseKey and nonce must be texts, and nonce not empty");
    }
    try {
      Map<String, Object> answer = JSONObjectUtils.getJSONObject(JSONObjectUtils.parse(body), "data");
      if (answer == null) {
        throw new NotProven("there is no answer of a holder");
      }
      return checked(answer, licenseKey, nonce, seenVersion);
    } catch (ParseException | JOSEException | NoSuchAlgorithmException | RuntimeException wrong) {
      throw new NotProven(String.valueOf(wrong.getMessage()));
    }
  }

  private static Checked checked(Map<String, Object> answer, String licenseKey, String nonce, long seenVersion)
      throws NotProven, ParseException, JOSEException, NoSuchAlgorithmException {
    Map<String, ECKey> roots = new HashMap<>();
    for (String[] root : ROOTS) {
      ECKey key = new ECKey.Builder(Curve.P_256, new Base64URL(root[0]), new Base64URL(root[1])).build();
      roots.put(key.computeThumbprint().toString(), key);
    }
    JWTClaimsSet statement = open((String) answer.get("keys"), "latchkey-keys+jwt", roots).claims();
    long version = statement.getLongClaim("version");
    ensure(ISSUER.equals(statement.getIssuer()), "the key statement is of another issuer");
    ensure(version >= Math.max(MIN_KEYS_VERSION, seenVersion), "the key statement is older than one that was seen");
    Map<String, ECKey> signing = new HashMap<>();
    Map<String, Long> ends = new HashMap<>();
    for (Map<String, Object> entry : JSONObjectUtils.getJSONObjectArray(statement.getClaims(), "keys")) {
      ECKey key = ECKey.parse(JSONObjectUtils.getJSONObject(entry, "jwk"));
      signing.put(key.computeThumbprint().toString(), key);
      ends.put(key.computeThumbprint().toString(), JSONObjectUtils.getLong(entry, "not_after"));
    }
    String key = licenseKey.strip();
    key = key.matches(GENERATED) ? key.toUpperCase() : key;
    String signed = (String) answer.get("lease");
    if (signed == null) {
      Opened notice = open((String) answer.get("notice"), "latchkey-notice+jwt", signing);
      String state = notice.claims().getStringClaim("state");
      ensure(ISSUER.equals(notice.claims().getIssuer()), "the notice is of another issuer");
      ensure(key.equals(notice.claims().getStringClaim("license_key")), "the notice is for another license key");
      ensure(notice.claims().getLongClaim("issued_at") <= ends.get(notice.keyId()), "its key had ended");
      ensure(STATES.contains(state), "the notice has another state");
      checkProof(answer, notice, nonce);
      // A license that has ended is disabled, and says when it ended.
      boolean isExpired = notice.claims().getClaim("expired_at") != null;
      return new Checked("refused: " + (isExpired ? "expired" : state), version, List.of());
    }
    Opened opened = open(signed, "latchkey-lease+jwt", signing);
    JWTClaimsSet lease = opened.claims();
    Map<String, Object> license = lease.getJSONObjectClaim("license");
    ensure(ISSUER.equals(lease.getIssuer()), "the lease is of another issuer");
    ensure(PRODUCT.equals(lease.getClaim("aud")), "the lease is for another product");
    ensure(Instant.now().isBefore(lease.getDateClaim("exp").toInstant()), "the lease has expired");
    ensure(lease.getDateClaim("exp").getTime() / 1000 <= ends.get(opened.keyId()), "the lease outlives its key");
    ensure(key.equals(license.get("license_key")), "the lease is for another license key");
    ensure(Boolean.TRUE.equals(license.get("enabled")), "the license is not enabled");
    if (answer.get("proof") != null || !nonce.equals(lease.getClaim("nonce"))) {
      checkProof(answer, opened, nonce);
    }
    List<String> entitlements = JSONObjectUtils.getStringList(license, "entitlements");
    return new Checked("valid", version, entitlements == null ? List.of() : entitlements);
  }

  /** The device that the document names has signed the nonce: this is no recorded answer, and none for another device. */
  private static void checkProof(Map<String, Object> answer, Opened opened, String nonce)
      throws NotProven, ParseException, JOSEException, NoSuchAlgorithmException {
    String proof = (String) answer.get("proof");
    Object device = opened.claims().getJSONObjectClaim("cnf").get("jkt");
    ensure(proof != null, "there is no proof for the nonce");
    Map<String, Object> jwk = JSONObjectUtils.getJSONObject(SignedJWT.parse(proof).getHeader().toJSONObject(), "jwk");
    ensure(jwk != null && jwk.size() == 4, "the proof has no key");
    ECKey key = ECKey.parse(jwk);
    ensure(key.computeThumbprint().toString().equals(device), "the proof is signed by another device");
    JWTClaimsSet claims = open(proof, "latchkey-proof+jwt", Map.of("", key)).claims();
    String hash = sha256(opened.signedPart());
    ensure(PRODUCT.equals(claims.getClaim("aud")), "the proof is for another product");
    ensure(nonce.equals(claims.getStringClaim("nonce")), "the proof is for another nonce");
    ensure(hash.equals(claims.getStringClaim("lease_hash")), "the proof is for another document");
  }

  /** Gives the claims of a document that a known key has signed, with exactly the header of its type. */
  private static Opened open(String document, String typ, Map<String, ECKey> keys)
      throws NotProven, ParseException, JOSEException {
    ensure(document != null, "there is no " + typ);
    SignedJWT signed = SignedJWT.parse(document);
    boolean isExact = JSONObjectUtils.parse(signed.getHeader().toBase64URL().decodeToString()).size() == 3
        && JWSAlgorithm.ES256.equals(signed.getHeader().getAlgorithm())
        && signed.getHeader().getType() != null && typ.equals(signed.getHeader().getType().getType());
    String keyId = signed.getHeader().getKeyID() == null ? "" : signed.getHeader().getKeyID();
    ensure(isExact && keys.containsKey(keyId), "the header is not the one of " + typ + ", or names an unknown key");
    ensure(signed.verify(new ECDSAVerifier(keys.get(keyId))), "the signature is wrong");
    // `aud` stays as it is written: one text, never a list.
    Map<String, Object> claims = signed.getPayload().toJSONObject();
    JWTClaimsSet.Builder builder = new JWTClaimsSet.Builder(JWTClaimsSet.parse(claims));
    String signedPart = document.substring(0, document.lastIndexOf('.'));
    return new Opened(builder.claim("aud", claims.get("aud")).build(), keyId, signedPart);
  }

  private static String sha256(String text) throws NoSuchAlgorithmException {
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.US_ASCII));
    return Base64URL.encode(hash).toString();
  }

  private static void ensure(boolean isTrue, String otherwise) throws NotProven {
    if (!isTrue) {
      throw new NotProven(otherwise);
    }
  }
}
