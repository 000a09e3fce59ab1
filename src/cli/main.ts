import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Keeps compiled code in the user's cache directory: anybody could put code into one in /tmp. */
function cacheCompiledCode(): void {
  try {
    const given = process.env['XDG_CACHE_HOME'] ?? '';
    enableCompileCache(join(isAbsolute(given) ? given : join(homedir(), '.cache'), 'latchkey'));
  } catch {
    // Without a home directory it starts a little slower.
  }
}

cacheCompiledCode();
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A pipe that its reader closed is no failure; a full disk is.
  process.exit(error.code === 'EPIPE' ? undefined : 1);
});
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));
