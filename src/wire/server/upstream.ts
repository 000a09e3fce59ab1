import { z } from 'zod';
import { formatDatetime } from '../../domain/time.ts';
import type { UpstreamStatus } from '../../service/status.ts';
import { instant } from '../parameters.ts';

const count = z.int().min(0);

/** The upstream of an agent, a part of `/statusz`. */
export const upstreamObject = z
  .object({
    state: z.enum(['up', 'down', 'paused', 'unknown']),
    since: instant,
    protocol: z
      .enum(['plain', 'latchkey'])
      .describe('`latchkey`: changes are pushed to `/sync/v1`, and nothing has to be guessed.'),
    protocol_choice: z
      .enum(['automatic', 'plain'])
      .describe('`plain`: a person has decided that `/sync/v1` is not used (`latchkey sync protocol`).'),
    pushes: z
      .array(
        z
          .object({
            product_key: z.string().nullable().describe('Null: the pushes of coupons, by the API key.'),
            seq: count.describe('The number of the last push.'),
            answered: z.boolean(),
            followed: count.describe('License keys whose changes the upstream sends.'),
            confirmed_at: instant
              .nullable()
              .describe('When `/sync/v1` last confirmed all of them; null: it has not answered yet.'),
            lost: z
              .object({ operations: count, first_at: instant, last_at: instant, found_at: instant })
              .meta({ id: 'LostOperations' })
              .nullable()
              .describe(
                'Changes that the upstream has lost, because it was restored, and that are too old to be sent again: at most so many, and the days on which they were delivered. Shown for 30 days.',
              ),
          })
          .meta({ id: 'ProductPushes' }),
      )
      .readonly()
      .describe('Empty unless changes are pushed.'),
    conflict_at: instant
      .nullable()
      .describe('When the upstream last knew pushes of this agent that this store does not know.'),
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

export function serializeUpstream(upstream: UpstreamStatus): UpstreamObject {
  return {
    state: upstream.state,
    since: formatDatetime(upstream.since),
    protocol: upstream.protocol,
    protocol_choice: upstream.protocolChoice,
    pushes: upstream.pushes.map(({ productKey, seq, isAnswered, followed, confirmedAt, lost }) => ({
      product_key: productKey,
      seq,
      answered: isAnswered,
      followed,
      confirmed_at: confirmedAt === null ? null : formatDatetime(confirmedAt),
      lost: lost && {
        operations: lost.operations,
        first_at: formatDatetime(lost.firstAt),
        last_at: formatDatetime(lost.lastAt),
        found_at: formatDatetime(lost.foundAt),
      },
    })),
    conflict_at: upstream.conflictAt === null ? null : formatDatetime(upstream.conflictAt),
    breaker: upstream.breaker,
    last_success_at: upstream.lastSuccessAt === null ? null : formatDatetime(upstream.lastSuccessAt),
    last_error: upstream.lastError,
    last_error_at: upstream.lastErrorAt === null ? null : formatDatetime(upstream.lastErrorAt),
    recovered_at: upstream.recoveredAt === null ? null : formatDatetime(upstream.recoveredAt),
    retry_after: upstream.retryAfterUntil === null ? null : formatDatetime(upstream.retryAfterUntil),
    next_attempt_at: upstream.nextAttemptAt === null ? null : formatDatetime(upstream.nextAttemptAt),
    ...(upstream.rate !== undefined && { rate: upstream.rate }),
    proxy: upstream.proxy,
    paused_products: upstream.pausedProducts,
    coupons_paused: upstream.couponsPaused,
  };
}
