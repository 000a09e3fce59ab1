import { expect, test } from 'vitest';
import { embeddedConfiguration } from '../../src/daemon/sandbox/server.ts';
import { startDaemon } from '../../src/daemon/start.ts';
import type { Log } from '../../src/service/ports.ts';
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
