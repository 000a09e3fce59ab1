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
