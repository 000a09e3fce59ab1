import { tmpdir } from 'node:os';
import type { Configuration } from '../../config/configuration.ts';
import { formatFault } from '../../config/fault/fault.ts';
import { parseConfiguration } from '../../config/load.ts';
import type { Tree } from '../../config/file/tree.ts';

/** A configuration made here and nowhere else: no file and no environment has a say. Throws on a fault. */
export function embeddedConfiguration(tree: Tree): Configuration {
  const result = parseConfiguration({
    flags: tree,
    environment: {},
    home: tmpdir(),
    platform: process.platform,
    directory: tmpdir(),
    readFile: (path) => {
      throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
    },
  });
  if (result.ok) return result.configuration;
  throw new Error(result.faults.map(formatFault).join('\n'));
}
