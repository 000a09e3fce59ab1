import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/testing.ts';
import {
  buildExample,
  clientExamples,
  missingFor,
  runExample,
  type ClientExample,
} from '../support/reference/client-examples.ts';
import { listen } from '../support/network/listener.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';
import { takeUsualPort } from '../support/network/usual-port.ts';

const page = readFileSync(join(import.meta.dirname, '../../examples/clients/README.md'), 'utf8');
/** The table of the page: for each situation, the conclusion of each program. */
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
  const kinds = ['VALID', 'DISABLED', 'OTHER', 'UNSEEN', 'LOST', 'SOCKET', 'READ-ONLY', 'REFUSED', 'PROXY'];
  sandbox = await startSandbox({
    licenses: clientExamples.flatMap(({ name }) =>
      kinds.map((kind) => ({
        licenseKey: `${kind}-${name}`,
        enabled: kind !== 'DISABLED',
        productKey: kind === 'OTHER' ? 'another-product' : 'RGsF',
      })),
    ),
  });
  const built = clientExamples.map(async (example): Promise<Program | null> => {
    const lacking = await missingFor(example);
    if (lacking === null) return { example, command: await buildExample(example, directory.path) };
    missing.push(`${example.name}: ${lacking}`);
    return null;
  });
  programs.push(...(await Promise.all(built)).filter((program) => program !== null));
  if (missing.length > 0) process.stdout.write(`skipped: ${missing.join('; ')}\n`);
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

interface Circumstances {
  /** Null: the program gets no address of the agent. */
  readonly url?: string | null;
  readonly secret?: string;
  /** The file with the last known verdict; by default the program gets its own. */
  readonly file?: string;
  readonly remembers?: boolean;
  /** More environment variables. */
  readonly environment?: Record<string, string>;
}

/** The conclusion that a program prints for a key; its exit code must agree. */
async function conclude(
  { example: { name }, command }: Program,
  kind: string,
  { url = sandbox.agent.url, secret, file, remembers = false, environment }: Circumstances = {},
): Promise<string> {
  const kept = remembers ? 'historyEntry' : crypto.randomUUID();
  const { stdout, code } = await runExample(command, [`${kind}-${name}`], {
    ...(url !== null && { LATCHKEY_URL: url }),
    LATCHKEY_SECRET: secret ?? sandbox.productSecret,
    LATCHKEY_LAST_KNOWN: file ?? join(directory.path, `${name}-${kept}`),
    ...environment,
  });
  const said = stdout.trim().split('\n').join(', ');
  const codes = [/^valid/, /^refused/, /^undetermined$/].map((verdict) => verdict.test(said));
  expect([name, said, code]).toEqual([name, said, codes.indexOf(true)]);
  return said;
}

/**
 * Runs all programs at the same time, since they mostly wait. Returns the output of each program by
 * its name.
 */
async function concludeAll(kind: string, options: Circumstances = {}): Promise<Record<string, string>> {
  const printed = programs.map(
    async (program) => [program.example.name, await conclude(program, kind, options)] as const,
  );
  return Object.fromEntries(await Promise.all(printed));
}

/** The same output for every program. */
function everyOne(said: string): Record<string, unknown> {
  return Object.fromEntries(programs.map(({ example: { name } }) => [name, said]));
}

/** The conclusions that the page documents. */
function promised(situation: string): Record<string, string> {
  const cells = table.get(situation) ?? [];
  const names = new Set(programs.map(({ example }) => example.name));
  return Object.fromEntries(
    columns.map((name, index) => [name, cells[index] ?? '']).filter(([name = '']) => names.has(name)),
  ) as Record<string, string>;
}

it('the table of the page lists every example program', () => {
  expect(columns).toEqual(clientExamples.map(({ name }) => name));
});

it('the example programs conclude in eight situations what the page documents', async () => {
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
});

it('the example programs let no license in beyond its end while the agent is down', async () => {
  let end = '';
  const agent = await listen(
    createServer((_, response) => {
      const known = { license_key: 'KEY', product_link: 'RGsF', buyer_email: 'a@example.com', uses: 1 };
      const terms = { enabled: true, date: '2019-01-01T00:00:00+00:00', status: 'grace', expires_at: end };
      response.end(JSON.stringify({ data: { ...known, ...terms } }));
    }),
  );
  const { url } = agent;
  const kinds = { 'ends later': '2999-12-31T23:59:59+00:00', 'has ended': '2020-01-01T00:00:00+00:00' };
  const ask = async (kind: string): Promise<Record<string, string>> => {
    const asked = programs.map(async (program) => {
      const { name } = program.example;
      const file = join(directory.path, `${name}-that-${kind}`);
      return [name, await conclude(program, 'VALID', { url, file })] as const;
    });
    return Object.fromEntries(await Promise.all(asked));
  };
  for (const [kind, date] of Object.entries(kinds)) {
    end = date;
    expect(await ask(kind)).toEqual(everyOne('valid, uses: 1'));
  }
  await agent[Symbol.asyncDispose]();
  expect(await ask('ends later')).toEqual(everyOne('valid (last known)'));
  expect(await ask('has ended')).toEqual(everyOne('undetermined'));
});

