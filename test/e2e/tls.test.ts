import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { makeCertificate } from '../support/network/made-certificate.ts';
import { runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { freePort } from '../support/network/free-port.ts';
import { hasProgram } from '../support/process/installed.ts';
import { sendRaw } from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/* Tests TLS as operators configure it and callers use it: with real files, daemons and clients. */

const run = promisify(execFile);
const host = 'api.example.com';

interface Secured {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly configuration: object;
}

/** Makes a certificate with the command, and a configuration that uses it. */
async function secure(directory: string, more: object = {}): Promise<Secured> {
  const out = join(directory, 'tls');
  const made = await runProcess(['certificate', 'make', '--host', `${host},localhost`, '--out', out]);
  expect(made).toMatchObject({ code: 0, err: '' });
  const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) => join(out, name)) as [
    string,
    string,
    string,
  ];
  const tls = { cert_file: cert, key_file: key };
  return {
    ca,
    cert,
    key,
    configuration: { listen: { tcp: '127.0.0.1:0', tls, allowed_hosts: [host], ...more } },
  };
}

/** Replaces the certificate in use with one that is valid for `days`. */
async function renew({ ca, cert, key }: Secured, days: number, now: number = Date.now()): Promise<void> {
  const made = await makeCertificate([host, 'localhost'], { days, now });
  writeFileSync(ca, made.authority);
  writeFileSync(cert, made.certificate);
  writeFileSync(key, made.key);
}

function portOf({ tcp }: DaemonProcess): number {
  return Number(new URL(tcp).port);
}

/** The fingerprint of the certificate that new connections get. */
async function shownBy(daemon: DaemonProcess): Promise<string> {
  const socket = connect({ port: portOf(daemon), host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

function fingerprintIn(file: string): string {
  return new X509Certificate(readFileSync(file)).fingerprint256;
}

test('certificate make writes a certificate for a server and a key only for its owner, and never overwrites a file', async () => {
  await using directory = temporaryDirectory();
  const out = join(directory.path, 'tls');
  const argv = ['certificate', 'make', '--host', `${host},127.0.0.1`, '--out', out];
  const made = await runProcess(argv);
  expect(made).toMatchObject({ code: 0, err: '' });
  for (const platform of ['Debian', 'Fedora', 'macOS', 'Windows', 'Node', 'Python', 'Java']) {
    expect(made.out).toContain(platform);
  }
  expect(['ca.pem', 'cert.pem', 'key.pem'].map((name) => statSync(join(out, name)).mode & 0o777)).toEqual([
    0o644, 0o644, 0o600,
  ]);
  const leaf = new X509Certificate(readFileSync(join(out, 'cert.pem')));
  expect([leaf.checkHost(host), leaf.checkHost('example.com'), leaf.checkIP('127.0.0.1')]).toEqual([
    host,
    undefined,
    '127.0.0.1',
  ]);
  const before = readFileSync(join(out, 'key.pem'), 'utf8');
  expect(await runProcess(argv)).toEqual({
    code: 1,
    out: '',
    err: `latchkey: ${join(out, 'ca.pem')} already exists: nothing was written\n`,
  });
  expect(readFileSync(join(out, 'key.pem'), 'utf8')).toBe(before);
  const wrong = await runProcess(['certificate', 'make', '--host', 'https://a/b', '--out', out]);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('--host takes host names') as string });
});

const script = {
  node: `fetch(process.argv[1]).then(async (r) => console.log(await r.text()), (e) => { console.log(e.cause.code); })`,
  python: `
import ssl, sys, urllib.request, urllib.error
context = ssl.create_default_context()
context.verify_flags |= ssl.VERIFY_X509_STRICT
try:
    print(urllib.request.urlopen(sys.argv[1], context=context).read().decode())
except urllib.error.URLError as error:
    print(error.reason)
`,
};

/** How each client is made to trust an authority, as the command's output says. */
const clients = [
  { program: process.execPath, name: 'node', args: ['-e', script.node], trust: 'NODE_EXTRA_CA_CERTS' },
  { program: 'python3', name: 'python3', args: ['-c', script.python], trust: 'SSL_CERT_FILE' },
  { program: 'curl', name: 'curl', args: ['-sS'], trust: 'CURL_CA_BUNDLE' },
];

for (const { program, name, args, trust } of clients) {
  test.skipIf(!hasProgram(program))(
    `${name} trusts the authority of certificate make only after it was configured as the command says`,
    async () => {
      await using directory = temporaryDirectory();
      const { ca, configuration } = await secure(directory.path);
      await using daemon = await startDaemonProcess(directory.path, configuration);
      expect(daemon.tcp).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
      const url = `https://localhost:${portOf(daemon)}/livez`;
      const call = async (environment: Record<string, string>): Promise<string> => {
        const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...environment };
        const { stdout, stderr } = await run(program, [...args, url], { env }).catch(
          (error: unknown) => error as { stdout: string; stderr: string },
        );
        return stdout + stderr;
      };
      expect(await call({ [trust]: ca })).toContain('{"status":"ok","reasons":[]}');
      expect(await call({})).toMatch(/certificate|UNABLE_TO_VERIFY_LEAF_SIGNATURE/i);
    },
  );
}

