import { expect, test } from 'vitest';
import {
  examineReach,
  findUser,
  type FileStatus,
  type UnitNeeds,
} from '../../src/cli/commands/service/unit-reach.ts';

const [root, ada, service] = [0, 1000, 990];
const open: FileStatus = { uid: root, gid: root, mode: 0o755 };
const ofAda: FileStatus = { uid: ada, gid: ada, mode: 0o700 };
const needs: UnitNeeds = {
  program: ['/usr/bin/latchkey'],
  config: '/etc/latchkey/config.yaml',
  stateDir: '/var/lib/latchkey',
  socket: '/run/latchkey/latchkey.sock',
};

/** What is found on a machine where all is open but for some paths; null: not there. */
function look(with_: Partial<UnitNeeds>, files: Readonly<Record<string, FileStatus | null>> = {}) {
  const user = { uid: service, gids: [service, 2000] };
  const statusOf = (path: string): FileStatus | null => files[path] ?? (path in files ? null : open);
  return examineReach({ ...needs, ...with_ }, { user, statusOf });
}

test('what the service reaches is not objected to', () => {
  expect(look({})).toEqual({ refusals: [], warnings: [] });
  const groups = { '/etc/latchkey': { uid: root, gid: 2000, mode: 0o750 } };
  expect(look({ stateDir: '/srv/state' }, { ...groups, '/srv/state': null }).refusals).toEqual([]);
  const own = { '/srv/state': { uid: service, gid: root, mode: 0o700 } };
  expect(look({ stateDir: '/srv/state' }, own).refusals).toEqual([]);
});

test('a clone in a home that is closed to others is refused, and the folder named', () => {
  const program = ['/home/ada/latchkey/node', '/home/ada/latchkey/src/cli/main.ts'];
  expect(look({ program }, { '/home/ada': ofAda }).refusals).toEqual(
    program.map((path) => `the user latchkey cannot read ${path}: /home/ada is closed to it`),
  );
  expect(look({ program }).refusals).toEqual([]);
});

test.each([
  [{ program: ['/usr/bin/missing'] }, '/usr/bin/missing does not exist'],
  [{ config: '/tmp/latchkey.yaml' }, '/tmp/latchkey.yaml is hidden from the service'],
  [
    { config: '/srv/ada/latchkey.yaml' },
    'the user latchkey cannot read /srv/ada/latchkey.yaml: /srv/ada is closed',
  ],
  [{ program: ['/opt/private'] }, 'the user latchkey cannot read /opt/private: its mode does not permit it'],
  [{ stateDir: '/tmp/state' }, 'the state directory /tmp/state would be lost'],
  [{ stateDir: '/root/state' }, 'the state directory /root/state is in a home directory'],
  [{ stateDir: '/srv/ada/state' }, 'the user latchkey cannot enter /srv/ada/state: /srv/ada is closed to it'],
])('what it cannot reach is refused: %o', (with_, refusal) => {
  const files = { '/usr/bin/missing': null, '/opt/private': ofAda, '/srv/ada': ofAda };
  expect(look(with_, files).refusals).toEqual([expect.stringContaining(refusal)]);
});

test('what is only to be given to the user after it is installed is no blocker', () => {
  const files = { '/etc/secret.yaml': ofAda, '/srv/state': ofAda };
  expect(look({ config: '/etc/secret.yaml', stateDir: '/srv/state' }, files)).toEqual({
    refusals: [],
    warnings: ['the user latchkey cannot read /etc/secret.yaml yet'],
  });
});

test('a socket outside of what it may write is warned of', () => {
  expect(look({ socket: '/run/shop.sock' }).warnings).toEqual([
    'the service cannot create the socket /run/shop.sock: put it into /run/latchkey, or into the state directory',
  ]);
  expect(look({ socket: '/var/lib/latchkey/a.sock' }).warnings).toEqual([]);
  expect(look({ socket: null }).warnings).toEqual([]);
});

test('a user is known with all its groups, or not at all', () => {
  const passwd = 'root:x:0:0::/root:/bin/sh\nlatchkey:x:990:991::/nonexistent:/bin/false\n';
  const group = 'shop:x:2000:ada,latchkey\nlatchkey:x:991:\nlatchkeys:x:5:latchkeys\n';
  expect(findUser('latchkey', passwd, group)).toEqual({ uid: 990, gids: [991, 2000] });
  expect(findUser('nobody', passwd, group)).toBeNull();
});
