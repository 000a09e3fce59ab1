#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Keeps compiled code in the user's own cache: one in the common temporary directory could be planted. */
function cacheCompiledCode(): void {
  try {
    const given = process.env['XDG_CACHE_HOME'] ?? '';
    enableCompileCache(join(isAbsolute(given) ? given : join(homedir(), '.cache'), 'latchkey'));
  } catch {
    // A user without a home directory starts a little slower.
  }
}

cacheCompiledCode();
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe may have had enough, which is no failure; a full disk is one.
  process.exit(error.code === 'EPIPE' ? undefined : 1);
});
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));
