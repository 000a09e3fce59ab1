import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { Devices, issuer, openWaits, sendAll } from '../load/devices.ts';
import { residentMemory, start } from '../process.ts';
import { serviceEnvironment, startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, plainSource, type Theme } from '../theme.ts';
import { setUp } from '../../../src/features/leases/issuer/signing-files.ts';

const goals = { renewals: { atLeast: 0.3 }, waiting: { atMost: 100 } } as const;
const bareSigner = join(import.meta.dirname, '../reference/bare-signer.ts');

export const leasesTheme: Theme = {
  name: 'leases',
  about:
    'renewals of leases, compared with a bare server that signs, and the memory of 10,000 waiting devices',
  async *measure(bench) {
    const count = bench.count(10_000);
    const authority = await startIssuer(bench, count);
    const environment = { ...bench.environment, ...serviceEnvironment() };
    const bare = bench.keep(await start([process.execPath, bareSigner], () => true, environment));
    const { port } = JSON.parse(bare.line) as { port: number };
    const devices = new Devices(count);
    await sendAll(authority, authority.public, devices.sign('take'));
    const sample = new Devices(count).sign('renew');
    const { issuing, signing } = await bench.alternate({
      issuing: () => sendAll(authority, authority.public, devices.sign('renew')),
      signing: () => sendAll(bare, port, sample),
    });
    const what = 'renewal of a lease, 64 connections, authority, to one signature each';
    yield compare(what, { authority: issuing }, { signing }, { by: 'perSecond', goal: goals.renewals });
    const requests = devices.sign('renew', { headers: 'prefer: wait=30\r\n' });
    const waitingDevices = `memory of ${count.toLocaleString('en')} waiting devices`;
    const ofAuthority = await memoryOfWaits(bench, { pid: authority.pid, port: authority.public }, requests);
    const ofBare = await memoryOfWaits(bench, { pid: bare.pid, port }, requests);
    if (ofAuthority === null || ofBare === null) {
      yield notMeasured(waitingDevices, 'MiB', goals.waiting, 'there is no /proc');
      return;
    }
    const from = { authority: plainSource([ofAuthority], 'MiB'), 'node:http': plainSource([ofBare], 'MiB') };
    yield plainRow(waitingDevices, 'MiB', [ofAuthority], { goal: goals.waiting, from });
  },
};

type Issuer = Latchkey & { readonly public: number };

/** An authority with a public listener, whose signing keys are set up. */
async function startIssuer(bench: Bench, licenses: number): Promise<Issuer> {
  const state = await copyOfStore(bench, { role: 'authority', licenses });
  const ownership = { owner: null, restrict: () => undefined };
  const rootsDirectory = join(state, 'roots');
  await setUp({ directory: join(state, 'signing'), rootsDirectory, issuer }, Date.now(), ownership);
  const listen = {
    tcp: '127.0.0.1:0',
    socket: bench.socketPath(),
    public: { address: '127.0.0.1:0', proxies: ['127.0.0.1'] },
  };
  const started = await startLatchkey(bench, { state, settings: { listen }, asService: true });
  const ready = JSON.parse(started.line) as { public: string };
  return { ...started, public: Number(new URL(ready.public).port) };
}

/** How much the resident memory of a server grows while requests wait, in MiB. Null: this system has no /proc. */
async function memoryOfWaits(
  bench: Bench,
  { pid, port }: { pid: number; port: number },
  requests: readonly string[],
): Promise<number | null> {
  await sleep(bench.effort.seconds * 2000);
  const idle = residentMemory(pid);
  const waits = await openWaits(port, requests);
  await sleep(bench.effort.seconds * 2000);
  const waiting = residentMemory(pid);
  for (const wait of waits) wait.close();
  return idle === null || waiting === null ? null : waiting.mib - idle.mib;
}
