import { certificate, privateKey } from '../network/certificate.ts';
import type { App, ServerSettings } from '../../../src/http/app.ts';
import { listenSocket, listenTcp } from '../../../src/http/listen.ts';
import type { Listener } from '../network/raw-http.ts';
import { temporaryDirectory } from '../temporary.ts';
import { openApp, serverOf, type TestApp } from './http-app.ts';
import { socketPath } from '../network/socket-path.ts';

/**
 * An authority that listens over TCP, TLS and a Unix socket on one store. TLS uses the certificate for
 * `localhost`.
 */
export interface Served
  extends AsyncDisposable, Pick<TestApp, 'app' | 'lines' | 'write' | 'directory' | 'tokenUses'> {
  readonly listeners: { readonly tcp: Listener; readonly tls: Listener; readonly socket: Listener };
}

export async function serveApp(
  changes: Partial<App> = {},
  settings: Partial<ServerSettings> = {},
): Promise<Served> {
  const opened = new AsyncDisposableStack();
  const test = opened.use(await openApp(changes));
  const { app, lines, directory: state, tokenUses } = test;
  const directory = opened.use(temporaryDirectory());
  const tcp = opened.adopt(serverOf(app, settings), (server) => server.close());
  const local = opened.adopt(serverOf(app, { ...settings, listener: 'socket' }), (server) => server.close());
  const identity = { chain: certificate, key: privateKey };
  const tls = opened.adopt(serverOf(app, { ...settings, tls: identity }), (server) => server.close());
  const address = await listenTcp(tcp, { host: '127.0.0.1', port: 0 });
  const secureAddress = await listenTcp(tls, { host: '127.0.0.1', port: 0 });
  const path = socketPath(directory.path);
  await listenSocket(local, { path, mode: 0o600 });
  return {
    app,
    lines,
    write: (work) => test.write(work),
    tokenUses,
    directory: state,
    listeners: { tcp: { tcp: address }, tls: { tcp: secureAddress }, socket: { socket: path } },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
