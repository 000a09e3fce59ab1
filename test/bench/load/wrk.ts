import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { licenseKeyOf } from '../license-keys.ts';
import { output } from '../process.ts';
import type { Job, LoadResult } from './job.ts';

/** Whether wrk is installed. */
export const hasWrk: boolean = spawnSync('wrk', ['-v'], { stdio: 'ignore' }).error === undefined;

/** The same load by wrk, which costs the machine least; null where it is not installed or cannot make such a load. */
export async function runWrk(job: Job): Promise<LoadResult | null> {
  const { target, ending, keys, connections, rate } = job;
  const isPossible = hasWrk && 'port' in target && ending !== 'each key once' && rate === null;
  if (!isPossible || !Number.isInteger(ending.seconds) || keys.count !== 1) return null;
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-wrk-'));
  try {
    const script = join(directory, 'request.lua');
    writeFileSync(script, scriptOf(job));
    const options = ['-t', '1', '-c', String(connections), '-d', `${ending.seconds}s`, '-s', script];
    const text = await output(['wrk', ...options, `http://127.0.0.1:${target.port}`]);
    return JSON.parse(text.slice(text.lastIndexOf('{'))) as LoadResult;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function scriptOf({ request, keys }: Job): string {
  const filled = (text: string): string => JSON.stringify(text.replace('{key}', licenseKeyOf(keys.first)));
  const headers = Object.entries(request.headers).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  );
  return `
wrk.method = ${JSON.stringify(request.method)}
wrk.path = ${filled(request.path)}
${headers.join('\n')}
${request.body === '' ? '' : `wrk.body = ${filled(request.body)}`}
done = function(summary, latency)
  local failed = summary.errors
  io.write(string.format(
    '{"requests":%d,"failures":%d,"seconds":%f,"p50":%f,"p99":%f,"max":%f}',
    summary.requests, failed.status + failed.connect + failed.read + failed.write + failed.timeout,
    summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
`;
}
