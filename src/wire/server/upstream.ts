import { z } from 'zod';
import type { UpstreamStatus } from '../../service/status.ts';
import { instant } from '../parameters.ts';
import { serializerOf, type Inside } from './shape.ts';

const count = z.int().min(0);

/** The upstream of an agent, a part of `/statusz`. */
export const upstreamObject = z
  .object({
    state: z.enum(['up', 'down', 'paused', 'unknown']),
    since: instant,
    protocol: z
      .enum(['unknown', 'plain', 'latchkey'])
      .describe(
        '`latchkey`: changes are sent under the ids of their operations, and nothing has to be guessed. `unknown`: the upstream has not answered yet.',
      ),
    follows: z
      .array(
        z
          .object({
            product_key: z.string(),
            followed: count.describe('License keys whose changes the upstream sends.'),
            confirmed_at: instant
              .nullable()
              .describe('When the upstream last confirmed all of them; null: it has not answered yet.'),
          })
          .meta({ id: 'FollowedProduct' }),
      )
      .readonly()
      .describe('Empty unless the upstream is a Latchkey.'),
    breaker: z.enum(['closed', 'open', 'half_open']),
    last_success_at: instant.nullable(),
    last_error: z.string().nullable(),
    last_error_at: instant.nullable(),
    recovered_at: instant.nullable().describe('When the last error ended; null while it lasts.'),
    retry_after: instant
      .nullable()
      .describe(
        'Until when the upstream asked for no requests (Retry-After); null if it did not, or no longer.',
      ),
    next_attempt_at: instant
      .nullable()
      .describe(
        'When an unavailable upstream is tried again; null if it is available, or is being tried now.',
      ),
    rate: z.number().optional().describe('The most requests a second (`sync.rate`).'),
    proxy: z
      .string()
      .nullable()
      .describe('The proxy to the upstream, without user and password; null if none is used.'),
    paused_products: z
      .array(z.string())
      .readonly()
      .describe('Products whose secret the upstream refuses: their operations wait.'),
    coupons_paused: z
      .boolean()
      .describe('Whether the upstream refuses the API key: operations on coupons wait.'),
  })
  .meta({ id: 'UpstreamStatus' });

export type UpstreamObject = z.infer<typeof upstreamObject>;

const writeUpstream = serializerOf(upstreamObject);

export function serializeUpstream(upstream: UpstreamStatus): UpstreamObject {
  return writeUpstream(insideUpstream(upstream));
}

export function insideUpstream({
  retryAfterUntil: retryAfter,
  ...same
}: UpstreamStatus): Inside<typeof upstreamObject> {
  return { ...same, retryAfter };
}