test.skipIf(!hasProgram('curl'))('a TLS listener accepts the allowed host names and no others', async () => {
  await using directory = temporaryDirectory();
  const { ca, configuration } = await secure(directory.path);
  await using daemon = await startDaemonProcess(directory.path, configuration);
  const port = portOf(daemon);
  const call = async (name: string): Promise<string> => {
    const resolve = ['--resolve', `${name}:${port}:127.0.0.1`, '--cacert', ca];
    return (await run('curl', ['-sS', ...resolve, `https://${name}:${port}/readyz`])).stdout;
  };
  expect(await call(host)).toContain('"status":"ok"');
  await expect(call('other.example.com')).rejects.toThrow('no alternative certificate subject name');
  const plain = await sendRaw(
    { tcp: `http://127.0.0.1:${port}` },
    'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n',
  );
  expect(plain.status).toBeUndefined();
});

test('SIGHUP loads a renewed certificate and logs the change, and open connections continue', async () => {
  await using directory = temporaryDirectory();
  const secured = await secure(directory.path);
  await using daemon = await startDaemonProcess(directory.path, secured.configuration);
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: readFileSync(secured.ca) });
  const token = readFileSync(join(directory.path, 'state', 'admin.token'), 'utf8').trim();
  const sockets = new Set<unknown>();
  const ask = async (path: string): Promise<string> => {
    const headers = { host, authorization: `Bearer ${token}` };
    const asked = request({
      port: portOf(daemon),
      host: '127.0.0.1',
      servername: host,
      path,
      headers,
      agent,
    });
    const answered = once(asked.end(), 'response');
    asked.on('socket', (socket) => sockets.add(socket));
    const [answer] = (await answered) as [NodeJS.ReadableStream];
    return await text(answer);
  };
  const shownUntil = async (): Promise<string> =>
    (JSON.parse(await ask('/statusz')) as { listeners: { tls: { not_after: string } } }).listeners.tls
      .not_after;
  const first = await shownUntil();
  expect(Date.parse(first)).toBe(Date.parse(new X509Certificate(readFileSync(secured.cert)).validTo));
  expect(await ask('/metrics').catch(String)).toContain(
    `latchkey_tls_certificate_expiry_timestamp_seconds ${Date.parse(first) / 1000}`,
  );

  await renew(secured, 90);
  daemon.signal('SIGHUP');
  expect(await daemon.said('new certificate loaded')).toMatchObject({
    level: expect.anything() as unknown,
  });
  expect(await shownBy(daemon)).toBe(fingerprintIn(secured.cert));
  expect(await shownUntil()).not.toBe(first);
  expect(sockets.size).toBe(1);

  // Once more, without changes in the files.
  daemon.signal('SIGHUP');
  const changes = (): unknown[] =>
    daemon.lines.flatMap(({ msg, changed: keys }) =>
      msg === 'the configuration was reloaded' ? [keys] : [],
    );
  await expect.poll(changes).toEqual([['listen.tls.cert_file'], []]);

  const inForce = fingerprintIn(secured.cert);
  writeFileSync(secured.key, 'half a fi');
  daemon.signal('SIGHUP');
  const { errors } = await daemon.said('the configuration is not valid: nothing changed');
  expect(errors).toEqual([
    expect.stringContaining(`listen.tls.key_file: ${secured.key} does not contain a private key`),
  ]);
  expect(await shownBy(daemon)).toBe(inForce);
  expect([await shownUntil(), sockets.size]).toEqual([expect.not.stringMatching(first), 1]);
  agent.destroy();
});

