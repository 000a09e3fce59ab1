import { type Finding, ok, type Hint } from '../../domain/finding.ts';
import { adviceOn, findingsOf, fullAdvice } from '../../wire/findings.ts';
import type { StatusObject } from '../../wire/status.ts';

/** `reasons`: those of `/readyz`. */
export function examineReadiness(
  { isReady, reasons }: { isReady: boolean; reasons: readonly string[] },
  hint: Hint,
): Finding {
  if (isReady) return ok('the daemon is ready');
  const what = `the daemon is not ready: ${reasons.join(', ')}`;
  return { level: 'fail', what, advice: adviceFor(reasons, hint) };
}

function adviceFor(reasons: readonly string[], hint: Hint): string | null {
  if (reasons.includes('store_damaged')) return adviceOn('storage_damaged', hint);
  return reasons.some((reason) => reason.startsWith('storage_'))
    ? 'see the findings on the database below, and the log of the daemon'
    : 'wait, or check its log';
}

/** What the status of a running daemon says, without what the doctor examines itself. */
export function examineStatus(status: StatusObject, hint: Hint, maxPending: number): Finding[] {
  return findingsOf(status, maxPending)
    .filter(({ isExamined }) => isExamined !== true)
    .map(({ level, what, ...remedy }) => {
      const advice = remedy.command === 'doctor' ? 'see the findings on it below' : fullAdvice(remedy, hint);
      return { level, what, advice };
    });
}
