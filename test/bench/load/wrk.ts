import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { licenseKeyOf } from '../sample.ts';
import { output } from '../process.ts';
import { unique, type Job, type LoadResult } from './job.ts';

/** Whether wrk is installed. */
export const hasWrk: boolean = spawnSync('wrk', ['-v'], { stdio: 'ignore' }).error === undefined;

/** This many requests are generated before the load starts. */
const mostKeys = 1_000;

/** Makes a load with wrk, which needs the least processor time. Null: wrk is not installed or cannot make this load. */
export async function runWrk(job: Job): Promise<LoadResult | null> {
  const { target, ending, keys, connections, rate } = job;
  const isPossible = hasWrk && 'port' in target && ending !== 'each key once' && rate === null;
  if (!isPossible || !Number.isInteger(ending.seconds) || keys.count > mostKeys) return null;
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

function scriptOf(job: Job): string {
  const { keys, request } = job;
  const isOne = keys.count === 1 && !Object.values(request.headers).some((value) => value.includes(unique));
  return `
${isOne ? oneRequest(job) : requestsInTurn(job)}
done = function(summary, latency)
  local failed = summary.errors
  io.write(string.format(
    '{"requests":%d,"failures":%d,"seconds":%f,"p50":%f,"p99":%f,"max":%f}',
    summary.requests, failed.status + failed.connect + failed.read + failed.write + failed.timeout,
    summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000))
end
`;
}

/** One request that wrk repeats, which needs the least processor time. */
function oneRequest({ request: { method, path, headers, body }, keys }: Job): string {
  const filled = (text: string): string => quote(text.replace('{key}', licenseKeyOf(keys.first)));
  return `
wrk.method = ${quote(method)}
wrk.path = ${filled(path)}
wrk.headers = ${tableOf(headers)}
${body === '' ? '' : `wrk.body = ${filled(body)}`}
`;
}

/** One request per license key, generated before the load starts. */
function requestsInTurn({ request: { method, path, headers, body }, keys }: Job): string {
  const listed = Array.from({ length: keys.count }, (_, index) => quote(licenseKeyOf(keys.first + index)));
  return `
local requests = {}
init = function()
  for _, key in ipairs({ ${listed.join(', ')} }) do
    local path = (${quote(path)}):gsub('{key}', key)
    local body = (${quote(body)}):gsub('{key}', key)
    table.insert(requests, wrk.format(${quote(method)}, path, ${tableOf(headers)}, ${body === '' ? 'nil' : 'body'}))
  end
end
local count = 0
request = function()
  count = count + 1
  local text = requests[count % #requests + 1]:gsub('${unique}', '${randomUUID()}-' .. count)
  return text
end
`;
}

function tableOf(headers: Job['request']['headers']): string {
  const fields = Object.entries(headers).map(([name, value]) => `[${quote(name)}] = ${quote(value)}`);
  return `{ ${fields.join(', ')} }`;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