it('every example program whose language supports Unix sockets works over one', async () => {
  for (const program of programs) {
    if (!program.example.hasSocket) continue;
    const said = await conclude(program, 'SOCKET', { url: `unix:${sandbox.agent.socket}` });
    expect([program.example.name, said]).toEqual([program.example.name, 'valid, uses: 1']);
  }
});

it('the example programs use the default address that the page names', async ({ skip }) => {
  const [, port] = /^- `LATCHKEY_URL` is .*`http:\/\/127\.0\.0\.1:(\d+)` by default/m.exec(page) ?? [];
  if (port === undefined) throw new Error('the page names no default address');
  await using _port = await takeUsualPort();
  const opened = startFront((_, response) => response.writeHead(503).end('{}'), Number(port));
  await using front = await opened.catch(() => null);
  if (front === null) skip(`somebody has port ${port}`);
  expect(await concludeAll('DISABLED', { url: null })).toEqual(promised('disabled'));
});

it.each([
  '<p>Welcome</p>',
  '{}',
  '{"data":null}',
  '[]',
  '{"data":{"enabled":"false"}}',
  '{"data":{"owner":{"enabled":false}}}',
  '{"data":{"note":"\\"enabled\\":false"}}',
  '{"enabled":false}',
])('the example programs conclude nothing from another server that answers %s', async (body) => {
  await using somebody = await listen(createServer((_, response) => response.end(body)));
  const said = await concludeAll('VALID', { url: somebody.url });
  expect(said).toEqual(promised('agent down'));
});

it('the example programs conclude nothing from deeply nested JSON', async () => {
  await using somebody = await listen(createServer((_, response) => response.end('['.repeat(100_000))));
  expect(await concludeAll('VALID', { url: somebody.url })).toEqual(promised('agent down'));
});

it.each(['localhost:8787', 'unix:/nowhere/latchkey.sock', 'http://', 'http://127.0.0.1:99999', 'ftp://[::1'])(
  'the example programs conclude nothing if their address is %s',
  async (url) => {
    expect(await concludeAll('VALID', { url })).toEqual(promised('agent down'));
  },
);

it('the example programs never send plain text to an https address, and ignore a proxy in the environment', async () => {
  const asked: string[] = [];
  await using somebody = await listen(
    createServer(({ url }, response) => {
      asked.push(url ?? '');
      response.end('{"data":{"enabled":true,"uses":1}}');
    }),
  );
  const inTheClear = somebody.url.replace('http:', 'https:');
  expect(await concludeAll('VALID', { url: inTheClear })).toEqual(promised('agent down'));
  const proxies = ['http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'];
  const environment = Object.fromEntries(proxies.map((name) => [name, somebody.url]));
  expect(await concludeAll('PROXY', { environment })).toEqual(promised('valid'));
  expect(asked).toEqual([]);
});

it('the example programs conclude nothing from a 404 with a nested code', async () => {
  const body = JSON.stringify({ detail: { code: 'license_not_found' }, code: 'route_not_found' });
  await using somebody = await listen(createServer((_, response) => response.writeHead(404).end(body)));
  expect(await concludeAll('VALID', { url: somebody.url })).toEqual(promised('agent down'));
});

it('the example programs run if the last known verdict cannot be written', async () => {
  expect(await concludeAll('READ-ONLY', { file: '/proc/latchkey' })).toEqual(everyOne('valid, uses: 1'));
});

it.each([
  ['is empty', Buffer.from('')],
  ['is not text', Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28])],
  ['belongs to another program', Buffer.from('{"a":[1]}')],
  ['was written only in part', Buffer.from('9999999999 val')],
])('the example programs conclude nothing from a last known file that %s', async (_, text) => {
  const file = join(directory.path, 'corrupted');
  writeFileSync(file, text);
  const said = await concludeAll('VALID', { url: 'http://127.0.0.1:1', file });
  expect(said).toEqual(promised('agent down'));
});

