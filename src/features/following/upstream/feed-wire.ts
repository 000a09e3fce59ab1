import { z } from 'zod';
import { parseDatetime } from '../../../domain/time.ts';
import type { LatchkeyRequest } from '../../../service/ports.ts';
import { type JsonObject, type Parsed, readBareLicense } from '../../../upstream/wire.ts';
import type { ChangesAnswer, FollowRequest } from '../service/ports.ts';

/* The bodies of the change feed, as a follower sends and reads them (src/sync/BETWEEN-LATCHKEYS.md, The change feed). */

export function changesRequest(agent: string, request: FollowRequest): LatchkeyRequest<ChangesAnswer> {
  const { epoch, cursor, follow, unfollow, watch, carriedOut, waitS } = request;
  const watched = watch.length > 0 && { watch };
  const known = carriedOut !== null && { carried_out: carriedOut };
  return {
    path: '/sync/v1/changes',
    body: JSON.stringify({ agent, epoch, cursor, follow, unfollow, ...watched, ...known, wait: waitS }),
    hidden: [agent, ...follow, ...unfollow, ...watch],
    waitMs: waitS * 1_000,
    read: readChanges,
  };
}

const text = z.string().max(500);

/** A store may have license keys of any length. */
const licenseKey = z.string();

const changes = z.object({
  data: z.object({
    epoch: text,
    cursor: z.string().max(16_384),
    confirmed_at: text,
    changes: z.array(z.object({ license_key: licenseKey, revision: z.int(), license: z.unknown() })),
    absent: z.array(licenseKey),
    appeared: z.array(licenseKey).default([]),
    more: z.literal(true).optional(),
    reset: z.literal(true).optional(),
    put_back: z.literal(true).optional(),
  }),
});

export function readChanges(body: JsonObject): Parsed<ChangesAnswer> {
  const read = changes.safeParse(body);
  const confirmedAt = read.success ? parseDatetime(read.data.data.confirmed_at) : null;
  if (!read.success || confirmedAt === null) return { fault: 'the response is not that of /sync/v1/changes' };
  const { epoch, cursor, absent, appeared, more, reset, put_back: putBack } = read.data.data;
  const licenses = [];
  for (const each of read.data.data.changes) {
    const license = readBareLicense(each.license);
    if ('fault' in license) return license;
    licenses.push({ license: license.value, revision: each.revision });
  }
  const flags = { hasMore: more === true, isReset: reset === true, isPutBack: putBack === true };
  return { value: { epoch, cursor, confirmedAt, licenses, absent, appeared, ...flags } };
}
