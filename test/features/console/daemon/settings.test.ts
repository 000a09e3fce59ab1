import { expect, test } from 'vitest';
import { parseConfiguration } from '../../../../src/config/load.ts';
import { settingsOf } from '../../../../src/features/console/daemon/settings.ts';
import { LiveConfiguration } from '../../../../src/daemon/live-configuration.ts';
import { configSources, folder } from '../../../support/builders/config-builders.ts';

const text = `upstream:
  base_url: https://store.example
  api_key_file: /etc/api-key
  proxy: http://me:hush@proxy:3128
products:
  - {key: A, secret: a-very-secret-one}
limits:
  rate: 5
`;

test('Each setting has its value in the notation of the file, and the source that sets it.', () => {
  const loaded = parseConfiguration(
    configSources({
      text,
      file: `${folder}/config.yaml`,
      environment: { LATCHKEY_LIMITS__MISSES: '7', LATCHKEY_LISTEN__ALLOWED_HOSTS: '[a.example, b.example]' },
      flags: { log: { level: 'debug' }, listen: { tcp: undefined } },
      files: { '/etc/api-key': 'key-of-the-store-123\n' },
    }),
  );
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
  const current = new LiveConfiguration(loaded.configuration);
  current.source = loaded;
  const { file, settings } = settingsOf(current);
  const of = Object.fromEntries(settings.map(({ key, ...others }) => [key, Object.values(others)]));
  const name = `${folder}/config.yaml`;
  expect(file).toBe(name);
  expect(of).toMatchObject({
    'upstream.base_url': ['https://store.example', 'file', `${name} line 2`],
    'upstream.api_key': ['***', 'file', `${name} line 3`],
    // A section that the file sets has defaults, too.
    'upstream.timeout': ['10s', 'default', null],
    'products[0].key': ['A', 'file', `${name} line 6`],
    'products[0].secret': ['***', 'file', `${name} line 6`],
    'limits.rate': ['5', 'file', `${name} line 8`],
    'limits.misses': ['7', 'environment', 'LATCHKEY_LIMITS__MISSES'],
    'listen.allowed_hosts[1]': ['b.example', 'environment', 'LATCHKEY_LISTEN__ALLOWED_HOSTS'],
    'log.level': ['debug', 'option', null],
    'log.format': ['json', 'default', null],
  });
  expect(of['listen.tcp']?.slice(1)).toEqual(['default', null]);
  expect(JSON.stringify(settings)).not.toMatch(/hush|very-secret|key-of-the-store/);
});

test('A configuration that a program gives comes from the program alone.', () => {
  const loaded = parseConfiguration(configSources({ flags: { state_dir: '/srv/state' } }));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors));
  const { file, settings } = settingsOf(new LiveConfiguration(loaded.configuration));
  expect(file).toBeNull();
  expect(new Set(settings.map(({ source }) => source))).toEqual(new Set(['option']));
});