it('the example programs conclude nothing from a directory in place of the last known file', async () => {
  const file = join(directory.path, 'folder');
  mkdirSync(file);
  const said = await concludeAll('VALID', { url: 'http://127.0.0.1:1', file });
  expect(said).toEqual(promised('agent down'));
});

it('the example programs stop waiting for a response that never ends', async () => {
  await using somebody = await listen(createServer((_, response) => drip(response)));
  expect(await concludeAll('VALID', { url: somebody.url })).toEqual(promised('agent down'));
});

it('the example programs stop waiting for a use whose response never ends, and print its idempotency key', async () => {
  await using front = await startFront((_, response) => drip(response));
  const later = expect.stringMatching(/^valid, uses: later, under \S+$/) as string;
  expect(await concludeAll('VALID', { url: front.url })).toEqual(everyOne(later));
});

it('the example programs run if the response to a use has no license', async () => {
  await using front = await startFront((_, response) => response.end('{"data":null}'));
  const later = expect.stringMatching(/^valid, uses: later, under \S+$/) as string;
  expect(await concludeAll('VALID', { url: front.url })).toEqual(everyOne(later));
});

it('the example programs do not follow a redirect', async () => {
  const asked: string[] = [];
  await using elsewhere = await listen(
    createServer(({ url }, response) => {
      asked.push(url ?? '');
      response.end('{"data":{"enabled":true,"uses":1}}');
    }),
  );
  function lead({ url }: IncomingMessage, response: ServerResponse): void {
    response.writeHead(307, { location: `${elsewhere.url}${url ?? ''}` }).end('{}');
  }
  await using somebody = await listen(createServer(lead));
  expect(await concludeAll('VALID', { url: somebody.url })).toEqual(promised('agent down'));
  await using front = await startFront(lead);
  const uncounted = expect.stringMatching(/^valid, uses: (?:refused|later)/) as string;
  expect(await concludeAll('VALID', { url: front.url })).toEqual(everyOne(uncounted));
  expect(asked).toEqual([]);
});

it('the example programs conclude nothing if their credential is wrong or missing', async () => {
  expect(await concludeAll('VALID', { secret: 'not-the-secret' })).toEqual(everyOne('undetermined'));
  expect(await concludeAll('VALID', { secret: '' })).toEqual(everyOne('undetermined'));
  const body = JSON.stringify({ code: 'credentials_invalid', title: 'Credentials invalid', detail: '' });
  function refuse(_: IncomingMessage, response: ServerResponse): void {
    response.writeHead(401, { 'content-type': 'application/problem+json' }).end(body);
  }
  await using front = await startFront(refuse);
  const refused = expect.stringMatching(/^valid, uses: refused \(.+\)$/) as string;
  expect(await concludeAll('REFUSED', { url: front.url, remembers: true })).toEqual(everyOne(refused));
  await using somebody = await listen(createServer(refuse));
  const said = await concludeAll('REFUSED', { url: somebody.url, remembers: true });
  expect(said).toEqual(everyOne('valid (last known)'));
});

it('the example programs print their usage without a license key', async () => {
  for (const { example, command } of programs) {
    const { stdout, stderr, code } = await runExample(command, []);
    expect([example.name, stdout, code]).toEqual([example.name, '', 2]);
    expect(stderr).toMatch(/^usage: \S.* LICENSE-KEY\n$/);
  }
});

it('the example programs count a use once even if its response is lost', async () => {
  await using front = await startLossyFront(sandbox.agent.url);
  expect(await concludeAll('LOST', { url: front.url })).toEqual(everyOne('valid, uses: 1'));
  await sandbox.settled();
  for (const { example } of programs) {
    expect((await sandbox.store.license(`LOST-${example.name}`))?.uses).toBe(1);
  }
  expect(front.lost).toBe(programs.length);
});

/** Sends a response byte by byte, without an end. */
function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const dripping = setInterval(() => response.write(' '), 200);
  response.once('close', () => {
    clearInterval(dripping);
  });
}

/** Forwards verifies to the agent; `use` answers the uses. */
async function startFront(
  use: (incoming: IncomingMessage, response: ServerResponse) => void,
  port?: number,
): ReturnType<typeof listen> {
  return await listen(
    createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      if (method === 'PUT') {
        use(incoming, outgoing);
        return;
      }
      const passed = request(new URL(url ?? '', sandbox.agent.url), { headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.pipe(outgoing);
      });
      passed.end();
    }),
    port,
  );
}

/** Forwards requests, and closes the connection instead of sending the first response to each change. */
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
