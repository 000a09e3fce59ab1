import { expect, test } from 'vitest';
import {
  examineReach,
  findUser,
  type FileStatus,
  type UnitNeeds,
} from '../../../src/features/install/system-service/unit-reach.ts';

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

test('a service whose files are accessible has no findings', () => {
  expect(look({})).toEqual({ refusals: [], warnings: [] });
  const groups = { '/etc/latchkey': { uid: root, gid: 2000, mode: 0o750 } };
  expect(look({ stateDir: '/srv/state' }, { ...groups, '/srv/state': null }).refusals).toEqual([]);
  const own = { '/srv/state': { uid: service, gid: root, mode: 0o700 } };
  expect(look({ stateDir: '/srv/state' }, own).refusals).toEqual([]);
});

test('a program in a closed home directory is refused, and the error names the folder', () => {
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
])('a service is refused if it cannot access its files: %o', (with_, refusal) => {
  const files = { '/usr/bin/missing': null, '/opt/private': ofAda, '/srv/ada': ofAda };
  expect(look(with_, files).refusals).toEqual([expect.stringContaining(refusal)]);
});

test('an unreadable configuration is only a warning', () => {
  const files = { '/etc/secret.yaml': ofAda, '/srv/state': ofAda };
  expect(look({ config: '/etc/secret.yaml', stateDir: '/srv/state' }, files)).toEqual({
    refusals: [],
    warnings: ['the user latchkey cannot read /etc/secret.yaml yet'],
  });
});

test('a socket that the service cannot create is a warning', () => {
  expect(look({ socket: '/run/shop.sock' }).warnings).toEqual([
    'the service cannot create the socket /run/shop.sock: put it into /run/latchkey, or into the state directory',
  ]);
  expect(look({ socket: '/var/lib/latchkey/a.sock' }).warnings).toEqual([]);
  expect(look({ socket: null }).warnings).toEqual([]);
});

test('findUser returns a user with all groups, or null', () => {
  const passwd = 'root:x:0:0::/root:/bin/sh\nlatchkey:x:990:991::/nonexistent:/bin/false\n';
  const group = 'shop:x:2000:ada,latchkey\nlatchkey:x:991:\nlatchkeys:x:5:latchkeys\n';
  expect(findUser('latchkey', passwd, group)).toEqual({ uid: 990, gids: [991, 2000] });
  expect(findUser('nobody', passwd, group)).toBeNull();
});
