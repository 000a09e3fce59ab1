/**
 * The uses that an agent would send, by a bare loop over undici: `node undici-loop.ts OPTIONS` prints how many it
 * sent a second.
 */
import { Pool } from 'undici';
import { licenseKeyOf } from '../license-keys.ts';
import { use } from '../sample.ts';

export type LoopOptions = { readonly port: number; readonly uses: number; readonly concurrency: number };

const { port, uses, concurrency } = JSON.parse(process.argv[2] ?? '') as LoopOptions;
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: concurrency });

// What it measures is not its own start.
await sendAll(Math.min(uses, 2000));
const start = performance.now();
await sendAll(uses);
process.stdout.write(String((uses * 1000) / (performance.now() - start)));
await pool.close();

async function sendAll(count: number): Promise<void> {
  let next = 0;
  const sendOneByOne = async (): Promise<void> => {
    while (next < count) {
      const body = use.body.replace('{key}', licenseKeyOf(next++));
      const answer = await pool.request({ method: 'PUT', path: use.path, headers: use.headers, body });
      if (answer.statusCode !== 200) throw new Error(`a use was answered ${answer.statusCode}`);
      await answer.body.json();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, sendOneByOne));
}
