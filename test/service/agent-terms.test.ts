import { describe, expect, it } from 'vitest';
import type { LicenseEnd } from '../../src/domain/terms.ts';
import type { CacheableResponse, LicenseService } from '../../src/service/services.ts';
import { createManualHarness, key, never, type ManualHarness } from '../support/harness/manual-harness.ts';
import { day, hour, lost, no, refusalOf, valueOf } from '../support/harness/service-harness.ts';
import { StorageError } from '../../src/service/ports.ts';
import { licensesOf, tenant, usage } from '../support/harness/agent-licenses.ts';

function serviceOf(harness: ManualHarness): LicenseService {
  return licensesOf(harness, { refreshMs: 30 * day });
}

function says(harness: ManualHarness, terms: LicenseEnd, uses = 5) {
  const answer = harness.says(uses);
  return { ...answer, value: { ...answer.value, ...terms } };
}

/** An agent that knows a license with these terms. */
async function agentThatKnows(termsAt: (now: number) => LicenseEnd): Promise<ManualHarness> {
  const harness = await createManualHarness();
  await harness.read(says(harness, termsAt(harness.now)));
  return harness;
}

async function verify(harness: ManualHarness, answer: 'none' | LicenseEnd) {
  const verified = serviceOf(harness).verify(tenant, key, never);
  for (const request of (await harness.requested()).length > 0 ? [await harness.request()] : [])
    await request.answer(answer === 'none' ? lost : says(harness, answer));
  const { license } = valueOf(await verified);
  return { enabled: license.enabled, status: license.status };
}

const active = { enabled: true, status: 'active' };
const inGrace = { enabled: true, status: 'grace' };
const expired = { enabled: false, status: 'expired' };

describe('at an agent, a license that ends', () => {
  it('is answered from what is known until its last instant, and no cached response is kept for longer', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    const end = harness.now + hour;
    const cached = serviceOf(harness).verifyNow?.(tenant, key) as CacheableResponse;
    expect(cached.cacheable.until).toBe(end);
    await harness.passes(hour);
    expect(serviceOf(harness).verifyNow?.(tenant, key)).toMatchObject({ license: active });
    await harness.passes(1);
    expect(serviceOf(harness).verifyNow?.(tenant, key)).toBeNull();
  });

  it('is asked for at the upstream after its end, and ends as the upstream says', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    const expiresAt = harness.now + hour;
    await harness.passes(hour + 2);
    expect(await verify(harness, { expiresAt })).toEqual(expired);
    // The upstream's word is younger than the end: it is not asked again.
    expect(serviceOf(harness).verifyNow?.(tenant, key)).toMatchObject({ license: expired });
  });

  it('goes on after a renewal that the upstream tells', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    await harness.passes(hour + 2);
    expect(await verify(harness, { expiresAt: harness.now + day })).toEqual(active);
  });

  it('counts as valid for freshness.expiry_grace while the upstream does not answer, and then as ended', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    await harness.passes(hour + 1);
    expect(await verify(harness, 'none')).toEqual(inGrace);
    await harness.passes(day - 1);
    expect(await verify(harness, 'none')).toEqual(inGrace);
    await harness.passes(1);
    expect(await verify(harness, 'none')).toEqual(expired);
    // Also when the snapshot is older than freshness.grace: nothing is known that speaks for it.
    await harness.passes(30 * day);
    expect(await verify(harness, 'none')).toEqual(expired);
  });

  it('counts as valid for the grace of its product if that is longer', async () => {
    await using harness = await agentThatKnows((now) => ({
      expiresAt: now + hour,
      graceUntil: now + hour + 3 * day,
    }));
    await harness.passes(hour + 3 * day);
    expect(await verify(harness, 'none')).toEqual(inGrace);
    await harness.passes(1);
    expect(await verify(harness, 'none')).toEqual(expired);
  });

  it('is asked for after its grace if the upstream confirmed it in the grace: it may have been renewed since', async () => {
    await using harness = await createManualHarness();
    const ends = { expiresAt: harness.now + hour, graceUntil: harness.now + hour + 7 * day };
    await harness.passes(hour + 5 * day);
    await harness.read(says(harness, ends));
    await harness.passes(2 * day);
    expect(serviceOf(harness).verifyNow?.(tenant, key)).toMatchObject({ license: inGrace });
    await harness.passes(1);
    expect(serviceOf(harness).verifyNow?.(tenant, key)).toBeNull();
    expect(await verify(harness, 'none')).toEqual(inGrace);
    await harness.passes(day);
    expect(await verify(harness, 'none')).toEqual(expired);
    expect(await verify(harness, { expiresAt: harness.now + day })).toEqual(active);
  });

  it('tells programs no later end for the time without the agent', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    const { provenance } = valueOf(await serviceOf(harness).verify(tenant, key, never));
    expect(provenance).toMatchObject({ graceUntil: harness.now + hour + day });
  });

  it('is answered as ended when it is first asked for, also if the disk is too full to keep it', async () => {
    await using harness = await createManualHarness();
    harness.fault = new StorageError('full', null);
    const verified = serviceOf(harness).verify(tenant, 'NEW', never);
    const { answer } = await harness.request();
    const said = harness.saysOf('NEW');
    await answer({ ...said, value: { ...said.value, expiresAt: harness.now - hour } });
    expect(valueOf(await verified).license).toMatchObject(expired);
  });

  it('is answered to a repeated use as to the first one, although it has ended since', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };
    const use = { tenant, licenseKey: key, trigger: 'usage', actor: null, idempotency, waitMs: 0 } as const;
    const first = valueOf(await serviceOf(harness).change(use, never)).license;
    expect(first).toMatchObject({ ...active, uses: 6 });
    await harness.passes(3 * day);
    expect(valueOf(await serviceOf(harness).change(use, never)).license).toEqual(first);
  });

  it('loses its end when the upstream says that it never ends', async () => {
    await using harness = await agentThatKnows((now) => ({ expiresAt: now + hour }));
    await harness.read(says(harness, {}));
    await harness.passes(2 * hour);
    expect(await verify(harness, 'none')).toEqual({ enabled: true });
  });
});

describe('at an agent, a use beyond the limit of a license', () => {
  const use = async (harness: ManualHarness, outcome: Parameters<typeof harness.says>[0] | 'none' | null) => {
    const changed = serviceOf(harness).change(usage, never);
    if (outcome !== null) {
      const { answer } = await harness.request();
      await answer(outcome === 'none' ? no('unreachable') : says(harness, { usesLimit: outcome }));
    }
    return await changed;
  };

  it('is refused and counts nothing, if the snapshot is fresh', async () => {
    await using harness = await agentThatKnows(() => ({ usesLimit: 6 }));
    expect(valueOf(await use(harness, null)).license.uses).toBe(6);
    expect(refusalOf(await use(harness, null))).toBe('uses_limit_reached');
    expect(harness.local).toMatchObject({ uses: 6, pending: 1 });
  });

  it('is asked for at the upstream if the snapshot is older: the limit may have been raised', async () => {
    await using harness = await agentThatKnows(() => ({ usesLimit: 5 }));
    await harness.passes(2 * day);
    expect(valueOf(await use(harness, 6)).license.uses).toBe(6);
  });

  it('is refused by what is known, if the upstream does not answer', async () => {
    await using harness = await agentThatKnows(() => ({ usesLimit: 5 }));
    await harness.passes(20 * day);
    expect(refusalOf(await use(harness, 'none'))).toBe('uses_limit_reached');
  });
});
