import { setTimeout as sleep } from 'node:timers/promises';
import { LocalClient } from '../../../src/daemon/sandbox/server.ts';
import type { Bench } from '../bench.ts';
import { Connection } from '../load/connection.ts';
import { sendAll } from '../load/devices.ts';
import { residentMemory } from '../process.ts';
import { licenseKeyOf, secret } from '../sample.ts';
import { startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, plainSource, type Theme } from '../theme.ts';

const goal = { atMost: 100 } as const;
/** The longest wait for a change, in seconds. */
const waitS = 25;

export const agentsTheme: Theme = {
  name: 'agents',
  about: 'the memory and the threads of an authority while 10,000 agents wait for changes',
  async *measure(bench) {
    const agents = bench.count(10_000);
    const state = await copyOfStore(bench, { role: 'authority', licenses: agents });
    // Waits of one credential may take half of the connections.
    const settings = { limits: { connections: 3 * agents } };
    const authority = await startLatchkey(bench, { state, settings, asService: true });
    const { port } = authority.tcp;
    await sendAll(authority, port, follows(agents));
    const where = await positionOf(authority);
    const what = `memory of ${agents.toLocaleString('en')} waiting agents`;
    const grown = await memoryOfWaits(bench, authority, waits(agents, where));
    if (grown === null) {
      yield notMeasured(what, 'MiB', goal, 'there is no /proc');
      return;
    }
    yield plainRow(what, 'MiB', [grown], { goal, from: { authority: plainSource([grown], 'MiB') } });
  },
};

/** How much the resident memory grows while requests wait, in MiB. Null: this system has no /proc. */
async function memoryOfWaits(
  bench: Bench,
  { pid, tcp: { port } }: Latchkey,
  requests: readonly string[],
): Promise<number | null> {
  await sleep(bench.effort.seconds * 2000);
  const idle = residentMemory(pid);
  const open = await openWaits(port, requests);
  await sleep(bench.effort.seconds * 2000);
  const waiting = residentMemory(pid);
  for (const connection of open) connection.close();
  return idle === null || waiting === null ? null : waiting.mib - idle.mib;
}

/** Sends each request over a connection of its own, and again when its time is over, as agents do. */
async function openWaits(port: number, requests: readonly string[]): Promise<Connection[]> {
  const open: Connection[] = [];
  for (const request of requests) {
    const connection = await Connection.open({ port });
    connection.onResponse = (status) => {
      if (status !== 200) throw new Error(`a wait was answered with ${status}`);
      connection.send(request);
    };
    connection.send(request);
    open.push(connection);
  }
  return open;
}

function agentId(number: number): string {
  return number.toString(16).padStart(32, '0');
}

/** Each agent follows a license key of its own. */
function follows(agents: number): string[] {
  return Array.from({ length: agents }, (_, number) =>
    requestOf({ agent: agentId(number), follow: [licenseKeyOf(number)] }),
  );
}

type Where = { epoch: string; cursor: string };

/** The end of the history, from which each agent that follows one key can wait. */
async function positionOf({ tcp }: Latchkey): Promise<Where> {
  const client = new LocalClient(`http://127.0.0.1:${tcp.port}`, { 'product-secret-key': secret });
  const answer = await client.postJson('/sync/v1/changes', { agent: agentId(0), follow: [licenseKeyOf(0)] });
  const { data } = answer.body as { data: Where };
  return { epoch: data.epoch, cursor: data.cursor };
}

function waits(agents: number, { epoch, cursor }: Where): string[] {
  return Array.from({ length: agents }, (_, number) =>
    requestOf({ agent: agentId(number), epoch, cursor, wait: waitS }),
  );
}

function requestOf(body: object): string {
  const text = JSON.stringify(body);
  return [
    'POST /sync/v1/changes HTTP/1.1',
    'host: localhost',
    `product-secret-key: ${secret}`,
    'content-type: application/json',
    `content-length: ${text.length}`,
    '',
    text,
  ].join('\r\n');
}
