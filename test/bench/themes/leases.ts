import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../bench.ts';
import { compare } from '../compare.ts';
import { Devices, issuer, openWaits, sendAll } from '../load/devices.ts';
import { residentMemory, start } from '../process.ts';
import { startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, type Row, type Theme } from '../theme.ts';
import { setUp } from '../../../src/lease/signing-files.ts';

const goals = { renewals: { atLeast: 0.3 }, waiting: { atMost: 100 } } as const;
const bareSigner = join(import.meta.dirname, '../reference/bare-signer.ts');

export const leasesTheme: Theme = {
  name: 'leases',
  about: 'renewals of leases to a bare server that signs, and the memory of 10,000 waiting devices',
  async *measure(bench) {
    const count = bench.count(10_000);
    const authority = await startIssuer(bench, count);
    const bare = bench.keep(await start([process.execPath, bareSigner], () => true));
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
    yield await memoryOfWaits(bench, authority, devices);
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
  const started = await startLatchkey(bench, { state, settings: { listen } });
  const ready = JSON.parse(started.line) as { public: string };
  return { ...started, public: Number(new URL(ready.public).port) };
}

async function memoryOfWaits(bench: Bench, authority: Issuer, devices: Devices): Promise<Row> {
  const requests = devices.sign('renew', { headers: 'prefer: wait=30\r\n' });
  const what = `memory of ${requests.length.toLocaleString('en')} devices that wait`;
  await sleep(bench.effort.seconds * 1000);
  const idle = residentMemory(authority.pid);
  if (idle === null) return notMeasured(what, 'MiB', goals.waiting, 'there is no /proc');
  const waits = await openWaits(authority.public, requests);
  await sleep(bench.effort.seconds * 2000);
  const waiting = residentMemory(authority.pid);
  for (const wait of waits) wait.close();
  const more = (waiting?.mib ?? Number.NaN) - idle.mib;
  return plainRow(what, 'MiB', [more], { goal: goals.waiting, note: `idle ${Math.round(idle.mib)} MiB` });
}
