import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfiguration, locateDaemon, parseLocation } from '../../src/config/load.ts';
import { denied, configSources } from '../support/builders/config-builders.ts';

test('the daemon is found even if the secrets are unreadable and other settings are invalid', () => {
  const text =
    'state_dir: /s\nlisten: { tcp: 127.0.0.1:1, sokcet: x }\nupstream: { api_key_file: /root/key }\nx: 1';
  expect(parseLocation(configSources({ text, files: { '/root/key': denied() } }))).toMatchObject({
    ok: true,
    location: { stateDir: '/s', socket: '/s/latchkey.sock', tcp: [{ host: '127.0.0.1', port: 1 }] },
  });
});

test('a section without any keys counts as not given', () => {
  const text = 'state_dir: /s\nupstream:\nlisten:\n';
  expect(parseLocation(configSources({ text }))).toMatchObject({
    ok: true,
    location: { stateDir: '/s', engine: null, hasUpstream: false },
  });
});

test('the location says whether the daemon is an agent', () => {
  const text = 'upstream: { base_url: "http://localhost" }';
  expect(parseLocation(configSources({ text }))).toMatchObject({
    location: { engine: null, hasUpstream: true },
  });
});

test('the location has no address for listeners that are switched off', () => {
  const result = parseLocation(
    configSources({ flags: { state_dir: '/s', listen: { tcp: false, socket: false } } }),
  );
  expect(result).toMatchObject({ ok: true, location: { stateDir: '/s', socket: null, tcp: [] } });
});

test('an unreadable file is an error unless a flag names the state directory', () => {
  const files = { '/etc/latchkey/config.yaml': denied() };
  expect(parseLocation(configSources({ files }))).toMatchObject({ ok: false, errors: [{ key: 'file' }] });
  expect(parseLocation(configSources({ files, flags: { state_dir: '/s' } }))).toMatchObject({ ok: true });
});

test('an invalid listen address is an error of the location', () => {
  expect(parseLocation(configSources({ text: 'listen: { tcp: nowhere }' }))).toMatchObject({
    ok: false,
    errors: [{ key: 'listen.tcp', origin: '/srv/latchkey/config.yaml line 1' }],
  });
});

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-config-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

test('a configuration is loaded from the file system', () => {
  const file = join(directory, 'config.yaml');
  writeFileSync(join(directory, 'key'), 'key-of-the-shop\n');
  writeFileSync(file, 'state_dir: .\nupstream: { base_url: "http://localhost", api_key_file: key }');
  const loaded = loadConfiguration({ file, environment: {} });
  expect(loaded).toMatchObject({ ok: true, file, configuration: { stateDir: directory, role: 'agent' } });
  expect(locateDaemon({ file, environment: {} })).toMatchObject({
    ok: true,
    location: { stateDir: directory },
  });
  chmodSync(join(directory, 'key'), 0o640);
  expect(loadConfiguration({ file, environment: {} })).toMatchObject({ warnings: [] });
  chmodSync(join(directory, 'key'), 0o604);
  expect(loadConfiguration({ file, environment: {} })).toMatchObject({
    warnings: [{ key: 'upstream.api_key_file' }],
  });
  expect(loadConfiguration({ file: directory, environment: {} })).toEqual({
    ok: false,
    errors: [
      {
        key: 'file',
        text: `cannot read ${directory}: it is a folder`,
        origin: 'flag',
      },
    ],
  });
});
