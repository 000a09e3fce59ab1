import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { connect } from '../../../src/client/index.ts';
import { startSandbox } from '../../../src/testing.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const run = promisify(execFile);
const year = 365 * 24 * 60 * 60 * 1000;

it('a sandbox stops and starts its agent and its store in the order of the calls', async () => {
  await using sandbox = await startSandbox({ licenses: [{ licenseKey: 'KEY' }] });
  const { agent, store } = sandbox;
  await Promise.all([
    agent.stop(),
    agent.start(),
    agent.start(),
    store.goAway(),
    store.comeBack(),
    store.comeBack(),
  ]);
  const program = connect({ url: agent.url, productSecret: sandbox.productSecret });
  expect((await program.use('KEY', { waitMs: 5_000 })).pending).toBe(0);
  await Promise.all([store.comeBack(), store.goAway()]);
  await expect(store.license('KEY')).rejects.toThrow('fetch failed');
});

it('the store of a sandbox finds no license for an empty key', async () => {
  await using sandbox = await startSandbox({ licenses: [{ licenseKey: 'KEY' }] });
  expect(await sandbox.store.license(' ')).toBeNull();
  await expect(sandbox.store.refund('')).rejects.toThrow('no such license key');
  expect(await sandbox.store.license('KEY')).toMatchObject({ enabled: true });
});

it('the clocks of a sandbox can be advanced by years, but not beyond the range of dates', async () => {
  await using sandbox = await startSandbox({ licenses: [{ licenseKey: 'KEY' }] });
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY, 10_000 * year]) {
    expect(() => {
      sandbox.advance(ms);
    }).toThrow(RangeError);
  }
  sandbox.advance(50 * year);
  const program = connect({ url: sandbox.agent.url, productSecret: sandbox.productSecret });
  expect(await program.verify('KEY')).toMatchObject({ verdict: 'valid', freshness: 'fresh' });
});

it('a holder of a sandbox hears of a disabled license, an ended seat and a blocked device', async () => {
  await using sandbox = await startSandbox({ licenses: [{ licenseKey: 'KEY' }], withHolder: true });
  const { holder, issuer, store } = sandbox;
  const leases = { issuer: issuer.issuer, product: sandbox.productKey, roots: issuer.roots };
  const program = connect({ url: holder.url, leases });
  const reason = async (): Promise<unknown> => {
    const said = await program.lease('KEY');
    return said.verdict === 'refused' ? said.reason : said.verdict;
  };
  expect(await reason()).toBe('valid');
  await store.disable('KEY');
  await expect.poll(reason, { timeout: 10_000 }).toBe('disabled');
  await store.enable('KEY');
  await expect.poll(reason, { timeout: 10_000 }).toBe('valid');
  const [activation] = await issuer.activations('KEY');
  expect(activation).toMatchObject({
    deviceName: 'device-1',
    state: 'active',
    hasSeat: true,
    isCopied: false,
  });
  await issuer.endActivation(activation?.activationId ?? '');
  await expect.poll(async () => (await issuer.activations('KEY'))[0]?.state).toBe('ended');
  await issuer.blockActivation(activation?.activationId ?? '');
  await expect.poll(reason, { timeout: 10_000 }).toBe('blocked');
});

it('a holder of a sandbox counts uses while the network is cut, and sends them when it is back', async () => {
  await using sandbox = await startSandbox({ licenses: [{ licenseKey: 'KEY' }], withHolder: true });
  const { holder, store } = sandbox;
  const program = connect({ url: holder.url, productSecret: 'none' });
  expect(await program.verify('KEY')).toMatchObject({ verdict: 'valid' });
  store.cutHolders(true);
  for (let use = 0; use < 3; use += 1) await program.use('KEY');
  expect(await program.verify('KEY')).toMatchObject({ verdict: 'valid', license: { uses: 3 } });
  expect(await store.license('KEY')).toMatchObject({ uses: 0 });
  store.cutHolders(false);
  sandbox.advance(3_600_000);
  await expect.poll(() => store.license('KEY'), { timeout: 10_000 }).toMatchObject({ uses: 3 });
});

it('a sandbox without a holder says how to get one', async () => {
  await using sandbox = await startSandbox({ licenses: [] });
  expect(() => sandbox.holder).toThrow('start it with withHolder');
  expect(() => sandbox.issuer).toThrow('start it with withHolder');
});

it('a process that used six sandboxes exits without a warning', async () => {
  const root = join(import.meta.dirname, '../../..');
  const url = (path: string): string => JSON.stringify(pathToFileURL(join(root, path)).href);
  const program = `
    const { startSandbox } = await import(${url('src/testing.ts')});
    const { connect } = await import(${url('src/client/index.ts')});
    const useSandbox = async () => {
      await using sandbox = await startSandbox();
      sandbox.store.setLatency(3_600_000);
      const { agent, productSecret } = sandbox;
      await connect({ url: agent.url, productSecret }).verify('NEW', { deadlineMs: 100 });
    };
    await Promise.all(Array.from({ length: 6 }, useSandbox));`;
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'program.mjs');
  writeFileSync(file, program);
  const { stderr } = await run(process.execPath, [file], { timeout: 250_000 });
  expect(stderr).toBe('');
});
