#define _POSIX_C_SOURCE 200809L
#include "lease.h"
#include <ctype.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* What `latchkey lease setup` prints. A program that reads these from a file can be given others. */
static const char *const issuer = "https://licenses.example.com";
const char *const lease_product = "RGsF";
static const double min_keys_version = 1;
/* x and y of each. */
static const char *const roots[][2] = {{NULL, NULL}};

enum { document_size = 8 * 1024, hash_size = 44 };

int lease_has_roots(void) { return roots[0][0] != NULL; }

static const char *text(const cJSON *object, const char *name) {
  const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
  return value == NULL ? "" : value;
}

static int is(const cJSON *object, const char *name, const char *value) {
  const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
  return found != NULL && strcmp(found, value) == 0;
}

/* A number of a claim; -1 if there is none. */
static double number(const cJSON *object, const char *name) {
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
  return cJSON_IsNumber(value) ? value->valuedouble : -1;
}

/* Decodes base64url, at most `size` bytes and a 0 at the end. Gives the number of bytes; -1: it is no base64url. */
static int decode(const char *from, size_t length, unsigned char *into, size_t size) {
  char plain[document_size + 4];
  const size_t padding = (4 - length % 4) % 4;
  if (length > document_size || padding == 3 || (length + padding) / 4 * 3 >= size) return -1;
  for (size_t index = 0; index < length; index++) {
    const char letter = from[index];
    if (!isalnum((unsigned char)letter) && letter != '-' && letter != '_') return -1;
    plain[index] = letter == '-' ? '+' : letter == '_' ? '/' : letter;
  }
  memset(plain + length, '=', padding);
  const int decoded = EVP_DecodeBlock(into, (unsigned char *)plain, (int)(length + padding));
  if (decoded < 0) return -1;
  into[decoded - (int)padding] = 0;
  return decoded - (int)padding;
}

static void sha256(const char *from, size_t length, char into[hash_size]) {
  unsigned char hash[SHA256_DIGEST_LENGTH], encoded[hash_size + 4];
  SHA256((const unsigned char *)from, length, hash);
  EVP_EncodeBlock(encoded, hash, sizeof hash);
  for (size_t index = 0; index < hash_size - 1; index++)
    into[index] = encoded[index] == '+' ? '-' : encoded[index] == '/' ? '_' : (char)encoded[index];
  into[hash_size - 1] = 0;
}

/* The name of a key (RFC 7638). */
static void thumbprint(const char *x, const char *y, char into[hash_size]) {
  char members[256];
  const int length = snprintf(members, sizeof members, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"%s\",\"y\":\"%s\"}", x, y);
  sha256(members, length < (int)sizeof members ? (size_t)length : 0, into);
}

/* Whether a key has signed a text. */
static int has_signed(const char *x, const char *y, const char *signed_part, size_t length, const unsigned char signature[64]) {
  /* A public key of P-256 (SubjectPublicKeyInfo). */
  unsigned char der[91 + 2] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06,
                               0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
  if (strlen(x) != 43 || strlen(y) != 43 || decode(x, 43, der + 27, 34) != 32 || decode(y, 43, der + 59, 34) != 32) return 0;
  const unsigned char *at = der;
  EVP_PKEY *key = d2i_PUBKEY(NULL, &at, 91);
  ECDSA_SIG *numbers = ECDSA_SIG_new();
  unsigned char *encoded = NULL;
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  int is_signed = 0;
  if (key != NULL && numbers != NULL && context != NULL) {
    ECDSA_SIG_set0(numbers, BN_bin2bn(signature, 32, NULL), BN_bin2bn(signature + 32, 32, NULL));
    const int size = i2d_ECDSA_SIG(numbers, &encoded);
    is_signed = size > 0 && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestVerify(context, encoded, (size_t)size, (const unsigned char *)signed_part, length) == 1;
  }
  EVP_MD_CTX_free(context);
  OPENSSL_free(encoded);
  ECDSA_SIG_free(numbers);
  EVP_PKEY_free(key);
  return is_signed;
}

/* The keys that may have signed a document: the roots, those of a statement, or the one of a device. */
typedef struct {
  const cJSON *statement;
  const char *device;
} known;

/* Gives the claims of a document with exactly the header of its type, and the end of the key that has signed it. NULL: none
   of the known keys has signed it. The caller deletes the claims. */
static cJSON *open_document(const char *document, const char *typ, known keys, double *not_after) {
  unsigned char first[document_size], second[document_size], signature[document_size];
  const char *dot = strchr(document, '.'), *last = strrchr(document, '.');
  if (dot == NULL || dot == last || memchr(dot + 1, '.', (size_t)(last - dot - 1)) != NULL) return NULL;
  if (decode(document, (size_t)(dot - document), first, sizeof first) < 0) return NULL;
  if (decode(dot + 1, (size_t)(last - dot - 1), second, sizeof second) < 0) return NULL;
  if (decode(last + 1, strlen(last + 1), signature, sizeof signature) != 64) return NULL;
  cJSON *header = cJSON_Parse((char *)first), *claims = NULL;
  const cJSON *jwk = cJSON_GetObjectItemCaseSensitive(header, "jwk"), *entry;
  const char *x = NULL, *y = NULL;
  char name[hash_size];
  if (keys.device != NULL) {
    thumbprint(text(jwk, "x"), text(jwk, "y"), name);
    const int is_exact = cJSON_GetArraySize(jwk) == 4 && is(jwk, "kty", "EC") && is(jwk, "crv", "P-256");
    if (is_exact && strcmp(name, keys.device) == 0) x = text(jwk, "x"), y = text(jwk, "y");
  } else if (keys.statement != NULL) {
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(keys.statement, "keys")) {
      const cJSON *each = cJSON_GetObjectItemCaseSensitive(entry, "jwk");
      thumbprint(text(each, "x"), text(each, "y"), name);
      if (is(header, "kid", name)) x = text(each, "x"), y = text(each, "y"), *not_after = number(entry, "not_after");
    }
  } else {
    for (size_t index = 0; index < sizeof roots / sizeof *roots && roots[index][0] != NULL; index++) {
      thumbprint(roots[index][0], roots[index][1], name);
      if (is(header, "kid", name)) x = roots[index][0], y = roots[index][1];
    }
  }
  if (cJSON_GetArraySize(header) == 3 && is(header, "alg", "ES256") && is(header, "typ", typ) && x != NULL &&
      has_signed(x, y, document, (size_t)(last - document), signature))
    claims = cJSON_Parse((char *)second);
  cJSON_Delete(header);
  return claims;
}

