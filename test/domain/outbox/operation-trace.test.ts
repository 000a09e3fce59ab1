import { expect, test } from 'vitest';
import type { OperationProgress } from '../../../src/domain/outbox/operation.ts';
import {
  operationTransitions,
  type OperationEvent,
} from '../../../src/domain/outbox/operation-transitions.ts';
import { tracePointOf } from '../../../src/domain/outbox/operation-trace.ts';

const held: OperationProgress = { state: 'uncertain', doubtful: true, baseUses: null, held: true };

test('everything that can happen to an operation is told, but for an attempt that was refused for now, which is told with its reason', () => {
  const types = Object.keys(operationTransitions.pending) as OperationEvent['type'][];
  const silent = types.filter((type) => tracePointOf({ type, at: 0 } as OperationEvent, held) === null);
  expect(silent).toEqual(['not_applied']);
});

test('what is refused is told as dead, or as held where it may have been applied', () => {
  const refused: OperationEvent = { type: 'refused', cause: 'refused' };
  expect(tracePointOf(refused, { state: 'dead', cause: 'refused' })).toBe('dead');
  expect(tracePointOf(refused, held)).toBe('held');
});
