import { expect, it } from 'vitest';
import { agentLicensing } from '../../src/service/agent/license.ts';
import type { LicenseAnswer, Licensing } from '../../src/service/answers.ts';
import type { Result } from '../../src/domain/problem/problem.ts';
import { AgentProducts, storedProducts } from '../../src/service/agent/products.ts';
import { givenManual, key, never, productKey, type ManualStage } from '../support/stage/manual-stage.ts';
import { silent } from '../support/silent-log.ts';
import { day, hour, lost, minute, no, second, valueOf } from '../support/stage/service-stage.ts';

const reach = { accountId: 'default', productKey };

/** Starts the agent with this upstream. */
async function bind(stage: ManualStage, baseUrl: string): Promise<void> {
  const configured = [{ productKey, secretDigest: 'digest' }];
  const products = new AgentProducts(storedProducts(stage.store.settings), configured).list;
  await stage.passes(second);
  await stage.restart();
  valueOf(await stage.writer.write('bindUpstream', { baseUrl, products }));
}

/** A key that the upstream at the former address has enabled or disabled, under the next address. */
async function givenFormer(changes: { enabled?: boolean } = {}): Promise<ManualStage> {
  const stage = await givenManual();
  await bind(stage, 'https://store.example');
  await stage.read(stage.says(5, changes));
  await bind(stage, 'https://other.example');
  return stage;
}

function licensing({ store: reader, writer, clock, sync, freshness, maxPending }: ManualStage): Licensing {
  return agentLicensing({
    reader,
    writer,
    clock,
    log: silent,
    pull: sync.reads,
    deliveries: sync.push,
    productIds: () => [productKey],
    settings: () => ({ freshness, maxPending, refreshMs: 6 * hour, timeoutMs: 10 * second }),
  });
}

function verify(stage: ManualStage): Promise<Result<LicenseAnswer>> {
  return licensing(stage).verify(reach, key, never);
}

async function isEnabled(answer: Promise<Result<LicenseAnswer>>): Promise<boolean> {
  return valueOf(await answer).license.enabled;
}

it('a key is asked for at the new address of the upstream before it is answered, once', async () => {
  await using stage = await givenFormer();
  expect(licensing(stage).verifyNow?.(reach, key)).toBeNull();
  const answer = verify(stage);
  await (await stage.request()).answer(stage.says(1, { enabled: false }));
  expect(valueOf(await answer)).toMatchObject({ license: { enabled: false, uses: 1 } });
  expect(await isEnabled(verify(stage))).toBe(false);
  expect(licensing(stage).verifyNow?.(reach, key)).toMatchObject({ license: { uses: 1 } });
  expect(await stage.requested()).toEqual([]);
});

it('a key is answered as the upstream at the former address said while none answers at the new one', async () => {
  await using stage = await givenFormer();
  const answer = verify(stage);
  await (await stage.request()).answer(lost);
  expect(await isEnabled(answer)).toBe(true);
  await stage.passes(15 * day);
  const late = verify(stage);
  await (await stage.request()).answer(lost);
  expect(await late).toMatchObject({ ok: false, problem: { code: 'verdict_expired' } });
});

it('a key that was revoked at the former address stays so until the upstream at the new one enables it', async () => {
  await using stage = await givenFormer({ enabled: false });
  const away = verify(stage);
  await (await stage.request()).answer(lost);
  expect(await isEnabled(away)).toBe(false);
  await stage.passes(minute);
  const unknown = verify(stage);
  await (await stage.request()).answer(no('missing'));
  expect(await isEnabled(unknown)).toBe(false);
  await stage.passes(2 * minute);
  const known = verify(stage);
  await (await stage.request()).answer(stage.says(5));
  expect(await isEnabled(known)).toBe(true);
});

it('a 404 at the former address is no evidence that the upstream at the new one does not know a key', async () => {
  await using stage = await givenManual();
  await bind(stage, 'https://store.example');
  await stage.read(stage.says(5));
  await stage.read(no('missing'));
  expect(stage.observation.missingSince).not.toBeNull();
  await stage.passes(2 * day);
  await bind(stage, 'https://other.example');
  await stage.read(no('missing'));
  expect(stage.observation.gone).toBe(false);
});

it('a key that was enabled at the former address is asked for at the new one before it is enabled again', async () => {
  await using stage = await givenFormer();
  const request = {
    reach,
    licenseKey: key,
    trigger: 'enable',
    actor: 'product:press',
    idempotency: null,
  } as const;
  const answer = licensing(stage).change({ ...request, waitMs: 0 }, never);
  const read = await stage.request();
  expect(read.kind).toBe('verify');
  await read.answer(lost);
  await stage.time.settle();
  // Nothing is known of it at the new address, so that the change is recorded.
  expect(stage.store.operations.list('pending', { limit: 10, offset: 0 }).map(({ kind }) => kind)).toEqual([
    'enable',
  ]);
  await stage.passes(11 * second);
  expect((await answer).ok).toBe(true);
});
