import { parseDuration } from '../config/value/unit.ts';
import { textOption, UsageError } from './command.ts';

/** The option of commands that roll a credential. */
export const keepOldOption: ReturnType<typeof textOption> = textOption(
  'How long the old one stays valid, such as 24h; default: it stops at once. One rolled earlier stops in any case',
);

/** Reads the option, as whole seconds. */
export function readKeepOld(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const durationMs = parseDuration(given) ?? 0;
  if (durationMs >= 1000) return Math.round(durationMs / 1000);
  throw new UsageError('--keep-old must be a duration such as 24h or 7d, up to 30d');
}
