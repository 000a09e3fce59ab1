/* Checks a license key when it starts, and counts a use: license_check LICENSE-KEY
   Needs libcurl, cJSON and OpenSSL 3 (Debian: libcurl4-openssl-dev, libcjson-dev, libssl-dev). */
#define _POSIX_C_SOURCE 200809L
#include "lease.h"
#include <curl/curl.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { timeout_s = 5, deadline_s = 10, grace_s = 14 * 24 * 3600 };

typedef struct {
  char *data;
  size_t length;
} buffer;

static const char *environment(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value != NULL && *value != '\0' ? value : otherwise;
}

static size_t collect(char *data, size_t size, size_t count, void *into) {
  buffer *body = into;
  char *grown = realloc(body->data, body->length + size * count + 1);
  if (grown == NULL) return 0;
  memcpy(grown + body->length, data, size * count);
  body->data = grown;
  body->length += size * count;
  grown[body->length] = '\0';
  return size * count;
}

enum { random_size = 33 };

static void make_random(char into[random_size]) {
  unsigned char random[16];
  FILE *source = fopen("/dev/urandom", "rb");
  if (source == NULL || fread(random, sizeof random, 1, source) != 1) exit(70);
  fclose(source);
  for (size_t index = 0; index < sizeof random; index++) snprintf(into + 2 * index, 3, "%02x", random[index]);
}

/* One request: a use under an idempotency key, a lease with a nonce, or without both a look. Gives the status, 0 when there is no
   answer that can be read; the caller frees `answer`. */
static long call(const char *key, const char *idempotency_key, const char *nonce, cJSON **answer) {
  CURL *curl = curl_easy_init();
  if (curl == NULL) return 0;
  const char *base = environment("LATCHKEY_URL", "http://127.0.0.1:8787");
  if (strncmp(base, "unix:", 5) == 0) {
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, base + 5);
    base = "http://localhost";
  }
  char url[4096], form[2048], header[512];
  char *escaped = curl_easy_escape(curl, key, 0);
  snprintf(form, sizeof form, "license_key=%s&product_key=%s", escaped, lease_product);
  curl_free(escaped);
  snprintf(header, sizeof header, "product-secret-key: %s", environment("LATCHKEY_SECRET", ""));
  struct curl_slist *headers = curl_slist_append(NULL, header);
  headers = curl_slist_append(headers, "Accept: application/problem+json, application/json");
  if (nonce != NULL) {
    snprintf(url, sizeof url, "%s/agent/v1/lease?%s&nonce=%s", base, form, nonce);
  } else if (idempotency_key == NULL) {
    snprintf(url, sizeof url, "%s/api/v2/license/verify?%s", base, form);
  } else {
    snprintf(url, sizeof url, "%s/api/v2/license/usage", base);
    snprintf(header, sizeof header, "Idempotency-Key: %s", idempotency_key);
    headers = curl_slist_append(headers, header);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, "PUT");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, form);
  }
  buffer body = {NULL, 0};
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  /* A proxy of the environment would see the secret, and cannot reach the agent of this machine. */
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)timeout_s);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  long status = 0;
  if (curl_easy_perform(curl) == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  *answer = body.data == NULL ? NULL : cJSON_Parse(body.data);
  free(body.data);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return *answer == NULL ? 0 : status;
}

enum { date_size = 40 };

/* As the agent writes dates: their order is that of their texts. */
static void write_date(char into[date_size], time_t time) {
  struct tm parts;
  gmtime_r(&time, &parts);
  strftime(into, date_size, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
}

/* `until`: until when a valid verdict counts without the agent. No license is valid after its end. */
static const char *verify(const char *key, char until[date_size]) {
  write_date(until, time(NULL) + grace_s);
  cJSON *answer;
  const long status = call(key, NULL, NULL, &answer);
  const cJSON *license = cJSON_GetObjectItem(answer, "data"), *enabled = cJSON_GetObjectItem(license, "enabled");
  const char *code = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "code"));
  const char *end = cJSON_GetStringValue(cJSON_GetObjectItem(license, "grace_until"));
  if (end == NULL) end = cJSON_GetStringValue(cJSON_GetObjectItem(license, "expires_at"));
  if (end != NULL && strcmp(end, until) < 0) snprintf(until, date_size, "%s", end);
  const char *verdict = "undetermined";
  if (status == 200 && cJSON_IsTrue(enabled)) verdict = "valid";
  if (status == 200 && cJSON_IsFalse(enabled)) verdict = "refused: disabled";
  if (status == 404 && code != NULL && strcmp(code, "license_not_found") == 0) verdict = "refused: not found";
  cJSON_Delete(answer);
  return verdict;
}

