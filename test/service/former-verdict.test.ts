import { expect, it } from 'vitest';
import type { LicenseResponse } from '../../src/service/services.ts';
import type { Result } from '../../src/domain/problem/problem.ts';
import { AgentProducts, storedProducts } from '../../src/service/agent/products.ts';
import {
  createManualHarness,
  key,
  never,
  productKey,
  type ManualHarness,
} from '../support/harness/manual-harness.ts';
import { licensesOf, tenant, usage } from '../support/harness/agent-licenses.ts';
import { day, lost, minute, no, second, valueOf } from '../support/harness/service-harness.ts';

/** Starts the agent with this upstream. */
async function bind(harness: ManualHarness, baseUrl: string): Promise<void> {
  const configured = [{ productKey, secretDigest: 'digest' }];
  const products = new AgentProducts(storedProducts(harness.store.settings), configured).list;
  await harness.passes(second);
  await harness.restart();
  valueOf(await harness.writer.write('bindUpstream', { baseUrl, products }));
}

/** An agent at the new address, with a key that was read as enabled or disabled at the former address. */
async function createFormer(changes: { enabled?: boolean } = {}): Promise<ManualHarness> {
  const harness = await createManualHarness();
  await bind(harness, 'https://store.example');
  await harness.read(harness.says(5, changes));
  await bind(harness, 'https://other.example');
  return harness;
}

function verify(harness: ManualHarness): Promise<Result<LicenseResponse>> {
  return licensesOf(harness).verify(tenant, key, never);
}

async function isEnabled(answer: Promise<Result<LicenseResponse>>): Promise<boolean> {
  return valueOf(await answer).license.enabled;
}

it('a key is read once from the new address of the upstream before it is answered', async () => {
  await using harness = await createFormer();
  const answer = verify(harness);
  await (await harness.request()).answer(harness.says(1, { enabled: false }));
  expect(valueOf(await answer)).toMatchObject({ license: { enabled: false, uses: 1 } });
  expect(await isEnabled(verify(harness))).toBe(false);
  expect(await harness.requested()).toEqual([]);
});

it('a key is answered as at the former address while no upstream answers at the new address', async () => {
  await using harness = await createFormer();
  const answer = verify(harness);
  await (await harness.request()).answer(lost);
  expect(await isEnabled(answer)).toBe(true);
  await harness.passes(15 * day);
  const late = verify(harness);
  await (await harness.request()).answer(lost);
  expect(await late).toMatchObject({ ok: false, problem: { code: 'verdict_expired' } });
});

it('a key that was revoked at the former address stays revoked until the upstream at the new address enables it', async () => {
  await using harness = await createFormer({ enabled: false });
  const away = verify(harness);
  await (await harness.request()).answer(lost);
  expect(await isEnabled(away)).toBe(false);
  await harness.passes(minute);
  const unknown = verify(harness);
  await (await harness.request()).answer(no('missing'));
  expect(await isEnabled(unknown)).toBe(false);
  await harness.passes(2 * minute);
  const known = verify(harness);
  await (await harness.request()).answer(harness.says(5));
  expect(await isEnabled(known)).toBe(true);
});

it('a 404 at the former address is no evidence that the upstream at the new address does not know a key', async () => {
  await using harness = await createManualHarness();
  await bind(harness, 'https://store.example');
  await harness.read(harness.says(5));
  await harness.read(no('missing'));
  expect(harness.snapshot.missingSince).not.toBeNull();
  await harness.passes(2 * day);
  await bind(harness, 'https://other.example');
  await harness.read(no('missing'));
  expect(harness.snapshot.gone).toBe(false);
});

it('a key that was enabled at the former address is read from the new address before it is enabled again', async () => {
  await using harness = await createFormer();
  const answer = licensesOf(harness).change({ ...usage, trigger: 'enable' }, never);
  const read = await harness.request();
  expect(read.kind).toBe('verify');
  await read.answer(lost);
  await harness.time.settle();
  // The upstream at the new address does not answer, so the change is recorded.
  expect(harness.store.operations.list('pending', { limit: 10, offset: 0 }).map(({ kind }) => kind)).toEqual([
    'enable',
  ]);
  await harness.passes(11 * second);
  expect((await answer).ok).toBe(true);
});
