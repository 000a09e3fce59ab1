import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { request } from 'node:https';
import { join } from 'node:path';
import { vi } from 'vitest';
import { startBalancer } from './balancer.ts';
import { readExample } from '../reference/guides.ts';
import { freePort } from './free-port.ts';
import { patience } from '../patience.ts';

const host = 'licenses.example.com';

export type ProxyName = 'nginx' | 'caddy' | 'haproxy';

/** Whether a proxy is installed on this machine. */
export function isProxyInstalled(name: ProxyName): boolean {
  return spawnSync(name, [name === 'caddy' ? 'version' : '-v']).error === undefined;
}

type RawResponse = { status: number; headers: Readonly<Record<string, unknown>>; text: string };

/** A proxy with the configuration of its example, in front of a server. */
export interface Proxy extends AsyncDisposable {
  readonly ask: (
    path: string,
    options?: { method?: string; headers?: object; body?: string; localAddress?: string },
  ) => Promise<RawResponse>;
}

/** The differences from the example: the port, the address behind the proxy, and the certificate. */
export type ProxyPlace = {
  /** Contains `cert.pem`, `key.pem` and `ca.pem`, as `latchkey certificate make` writes them. */
  readonly directory: string;
  /** host:port of the server behind the proxy. */
  readonly behind: string;
  /** host:port of its public listener. */
  readonly publicBehind?: string;
  /** Whether nginx caches, as an operator might configure it for other sites. */
  readonly caches?: boolean;
};

/** Starts a proxy with its example, and waits until it listens. */
export async function startProxy(name: ProxyName, place: ProxyPlace): Promise<Proxy> {
  const ca = readFileSync(join(place.directory, 'ca.pem'));
  if (name === 'haproxy') {
    const { directory, behind, publicBehind = behind } = place;
    const balancer = await startBalancer(directory, [behind, behind], [publicBehind, publicBehind]);
    return {
      ask: (path, options = {}) => ask({ port: balancer.port, ca, path, ...options }),
      [Symbol.asyncDispose]: () => balancer[Symbol.asyncDispose](),
    };
  }
  const port = await freePort();
  const write = { nginx: writeNginx, caddy: writeCaddy }[name];
  const argv = write(place, port);
  const child = spawn(name, argv, {
    env: { ...process.env, HOME: place.directory, XDG_CONFIG_HOME: '', XDG_DATA_HOME: '' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()));
  const stop = async (): Promise<void> => {
    const ended = child.exitCode === null ? once(child, 'close') : null;
    child.kill('SIGTERM');
    await ended;
  };
  try {
    await vi.waitFor(() => (child.exitCode === null ? tenant(port) : undefined), patience);
    if (child.exitCode !== null) throw new Error(`${name} does not start: ${said}`);
  } catch (error) {
    await stop();
    throw new Error(`${name}: ${said}`, { cause: error });
  }
  return {
    ask: (path, options = {}) => ask({ port, ca, path, ...options }),
    [Symbol.asyncDispose]: stop,
  };
}

async function tenant(port: number): Promise<void> {
  const probe = connect(port, '127.0.0.1');
  try {
    await once(probe, 'connect');
  } finally {
    probe.destroy();
  }
}

function writeNginx(
  { directory, behind, publicBehind = behind, caches = false }: ProxyPlace,
  port: number,
): string[] {
  const cached = `proxy_cache_path ${join(directory, 'cache')} keys_zone=cache:1m;\nserver {\n
    proxy_cache cache;\nproxy_cache_valid any 1m;`;
  const site = readExample('proxy/nginx.conf')
    .replace('127.0.0.1:8787', behind)
    .replace('127.0.0.1:8790', publicBehind)
    .replace('server {', caches ? cached : 'server {')
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replace(/\/etc\/letsencrypt\S*fullchain\.pem/, join(directory, 'cert.pem'))
    .replace(/\/etc\/letsencrypt\S*privkey\.pem/, join(directory, 'key.pem'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((each) => `${each}_temp_path ${join(directory, each)};`)
    .join('\n');
  const file = join(directory, 'nginx.conf');
  const pid = join(directory, 'nginx.pid');
  writeFileSync(
    file,
    `${caches ? 'user root;\n' : ''}daemon off;\npid ${pid};\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}}\n`,
  );
  return ['-p', directory, '-c', file];
}

function writeCaddy({ directory, behind, publicBehind = behind }: ProxyPlace, port: number): string[] {
  const certificate = `tls ${join(directory, 'cert.pem')} ${join(directory, 'key.pem')}`;
  const site = readExample('proxy/Caddyfile')
    .replace('127.0.0.1:8787', behind)
    .replace('127.0.0.1:8790', publicBehind)
    .replace(`${host} {`, `https://${host}:${port} {\n\tbind 127.0.0.1\n\t${certificate}`);
  const file = join(directory, 'Caddyfile');
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`);
  return ['run', '--config', file, '--adapter', 'caddyfile'];
}

type Asked = {
  port: number;
  ca: Buffer;
  path: string;
  method?: string;
  headers?: object;
  body?: string;
  /** The address of the client. */
  localAddress?: string;
};

/** Sends a request over TLS to the public name; the path is sent unchanged. */
function ask({
  port,
  ca,
  path,
  method = 'GET',
  headers = {},
  body,
  localAddress,
}: Asked): Promise<RawResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<RawResponse>();
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  const asking = request(
    {
      host: '127.0.0.1',
      port,
      servername: host,
      ca,
      path,
      method,
      localAddress,
      agent: false,
      headers: { host, ...length, ...headers },
    },
    (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => void (text += chunk.toString()));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    },
  );
  asking.on('error', reject);
  asking.end(body);
  return promise;
}
