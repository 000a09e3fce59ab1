import { isOpenTo, type Decision } from './decision.ts';
import { countAfter } from '../license.ts';
import { isDoubtful, isHeld, type Operation, type OperationKind } from './operation.ts';

/** What the upstream last said of the license key; `at` in epoch ms. */
export type ShownLicense = { uses: number; enabled: boolean; at: number };

/** `isHeldUp`: it waits for what no retry ends. */
type Subject = { operation: Operation; shown: ShownLicense | null; isHeldUp: boolean };
type Effect = (subject: Subject) => string;

/** What a decision would do, for exactly this operation; null: it cannot be made. */
export function effectOf(decision: Decision, subject: Subject): string | null {
  const { operation } = subject;
  return isOpenTo(operation, decision) ? effects[decision][operation.kind](subject) : null;
}

const sameKey = 'Here the key is again as the store last said';

const retry: Record<OperationKind, Effect> = {
  usage: (subject) =>
    sentAgain(subject, {
      clean: 'and counts once if the store takes it now.',
      doubt: `If it was applied before, the use counts twice${twice(subject)}. It ends inferred.`,
    }),
  decrease: (subject) =>
    sentAgain(subject, {
      clean: 'and takes one use back if the store takes it now.',
      doubt: 'If it was applied before, one use too many is taken back. It ends inferred.',
    }),
  disable: (subject) =>
    sentAgain(subject, {
      clean: 'and disables the key if the store takes it now.',
      doubt: 'That does no harm: the key is disabled however often it arrives.',
    }),
  enable: (subject) =>
    sentAgain(subject, {
      clean: 'and enables the key, also when it was disabled in the store since.',
      doubt: 'If the key was disabled in the store since, that is undone.',
    }),
  create_coupon: ({ operation, isHeldUp }) =>
    operation.progress.state === 'pending'
      ? triedAgain(isHeldUp)
      : 'Its code is looked for in the store first, and it is created only where that is free: never twice.',
};

function triedAgain(isHeldUp: boolean): string {
  const when = isHeldUp ? 'as soon as what it waits for is over' : 'at once';
  return `It is tried again ${when}, without waiting out a pause between attempts.`;
}

function sentAgain(
  { operation, isHeldUp }: Subject,
  { clean, doubt }: { clean: string; doubt: string },
): string {
  if (operation.progress.state === 'pending') return triedAgain(isHeldUp);
  return isDoubtful(operation) ? `It is sent again. ${doubt}` : `It is sent again, ${clean}`;
}

/** The two counts between which it lies, where the one that it was sent on is known. */
function twice({ operation: { progress, kind } }: Subject): string {
  const base = 'baseUses' in progress ? progress.baseUses : null;
  if (base === null || kind !== 'usage') return '';
  const once = countAfter(base, kind);
  return `: ${countAfter(once, kind)} instead of ${once}`;
}

const drop: Record<OperationKind, Effect> = {
  usage: (subject) =>
    givenUp(subject, {
      clean: 'the store never counts this use.',
      doubt: 'If it was applied, the store goes on counting the use; if not, it never counts.',
    }),
  decrease: (subject) =>
    givenUp(subject, {
      clean: 'the store goes on counting the use that it takes back.',
      doubt: 'If it was applied, the use stays taken back; if not, the store goes on counting it.',
    }),
  disable: (subject) =>
    givenUp(subject, {
      clean: `the key is not disabled by it. ${sameKey}${stateOf(subject)}.`,
      doubt: `If it was applied, the key is disabled in the store. ${sameKey}${stateOf(subject)}.`,
    }),
  enable: (subject) =>
    givenUp(subject, {
      clean: 'the key stays as the store has it.',
      doubt: 'If it was applied and nobody has disabled the key since, it stays enabled in the store.',
    }),
  create_coupon: (subject) =>
    givenUp(subject, {
      clean: 'the coupon is not created, and is gone from here.',
      doubt:
        'It is gone from here. If it was created, the coupon stays in the store, and is listed from there.',
    }),
};

function givenUp({ operation }: Subject, { clean, doubt }: { clean: string; doubt: string }): string {
  return isDoubtful(operation) ? `It is not sent again. ${doubt}` : `It is not sent: ${clean}`;
}

function stateOf({ shown }: Subject): string {
  if (shown === null) return '';
  return shown.enabled ? ', enabled' : ', disabled';
}

const confirm: Record<OperationKind, Effect> = {
  usage: countConfirmed,
  decrease: countConfirmed,
  disable: (subject) => `${nothingSent} ${sameKey}${stateOf(subject)}.`,
  enable: () => `${nothingSent} The key stays as the store has it.`,
  create_coupon: () =>
    `${nothingSent} It is the coupon that the store lists under its code, also for orders that redeemed it here.`,
};

const nothingSent = 'It counts as delivered, and nothing is sent.';

/** A held one has been read already: the count that was shown contains it, if it was applied. */
function countConfirmed({ operation, shown }: Subject): string {
  const { kind } = operation;
  if (isHeld(operation)) return `${nothingSent} The count stays as the store showed it.`;
  if (shown === null || (kind !== 'usage' && kind !== 'decrease')) return nothingSent;
  return `${nothingSent} The count that is known of the store moves along, from ${shown.uses} to ${countAfter(shown.uses, kind)}.`;
}

const effects: Record<Decision, Record<OperationKind, Effect>> = { retry, drop, confirm };
