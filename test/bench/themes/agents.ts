import { setTimeout as sleep } from 'node:timers/promises';
import { LocalClient } from '../../../src/daemon/local-client.ts';
import type { Bench } from '../bench.ts';
import { Connection } from '../load/connection.ts';
import { sendAll } from '../load/devices.ts';
import { residentMemory } from '../process.ts';
import { licenseKeyOf, productKey } from '../sample.ts';
import { startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import { notMeasured, plainRow, plainSource, type Theme } from '../theme.ts';

const goal = { atMost: 100 } as const;
/** The longest wait for a change, in seconds. */
const waitS = 25;
/** So many new agents of one credential may begin at once (features/following/domain/change-feed.ts). */
const agentsPerToken = 1_000;

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
    const tokens = await issueTokens(authority, Math.ceil(agents / agentsPerToken));
    await sendAll(authority, port, follows(agents, tokens));
    const where = await positionOf(authority, tokens);
    const what = `memory of ${agents.toLocaleString('en')} waiting agents`;
    const grown = await memoryOfWaits(bench, authority, waits(agents, tokens, where));
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

/** Issues tokens that may verify the keys of the product. */
async function issueTokens({ tcp, admin }: Latchkey, count: number): Promise<readonly string[]> {
  const client = new LocalClient(`http://127.0.0.1:${tcp.port}`, admin);
  const issue = async (_: unknown, number: number): Promise<string> => {
    const terms = { label: `agents ${number}`, scopes: ['verify'], product_key: productKey };
    const { body } = await client.postJson('/admin/v1/tokens', terms);
    return (body as { data: { token: string } }).data.token;
  };
  return await Promise.all(Array.from({ length: count }, issue));
}

/** Each agent follows a license key of its own. */
function follows(agents: number, tokens: readonly string[]): string[] {
  return Array.from({ length: agents }, (_, number) =>
    requestOf({ agent: agentId(number), follow: [licenseKeyOf(number)] }, tokens[number % tokens.length]),
  );
}

type Where = { epoch: string; cursor: string };

/** The end of the history, from which each agent that follows one key can wait. */
async function positionOf({ tcp }: Latchkey, [token]: readonly string[]): Promise<Where> {
  const client = new LocalClient(`http://127.0.0.1:${tcp.port}`, { authorization: `Bearer ${token}` });
  const answer = await client.postJson('/sync/v1/changes', { agent: agentId(0), follow: [licenseKeyOf(0)] });
  const { data } = answer.body as { data: Where };
  return { epoch: data.epoch, cursor: data.cursor };
}

function waits(agents: number, tokens: readonly string[], { epoch, cursor }: Where): string[] {
  return Array.from({ length: agents }, (_, number) =>
    requestOf({ agent: agentId(number), epoch, cursor, wait: waitS }, tokens[number % tokens.length]),
  );
}

function requestOf(body: object, token: string | undefined): string {
  const text = JSON.stringify(body);
  return [
    'POST /sync/v1/changes HTTP/1.1',
    'host: localhost',
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    `content-length: ${text.length}`,
    '',
    text,
  ].join('\r\n');
}