test("commands reach a daemon over TLS, and trust only the daemon's own certificate", async () => {
  await using directory = temporaryDirectory();
  const secured = await secure(directory.path, { socket: false });
  await using daemon = await startDaemonProcess(directory.path, secured.configuration);
  const state = join(directory.path, 'state');
  const status = await runProcess(['status', '--state-dir', state]);
  expect(status).toMatchObject({ code: 0, err: '' });
  expect(status.out).toContain(daemon.tcp);
  for (const argv of [
    ['product', 'add', 'Editor'],
    ['product', 'list'],
    ['status', '--check'],
    ['backup', join(directory.path, 'copy.db')],
  ]) {
    expect(await runProcess([...argv, '--state-dir', state])).toMatchObject({ code: 0, err: '' });
  }
  await renew(secured, 90);
  daemon.signal('SIGHUP');
  await daemon.said('new certificate loaded');
  expect(await runProcess(['status', '--state-dir', state])).toMatchObject({ code: 0, err: '' });

  const file = join(state, 'listen.json');
  const { certificate: other } = {
    certificate: await makeCertificate(['localhost'], { days: 9, now: Date.now() }),
  };
  const listening = JSON.parse(readFileSync(file, 'utf8')) as object;
  for (const trusted of [other.certificate, other.authority]) {
    writeFileSync(file, JSON.stringify({ ...listening, certificate: trusted }));
    const refused = await runProcess(['status', '--state-dir', state]);
    expect(refused).toMatchObject({ code: 69, out: '', err: expect.stringMatching(/certificate/) as string });
  }
});

test('commands reach a daemon whose certificate has expired, to inspect it and to repair it', async () => {
  await using directory = temporaryDirectory();
  const secured = await secure(directory.path, { socket: false });
  await renew(secured, 20, Date.now() - 30 * 86_400_000);
  await using _ = await startDaemonProcess(directory.path, secured.configuration);
  const config = ['--config', join(directory.path, 'config.yaml')];
  const status = await runProcess(['status', ...config]);
  expect(status).toMatchObject({ code: 0, err: '' });
  expect(status.out).toMatch(
    /^fail {2}the certificate of listen\.tls ended on 20\S+: clients refuse it {2}→ /m,
  );
  const { out } = await runProcess(['doctor', ...config]);
  expect(out).toMatch(/^fail {2}the certificate .* expired on 20.*: callers refuse it/m);
  expect(out).not.toContain('no daemon runs here');
});

test('an agent over TLS that calls itself reports it, even if no client trusts its certificate', async () => {
  await using directory = temporaryDirectory();
  const port = await freePort();
  const tcp = `127.0.0.1:${port}`;
  const { configuration } = await secure(directory.path, { tcp });
  const upstream = { base_url: `https://localhost:${port}`, probe: '1s' };
  const products = [{ key: 'RGsF', secret: 'the-product-secret' }];
  await using daemon = await startDaemonProcess(directory.path, { ...configuration, upstream, products });
  const config = ['--config', join(directory.path, 'config.yaml')];
  const { error } = await daemon.said('the upstream is unavailable: answering from local state');
  expect(error).toMatch(/this agent’s upstream points to itself.*connect_to/);
  expect((await runProcess(['status', ...config])).out).toMatch(/this agent’s upstream points to itself/);
  for (const command of [['doctor'], ['config', 'check', '--connect']]) {
    expect((await runProcess([...command, ...config])).out).toMatch(
      /^fail .* leads to this agent itself {2}→ {2}set upstream\.connect_to/m,
    );
  }
});

test('an upstream is trusted for its own certificate, not for the certificate of the agent’s listener', async () => {
  await using directory = temporaryDirectory();
  const { configuration } = await secure(directory.path);
  await using other = temporaryDirectory();
  const stranger = await secure(other.path);
  await using store = await startDaemonProcess(other.path, stranger.configuration);
  const upstream = { base_url: `https://localhost:${portOf(store)}`, probe: '1s' };
  const products = [{ key: 'RGsF', secret: 'the-product-secret' }];
  await using daemon = await startDaemonProcess(directory.path, { ...configuration, upstream, products });
  const { error } = await daemon.said('the upstream is unavailable: answering from local state');
  expect(error).toBe('the certificate is signed by an authority that is not trusted here');
});

