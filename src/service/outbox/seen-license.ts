import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import type { License } from '../../domain/license.ts';
import { mayHaveBeenApplied } from '../../domain/outbox/operation.ts';
import type { Applied } from '../../domain/outbox/outcome.ts';
import { currentRun } from '../lifecycle/current-run.ts';
import type { Context } from '../ports.ts';
import type { Reader } from '../tables.ts';
import { epochNumber } from './upstream-epoch.ts';
import { isOlderThanKnown } from './upstream-state.ts';

/*
 * What a Latchkey says about a license, in answers to changes and reads, and about followed keys. Answers may arrive in another
 * order than they were made: the revision of a license orders them. Revisions compare within one history of the upstream.
 * (src/sync/README.md, Between Latchkeys)
 */

const second = 1_000;

/** The license in an answer, with its revision. */
export function licenseIn({ value, revision }: Pick<Applied<License>, 'value' | 'revision'>): License {
  return revision === undefined ? value : { ...value, revision };
}

/** Whether an answer is older than what is known, within one history of the upstream. */
export function isStale(reader: Reader, { epoch, license }: LicenseSnapshot, said: License): boolean {
  const [known, revision] = [license.revision, said.revision];
  return epoch === epochNumber(reader) && known !== undefined && revision !== undefined && revision < known;
}

/**
 * The snapshot after an answer of a Latchkey that is not stale. If the answer is from another history, older than what is known,
 * and says otherwise, only a read later can decide: then `readFirst` is set.
 */
export function seenAfter(
  reader: Reader,
  before: LicenseSnapshot,
  { license: value, confirmedAt }: { license: License; confirmedAt: number },
  { monotonic }: Pick<Context, 'monotonic'>,
): LicenseSnapshot {
  const epoch = epochNumber(reader);
  const isOtherwise = before.epoch !== epoch && value.enabled !== before.license.enabled;
  // Dates are in whole seconds. What may be older must not undo a revocation.
  const surelySince = value.enabled ? confirmedAt - second : confirmedAt;
  if (isOtherwise && isOlderThanKnown(reader, before, surelySince))
    return { ...before, readFirst: true, refreshAt: monotonic };
  const { licenseKey, uses } = before.license;
  return {
    ...before,
    license: {
      // Members that only a response to a read has are kept.
      ...before.license,
      ...value,
      licenseKey,
      uses: mayCountTwice(reader, licenseKey) ? uses : value.uses,
    },
    epoch,
    confirmedAt: Math.max(before.confirmedAt, confirmedAt),
    run: currentRun(reader),
    missingSince: null,
    gone: false,
    readFirst: false,
  };
}

/** The count in the answer may contain a change that is shown as pending. Its own answer brings the count. */
function mayCountTwice({ operations }: Reader, licenseKey: string): boolean {
  const head = operations.head(licenseKey, 'counter');
  return head !== null && (head.progress.state === 'in_flight' || mayHaveBeenApplied(head));
}
