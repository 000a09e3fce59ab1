import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { missingForCleanRoot } from './clean-root.ts';
import { buildExecutable } from './executable.ts';
import { hasProgram } from './installed.ts';

const builder = join(import.meta.dirname, '../../../src/packaging/debian-package.ts');

/** What is missing to build the package and to test it in a clean root. Null: nothing. */
export const missingForPackage: string | null =
  missingForCleanRoot ?? (hasProgram('dpkg-shlibdeps') ? null : 'dpkg-shlibdeps (dpkg-dev)');

/** Builds the Debian package as `npm run build:deb` does; returns its file in `out`. */
export function buildDebianPackage(version: string, out: string): string {
  const argv = [builder, '--executable', buildExecutable(), '--version', version, '--out', out];
  // Weak compression, because compression takes most of the time.
  const env = { ...process.env, DPKG_DEB_COMPRESSOR_TYPE: 'gzip', DPKG_DEB_COMPRESSOR_LEVEL: '1' };
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the Debian package was not built: ${stderr}`);
  return stdout.trim();
}
