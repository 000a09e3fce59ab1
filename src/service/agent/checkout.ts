import type { FreshnessPolicy } from '../../domain/agent/freshness.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { Checkout, Provenance, QuoteResponse, RedemptionResponse } from '../answers.ts';
import { knownCode, quoteMirroredCoupon } from '../checkout/quote.ts';
import {
  couponsNotConfigured,
  couponsUnreachable,
  isExpired,
  refreshOlder,
  type AgentCouponingParts,
} from './coupon.ts';
import { mirroredSince } from './mirror.ts';
import { provenanceOf, type Source } from './provenance.ts';

/** `settings` and `isConfigured` return the current configuration. */
export type AgentCheckoutParts = Pick<
  AgentCouponingParts,
  'reader' | 'writer' | 'clock' | 'fetcher' | 'isConfigured'
> & {
  /** `unknownMs`: how long an agent waits until it asks the upstream again for unknown codes. */
  settings: () => { freshness: FreshnessPolicy; unknownMs: number };
};

/** An agent quotes coupons from its mirror of the upstream's list, and stores redemptions itself. */
export function agentCheckout(parts: AgentCheckoutParts): Checkout {
  const { reader, writer, clock } = parts;
  const spelled = (code: string): Promise<string> => knownCode(code, (each) => reader.mirror.byCode(each));
  return {
    async quote(accountId, sent, signal): Promise<Result<QuoteResponse>> {
      const looked = await lookUp(parts, await spelled(sent.code), signal);
      if (!looked.ok) return looked;
      const cart = { ...sent, code: await spelled(sent.code) };
      const quote = quoteMirroredCoupon(reader, { accountId, cart, now: clock.now() });
      return done({ quote, provenance: looked.value });
    },
    async redeem(command, writeOptions, signal): Promise<Result<RedemptionResponse>> {
      const looked = await lookUp(parts, await spelled(command.cart.code), signal);
      if (!looked.ok) return looked;
      const cart = { ...command.cart, code: await spelled(command.cart.code) };
      const redeemed = await writer.write('redeemMirroredCoupon', { ...command, cart }, writeOptions);
      return redeemed.ok ? done({ ...redeemed.value, provenance: looked.value }) : redeemed;
    },
  };
}

/**
 * Reads the upstream's list if the mirror does not have the code, or if the coupon is older than its grace. Unknown
 * codes cause at most one read in `unknownMs`, whatever their number.
 */
async function lookUp(
  parts: AgentCheckoutParts,
  code: string,
  signal: AbortSignal,
): Promise<Result<Provenance>> {
  const { reader, clock, fetcher, isConfigured, settings } = parts;
  if (!isConfigured()) return couponsNotConfigured();
  const known = reader.mirror.byCode(code);
  if (known !== null && !isExpired(parts, known.confirmedAt)) {
    const { confirmedAt } = known;
    refreshOlder(parts, confirmedAt);
    return done(worth(parts, { confirmedAt, pending: confirmedAt === null ? 1 : 0, cache: 'hit' }));
  }
  const before = mirroredSince(reader);
  if (before !== null && clock.now() - before <= settings().unknownMs) {
    const { confirmedAt } = known ?? { confirmedAt: before };
    return done(worth(parts, { confirmedAt, pending: 0, cache: 'hit' }));
  }
  const found = await fetcher.list(signal);
  const since = mirroredSince(reader);
  if (since === null) return couponsUnreachable(found);
  const { confirmedAt } = reader.mirror.byCode(code) ?? { confirmedAt: since };
  return done(worth(parts, { confirmedAt, pending: 0, cache: since === before ? 'hit' : 'miss' }));
}

function worth({ clock, settings }: AgentCheckoutParts, source: Source): Provenance {
  return provenanceOf(source, settings().freshness, clock.now());
}
