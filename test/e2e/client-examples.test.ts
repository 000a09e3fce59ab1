import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/testing.ts';
import {
  buildExample,
  clientExamples,
  missingFor,
  runExample,
  type ClientExample,
} from '../support/client-examples.ts';
import { listen } from '../support/listener.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

const page = readFileSync(join(import.meta.dirname, '../../examples/clients/README.md'), 'utf8');
/** The table of the page: by situation, what each program concludes. */
const table = new Map(
  [...page.matchAll(/^\| ([a-z, -]+?) +\| (.+) \|$/gm)].map(([, situation = '', cells = '']) => [
    situation,
    cells.split('|').map((cell) => cell.trim()),
  ]),
);
const columns = table.get('situation') ?? [];

type Program = { example: ClientExample; command: Awaited<ReturnType<typeof buildExample>> };

let directory: TemporaryDirectory;
let sandbox: Sandbox;
const programs: Program[] = [];
const missing: string[] = [];

beforeAll(async () => {
  directory = temporaryDirectory();
  const kinds = ['VALID', 'DISABLED', 'OTHER', 'UNSEEN', 'LOST', 'SOCKET'];
  sandbox = await startSandbox({
    licenses: clientExamples.flatMap(({ name }) =>
      kinds.map((kind) => ({
        licenseKey: `${kind}-${name}`,
        enabled: kind !== 'DISABLED',
        productKey: kind === 'OTHER' ? 'another-product' : 'RGsF',
      })),
    ),
  });
  for (const example of clientExamples) {
    const lacking = await missingFor(example);
    if (lacking !== null) missing.push(`${example.name}: ${lacking}`);
    else programs.push({ example, command: await buildExample(example, directory.path) });
  }
  if (missing.length > 0) process.stdout.write(`skipped: ${missing.join('; ')}\n`);
}, 300_000);
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

/** What a program says of a key: its last known verdict is in a file of its own, or kept from one run to the next. */
async function conclude(
  { example: { name }, command }: Program,
  kind: string,
  { url = sandbox.agent.url, remembers = false }: { url?: string; remembers?: boolean } = {},
): Promise<string> {
  const kept = remembers ? 'remembered' : crypto.randomUUID();
  const { lines } = await runExample(command, `${kind}-${name}`, {
    LATCHKEY_URL: url,
    LATCHKEY_SECRET: sandbox.productSecret,
    LATCHKEY_LAST_KNOWN: join(directory.path, `${name}-${kept}`),
  });
  return lines.join(', ');
}

/** Asks all programs one after the other: by name, what each concludes. */
async function concludeAll(
  kind: string,
  options: Parameters<typeof conclude>[2] = {},
): Promise<Record<string, string>> {
  const said: Record<string, string> = {};
  for (const program of programs) said[program.example.name] = await conclude(program, kind, options);
  return said;
}

/** What the page says that these programs conclude. */
function promised(situation: string): Record<string, string> {
  const cells = table.get(situation) ?? [];
  const names = new Set(programs.map(({ example }) => example.name));
  return Object.fromEntries(
    columns.map((name, index) => [name, cells[index] ?? '']).filter(([name = '']) => names.has(name)),
  ) as Record<string, string>;
}

describe('the programs of examples/clients', () => {
  it('are all in the table of the page', () => {
    expect(columns).toEqual(clientExamples.map(({ name }) => name));
  });

  it('conclude in eight situations what the page says', async () => {
    expect(await concludeAll('VALID', { remembers: true })).toEqual(promised('valid'));
    expect(await concludeAll('DISABLED')).toEqual(promised('disabled'));
    expect(await concludeAll('NOBODY')).toEqual(promised('unknown'));
    expect(await concludeAll('OTHER')).toEqual(promised('other product'));
    await sandbox.store.goAway();
    expect(await concludeAll('VALID')).toEqual(promised('offline, known'));
    expect(await concludeAll('UNSEEN')).toEqual(promised('offline, unseen'));
    await sandbox.agent.stop();
    expect(await concludeAll('VALID')).toEqual(promised('agent down'));
    expect(await concludeAll('VALID', { remembers: true })).toEqual(promised('agent down, last known'));
    await sandbox.agent.start();
    await sandbox.store.comeBack();
    await sandbox.settled();
    for (const { example } of programs) {
      expect((await sandbox.store.license(`VALID-${example.name}`))?.uses).toBe(2);
    }
  }, 300_000);

  it('do so over the socket, where their language can', async () => {
    for (const program of programs) {
      if (!program.example.hasSocket) continue;
      const said = await conclude(program, 'SOCKET', { url: `unix:${sandbox.agent.socket}` });
      expect([program.example.name, said]).toEqual([program.example.name, 'valid, uses: 1']);
    }
  }, 120_000);

  it.each(['<p>Welcome</p>', '{}', '{"data":null}', '[]'])(
    'conclude nothing from a program that has the port and answers %s',
    async (body) => {
      await using somebody = await listen(createServer((_, response) => response.end(body)));
      const said = await concludeAll('VALID', { url: somebody.url });
      expect(said).toEqual(promised('agent down'));
    },
    120_000,
  );

  it('conclude nothing from a file of last known verdicts that is spoilt', async () => {
    for (const { example } of programs) writeFileSync(join(directory.path, `${example.name}-remembered`), '');
    const said = await concludeAll('VALID', { url: 'http://127.0.0.1:1', remembers: true });
    expect(said).toEqual(promised('agent down'));
  }, 120_000);

  it('count a use once whose answer is lost on the way', async () => {
    await using front = await startLossyFront(sandbox.agent.url);
    for (const program of programs) {
      const said = await conclude(program, 'LOST', { url: front.url });
      expect([program.example.name, said]).toEqual([program.example.name, 'valid, uses: 1']);
    }
    await sandbox.settled();
    for (const { example } of programs) {
      expect((await sandbox.store.license(`LOST-${example.name}`))?.uses).toBe(1);
    }
    expect(front.lost).toBe(programs.length);
  }, 120_000);
});

/** Passes requests on, and hangs up instead of the first answer to each change. */
async function startLossyFront(
  target: string,
): Promise<AsyncDisposable & { url: string; readonly lost: number }> {
  const seen = new Set<string>();
  const server = await listen(
    createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      const name = String(headers['idempotency-key']);
      const passed = request(new URL(url ?? '', target), { method, headers }, (answer) => {
        if (method === 'PUT' && !seen.has(name)) {
          seen.add(name);
          answer.resume().once('end', () => incoming.socket.destroy());
          return;
        }
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(passed);
    }),
  );
  return {
    ...server,
    get lost() {
      return seen.size;
    },
  };
}
