import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Configuration } from '../config/configuration.ts';
import { formatConfigError } from '../config/errors.ts';
import type { Tree } from '../config/file/tree.ts';
import { parseConfiguration } from '../config/load.ts';

/** A configuration from `tree` and the files that it names. Throws where it is wrong. */
export function embeddedConfiguration(tree: Tree, files: readonly string[] = []): Configuration {
  const result = parseConfiguration({
    flags: tree,
    environment: {},
    home: tmpdir(),
    platform: process.platform,
    directory: tmpdir(),
    readFile: (path) => {
      if (files.includes(path)) return readFileSync(path, 'utf8');
      throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
    },
  });
  if (result.ok) return result.configuration;
  throw new Error(result.errors.map(formatConfigError).join('\n'));
}
