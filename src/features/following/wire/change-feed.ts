import { z } from 'zod';
import { agentRetentionMs } from '../../../domain/latchkey.ts';
import { maxFollowed, maxWaitS, maxWatched, syncProtocol } from '../domain/change-feed.ts';
import { asAnswered } from '../../../domain/terms.ts';
import { dayMs, formatDatetime } from '../../../domain/time.ts';
import type { FollowedChanges } from '../service/ports.ts';
import type { Follower } from '../service/tables.ts';
import { licenseObject, serializeLicense } from '../../../wire/license.ts';
import { instant, integer, parameters, textMatching, licenseKeyText } from '../../../wire/parameters.ts';
import { serializerOf } from '../../../wire/shape.ts';

/* The bodies of the change feed, `/sync/v1` (src/sync/BETWEEN-LATCHKEYS.md, The change feed). */

/** 128 random bits of a follower. */
export const agentId = textMatching(/^[0-9a-f]{32}$/, 32, 'must be 32 hexadecimal digits in lower case');

/** `GET /sync/v1`. */
export const syncInfoObject = z
  .object({
    protocol: z.literal(syncProtocol),
    instance: z.string(),
    epoch: z
      .string()
      .describe('Names the history of this store. A restored store keeps only the first 16 digits.'),
    keep_days: z.int().describe('For how many days the answers to agents are kept at least.'),
    max_wait: z.int().describe('The longest wait for a change, in seconds.'),
  })
  .meta({ id: 'SyncInfo' });

export type SyncInfoObject = z.infer<typeof syncInfoObject>;

/** `GET /sync/v1`. */
export function serializeInfo(store: Pick<SyncInfoObject, 'instance' | 'epoch'>): SyncInfoObject {
  const limits = { keep_days: agentRetentionMs / dayMs, max_wait: maxWaitS };
  return { protocol: syncProtocol, ...store, ...limits };
}

const licenseKeys = z.array(licenseKeyText).max(maxFollowed);
/** The longest cursor: PostgreSQL lists the running transactions in it. */
const maxCursorLength = 16_384;

/** `POST /sync/v1/changes`. */
export const changesParameters = parameters(
  {
    agent: agentId,
    epoch: z.string().max(100).optional(),
    cursor: z.string().max(maxCursorLength).optional(),
    follow: licenseKeys.prefault([]),
    unfollow: licenseKeys.prefault([]),
    watch: z
      .array(licenseKeyText)
      .max(maxWatched)
      .prefault([])
      .describe('Keys that were missing: answered as soon as one of them has a license.'),
    carried_out: z
      .uuid()
      .optional()
      .describe('The id of the last use that this store has carried out for the agent.'),
    wait: integer(0, maxWaitS).prefault(0),
  },
  { id: 'ChangesQuery' },
);

export const changesObject = z
  .object({
    epoch: z.string(),
    cursor: z.string().describe('Send it with the next request.'),
    confirmed_at: instant.describe(
      'All followed keys that are not in this reply are unchanged, unless `more`.',
    ),
    changes: z.array(
      z
        .object({ license_key: z.string(), revision: z.int(), license: licenseObject })
        .meta({ id: 'FollowedLicense' }),
    ),
    absent: z.array(z.string()).describe('Followed keys that the credential does not give access to.'),
    appeared: z.array(z.string()).optional().describe('Watched keys that have a license now. Absent: none.'),
    more: z.literal(true).optional().describe('There are more changes: ask again at once.'),
    reset: z
      .literal(true)
      .optional()
      .describe('No key is followed any more, nor those of this request: send all again.'),
    put_back: z
      .literal(true)
      .optional()
      .describe(
        'This store does not know `carried_out`: an older copy was put in its place. Send what it may have lost.',
      ),
  })
  .meta({ id: 'Changes' });

export type ChangesObject = z.infer<typeof changesObject>;

export function serializeChanges(reply: FollowedChanges): ChangesObject {
  return {
    epoch: reply.epoch,
    cursor: reply.cursor,
    confirmed_at: formatDatetime(reply.confirmedAt),
    changes: reply.changes.map(({ license, revision }) => ({
      license_key: license.licenseKey,
      revision,
      license: serializeLicense(asAnswered(license, reply.confirmedAt)),
    })),
    absent: [...reply.absent],
    ...(reply.appeared.length > 0 && { appeared: [...reply.appeared] }),
    ...(reply.hasMore && { more: true as const }),
    ...(reply.isReset && { reset: true as const }),
    ...(reply.isPutBack && { put_back: true as const }),
  };
}

/** An agent, as operators see it. Its id is a secret between it and this authority. */
export const agentObject = z
  .object({
    number: z.int().min(1),
    fingerprint: z
      .string()
      .describe(
        'The beginning of the SHA-256 of the id of the agent: the same for all rows of one state directory.',
      ),
    account_id: z.string(),
    product_key: z.string().nullable().describe('Null: the credential is a token of the whole account.'),
    followed: z.int().min(0).describe('License keys whose changes it gets.'),
    waiting: z.boolean().describe('Whether it waits for a change now, at this process.'),
    created_at: instant,
    seen_at: instant.describe('When it last asked for changes. May be an hour old.'),
  })
  .meta({ id: 'Agent' });

export type AgentObject = z.infer<typeof agentObject>;

export const agentList = z.object({ agents: z.array(agentObject) }).meta({ id: 'AgentList' });

const fingerprintLength = 12;

const writeAgent = serializerOf(agentObject);

/** `digest`: the SHA-256 of the agent's id, in hexadecimal digits. */
export function serializeAgent(
  agent: Follower,
  { digest, isWaiting: waiting }: { digest: string; isWaiting: boolean },
): AgentObject {
  return writeAgent({ ...agent, fingerprint: digest.slice(0, fingerprintLength), waiting });
}
