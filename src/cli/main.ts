process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A pipe that its reader closed is no failure; a full disk is.
  process.exit(error.code === 'EPIPE' ? undefined : 1);
});
// A serial console, among others, tells a width of 0.
for (const stream of [process.stdout, process.stderr]) if (stream.columns === 0) stream.columns = 80;
const { runProgram } = await import('./program.ts');
process.exitCode = await runProgram(process.argv.slice(2));
