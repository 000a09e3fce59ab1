import { array, assert, boolean, constantFrom, integer, nat, property, tuple } from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { License } from '../../src/domain/license.ts';
import {
  addLocalChange,
  localState,
  localStateFromBacklog,
  type Backlog,
} from '../../src/domain/agent/license-snapshot.ts';
import type {
  LicenseOperationKind,
  Operation,
  OperationProgress,
} from '../../src/domain/outbox/operation.ts';
import { effectOnUses, usesAfter } from '../../src/domain/outbox/uses.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';

const progress = constantFrom<OperationProgress>(
  { state: 'pending', maybeApplied: false, unanswered: false },
  { state: 'pending', maybeApplied: true, unanswered: false },
  { state: 'in_flight', maybeApplied: false, unanswered: false, baseUses: 3, sentAt: 1 },
  { state: 'uncertain', maybeApplied: false, baseUses: 3, held: false },
  { state: 'uncertain', maybeApplied: false, baseUses: 3, held: true },
  { state: 'delivered', finishedAt: 1 },
  { state: 'inferred', finishedAt: 1 },
  { state: 'conflicted' },
  { state: 'dead', cause: 'refused' },
  { state: 'cancelled', finishedAt: 1 },
  { state: 'dropped', finishedAt: 1 },
);
const kind = constantFrom<LicenseOperationKind>('usage', 'decrease', 'disable', 'enable');
const operations = array(
  tuple(kind, progress, integer({ min: 1, max: 5 })).map(([one, stands, drawn]) =>
    buildOperation({ kind: one, amount: one === 'usage' ? drawn : 1, subject: 'KEY', progress: stands }),
  ),
  { maxLength: 15 },
);

function license(uses: number, enabled: boolean): License {
  return { licenseKey: 'KEY', productKey: 'p', buyerEmail: 'a@example.com', uses, enabled, createdAt: 1 };
}

/** The responses of an agent, as a simple model (src/sync/README.md, Operation states). */
function model(uses: number, enabled: boolean, all: readonly Operation[]): ReturnType<typeof localState> {
  const unfinished = all.filter(({ progress: { state } }) =>
    ['pending', 'in_flight', 'uncertain'].includes(state),
  );
  let shown = uses < 0 ? 0 : uses;
  for (const { kind: what, amount, progress: stands } of unfinished) {
    if ('held' in stands && stands.held) continue;
    if (what === 'usage') shown += amount;
    if (what === 'decrease' && shown > 0) shown -= 1;
  }
  const asked = all.filter(({ progress: { state } }) => ['dead', 'conflicted'].includes(state));
  const isDisabledHere = [...unfinished, ...asked].some(({ kind: what }) => what === 'disable');
  return { uses: shown, enabled: enabled && !isDisabledHere, pending: unfinished.length };
}

/** The sums per sort, as the store adds them up. */
function backlogOf(all: readonly Operation[]): Backlog {
  const alone = all.map((each) => ({ ...each, seen: localState(license(1, true), [each]) }));
  const count = (isOne: (each: (typeof alone)[number]) => boolean): number => alone.filter(isOne).length;
  return {
    usages: alone.reduce((sum, { seen }) => sum + Math.max(0, seen.uses - 1), 0),
    decreases: count(({ seen }) => seen.uses < 1),
    disables: count(({ seen }) => !seen.enabled),
    unfinished: count(({ seen }) => seen.pending > 0),
  };
}

const uses = integer({ min: -3, max: 10 });
/** A use of so many; 0: one taken back. */
const counterChange = nat(4);
const turns = array(counterChange, { maxLength: 30 });
const waiting = (amount: number): Operation =>
  amount === 0
    ? buildOperation({ kind: 'decrease', subject: 'KEY' })
    : buildOperation({ kind: 'usage', amount, subject: 'KEY' });

describe('what callers see of a key', () => {
  it('what callers see of a key is the contract, applied step by step', () => {
    assert(
      property(uses, boolean(), operations, (count, enabled, all) => {
        expect(localState(license(count, enabled), all)).toEqual(model(count, enabled, all));
      }),
    );
  });

  it('what callers see of a key can be updated with one change at a time', () => {
    assert(
      property(uses, boolean(), operations, operations, (count, enabled, before, behind) => {
        const present = localState(license(count, enabled), before);
        const kept = behind.reduce(addLocalChange, present);
        expect(kept).toEqual(localState(license(count, enabled), [...before, ...behind]));
      }),
    );
  });

  it('what callers see of a key follows from the counts of operations, or else from each operation', () => {
    assert(
      property(uses, boolean(), operations, (count, enabled, all) => {
        const told = localStateFromBacklog(license(count, enabled), backlogOf(all), null);
        expect([null, localState(license(count, enabled), all)]).toContainEqual(told);
      }),
    );
  });

  it('what callers see of a key follows from the counts of operations after the first response, even if others changed the count', () => {
    assert(
      property(
        tuple(uses, uses),
        counterChange,
        turns,
        operations,
        ([count, answered], first, rest, others) => {
          const behind = [...rest.map(waiting), ...others];
          const queue = [waiting(first), ...behind];
          const seen = { license: license(count, true), local: localState(license(count, true), queue) };
          const before = { ...seen, first: effectOnUses(waiting(first)) };
          const told = localStateFromBacklog(license(answered, true), backlogOf(behind), before);
          expect([null, localState(license(answered, true), behind)]).toContainEqual(told);
        },
      ),
    );
  });

  it('what callers see of a key needs no read of each operation while no other writer lowers the count', () => {
    assert(
      property(uses, turns, (count, changes) => {
        const queue = changes.map(waiting);
        let seen = { license: license(count, true), local: localState(license(count, true), queue) };
        for (const [index, first] of queue.entries()) {
          const behind = queue.slice(index + 1);
          const now = license(usesAfter(Math.max(seen.license.uses, 0), first), true);
          const before = { ...seen, first: effectOnUses(first) };
          const local = localStateFromBacklog(now, backlogOf(behind), before);
          expect(local).toEqual(localState(now, behind));
          seen = { license: now, local: local ?? seen.local };
        }
      }),
    );
  });

  it('a key is never enabled where the upstream last said disabled', () => {
    assert(
      property(uses, operations, (count, all) => {
        expect(localState(license(count, false), all).enabled).toBe(false);
      }),
    );
  });
});
