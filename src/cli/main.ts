closeBackDoors();
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // A pipe that its reader closed is no failure; a full disk is.
  if (code === 'EPIPE') process.exit();
  const detail = `the answer cannot be written: ${message}; what was asked for may have been done`;
  const failure = { error: { code: 'failed', detail, exit_code: 1 } };
  process.stderr.write(
    process.argv.includes('--json') ? `${JSON.stringify(failure, null, 2)}\n` : `latchkey: ${detail}\n`,
  );
  process.exit(1);
});
// A serial console, among others, tells a width of 0.
for (const stream of [process.stdout, process.stderr]) if (stream.columns === 0) stream.columns = 80;
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));

/**
 * Closes what Node can open to others, whatever the environment asks for.
 *
 * Node opens its debugger, to every user of the machine, at a SIGUSR1 for which nothing listens, and with `--inspect`.
 * `--heapsnapshot-signal` and `--report-on-signal` write files that hold secrets. An `--inspect` on the command line
 * itself is kept, for those who debug Latchkey.
 */
function closeBackDoors(): void {
  for (const name of process.eventNames()) {
    if (typeof name === 'string' && name.startsWith('SIG')) process.removeAllListeners(name);
  }
  process.on('SIGUSR1', () => undefined);
  process.report.reportOnSignal = false;
  process.report.excludeEnv = true;
  // It would accept every certificate of the upstream.
  delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  if (/(?:^|\s)--inspect/.test(process.env['NODE_OPTIONS'] ?? '')) {
    process.getBuiltinModule('node:inspector').close();
  }
}
