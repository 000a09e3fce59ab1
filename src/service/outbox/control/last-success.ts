import { done, type Result } from '../../../domain/problem/problem.ts';
import type { Reader, Transaction } from '../../tables.ts';

const setting = 'upstream_last_success_at';

/** When the upstream last did what was asked, in epoch ms, also before a restart; null: never. */
export function lastSuccessAt({ settings }: Reader): number | null {
  const at = Number(settings.get(setting) ?? 0);
  return at > 0 ? at : null;
}

/** Remembers across restarts when the upstream last did what was asked. */
export function keepLastSuccess({ settings }: Transaction, { at }: { at: number }): Result<null> {
  settings.set(setting, String(at));
  return done(null);
}

/** Another upstream has done nothing yet. */
export function forgetLastSuccess({ settings }: Transaction): void {
  settings.set(setting, '0');
}
