import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ConfigurationSource } from '../../../../src/config/load.ts';
import { optionsFor } from '../../../../src/features/console/daemon/options.ts';

type Current = Parameters<typeof optionsFor>[0];

function options(stateDir: string, named?: { file: string | null; source: 'default' | 'file' | 'option' }) {
  const source = named && { file: named.file, sourceOf: () => ({ source: named.source, origin: null }) };
  const configuration = { stateDir } as Current['configuration'];
  return optionsFor({ configuration, source: (source ?? null) as ConfigurationSource | null });
}

test.runIf(process.platform === 'linux')(
  'a command needs the file that names the state directory, or else the directory, unless it finds them by itself',
  () => {
    const found = join(homedir(), '.local/state/latchkey');
    expect(options(found, { file: null, source: 'default' })).toEqual([]);
    expect(options('/srv/state', { file: '/etc/latchkey/config.yaml', source: 'file' })).toEqual([]);
    expect(options('/srv/state', { file: '/srv/config.yaml', source: 'file' })).toEqual([
      '--config',
      '/srv/config.yaml',
    ]);
    expect(options('/srv/state', { file: '/srv/config.yaml', source: 'option' })).toEqual([
      '--state-dir',
      '/srv/state',
    ]);
    expect(options('/srv/state')).toEqual(['--state-dir', '/srv/state']);
  },
);
