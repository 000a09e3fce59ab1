/**
 * The load generator for the cases that wrk does not support: Unix sockets, a fixed rate, each key once, and a load
 * that is shorter than a second. `node generator.ts JOB` prints its `LoadResult` as JSON.
 */
import { randomUUID } from 'node:crypto';
import { licenseKeyOf } from '../sample.ts';
import { Connection } from './connection.ts';
import { unique, type Job, type LoadRequest, type LoadResult } from './job.ts';

const thisRun = randomUUID();
const job = JSON.parse(process.argv[2] ?? '') as Job;
process.stdout.write(JSON.stringify(await run()));

async function run(): Promise<LoadResult> {
  const requests = Array.from({ length: job.keys.count }, (_, index) =>
    textOf(job.request, licenseKeyOf(job.keys.first + index)),
  );
  const connections = await Promise.all(
    Array.from({ length: job.connections }, () => Connection.open(job.target)),
  );
  const load =
    job.rate === null ? closedLoop(connections, requests) : openLoop(connections, requests, job.rate);
  const { latencies, failures, seconds } = await load;
  for (const connection of connections) connection.close();
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  return { requests: sorted.length, failures, seconds, p50: at(0.5), p99: at(0.99), max: at(1) };
}

type Loaded = { latencies: number[]; failures: number; seconds: number };

/** Each connection sends the next request as soon as it has the response. */
function closedLoop(connections: readonly Connection[], requests: readonly string[]): Promise<Loaded> {
  const { promise, resolve } = Promise.withResolvers<Loaded>();
  const latencies: number[] = [];
  let failures = 0;
  let sent = 0;
  let busy = 0;
  const start = performance.now();
  const last = job.ending === 'each key once' ? requests.length : Infinity;
  const until = job.ending === 'each key once' ? Infinity : start + job.ending.seconds * 1000;
  for (const connection of connections) {
    let sentAt = 0;
    const next = (now: number): void => {
      if (now >= until || sent >= last) {
        if (busy === 0) resolve({ latencies, failures, seconds: (now - start) / 1000 });
        return;
      }
      busy += 1;
      sentAt = now;
      connection.send(textOfRequest(requests, sent++));
    };
    connection.onResponse = (status) => {
      const now = performance.now();
      busy -= 1;
      latencies.push(now - sentAt);
      if (status !== 200) failures += 1;
      next(now);
    };
    connection.onBroken = () => {
      throw new Error('the server closed a connection');
    };
    next(performance.now());
  }
  return promise;
}

/**
 * Sends each request when it is due, or later if every connection is busy. Latency counts from the due time, so a stall
 * counts for every request that was due in the meantime. It does not sleep between requests: a timer would be up to
 * 1 ms late.
 */
function openLoop(
  connections: readonly Connection[],
  requests: readonly string[],
  rate: number,
): Promise<Loaded> {
  const { promise, resolve } = Promise.withResolvers<Loaded>();
  if (job.ending === 'each key once') throw new Error('a fixed rate needs seconds');
  const latencies: number[] = [];
  const total = Math.ceil(job.ending.seconds * rate);
  const idle = [...connections];
  let failures = 0;
  let sent = 0;
  const start = performance.now();
  const dueAt = (number: number): number => start + (number * 1000) / rate;
  const sendAllDue = (): void => {
    while (sent < total && dueAt(sent) <= performance.now()) {
      // Uses the connections in turn: an unused connection would be closed.
      const connection = idle.shift();
      if (connection === undefined) break;
      const due = dueAt(sent);
      connection.onResponse = (status) => {
        latencies.push(performance.now() - due);
        if (status !== 200) failures += 1;
        idle.push(connection);
      };
      connection.send(textOfRequest(requests, sent++));
    }
    if (latencies.length === total)
      resolve({ latencies, failures, seconds: (performance.now() - start) / 1000 });
    else setImmediate(sendAllDue);
  };
  for (const connection of connections) {
    connection.onBroken = () => {
      throw new Error('the server closed a connection');
    };
  }
  sendAllDue();
  return promise;
}

function textOfRequest(requests: readonly string[], number: number): string {
  return (requests[number % requests.length] ?? '').replace(unique, `${thisRun}-${number}`);
}

function textOf({ method, path, headers, body }: LoadRequest, licenseKey: string): string {
  const content = body.replace('{key}', licenseKey);
  const lines = [
    `${method} ${path.replace('{key}', licenseKey)} HTTP/1.1`,
    'host: localhost',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(method === 'PUT' ? [`content-length: ${content.length}`] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${content}`;
}