/* Whether two license keys are the same to the API: keys of the usual form in any letters. */
static int is_same_key(const char *stored, const char *typed) {
  while (isspace((unsigned char)*typed)) typed++;
  size_t length = strlen(typed);
  while (length > 0 && isspace((unsigned char)typed[length - 1])) length--;
  int is_usual = length == 23;
  for (size_t index = 0; is_usual && index < length; index++)
    is_usual = index % 6 == 5 ? typed[index] == '-' : isalnum((unsigned char)typed[index]) && strchr("01iIoO", typed[index]) == NULL;
  if (strlen(stored) != length) return 0;
  return (is_usual ? strncasecmp(stored, typed, length) : strncmp(stored, typed, length)) == 0;
}

/* The device that the document names has signed the nonce: this is no recorded answer, and none for another device. */
static int is_proven(const char *proof, const char *document, const char *device, const char *nonce) {
  char hash[hash_size];
  double unused;
  sha256(document, (size_t)(strrchr(document, '.') - document), hash);
  cJSON *claims = open_document(proof, "latchkey-proof+jwt", (known){NULL, device}, &unused);
  const int is_right = is(claims, "aud", lease_product) && is(claims, "nonce", nonce) && is(claims, "lease_hash", hash);
  cJSON_Delete(claims);
  return is_right;
}

static const char *notice_verdict(const cJSON *notice, const char *license_key, const char **reason) {
  static const char *const verdicts[] = {"refused: disabled", "refused: ended", "refused: blocked", "refused: replaced"};
  *reason = "the notice is for another license key";
  if (!is_same_key(text(notice, "license_key"), license_key)) return NULL;
  *reason = "the notice has another state";
  for (size_t index = 0; index < sizeof verdicts / sizeof *verdicts; index++)
    if (is(notice, "state", verdicts[index] + strlen("refused: ")))
      /* A license that has ended is disabled, and says when it ended. */
      return cJSON_HasObjectItem(notice, "expired_at") ? "refused: expired" : verdicts[index];
  return NULL;
}

static void list_entitlements(const cJSON *license, char *into, size_t size) {
  const cJSON *each;
  size_t length = 0;
  cJSON_ArrayForEach(each, cJSON_GetObjectItemCaseSensitive(license, "entitlements")) {
    const char *name = cJSON_GetStringValue(each);
    if (name == NULL || length + strlen(name) + 2 > size) return;
    length += (size_t)snprintf(into + length, size - length, length == 0 ? "%s" : " %s", name);
  }
}

const char *lease_check(const cJSON *answer, const char *license_key, const char *nonce, double seen_version,
                        lease_content *content, const char **reason) {
  *content = (lease_content){0};
  *reason = "this program must pass a license key, a nonce, and a version of 0 or above";
  if (license_key == NULL || nonce == NULL || *nonce == 0 || !(seen_version >= 0)) return NULL;
  const char *verdict = NULL, *lease = text(answer, "lease");
  const int is_lease = *lease != 0;
  const char *document = is_lease ? lease : text(answer, "notice");
  double not_after = 0;
  cJSON *claims = NULL, *statement = open_document(text(answer, "keys"), "latchkey-keys+jwt", (known){NULL, NULL}, &not_after);
  const double version = content->version = number(statement, "version");
  *reason = "no root key has signed the key statement, or it is older than one that was seen";
  if (is(statement, "iss", issuer) && version >= min_keys_version && version >= seen_version) {
    const char *typ = is_lease ? "latchkey-lease+jwt" : "latchkey-notice+jwt";
    claims = open_document(document, typ, (known){statement, NULL}, &not_after);
    *reason = "no key of the issuer has signed it, or it is valid for longer than its key";
  }
  const double until = number(claims, is_lease ? "exp" : "issued_at");
  if (is(claims, "iss", issuer) && until >= 0 && until <= not_after) {
    const cJSON *license = cJSON_GetObjectItemCaseSensitive(claims, "license");
    const char *proof = text(answer, "proof");
    const char *device = text(cJSON_GetObjectItemCaseSensitive(claims, "cnf"), "jkt");
    if (!is_lease)
      verdict = notice_verdict(claims, license_key, reason);
    else if (!is(claims, "aud", lease_product) || !is_same_key(text(license, "license_key"), license_key))
      *reason = "the lease is for another product or another license key";
    else if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(license, "enabled")) || (double)time(NULL) >= until)
      *reason = "the lease has expired";
    else
      verdict = "valid";
    if (verdict != NULL && (*proof != 0 || !is(claims, "nonce", nonce)) && !is_proven(proof, document, device, nonce)) {
      *reason = "the device has not signed the nonce: the answer may be a recorded one, or one for another device";
      verdict = NULL;
    }
    if (verdict != NULL && is_lease) list_entitlements(license, content->entitlements, sizeof content->entitlements);
  }
  cJSON_Delete(claims);
  cJSON_Delete(statement);
  return verdict;
}
