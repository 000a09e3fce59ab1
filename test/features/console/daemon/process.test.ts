import { expect, test } from 'vitest';
import { embeddedConfiguration } from '../../../../src/config/load.ts';
import { startDaemon } from '../../../../src/daemon/start.ts';
import { isConsoleServed } from '../../../../src/features/console/daemon/process.ts';
import { socketPath } from '../../../support/network/socket-path.ts';
import { silent } from '../../../support/silent-log.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

test('the console is served at each of two TCP addresses', async () => {
  await using directory = temporaryDirectory();
  const daemon = await startDaemon(
    embeddedConfiguration({
      state_dir: directory.path,
      listen: { tcp: ['127.0.0.1:0', '[::1]:0'], socket: false },
      console: { enabled: true },
    }),
    { log: silent },
  );
  const { tcp, otherTcp } = daemon.addresses;
  for (const url of [tcp ?? '', ...otherTcp]) expect((await fetch(`${url}/console`)).status).toBe(200);
  await daemon.stop();
});

test.each([
  [['127.0.0.1:0', '[::1]:0'], true],
  [['127.0.0.1:0', '192.0.2.1:0'], false],
  [false, false],
])('the console is served if every TCP address is a loopback address (%j)', (tcp, isServed) => {
  const configuration = embeddedConfiguration({
    state_dir: '/s',
    listen: { tcp, socket: socketPath('/s', 'latchkey.sock'), allow_remote: true },
    console: { enabled: true },
  });
  expect(isConsoleServed(configuration)).toBe(isServed);
});
