import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, test } from 'vitest';
import { makeCertificate } from '../support/network/made-certificate.ts';
import { statusFields } from '../../src/cli/commands/status.ts';
import { connect } from '../../src/client/index.ts';
import { embeddedConfiguration } from '../../src/config/load.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import type { Log } from '../../src/service/ports.ts';
import { serializeStatus } from '../../src/wire/status.ts';
import { freePort } from '../support/network/free-port.ts';
import { listen } from '../support/network/listener.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { socketPath } from '../support/network/socket-path.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('a check of the listeners opens no socket or pipe a second time', async () => {
  await using directory = temporaryDirectory();
  const socket = socketPath(directory.path);
  const logged: string[] = [];
  const note: Log['warn'] = (_, message) => void logged.push(message);
  const daemon = await startDaemon(
    embeddedConfiguration({ state_dir: directory.path, listen: { tcp: false, socket } }),
    { log: { ...silent, warn: note, error: note } },
  );
  for (let time = 0; time < 2; time += 1) await daemon.checkListeners();
  await using http = httpClient({ socket });
  expect((await http.get('/livez')).status).toBe(200);
  expect(await daemon.status()).toMatchObject({ listeners: { lost: [] } });
  expect(logged.filter((message) => message.includes('socket'))).toEqual([]);
  await daemon.stop();
});

test('two TCP addresses serve the same routes, are in the status, and close together', async () => {
  await using directory = temporaryDirectory();
  const daemon = await startDaemon(
    embeddedConfiguration({
      state_dir: directory.path,
      listen: { tcp: ['127.0.0.1:0', '[::1]:0'], socket: false },
    }),
    { log: silent },
  );
  const { tcp, otherTcp } = daemon.addresses;
  const urls = [tcp ?? '', ...otherTcp];
  expect(urls).toEqual([
    expect.stringContaining('http://127.0.0.1:'),
    expect.stringContaining('http://[::1]:'),
  ]);
  for (const url of urls) expect((await fetch(`${url}/livez`)).status).toBe(200);
  const status = serializeStatus(await daemon.status());
  expect(statusFields(status, String)['listening']).toBe(urls.join(', '));
  // Every address reaches the same process, so the programs that read this file need one.
  const listenJson: unknown = JSON.parse(readFileSync(join(directory.path, 'listen.json'), 'utf8'));
  expect(listenJson).toMatchObject({ tcp });
  const client = connect({ stateDir: directory.path, productSecret: 'unknown' });
  await expect(client.verify('A-KEY')).rejects.toMatchObject({ code: 'credentials_invalid' });
  client.close();
  await daemon.stop();
  for (const url of urls) await expect(fetch(`${url}/livez`)).rejects.toThrow('fetch failed');
});

test('if one of two TCP addresses is in use, the daemon does not start and leaves the other free', async () => {
  await using directory = temporaryDirectory();
  await using other = await listen(createServer());
  const port = await freePort();
  const start = startDaemon(
    embeddedConfiguration({
      state_dir: directory.path,
      listen: { tcp: [`127.0.0.1:${port}`, new URL(other.url).host], socket: false },
    }),
    { log: silent },
  );
  await expect(start).rejects.toMatchObject({
    code: 'in_use',
    message: expect.stringContaining(new URL(other.url).host) as unknown,
  });
  await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow('fetch failed');
});

test('a reload changes the certificate of every TCP address', async () => {
  await using directory = temporaryDirectory();
  const [cert_file, key_file] = ['cert.pem', 'key.pem'].map((name) => join(directory.path, name)) as [
    string,
    string,
  ];
  const renew = async (): Promise<string> => {
    const made = await makeCertificate(['localhost'], { days: 90, now: Date.now() });
    writeFileSync(cert_file, made.certificate);
    writeFileSync(key_file, made.key);
    return new X509Certificate(made.certificate).fingerprint256;
  };
  await renew();
  const tree = {
    state_dir: directory.path,
    listen: { tcp: ['127.0.0.1:0', '[::1]:0'], tls: { cert_file, key_file }, socket: false },
  };
  const daemon = await startDaemon(embeddedConfiguration(tree, [cert_file, key_file]), { log: silent });
  const renewed = await renew();
  daemon.reload(embeddedConfiguration(tree, [cert_file, key_file]));
  const { tcp, otherTcp } = daemon.addresses;
  expect(await Promise.all([tcp ?? '', ...otherTcp].map(shownAt))).toEqual([renewed, renewed]);
  await daemon.stop();
});

/** The fingerprint of the certificate that a TLS listener shows. */
async function shownAt(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const socket = connectTls({ host, port: Number(port), servername: 'localhost', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}
