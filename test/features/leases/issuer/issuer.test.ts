import { expect, test } from 'vitest';
import { done } from '../../../../src/domain/problem/problem.ts';
import { signDocument } from '../../../../src/features/leases/documents.ts';
import { Issuer } from '../../../../src/features/leases/issuer/issuer.ts';
import { WaitingRequests } from '../../../../src/features/leases/issuer/waiting.ts';
import { authorityLeaseService } from '../../../../src/features/leases/service/services.ts';
import { serializeRequest } from '../../../../src/features/leases/wire/lease.ts';
import { buildRequest } from '../support/activation-builders.ts';
import { keyPair, leaseIssuer } from '../support/lease-builders.ts';
import { IssuingAuthority } from '../support/lease-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const refreshMs = 10_000;

test('a request that asks to wait is answered at once if it is not a renewal, and when its lease is due', async () => {
  await using authority = await new IssuingAuthority().open({ refreshMs });
  const time = new VirtualTime();
  const began = authority.now;
  const now = (): number => began + time.monotonic;
  const [device, key] = await Promise.all([keyPair(), keyPair()]);
  const { keyNotAfter: notAfter } = authority;
  const signer = { issuer: leaseIssuer, version: 1, notAfter, key, statement: 'keys' };
  const answered: string[] = [];
  const waiting = new WaitingRequests({
    clock: time.clock(),
    changes: { subscribe: () => () => undefined },
  });
  const issuer = new Issuer({
    keys: { current: () => Promise.resolve(done(signer)) },
    leases: authorityLeaseService(authority.store, authority.writer, { now }),
    waiting,
    now,
    isClockSuspect: () => false,
    limits: { perAddress: { take: () => 0 }, perLicense: { take: () => 0 } },
    count: (result) => answered.push(result),
  });
  const sign = async (act: 'take' | 'renew', seq: number): Promise<string> =>
    await signDocument(
      'request',
      serializeRequest(buildRequest({ act, seq }), leaseIssuer, 'A'.repeat(22)),
      device,
    );
  const ask = async (document: string, waitMs: number): Promise<unknown> =>
    await issuer.answer(document, { waitMs, signal: new AbortController().signal, clientAddress: '::1' });

  await ask(await sign('take', 1), 30_000);
  const renewal = await sign('renew', 2);
  for (const waitMs of [3_000, 30_000]) {
    const asked = ask(renewal, waitMs);
    for (let step = 0; step < 100_000 && answered.length < (waitMs > 3_000 ? 3 : 2); step += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      // Reading and signing take real time, in which no time passes here.
      if (waiting.count > 0) await time.advance(500);
    }
    await asked;
  }
  expect(answered).toEqual(['lease', 'unchanged', 'lease']);
});
