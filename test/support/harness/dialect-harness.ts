import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { epochHeader, instanceHeader } from '../../../src/domain/header-names.ts';
import { Agent, request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Daemon } from '../../../src/daemon/daemon.ts';
import { startDaemon } from '../../../src/daemon/start.ts';
import { embeddedConfiguration } from '../../../src/config/load.ts';
import { storeOfProject } from '../app/engine.ts';
import { httpClient } from '../network/raw-http.ts';
import { silent } from '../silent-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { socketPath } from '../network/socket-path.ts';

export type Role = 'authority' | 'agent';

export const secret = 'lk_prod_of_the_editor';
export const otherSecret = 'lk_prod_of_the_player';

/** The credentials of the harness. */
export type Credentials = { apiKey: string; secret: string; token: string; verifyToken: string };

/**
 * A daemon with two products and one of its listeners for the requests. An agent has an authority as its
 * upstream.
 */
export interface DialectHarness extends AsyncDisposable {
  readonly credentials: Credentials;
  readonly addresses: Daemon['addresses'];
  send(call: Call): Promise<string[]>;
  /** Stops the authority that is the agent's upstream. */
  closeUpstream(): Promise<void>;
}

export type Call = {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

/**
 * Starts real daemons in this process. `listen` is merged into the listeners of the daemon under test, `more`
 * into the rest of its configuration.
 */
export async function startDialectHarness(
  role: Role,
  listener: 'tcp' | 'socket',
  listen: object = {},
  more: object = {},
): Promise<DialectHarness> {
  await using setting = new AsyncDisposableStack();
  const home = setting.use(temporaryDirectory()).path;
  const start = async (name: string, tree: object): Promise<Daemon> => {
    const state = join(home, name);
    const given = { tcp: '127.0.0.1:0', socket: socketPath(home, `${name}.sock`) };
    const configuration = embeddedConfiguration({
      state_dir: state,
      ...(name === 'authority' && storeOfProject()),
      ...tree,
      listen: { ...given, ...listenOf(name) },
    });
    const prepare = role === 'agent' && name === 'authority' ? { prepare: hideLatchkey } : {};
    return await startDaemon(configuration, { log: silent, ...prepare });
  };
  const listenOf = (name: string): object => (name === role ? listen : {});
  const stops: (() => Promise<void>)[] = [];
  setting.defer(async () => {
    for (const stop of stops.toReversed()) await stop();
  });
  const authority = await start('authority', role === 'authority' ? more : {});
  let isUp = true;
  const closeAuthority = async (): Promise<void> => {
    if (isUp) await authority.stop();
    isUp = false;
  };
  stops.push(closeAuthority);
  const read = (name: string, file: string): string => readFileSync(join(home, name, file), 'utf8').trim();
  const apiKey = read('authority', 'api.key');
  await fillCatalogue(authority, read('authority', 'admin.token'));
  const asked =
    role === 'authority'
      ? authority
      : await start('agent', {
          ...agentTree(authority, apiKey),
          ...more,
        });
  if (asked !== authority) stops.push(() => asked.stop());
  const token = read(role, 'admin.token');
  const verifyToken = await issueToken(asked, token);
  const { tcp, socket } = asked.addresses;
  const where = listener === 'tcp' ? { port: Number(new URL(tcp ?? '').port) } : { socketPath: socket ?? '' };
  const connections = setting.adopt(new Agent({ keepAlive: true, maxSockets: 1 }), (agent) => {
    agent.destroy();
  });
  const opened = setting.move();
  return {
    credentials: { apiKey, secret, token, verifyToken },
    addresses: asked.addresses,
    send: (call) => exchange({ ...where, agent: connections }, call),
    closeUpstream: closeAuthority,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function agentTree(authority: Daemon, apiKey: string): object {
  return {
    upstream: { base_url: authority.addresses.tcp ?? '', api_key: apiKey },
    products: [
      { key: 'EDITOR', name: 'The Editor', secret },
      { key: 'PLAYER', secret: otherSecret },
    ],
    sync: { rate: '1000' },
  };
}

async function fillCatalogue({ addresses }: Daemon, token: string): Promise<void> {
  await using http = httpClient({ tcp: addresses.tcp ?? '' });
  const headers = { authorization: `Bearer ${token}` };
  const post = async (path: string, json: object): Promise<void> => {
    const { status, body } = await http.post(path, { headers, json });
    if (status >= 300) throw new Error(JSON.stringify(body));
  };
  await post('/admin/v1/products', { name: 'The Editor', product_key: 'EDITOR', secret });
  await post('/admin/v1/products', { name: 'The Player', product_key: 'PLAYER', secret: otherSecret });
  await post('/admin/v1/products', { name: 'By the month', product_key: 'MONTHLY', recurring: true });
  for (const [key, product] of [
    ['KEY-1', 'EDITOR'],
    ['KEY-2', 'EDITOR'],
    ['DISABLED', 'EDITOR'],
    ['UNSEEN', 'EDITOR'],
    ['OF-PLAYER', 'PLAYER'],
  ] as const) {
    const sale = { product_key: product, buyer_email: 'buyer@example.com', license_key: key };
    await post('/admin/v1/purchases', sale);
  }
  await http.put('/api/v2/license/disable', {
    headers: { 'product-secret-key': secret },
    form: { license_key: 'DISABLED' },
  });
}

/** An agent passes the refusals of a store that is no Latchkey on word for word. */
function hideLatchkey(server: FastifyInstance): void {
  server.addHook('onSend', async (_, reply) => {
    reply.removeHeader(epochHeader).removeHeader(instanceHeader);
  });
}

async function issueToken({ addresses }: Daemon, token: string): Promise<string> {
  await using http = httpClient({ tcp: addresses.tcp ?? '' });
  const headers = { authorization: `Bearer ${token}` };
  const { body } = await http.post('/admin/v1/tokens', { headers, json: { scopes: ['verify'] } });
  return (body as { data: { token: string } }).data.token;
}

type Where = ({ port: number } | { socketPath: string }) & { agent: Agent };

/** The status line, the unchanged headers and the body, or a note that there was no response. */
async function exchange(where: Where, { method, path, headers = {}, body }: Call): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const host = 'port' in where ? { host: '127.0.0.1' } : {};
  request({ ...where, ...host, method, path, headers: { host: 'localhost', ...headers } }, resolve)
    .on('error', reject)
    .end(body);
  try {
    const answer = await promise;
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const { rawHeaders } = answer;
    const written = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1] ?? ''}`] : [],
    );
    return [String(answer.statusCode), ...written, '', Buffer.concat(chunks).toString()];
  } catch (error) {
    return [(error as NodeJS.ErrnoException).code ?? String(error)];
  }
}
