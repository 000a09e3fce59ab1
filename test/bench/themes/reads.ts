import { request, type IncomingMessage } from 'node:http';
import { writeCursor } from '../../../src/wire/page.ts';
import type { Bench } from '../bench.ts';
import { exceed } from '../compare.ts';
import { alternate } from '../figure.ts';
import type { Measured } from '../load/load.ts';
import { oneKey, productKey, verify } from '../sample.ts';
import { startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore, lastSaleAt } from '../stores.ts';
import type { Theme } from '../theme.ts';

const goal = { atMost: 20 };

/** The reads of many purchases, by name. */
function readsOf(count: number): Readonly<Record<string, string>> {
  const deep = new URLSearchParams({
    limit: '100',
    cursor: writeCursor('purchases', [lastSaleAt - count, '~']),
  });
  const dates = new URLSearchParams({ since: '2020-01-01T00:00:00Z', until: '2026-01-01T00:00:00Z' });
  return {
    'an export': '/admin/v1/purchases/export',
    'a deep page': `/admin/v1/purchases?${deep.toString()}`,
    'the greatest offset': '/admin/v1/purchases?limit=100&offset=10000',
    'a list by product': `/admin/v1/purchases?product_key=${productKey}&limit=100`,
    'counts by date': `/admin/v1/purchases?${dates.toString()}&refunded=false`,
  };
}

export const readsTheme: Theme = {
  name: 'reads',
  about: 'the longest pause of verifies during long reads of 1,000,000 purchases (two minutes)',
  isExtra: true,
  async *measure(bench) {
    const licenses = bench.count(1_000_000);
    const contents = { role: 'authority', licenses, areSold: true } as const;
    const asked = await startLatchkey(bench, { state: await copyOfStore(bench, contents) });
    // Another process that reads the same uses the processors as well, but cannot block these verifies.
    const other = await startLatchkey(bench, { state: await copyOfStore(bench, contents) });
    for (const [name, path] of Object.entries(readsOf(licenses))) {
      const { without, beside } = await alternate(bench.effort.fewRounds, {
        without: () => verifyBeside(bench, asked, { reader: other, path }),
        beside: () => verifyBeside(bench, asked, { reader: asked, path }),
      });
      const what = `${name}, ${licenses.toLocaleString('en')} purchases: added to the slowest verify`;
      yield exceed(what, { beside }, { 'beside another process': without }, { by: 'max', goal });
    }
  },
};

/** Verifies at a low rate during a read, so that a pause shows as latency. */
async function verifyBeside(
  bench: Bench,
  { tcp, pid }: Latchkey,
  { reader, path }: { reader: Latchkey; path: string },
): Promise<Measured> {
  const ended = new AbortController();
  // Starts the reading threads first, as on a server that runs for some time.
  await readOnce(reader, '/admin/v1/purchases?limit=1', ended.signal);
  const reading = readRepeatedly(reader, path, ended.signal);
  const ending = { seconds: bench.effort.seconds * 2 };
  const job = { target: tcp, request: verify, keys: oneKey, connections: 8, rate: 1000, ending } as const;
  try {
    return await bench.load({ pid }, job);
  } finally {
    ended.abort();
    await reading;
  }
}

async function readRepeatedly(reader: Latchkey, path: string, signal: AbortSignal): Promise<void> {
  try {
    while (!signal.aborted) await readOnce(reader, path, signal);
  } catch (error) {
    // An export takes longer than the measurement.
    if (!signal.aborted) throw error;
  }
}

async function readOnce({ tcp, admin }: Latchkey, path: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request({ host: '127.0.0.1', port: tcp.port, path, headers: admin, signal }, resolve)
    .on('error', reject)
    .end();
  const answer = await promise;
  if (answer.statusCode !== 200) throw new Error(`${path} was answered with ${answer.statusCode}`);
  for await (const _ of answer) signal.throwIfAborted();
}
