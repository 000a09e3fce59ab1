import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../harness/agent-harness.ts';
import { freePort } from './free-port.ts';
import { readExample } from '../reference/guides.ts';
import { hasProgram } from '../process/installed.ts';

/** Whether HAProxy is installed on this machine. */
export const hasBalancer: boolean = hasProgram('haproxy', '-v');

/** HAProxy with the configuration of its example, in front of two nodes. */
export interface Balancer extends AsyncDisposable {
  /** The port of its TLS listener. */
  readonly port: number;
  /** The number of nodes that get requests. */
  up(): Promise<number>;
}

/**
 * Starts HAProxy. `tls` is a directory that `latchkey certificate make` has written; `nodes` are host:port, and so are
 * their public listeners.
 */
export async function startBalancer(
  tls: string,
  nodes: readonly [string, string],
  publicListeners: readonly [string, string] = nodes,
): Promise<Balancer> {
  const port = await freePort();
  const [chain, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(join(tls, name), 'utf8'));
  const pem = join(tls, 'haproxy.pem');
  writeFileSync(pem, `${chain}${key}`, { mode: 0o600 });
  const socket = join(tls, 'haproxy.sock');
  const file = join(tls, 'haproxy.cfg');
  const written = readExample('proxy/haproxy.cfg')
    .replace('global\n', `global\n    stats socket ${socket}\n`)
    .replace('bind :443', `bind 127.0.0.1:${port}`)
    .replace('/etc/haproxy/licenses.example.com.pem', pem)
    .replaceAll('10.0.0.11:8787', nodes[0])
    .replaceAll('10.0.0.12:8787', nodes[1])
    .replaceAll('10.0.0.11:8790', publicListeners[0])
    .replaceAll('10.0.0.12:8790', publicListeners[1]);
  writeFileSync(file, written);
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()));
  const up = async (): Promise<number> => {
    const rows = (await askStats(socket)).split('\n').filter((row) => /^nodes,(?:one|two),/.test(row));
    return rows.filter((row) => row.split(',')[statusColumn] === 'UP').length;
  };
  try {
    await eventually(async () => (await up().catch(() => 0)) === nodes.length);
  } catch (error) {
    child.kill();
    throw new Error(`haproxy does not reach the nodes: ${said}`, { cause: error });
  }
  return {
    port,
    up,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'close');
      child.kill();
      await ended;
    },
  };
}

/** The column in the output of `show stat`: https://docs.haproxy.org/2.6/management.html, 9.1. CSV format. */
const statusColumn = 17;

async function askStats(path: string): Promise<string> {
  const socket = connect(path);
  let answer = '';
  socket.on('data', (chunk: Buffer) => void (answer += chunk.toString()));
  socket.end('show stat\n');
  await once(socket, 'close');
  return answer;
}
