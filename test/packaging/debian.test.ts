import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseConfiguration, type ConfigurationResult } from '../../src/config/load.ts';

const templates = join(import.meta.dirname, '../../src/packaging/debian');
const file = '/etc/latchkey/config.yaml';
const starter = readFileSync(join(templates, 'config.yaml'), 'utf8');

function parse(text: string): ConfigurationResult {
  const readFile = (path: string): string => (path === file ? text : 'a-secret');
  return parseConfiguration({
    file,
    environment: {},
    home: '/',
    platform: 'linux',
    directory: '/',
    readFile,
  });
}

test('The starter configuration is an authority that listens on this machine alone, in the state directory of the package.', () => {
  expect(parse(starter)).toMatchObject({
    ok: true,
    warnings: [],
    configuration: {
      role: 'authority',
      stateDir: '/var/lib/latchkey',
      listen: { tcp: [{ host: '127.0.0.1', port: 8787 }] },
    },
  });
});

test('Without its comment marks, the starter configuration is an agent with a socket for a group.', () => {
  const key =
    /^( *)# (?= *(?:- )?(?:sockets|path|mode|group|grant|upstream|base_url|api_key_file|products|key|secret_file):)/gm;
  const parsed = parse(starter.replaceAll(key, '$1'));
  expect(parsed.ok ? [] : parsed.errors).toEqual([]);
  expect(parsed).toMatchObject({
    configuration: {
      role: 'agent',
      products: [{ key: 'RGsF' }],
      listen: { sockets: [{ path: '/run/latchkey/shop.sock', group: 'shop' }] },
    },
  });
});

test.each(['postinst', 'prerm', 'postrm'])('The package script %s has valid shell syntax.', (name) => {
  const { status, stderr } = spawnSync('sh', ['-n', join(templates, name)], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
});
