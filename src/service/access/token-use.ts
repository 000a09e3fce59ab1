import type { Token } from '../../domain/access/token.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../tables.ts';

const hourMs = 3_600_000;

/** A token, and the hour in which it was used, in epoch ms. */
export type TokenUse = { tokenId: string; at: number };

/** Gathers which tokens are used, to the hour, so that no request has to wait for a write. */
export class TokenUses {
  readonly #hours = new Map<string, number>();

  /** Notes a use at an instant (epoch ms), unless one of the same hour is stored. */
  note({ tokenId, lastUsedAt, createdAt }: Token, now: number): void {
    // A use in the hour of the creation is not shown as earlier than the creation.
    const hour = Math.max(now - (now % hourMs), createdAt);
    if (lastUsedAt === null || lastUsedAt < hour) this.#hours.set(tokenId, hour);
  }

  /** What was noted since the last call. */
  take(): readonly TokenUse[] {
    const uses = [...this.#hours].map(([tokenId, at]) => ({ tokenId, at }));
    this.#hours.clear();
    return uses;
  }
}

/** Stores when tokens were last used. */
export async function keepTokenUses(
  { tokens }: AuthorityTransaction,
  { uses }: { uses: readonly TokenUse[] },
): Promise<Result<null>> {
  for (const { tokenId, at } of uses) await tokens.setLastUsed(tokenId, at);
  return done(null);
}