/* What the vendor has signed for this device: another program on the port cannot say it. */
static const char *leased(const char *key, lease_content *content) {
  const char *path = environment("LATCHKEY_LAST_KNOWN", "last-known"), *reason = "", *verdict;
  char nonce[random_size];
  make_random(nonce);
  /* The version of the keys that was seen last. Keys that the vendor has retired have a lower one. */
  double seen = 0;
  FILE *file = fopen(path, "r");
  if (file != NULL) {
    if (fscanf(file, "%lf", &seen) != 1 || !(seen >= 0)) seen = 0;
    fclose(file);
  }
  cJSON *answer;
  const long status = call(key, NULL, nonce, &answer);
  const char *code = cJSON_GetStringValue(cJSON_GetObjectItem(answer, "code"));
  if (status == 404 && code != NULL && strcmp(code, "license_not_found") == 0)
    verdict = "refused: not found";
  else if (status == 409 && code != NULL && strcmp(code, "no_seat_left") == 0)
    verdict = "refused: no seat left";
  else if (status == 409 && code != NULL && strcmp(code, "license_expired") == 0)
    verdict = "refused: expired";
  else if ((verdict = lease_check(cJSON_GetObjectItem(answer, "data"), key, nonce, seen, content, &reason)) == NULL) {
    fprintf(stderr, "not proven: %s\n", reason);
    verdict = "undetermined";
  } else if ((file = fopen(path, "w")) != NULL) {
    fprintf(file, "%.0f", content->version);
    fclose(file);
  }
  cJSON_Delete(answer);
  return verdict;
}

/* All retries send the same idempotency key, so that the use counts once. */
static void count_use(const char *key) {
  char idempotency_key[random_size];
  make_random(idempotency_key);
  struct timespec wait = {0, 100000000};
  for (const time_t end = time(NULL) + deadline_s; time(NULL) < end; nanosleep(&wait, NULL)) {
    cJSON *answer;
    const long status = call(key, idempotency_key, NULL, &answer);
    const cJSON *uses = cJSON_GetObjectItem(cJSON_GetObjectItem(answer, "data"), "uses");
    const int is_counted = status == 200 && cJSON_IsNumber(uses);
    const int is_refused = status > 200 && status < 500 && status != 408 && status != 409 && status != 429;
    if (is_counted) printf("uses: %.0f\n", uses->valuedouble);
    if (is_refused) printf("uses: refused (%ld)\n", status);
    cJSON_Delete(answer);
    if (is_counted || is_refused) return;
    if (wait.tv_sec == 0) wait.tv_nsec *= 2;
    if (wait.tv_nsec >= 1000000000) wait = (struct timespec){1, 0};
  }
  printf("uses: later, under %s\n", idempotency_key);
}

/* The final verdict: a missing answer is not a "no", and only "disabled" revokes at once. */
static const char *remembered(const char *verdict, const char *until) {
  const char *path = environment("LATCHKEY_LAST_KNOWN", "last-known");
  const int is_disabled = strcmp(verdict, "refused: disabled") == 0;
  if (is_disabled || strcmp(verdict, "valid") == 0) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return verdict;
    fprintf(file, "%s %s", until, is_disabled ? "disabled" : "valid");
    fclose(file);
  } else if (strcmp(verdict, "undetermined") == 0) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return verdict;
    char latest[date_size] = "", last[16] = "", now[date_size];
    const int read = fscanf(file, "%39s %15s", latest, last);
    fclose(file);
    write_date(now, time(NULL));
    if (read == 2 && strcmp(last, "disabled") == 0) return "refused: disabled";
    if (read == 2 && strcmp(last, "valid") == 0 && strcmp(now, latest) <= 0) return "valid (last known)";
  }
  return verdict;
}

int main(int count, char **arguments) {
  if (count < 2) {
    fprintf(stderr, "usage: %s LICENSE-KEY\n", arguments[0]);
    return 2;
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);
  lease_content content = {0};
  char until[date_size];
  const char *verdict = lease_has_roots() ? leased(arguments[1], &content) : verify(arguments[1], until);
  if (!lease_has_roots()) verdict = remembered(verdict, until);
  puts(verdict);
  if (*content.entitlements != 0) printf("entitlements: %s\n", content.entitlements);
  if (strcmp(verdict, "valid") == 0) count_use(arguments[1]);
  curl_global_cleanup();
  return strncmp(verdict, "valid", 5) == 0 ? 0 : strncmp(verdict, "refused", 7) == 0 ? 1 : 2;
}