test("an upstream whose authority is in the system's certificate store is trusted without ca_file", async () => {
  await using directory = temporaryDirectory();
  const { ca, configuration } = await secure(directory.path);
  await using store = await startDaemonProcess(directory.path, configuration);
  await using other = temporaryDirectory();
  const upstream = { base_url: `https://localhost:${portOf(store)}`, probe: '1s' };
  const products = [{ key: 'RGsF', secret: 'the-product-secret' }];
  const agent = { listen: { tcp: false }, upstream, products };
  // OpenSSL reads these variables instead of the system's directories.
  const system = { SSL_CERT_FILE: ca, SSL_CERT_DIR: join(other.path, 'none') };
  await using _ = await startDaemonProcess(other.path, agent, system);
  const config = ['--config', join(other.path, 'config.yaml')];
  const doctor = await runProcess(['doctor', ...config], system);
  expect(doctor.out).toContain(`ok    the API answers at ${upstream.base_url}`);
  const state = async (): Promise<string> => (await runProcess(['status', ...config])).out;
  await expect.poll(state).toMatch(/^upstream {2,}up /m);
});

test('doctor reports whether a certificate is valid, expires soon, has expired, is for other hosts, or is not yet loaded', async () => {
  await using directory = temporaryDirectory();
  const secured = await secure(directory.path);
  await using daemon = await startDaemonProcess(directory.path, secured.configuration);
  const examine = async (): Promise<string[]> => {
    const { out } = await runProcess(['doctor', '--config', join(directory.path, 'config.yaml')]);
    return out.split('\n').filter((line) => line.includes('certificate'));
  };
  expect(await examine()).toEqual([
    expect.stringMatching(/^ok {4}the certificate .*cert\.pem is valid until 20/),
  ]);
  await renew(secured, 20);
  expect(await examine()).toEqual([
    expect.stringMatching(/^warn {2}the certificate .* expires soon, on 20.* {2}→ {2}put a new one/),
    expect.stringMatching(
      /^warn {2}the daemon still presents the previous certificate, valid until .* {2}→ {2}reload it/,
    ),
  ]);
  await renew(secured, 20, Date.now() - 30 * 86_400_000);
  expect((await examine())[0]).toMatch(/^fail {2}the certificate .* expired on 20.*: callers refuse it/);
  daemon.signal('SIGHUP');
  await daemon.said('the certificate has expired: clients refuse it');

  const other = await makeCertificate(['other.example.com'], { days: 90, now: Date.now() });
  writeFileSync(secured.cert, other.certificate);
  writeFileSync(secured.key, other.key);
  expect(await examine()).toContainEqual(
    expect.stringMatching(
      /^fail {2}the certificate .* is not valid for api\.example\.com, a host of listen\.allowed_hosts {2}→ /,
    ),
  );
});

test('the start and the doctor warn about a private key that every user can read', async () => {
  await using directory = temporaryDirectory();
  const { key, configuration } = await secure(directory.path);
  chmodSync(key, 0o644);
  await using daemon = await startDaemonProcess(directory.path, configuration);
  const { warnings } = await daemon.said('the configuration is not safe');
  expect(warnings).toEqual([
    expect.stringContaining(`listen.tls.key_file: ${key} can be read by every user`),
  ]);
  const { out, code } = await runProcess(['doctor', '--config', join(directory.path, 'config.yaml')]);
  expect([code, out]).toEqual([
    1,
    expect.stringContaining(`fail  ${key} can be read by every user of this machine`),
  ]);
});

test('after the state directory was moved away, SIGHUP loads the certificate without a failure, and SIGTERM exits with 0', async () => {
  await using directory = temporaryDirectory();
  const secured = await secure(directory.path);
  await using daemon = await startDaemonProcess(directory.path, secured.configuration);
  await renew(secured, 90);
  renameSync(join(directory.path, 'state'), join(directory.path, 'away'));
  daemon.signal('SIGHUP');
  await daemon.said('new certificate loaded');
  expect(await daemon.said('listen.json cannot be written: commands cannot find this process')).toMatchObject(
    {
      level: 'error',
      error: 'no such file or directory',
    },
  );
  await daemon.said('the configuration was reloaded');
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
  await daemon.said('stopped');
});
