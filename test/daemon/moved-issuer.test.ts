import { expect, test } from 'vitest';
import { readAdminToken } from '../../src/daemon/sandbox/server.ts';
import { RunningIssuer, TestDevice } from '../support/harness/issuer-harness.ts';

/** Moves the activations of one issuer to another by export and import. `edit`: changes the file between the two. */
async function moveActivations(
  from: RunningIssuer,
  to: RunningIssuer,
  edit: (csv: string) => string = (csv) => csv,
): Promise<void> {
  const exported = await from.tryAdmin('GET', '/activations/export');
  const imported = await fetch(`${to.daemon.addresses.tcp}/admin/v1/activations/import`, {
    method: 'POST',
    headers: { authorization: `Bearer ${readAdminToken(to.stateDir)}`, 'content-type': 'text/csv' },
    body: edit(String(exported.body)),
  });
  expect(await imported.json()).toMatchObject({ data: { imported: 1, rejected: [] } });
}

test('A device goes on at another issuer after its activation was moved there: it keeps its seat, and each use counts once.', async () => {
  await using before = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  await using after = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  const device = await before.device();
  const first = await device.ask('take', { uses: { recorded: 5, returned: 0 } });
  await moveActivations(before, after);

  const moved = new TestDevice(after, device.key, device.name);
  moved.seq = device.seq;
  const renewed = await moved.ask('renew', { uses: { recorded: 6, returned: 0 } });
  expect(renewed.lease).toMatchObject({ sub: first.lease?.sub, seats: { limit: 1, taken: 1 } });
  expect(renewed.lease?.rev).toBeGreaterThan(first.lease?.rev ?? Infinity);
  // The license of the second issuer began with no uses, and the first issuer has counted five of the six.
  expect(await after.uses()).toBe(1);
});

/** A file of a release that exported no digests: without the last column. */
function withoutDigest(csv: string): string {
  return csv.replace(/,digest(?=\r\n)/, '').replaceAll(/,[0-9a-f]{64}(?=\r\n)/g, '');
}

test('A request whose answer was lost before the move, and that is repeated after it, is answered there, and its uses count once.', async () => {
  await using before = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  await using after = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  const device = await before.device();
  const first = await device.ask('take', { uses: { recorded: 3, returned: 0 } });
  const request = await device.sign('renew', { uses: { recorded: 5, returned: 1 } });
  const lost = await before.post(request);
  await moveActivations(before, after);

  const repeated = await after.post(request);
  expect(repeated.lease).toMatchObject({ sub: first.lease?.sub, seats: { limit: 1, taken: 1 } });
  expect(repeated.lease?.rev).toBeGreaterThan(lost.lease?.rev ?? Infinity);
  expect((await after.post(request)).lease).toEqual(repeated.lease);
  // The first issuer has counted them.
  expect(await after.uses()).toBe(0);
  const moved = new TestDevice(after, device.key, device.name);
  moved.seq = device.seq + 1;
  const renewed = await moved.ask('renew', { uses: { recorded: 6, returned: 1 } });
  expect(renewed.lease).toMatchObject({ sub: first.lease?.sub });
  expect(await after.uses()).toBe(1);
});

test('The end of a seat whose answer was lost before the move is answered after it with the same notice.', async () => {
  await using before = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  await using after = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  const device = await before.device();
  await device.ask('take');
  const request = await device.sign('end', { uses: { recorded: 2, returned: 0 } });
  await before.post(request);
  await moveActivations(before, after);

  expect((await after.post(request)).notice).toMatchObject({ state: 'ended' });
  expect(await after.uses()).toBe(0);
  const other = await after.device('desktop');
  expect((await other.ask('take')).lease).toMatchObject({ seats: { limit: 1, taken: 1 } });
});

test('After a move by an export without digests, a repeated request changes nothing and gets a challenge to go on with.', async () => {
  await using before = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  await using after = await new RunningIssuer('authority').start({ terms: { seats: 1 } });
  const device = await before.device();
  const uses = { recorded: 5, returned: 1 };
  const request = await device.sign('take', { uses });
  const { lease } = await before.post(request);
  await moveActivations(before, after, withoutDigest);

  const repeated = await after.post(request);
  expect([repeated.status, repeated.problem['code']]).toEqual([409, 'out_of_sequence']);
  expect(repeated.sequence).toMatchObject({ last: 1, uses, restored: true });
  expect(await after.uses()).toBe(0);
  const moved = new TestDevice(after, device.key, device.name);
  moved.seq = Number(repeated.sequence?.last);
  const challenge = String(repeated.sequence?.challenge);
  const renewed = await moved.ask('renew', { challenge, uses });
  expect(renewed.lease).toMatchObject({ sub: lease?.sub, seats: { limit: 1, taken: 1 } });
  expect(await after.uses()).toBe(0);
});
