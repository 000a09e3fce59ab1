import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { embeddedConfiguration } from '../../src/config/load.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryDirectory } from '../support/temporary.ts';

// The stop waits for ten real seconds.
test('A client that sends CONNECT and does not read its response does not delay a stop.', async () => {
  await using directory = temporaryDirectory();
  const socket = join(directory.path, 'latchkey.sock');
  const daemon = await startDaemon(
    embeddedConfiguration({ state_dir: join(directory.path, 'state'), listen: { tcp: false, socket } }),
    { log: silent },
  );
  const caller = connect(socket).pause();
  const page = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n';
  caller.write(`${page}CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await once(caller, 'readable');
  // The stop waits for this client no longer than for others.
  await expect(daemon.stop()).resolves.toBeUndefined();
  caller.destroy();
});
