hardenProcess();
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // The reader of a pipe may stop reading: that is not a failure.
  if (code === 'EPIPE') process.exit();
  exitWith(`cannot write the result: ${message}. The command may already have taken effect`);
});
try {
  process.cwd();
} catch {
  // Node's path functions and yargs would throw.
  exitWith('the working directory was removed: change to another directory');
}
if (process.platform !== 'win32' && !process.execPath.startsWith('/')) process.execPath = findExecutable();
// Some terminals, such as a serial console, report a width of 0.
for (const stream of [process.stdout, process.stderr]) if (stream.columns === 0) stream.columns = 80;
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));

function exitWith(detail: string): never {
  const failure = { error: { code: 'failed', detail, exit_code: 1 } };
  process.stderr.write(
    process.argv.includes('--json') ? `${JSON.stringify(failure, null, 2)}\n` : `latchkey: ${detail}\n`,
  );
  process.exit(1);
}

/** The path of the running Node or executable. Without /proc, Node only knows the word that started it. */
function findExecutable(): string {
  const { resolve } = process.getBuiltinModule('node:path');
  const { existsSync } = process.getBuiltinModule('node:fs');
  const word = process.execPath;
  const folders = word.includes('/') ? ['.'] : (process.env['PATH'] ?? '').split(':');
  return folders.map((folder) => resolve(folder, word)).find((path) => existsSync(path)) ?? word;
}

/**
 * Closes Node's debugger and turns off its reports, whatever the environment asks for.
 *
 * Node opens its debugger to every user of the machine at a SIGUSR1 without a listener, and with `--inspect`.
 * `--heapsnapshot-signal` and `--report-on-signal` write files that contain secrets. An `--inspect` on the command line
 * is kept for developers of Latchkey.
 */
function hardenProcess(): void {
  for (const name of process.eventNames()) {
    if (typeof name === 'string' && name.startsWith('SIG')) process.removeAllListeners(name);
  }
  process.on('SIGUSR1', () => undefined);
  process.report.reportOnSignal = false;
  process.report.excludeEnv = true;
  // Node would accept any certificate of the upstream.
  delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  if (/(?:^|\s)--inspect/.test(process.env['NODE_OPTIONS'] ?? '')) {
    process.getBuiltinModule('node:inspector').close();
  }
}
