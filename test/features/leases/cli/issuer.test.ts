import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { claimsIn, issuedKey, RunningIssuer } from '../support/issuer-harness.ts';
import { latchkey, type Outcome } from '../../../support/process/command-line.ts';

let issuer: RunningIssuer;
beforeAll(async () => {
  issuer = await new RunningIssuer('authority').start({ terms: { seats: 2 } });
});
afterAll(() => issuer[Symbol.asyncDispose]());

const run = (...words: string[]): Promise<Outcome> => latchkey('--state-dir', issuer.stateDir, ...words);

test('the commands of an issuer list devices, show one, free its seat and block it', async () => {
  const [laptop, tower] = [await issuer.device('laptop'), await issuer.device('tower')];
  const { lease } = await laptop.ask('take');
  await tower.ask('take');
  const id = lease?.sub ?? '';
  const listed = await run('activation', 'list');
  expect(listed.code).toBe(0);
  for (const name of ['laptop', 'tower', issuedKey, 'active']) expect(listed.out).toContain(name);
  expect((await run('license', 'show', issuedKey)).out).toMatch(/seats +2 of 2 taken/);
  expect((await run('activation', 'show', id)).out).toMatch(/device +laptop/);
  const ended = await run('activation', 'end', id);
  expect([ended.code, ended.out]).toEqual([0, expect.stringMatching(/state +ended[^]*seat +none/)]);
  expect((await run('license', 'show', issuedKey)).out).toMatch(/seats +1 of 2 taken/);
  expect((await run('activation', 'block', id)).out).toMatch(/state +blocked/);
  const blocked = JSON.parse(
    (await run('--json', 'activation', 'list', '--state', 'blocked')).out,
  ) as unknown;
  expect(blocked).toMatchObject({ activations: [{ activation_id: id, state: 'blocked', has_seat: false }] });
  const status = (await run('status')).out;
  expect(status).toMatch(/leases +signed as https:\/\/licenses\.example\.com, key statement 1/);
  expect(status).toMatch(/devices +2 activations, 1 with a seat/);
  expect((await run('activation', 'list', '--copied')).out).not.toContain('laptop');
  expect(await run('activation', 'show', 'nothing')).toMatchObject({
    code: 1,
    err: expect.stringContaining('activation_not_found'),
  });
});

test('lease sign answers a request file until the end of a day, and refuses other files', async () => {
  const device = await issuer.device('offline');
  const file = join(issuer.stateDir, 'machine.req');
  writeFileSync(file, `${await device.sign('take')}\n`);
  const day = new Date(issuer.time.read().wall + 10 * 86_400_000).toISOString().slice(0, 10);
  const signed = await run('lease', 'sign', file, '--until', day);
  expect(signed.code).toBe(0);
  const { lease, keys } = JSON.parse(signed.out) as { lease: string; keys: string };
  expect(claimsIn(lease)).toMatchObject({ exp: Date.parse(`${day}T23:59:59Z`) / 1000 });
  expect(claimsIn(keys)).toMatchObject({ iss: issuer.issuer });
  expect((await run('audit', 'list')).out).toContain('lease.sign');
  const repeated = await run('lease', 'sign', file, '--until', day);
  expect([repeated.code, JSON.parse(repeated.out)]).toMatchObject([0, { keys }]);
  expect(await run('lease', 'sign', file, '--until', '2999-01-01')).toMatchObject({
    code: 1,
    err: expect.stringContaining(`The request already has a lease until ${day}T23:59:59+00:00`),
  });
  writeFileSync(file, 'nothing');
  expect(await run('lease', 'sign', file)).toMatchObject({
    code: 1,
    err: expect.stringContaining('lease_request_invalid'),
  });
  expect(await run('lease', 'sign', join(issuer.stateDir, 'away'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('cannot read'),
  });
  writeFileSync(file, await (await issuer.device()).sign('take'));
  expect(await run('lease', 'sign', file, '--until', 'tomorrow')).toMatchObject({
    code: 1,
    err: expect.stringContaining('must be a date'),
  });
});
