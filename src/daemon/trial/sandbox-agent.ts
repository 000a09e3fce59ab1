import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { stringify } from 'yaml';
import type { Tree } from '../../config/file/tree.ts';
import type { DialectName } from '../../domain/dialect.ts';
import { makeDirectory } from '../../store/sqlite/files/make-directory.ts';
import { replaceFile } from '../../store/sqlite/files/private-file.ts';
import { SandboxRefused, writeFor, type SandboxCredentials } from './sandbox-credentials.ts';

/** What an agent has to know of a sandbox. */
type Upstream = SandboxCredentials & { address: string; dialect: DialectName };

/** The configuration of an agent in front of a sandbox, which speaks as it does; its state is in `directory`. */
export function agentConfiguration(sandbox: Upstream, directory: string): Tree {
  const { address, dialect, api_key, product_key, product_secret } = sandbox;
  return {
    state_dir: join(directory, 'state'),
    listen: { tcp: '127.0.0.1:0', dialect },
    upstream: { base_url: address, api_key, dialect },
    products: [{ key: product_key, secret: product_secret }],
  };
}

/**
 * The file of an agent's configuration in a folder. Throws `SandboxRefused` when it is there, since it may be in use, or
 * the folder is none.
 */
export function newConfigurationFile(directory: string): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === false) {
    throw new SandboxRefused(`${directory} is a file: a folder is needed for the configuration`);
  }
  const file = join(resolve(directory), 'latchkey.yaml');
  if (existsSync(file)) throw new SandboxRefused(`${file} is there already: it is not overwritten`);
  return file;
}

/** Writes the configuration, ready to be served. Throws `SandboxRefused`. */
export function writeAgentConfiguration(sandbox: Upstream, file: string): void {
  const folder = dirname(file);
  writeFor('--write-config', file, () => {
    makeDirectory(folder, 0o700);
    replaceFile(file, stringify(agentConfiguration(sandbox, folder)));
  });
}
