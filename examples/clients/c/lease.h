/* Checks the lease of a license key with the public root keys of the vendor. */
#ifndef LEASE_H
#define LEASE_H
#include <cjson/cJSON.h>

extern const char *const lease_product;

/* Whether root keys are compiled in. While there are none, the program asks an agent, and believes what answers on its port. */
int lease_has_roots(void);

/* What a valid lease says: the version of its keys, and what the license unlocks, with spaces between. */
typedef struct {
  double version;
  char entitlements[2560];
} lease_content;

/* Gives the verdict of an answer, and its content. NULL and a reason: the answer proves nothing, and this is not a "no". */
const char *lease_check(const cJSON *answer, const char *license_key, const char *nonce, double seen_version,
                        lease_content *content, const char **reason);

#endif
