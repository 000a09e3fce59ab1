import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { isFailure } from '../../../src/domain/problem/problem.ts';
import type { WriterContext } from '../../../src/service/ports.ts';
import { runUseCase } from '../../../src/service/run.ts';
import { localWriter } from '../../../src/store/sqlite/commit.ts';
import { at, createTestStore } from '../../support/builders/store-builders.ts';

const context: WriterContext = {
  now: at,
  monotonic: at,
  random: { bytes: (count) => new Uint8Array(count).fill(7), uuid: () => 'uuid', fraction: () => 0.5 },
  digest: (secret) => createHash('sha256').update(secret).digest('hex'),
  recordsHistory: true,
};

test('a use case runs in place, and its answer is stored under its idempotency key', async () => {
  await using store = createTestStore();
  const writer = localWriter(store.writing, { run: runUseCase, isFailure, context: () => context });
  const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };
  const added = await writer.write('addAccount', { name: 'Default', apiKey: null }, { idempotency });
  expect(added.ok).toBe(true);
  expect(store.reading.reader.accounts.count({})).toBe(1);
  expect(await writer.write('addAccount', { name: 'Default', apiKey: null }, { idempotency })).toEqual(added);
  expect(store.reading.reader.accounts.count({})).toBe(1);
});
