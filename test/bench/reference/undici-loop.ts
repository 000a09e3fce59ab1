/**
 * Sends the uses of an agent by a bare loop over undici: `node undici-loop.ts OPTIONS` prints the uses per second.
 * With a file it commits each use before it sends the use, and the response when it arrives.
 */
import { Pool } from 'undici';
import { licenseKeyOf, use } from '../sample.ts';
import { LeastWriter } from './least-writer.ts';

export type LoopOptions = {
  readonly port: number;
  readonly uses: number;
  readonly concurrency: number;
  /** The number of uses that are sent before the measurement, as a warm-up. */
  readonly warmUp: number;
  /** A new database file. Null: nothing is stored. */
  readonly file: string | null;
};

const { port, uses, concurrency, warmUp, file } = JSON.parse(process.argv[2] ?? '') as LoopOptions;
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: concurrency });
const writer = file === null ? null : new LeastWriter({ file, licenses: uses, hasOutbox: true });

if (writer !== null) await queueAll(writer, warmUp + uses);
await sendAll(warmUp);
const start = performance.now();
await sendAll(uses);
process.stdout.write(String((uses * 1000) / (performance.now() - start)));
await pool.close();
await writer?.stop();

async function queueAll(to: LeastWriter, count: number): Promise<void> {
  const queued = Array.from({ length: count }, async (_, number) => {
    await to.write({ name: 'use', licenseKey: licenseKeyOf(number % uses) });
  });
  await Promise.all(queued);
}

async function sendAll(count: number): Promise<void> {
  let next = 0;
  const sendOneByOne = async (): Promise<void> => {
    while (next < count) {
      const licenseKey = licenseKeyOf(next++ % uses);
      if (writer === null) await send(licenseKey);
      else await sendDurably(writer, licenseKey);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, sendOneByOne));
}

async function sendDurably(to: LeastWriter, licenseKey: string): Promise<void> {
  const seq = await to.write({ name: 'send', licenseKey });
  const counted = await send(licenseKey);
  await to.write({ name: 'answer', seq, uses: counted, licenseKey });
}

/** Gives the count of the response. */
async function send(licenseKey: string): Promise<number> {
  const body = use.body.replace('{key}', licenseKey);
  const answer = await pool.request({ method: 'PUT', path: use.path, headers: use.headers, body });
  if (answer.statusCode !== 200) throw new Error(`a use was answered ${answer.statusCode}`);
  const { data } = (await answer.body.json()) as { data: { uses: number } };
  return data.uses;
}
